// Idempotent produce with kafkajs, then everything read back.
//
// Usage: main.js BOOTSTRAP TOPIC RECORDS. Prints "half" when half of the records are acknowledged,
// so that whoever started it can kill a leader; then "ok N" or what is wrong, with status 1.
//
// kafkajs has no assign: its consumers always join a group, which is not served. Reading back is
// left to whoever started this; here only the offsets that were told are checked.

const { Kafka, logLevel } = require("kafkajs");

async function main() {
  const [bootstrap, topic, count] = process.argv.slice(2);
  const records = Number(count);
  const kafka = new Kafka({
    brokers: bootstrap.split(","),
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 50, retries: 20 },
  });
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  let next = 0;
  for (let number = 0; number < records; number += 10) {
    const messages = [];
    for (let each = number; each < number + 10; each++) {
      messages.push({ value: String(each), partition: 0 });
    }
    const [told] = await producer.send({ topic, acks: -1, messages });
    if (Number(told.baseOffset) !== next) {
      throw new Error(`batch at ${told.baseOffset}, wanted ${next}`);
    }
    next += 10;
    if (next === records / 2) console.log("half");
  }
  await producer.disconnect();
  const admin = kafka.admin();
  await admin.connect();
  const [end] = await admin.fetchTopicOffsets(topic);
  await admin.disconnect();
  if (Number(end.high) !== records) throw new Error(`${end.high} records`);
  console.log(`ok ${end.high}`);
}

main().catch((error) => {
  console.log(String(error));
  process.exit(1);
});
