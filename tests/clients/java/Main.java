// Idempotent produce with the Java client's defaults, then everything read back by assign.
//
// Usage: Main BOOTSTRAP TOPIC RECORDS. Prints "half" when half of the records are acknowledged,
// so that whoever started it can kill a leader; then "ok N" or what is wrong, with status 1.

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Main {
    public static void main(String[] args) throws Exception {
        String bootstrap = args[0], topic = args[1];
        int records = Integer.parseInt(args[2]);
        AtomicReference<Exception> failed = new AtomicReference<>();
        AtomicInteger acked = new AtomicInteger();
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "linger.ms", 1);
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < records; number++) {
                producer.send(
                        new ProducerRecord<>(topic, 0, null, Integer.toString(number)),
                        (told, error) -> {
                            if (error != null) failed.set(error);
                            if (acked.incrementAndGet() == records / 2) System.out.println("half");
                        });
                if (number % 20 == 0) Thread.sleep(2);
            }
            producer.flush();
        }
        if (failed.get() != null) throw failed.get();
        List<String> found = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(
                        Map.of("bootstrap.servers", bootstrap),
                        new StringDeserializer(),
                        new StringDeserializer())) {
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            while (consumer.position(partition) < end) {
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofSeconds(5))) {
                    found.add(each.value());
                }
            }
        }
        for (int number = 0; number < records; number++) {
            if (number >= found.size() || !found.get(number).equals(Integer.toString(number))) {
                System.out.println("wrong at " + number + " of " + found.size());
                System.exit(1);
            }
        }
        if (found.size() != records) throw new IllegalStateException(found.size() + " records");
        System.out.println("ok " + found.size());
    }
}
