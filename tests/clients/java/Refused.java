// What the Java client says where it would need a group or a transaction, and after how long.
//
// Usage: Refused BOOTSTRAP TOPIC. Prints one line for each case: name, milliseconds, what was
// thrown. What loads classes first is asked for before, so that the JVM's start is not counted.

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Refused {
    static final Duration LONG = Duration.ofSeconds(20);

    interface Step {
        void run() throws Exception;
    }

    static void told(String name, Step step) {
        long began = System.nanoTime();
        String thrown = "nothing";
        try {
            step.run();
        } catch (Exception error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            thrown = cause.getClass().getSimpleName() + ": " + cause.getMessage();
        }
        System.out.println(name + " " + (System.nanoTime() - began) / 1_000_000 + " " + thrown);
    }

    static KafkaConsumer<String, String> consumer(String bootstrap, String protocol) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", "g");
        settings.put("group.protocol", protocol);
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0];
        TopicPartition partition = new TopicPartition(args[1], 0);
        Map<String, Object> address = Map.of("bootstrap.servers", bootstrap);
        try (Admin admin = Admin.create(address)) {
            admin.describeCluster().nodes().get();
            told("list", () -> admin.listGroups().all().get());
            told("describe", () -> admin.describeConsumerGroups(List.of("g")).all().get());
        }
        for (String protocol : List.of("classic", "consumer")) {
            KafkaConsumer<String, String> subscribed = consumer(bootstrap, protocol);
            subscribed.subscribe(List.of(args[1]));
            told("subscribe-" + protocol, () -> subscribed.poll(LONG));
            told("close-" + protocol, subscribed::close);
        }
        KafkaConsumer<String, String> assigned = consumer(bootstrap, "classic");
        assigned.assign(List.of(partition));
        assigned.seek(partition, 0);
        System.out.println("read 0 " + assigned.poll(LONG).count());
        told("commit", () -> assigned.commitSync(LONG));
        told("close", assigned::close);
        Map<String, Object> named = new HashMap<>(address);
        named.put("transactional.id", "x");
        KafkaProducer<String, String> producer =
                new KafkaProducer<>(named, new StringSerializer(), new StringSerializer());
        told("transaction", producer::initTransactions);
        told("close-producer", producer::close);
    }
}
