// Prints, one JSON object a line, what Apache Kafka's own consumer and admin client see of the given topics (partition 0).
//
// java ReadTopics.java BOOTSTRAP TOPIC...
// {"topic":…,"isolation":…,"offset":…,"timestamp":…,"append_time":…,"leader_epoch":…,"key":HEX|null,"value":HEX|null,"headers":[[KEY,HEX|null]…]}
// {"topic":…,"beginning":…,"end":…,"last_stable":…}
// {"topic":…,"at_time":…,"found_offset":…|null,"found_timestamp":…|null}
// {"topic":…,"producer_id":…,"producer_epoch":…,"last_sequence":…,"last_timestamp":…,"transaction_start":…}

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class ReadTopics {
    static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    static String bootstrap;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        List<TopicPartition> partitions = new ArrayList<>();
        for (int i = 1; i < args.length; i++) partitions.add(new TopicPartition(args[i], 0));
        readAll(partitions, "read_uncommitted");
        readAll(partitions, "read_committed");
        try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", bootstrap))) {
            for (TopicPartition partition : partitions) producers(admin, partition);
        }
        OUT.flush();
    }

    static KafkaConsumer<byte[], byte[]> consumer(String isolation) {
        Map<String, Object> configs = Map.of(
                "bootstrap.servers", bootstrap, "isolation.level", isolation, "enable.auto.commit", "false", "fetch.max.wait.ms", "50");
        return new KafkaConsumer<>(configs, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static void readAll(List<TopicPartition> partitions, String isolation) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(isolation)) {
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> beginning = consumer.beginningOffsets(partitions);
            Map<TopicPartition, Long> end = consumer.endOffsets(partitions);
            Map<TopicPartition, TreeSet<Long>> times = new HashMap<>();
            for (TopicPartition partition : partitions) times.put(partition, new TreeSet<>());
            while (!partitions.stream().allMatch(each -> consumer.position(each) >= end.get(each))) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    print(record, isolation);
                    times.get(new TopicPartition(record.topic(), record.partition())).add(record.timestamp());
                }
            }
            for (TopicPartition partition : partitions) {
                OUT.printf("{\"topic\":\"%s\",\"isolation\":\"%s\",\"beginning\":%d,\"end\":%d}%n",
                        partition.topic(), isolation, beginning.get(partition), end.get(partition));
                if (isolation.equals("read_uncommitted")) lookups(consumer, partition, times.get(partition));
            }
        }
    }

    static void print(ConsumerRecord<byte[], byte[]> record, String isolation) {
        StringJoiner headers = new StringJoiner(",", "[", "]");
        for (Header header : record.headers()) headers.add("[\"" + header.key() + "\"," + hex(header.value()) + "]");
        OUT.printf("{\"topic\":\"%s\",\"isolation\":\"%s\",\"offset\":%d,\"timestamp\":%d,\"append_time\":%b,\"leader_epoch\":%d,"
                        + "\"key\":%s,\"value\":%s,\"headers\":%s}%n",
                record.topic(), isolation, record.offset(), record.timestamp(),
                record.timestampType() == TimestampType.LOG_APPEND_TIME, record.leaderEpoch().orElse(-1),
                hex(record.key()), hex(record.value()), headers);
    }

    // About twenty moments spread over the topic's time, between its records and beyond both ends.
    static void lookups(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, TreeSet<Long> times) {
        Set<Long> asked = new TreeSet<>(List.of(0L));
        List<Long> all = new ArrayList<>(times);
        for (int i = 0; i < all.size(); i += Math.max(1, all.size() / 10)) {
            asked.add(all.get(i));
            asked.add(all.get(i) + 1);
        }
        if (!all.isEmpty()) asked.add(all.get(all.size() - 1) + 1);
        for (long time : asked) {
            OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, time)).get(partition);
            OUT.printf("{\"topic\":\"%s\",\"at_time\":%d,\"found_offset\":%s,\"found_timestamp\":%s}%n", partition.topic(), time,
                    found == null ? "null" : found.offset(), found == null ? "null" : found.timestamp());
        }
    }

    static void producers(Admin admin, TopicPartition partition) throws Exception {
        DescribeProducersResult.PartitionProducerState state =
                admin.describeProducers(List.of(partition)).partitionResult(partition).get();
        for (ProducerState producer : state.activeProducers()) {
            OUT.printf("{\"topic\":\"%s\",\"producer_id\":%d,\"producer_epoch\":%d,\"last_sequence\":%d,\"last_timestamp\":%d,"
                            + "\"coordinator_epoch\":%d,\"transaction_start\":%d}%n",
                    partition.topic(), producer.producerId(), producer.producerEpoch(), producer.lastSequence(),
                    producer.lastTimestamp(), producer.coordinatorEpoch().orElse(-1), producer.currentTransactionStartOffset().orElse(-1));
        }
    }

    static String hex(byte[] bytes) {
        return bytes == null ? "null" : "\"" + HexFormat.of().formatHex(bytes) + "\"";
    }
}
