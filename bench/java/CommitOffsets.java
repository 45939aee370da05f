// Commits offsets as fast as they are answered: several consumers without subscriptions, each with one commit in flight.
//
// CommitOffsets BOOTSTRAP TOPIC PARTITIONS CONSUMERS COMMITS WARM_UP_COMMITS GROUP      prints {"per_s": offsets per second}
//
// Each commit has an offset of every partition; COMMITS are per consumer. Each consumer has a group of its own.

import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class CommitOffsets {
    public static void main(String[] args) throws Exception {
        int partitions = Integer.parseInt(args[2]);
        int count = Integer.parseInt(args[3]);
        int commits = Integer.parseInt(args[4]);
        int warmUp = Integer.parseInt(args[5]);
        List<KafkaConsumer<byte[], byte[]>> consumers = new ArrayList<>();
        List<TopicPartition> all = new ArrayList<>();
        for (int index = 0; index < partitions; index++) all.add(new TopicPartition(args[1], index));
        for (int index = 0; index < count; index++) {
            Map<String, Object> settings = Map.of("bootstrap.servers", args[0], "group.id", args[6] + "-" + index, "enable.auto.commit", false);
            consumers.add(new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer()));
            consumers.get(index).assign(all);
        }
        run(consumers, all, warmUp);
        long began = System.nanoTime();
        run(consumers, all, commits);
        double seconds = (System.nanoTime() - began) / 1e9;
        System.out.printf(Locale.ROOT, "{\"per_s\": %.1f}%n", (double) count * commits * partitions / seconds);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static void run(List<KafkaConsumer<byte[], byte[]>> consumers, List<TopicPartition> all, int commits) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(consumers.size());
        List<Future<?>> done = new ArrayList<>();
        for (KafkaConsumer<byte[], byte[]> consumer : consumers) {
            done.add(threads.submit(() -> {
                for (int number = 0; number < commits; number++) {
                    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                    for (TopicPartition each : all) offsets.put(each, new OffsetAndMetadata(number));
                    consumer.commitSync(offsets);
                }
            }));
        }
        for (Future<?> each : done) each.get();
        threads.shutdown();
    }
}
