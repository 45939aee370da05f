// Drains all partitions of a topic from the beginning, several times, with a consumer that is in no group.
//
// AssignPerf BOOTSTRAP TOPIC PARTITIONS RECORDS PASSES      prints {"mb_per_s": [per pass], "bytes": all together}
//
// The consumer's settings are those of Kafka's ConsumerPerformance. MB are of 2^20 bytes, as there.

import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class AssignPerf {
    static final long GIVE_UP_NS = 120_000_000_000L;

    public static void main(String[] args) {
        long records = Long.parseLong(args[3]);
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", args[0]);
        settings.put("receive.buffer.bytes", 2 * 1024 * 1024);
        settings.put("max.partition.fetch.bytes", 1024 * 1024);
        settings.put("check.crcs", false);
        List<TopicPartition> partitions = new ArrayList<>();
        for (int index = 0; index < Integer.parseInt(args[2]); index++) partitions.add(new TopicPartition(args[1], index));
        StringJoiner rates = new StringJoiner(", ");
        long total = 0;
        try (Consumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(partitions);
            for (int pass = 0; pass < Integer.parseInt(args[4]); pass++) {
                consumer.seekToBeginning(partitions);
                long began = System.nanoTime();
                long bytes = drain(consumer, records, began + GIVE_UP_NS);
                double seconds = (System.nanoTime() - began) / 1e9;
                rates.add(String.format(Locale.ROOT, "%.3f", bytes / 1048576.0 / seconds));
                total += bytes;
            }
        }
        System.out.println("{\"mb_per_s\": [" + rates + "], \"bytes\": " + total + "}");
    }

    static long drain(Consumer<byte[], byte[]> consumer, long records, long deadline) {
        long bytes = 0;
        long seen = 0;
        while (seen < records) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                seen++;
                if (record.value() != null) bytes += record.value().length;
            }
            if (System.nanoTime() > deadline) throw new IllegalStateException("only " + seen + " of " + records + " records came");
        }
        return bytes;
    }
}
