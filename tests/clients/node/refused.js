// What kafkajs says where it would need a group or a transaction, and after how long.
//
// Usage: refused.js BOOTSTRAP TOPIC. Prints one line for each case: name, milliseconds, what was
// thrown or, for a consumer, what it crashed with for good.

const { Kafka, logLevel } = require("kafkajs");

async function told(name, step) {
  const began = Date.now();
  let thrown = "nothing";
  try {
    await step();
  } catch (error) {
    thrown = String(error);
  }
  console.log(`${name} ${Date.now() - began} ${thrown}`);
}

async function main() {
  const [bootstrap, topic] = process.argv.slice(2);
  const kafka = new Kafka({ brokers: bootstrap.split(","), logLevel: logLevel.NOTHING });
  const consumer = kafka.consumer({ groupId: "g" });
  await consumer.connect();
  await consumer.subscribe({ topic });
  const crashed = new Promise((_, reject) =>
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      if (!payload.restart) reject(payload.error);
    }),
  );
  await told("subscribe", async () => {
    await consumer.run({ eachMessage: async () => {} });
    await crashed;
  });
  await told("close", () => consumer.disconnect());
  const admin = kafka.admin();
  await admin.connect();
  await told("list", () => admin.listGroups());
  await admin.disconnect();
  const producer = kafka.producer({ transactionalId: "x", maxInFlightRequests: 1, idempotent: true });
  await producer.connect();
  await told("transaction", () => producer.transaction());
  await told("close-producer", () => producer.disconnect());
}

main().catch((error) => {
  console.log(String(error));
  process.exit(1);
});
