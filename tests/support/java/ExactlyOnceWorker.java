// One worker of tests/compat/transactions/exactly_once_load.py: reads records in a group, writes them on and commits, each time in one
// transaction. Any error ends it; the test starts it again. It ends with STARVED if it got no records for STARVING_S seconds.
//
// ExactlyOnceWorker BOOTSTRAP TRANSACTIONAL_ID PROTOCOL INPUT OUTPUT GROUP SESSION_MS STARVING_S STARVED

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class ExactlyOnceWorker {
    public static void main(String[] args) {
        try {
            run(args);
        } catch (Throwable thrown) {
            System.out.println("ended by " + thrown);
            Runtime.getRuntime().halt(1);
        }
    }

    static void run(String[] args) {
        Map<String, Object> writing = new HashMap<>();
        writing.put("bootstrap.servers", args[0]);
        writing.put("transactional.id", args[1]);
        writing.put("transaction.timeout.ms", 10_000);
        writing.put("reconnect.backoff.max.ms", 200);
        Map<String, Object> reading = new HashMap<>();
        reading.put("bootstrap.servers", args[0]);
        reading.put("group.id", args[5]);
        reading.put("group.protocol", args[2]);
        reading.put("enable.auto.commit", false);
        reading.put("auto.offset.reset", "none");
        reading.put("isolation.level", "read_committed");
        reading.put("max.poll.records", 50);
        reading.put("reconnect.backoff.max.ms", 200);
        if (args[2].equals("classic")) {
            reading.put("session.timeout.ms", args[6]);
            reading.put("heartbeat.interval.ms", 200);
        }
        var producer = new KafkaProducer<>(writing, new ByteArraySerializer(), new ByteArraySerializer());
        var consumer = new KafkaConsumer<>(reading, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        producer.initTransactions();
        consumer.subscribe(List.of(args[3]));
        long fed = System.nanoTime();
        while (true) {
            ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
            if (records.isEmpty()) {
                if (System.nanoTime() - fed > Long.parseLong(args[7]) * 1_000_000_000) {
                    System.out.println("handed nothing for " + args[7] + " s, with " + consumer.assignment());
                    Runtime.getRuntime().halt(Integer.parseInt(args[8]));
                }
                continue;
            }
            fed = System.nanoTime();
            producer.beginTransaction();
            Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
            for (ConsumerRecord<byte[], byte[]> record : records) {
                producer.send(new ProducerRecord<>(args[4], record.partition(), null, record.value()));
                positions.put(new TopicPartition(args[3], record.partition()), new OffsetAndMetadata(record.offset() + 1));
            }
            producer.sendOffsetsToTransaction(positions, consumer.groupMetadata());
            producer.commitTransaction();
        }
    }
}
