// Measures the time until MEMBERS members share the partitions of a topic: from the first poll of the first member to the last
// change of an assignment, after which all partitions have an owner and every member has its share.
//
// GroupStart BOOTSTRAP TOPIC PARTITIONS MEMBERS GROUP PROTOCOL TIMES HEARTBEAT_MS      prints {"ms": [of each group]}
//
// Consumers are created and connected before the measurement, which covers only the group. TIMES groups are started one after the
// other, each with its own name.

import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class GroupStart {
    static final long GIVE_UP_S = 60;
    private final Map<Integer, Set<TopicPartition>> owned = new HashMap<>();
    private final CountDownLatch shared = new CountDownLatch(1);
    private final String topic;
    private final int partitions;
    private final int members;
    private volatile boolean isOver;
    private long sharedAt;

    GroupStart(String topic, int partitions, int members) {
        this.topic = topic;
        this.partitions = partitions;
        this.members = members;
    }

    public static void main(String[] args) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", args[0]);
        settings.put("group.protocol", args[5]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", false);
        if (args[5].equals("classic")) settings.put("heartbeat.interval.ms", args[7]);
        StringJoiner times = new StringJoiner(", ");
        for (int number = 0; number < Integer.parseInt(args[6]); number++) {
            settings.put("group.id", args[4] + "-" + number);
            double ms = new GroupStart(args[1], Integer.parseInt(args[2]), Integer.parseInt(args[3])).measure(settings);
            times.add(String.format(Locale.ROOT, "%.2f", ms));
        }
        System.out.println("{\"ms\": [" + times + "]}");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    double measure(Map<String, Object> settings) throws Exception {
        List<KafkaConsumer<byte[], byte[]>> consumers = new ArrayList<>();
        for (int index = 0; index < members; index++) {
            consumers.add(new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer()));
            consumers.get(index).partitionsFor(topic);
        }
        ExecutorService threads = Executors.newFixedThreadPool(members);
        long began = System.nanoTime();
        for (int index = 0; index < members; index++) {
            int member = index;
            threads.submit(() -> poll(consumers.get(member), member));
        }
        boolean done = shared.await(GIVE_UP_S, TimeUnit.SECONDS);
        isOver = true;
        threads.shutdown();
        threads.awaitTermination(GIVE_UP_S, TimeUnit.SECONDS);
        if (!done) throw new IllegalStateException("after " + GIVE_UP_S + " s the members had " + owned);
        return (sharedAt - began) / 1e6;
    }

    void poll(KafkaConsumer<byte[], byte[]> consumer, int member) {
        consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> given) {
                change(member, given, true);
            }

            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> taken) {
                change(member, taken, false);
            }
        });
        while (!isOver) consumer.poll(Duration.ofMillis(50));
        consumer.close();
    }

    synchronized void change(int member, Collection<TopicPartition> which, boolean given) {
        Set<TopicPartition> mine = owned.computeIfAbsent(member, unused -> new HashSet<>());
        if (given) mine.addAll(which);
        else mine.removeAll(which);
        int total = owned.values().stream().mapToInt(Set::size).sum();
        int least = owned.size() < members ? 0 : owned.values().stream().mapToInt(Set::size).min().orElse(0);
        if (total == partitions && least >= partitions / members && shared.getCount() > 0) {
            sharedAt = System.nanoTime();
            shared.countDown();
        }
    }
}
