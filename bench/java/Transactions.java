// Runs transactions as fast as they are answered: several producers, each with one transaction at a time and one record per partition.
//
// Transactions BOOTSTRAP TOPIC PARTITIONS PRODUCERS COUNT WARM_UP_COUNT NAME      prints {"per_s": transactions per second}
//
// COUNT is per producer.

import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Transactions {
    public static void main(String[] args) throws Exception {
        int partitions = Integer.parseInt(args[2]);
        int count = Integer.parseInt(args[4]);
        int warmUp = Integer.parseInt(args[5]);
        List<KafkaProducer<byte[], byte[]>> producers = new ArrayList<>();
        for (int index = 0; index < Integer.parseInt(args[3]); index++) {
            Map<String, Object> settings = Map.of("bootstrap.servers", args[0], "transactional.id", args[6] + "-" + index, "linger.ms", 0);
            producers.add(new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer()));
            producers.get(index).initTransactions();
        }
        run(producers, args[1], partitions, warmUp);
        long began = System.nanoTime();
        run(producers, args[1], partitions, count);
        double seconds = (System.nanoTime() - began) / 1e9;
        System.out.printf(Locale.ROOT, "{\"per_s\": %.1f}%n", (double) producers.size() * count / seconds);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static void run(List<KafkaProducer<byte[], byte[]>> producers, String topic, int partitions, int count) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(producers.size());
        List<Future<?>> done = new ArrayList<>();
        byte[] value = new byte[100];
        for (KafkaProducer<byte[], byte[]> producer : producers) {
            done.add(threads.submit(() -> {
                for (int number = 0; number < count; number++) {
                    producer.beginTransaction();
                    for (int index = 0; index < partitions; index++) producer.send(new ProducerRecord<>(topic, index, null, value));
                    // Kafka's producer can send EndTxn ahead of the records: its sender thread looks for unsent records, then for the
                    // next request, and all of send() and commitTransaction() may run in between. The commit is refused then.
                    producer.flush();
                    producer.commitTransaction();
                }
            }));
        }
        for (Future<?> each : done) {
            try {
                each.get();
            } catch (ExecutionException failed) {
                failed.printStackTrace();
                Runtime.getRuntime().halt(1); // the other producers' threads would keep this program running
            }
        }
        threads.shutdown();
    }
}
