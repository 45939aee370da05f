// Fills the topics of tests/compat with everything a partition folder of Apache Kafka can hold, through Kafka's own clients.
//
// java FillTopics.java BOOTSTRAP STAGE      STAGE is "first" or "second"; the server is restarted in between, so that
// leader epochs change. The contents are the same in each run, except for append times and producer ids.

import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class FillTopics {
    static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    static final long START_MS = 1_700_000_000_000L;
    // Timestamps this old would be gone by the default week of retention.
    static final Map<String, String> SMALL = Map.of(
            "internal.segment.bytes", "8192", "index.interval.bytes", "512", "segment.index.bytes", "65536", "retention.ms", "-1");

    static String bootstrap;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        boolean first = args[1].equals("first");
        if (first) createTopics();
        int round = first ? 0 : 1;
        for (String codec : CODECS) fillCodec("codec-" + codec, codec, round);
        fillAppendTime(round);
        fillCompacted("compacted", "none", round);
        fillCompacted("compacted-expired", "zstd", round);
        fillCompactedTransactions(round);
        fillTransactions(round);
        fillDeleted(round);
        System.out.println("filled");
        System.out.flush();
        // One transaction of the second stage stays open on purpose: no close, which could end it.
        Runtime.getRuntime().halt(0);
    }

    static void createTopics() throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        for (String codec : CODECS) topics.add(topic("codec-" + codec, Map.of()));
        topics.add(topic("append-time", Map.of("message.timestamp.type", "LogAppendTime")));
        topics.add(topic("transactions", Map.of()));
        topics.add(topic("deleted", Map.of()));
        topics.add(topic("empty", Map.of()));
        topics.add(topic("compacted", Map.of("cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.01")));
        topics.add(topic("compacted-expired",
                Map.of("cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.01", "delete.retention.ms", "0", "internal.segment.bytes", "2000")));
        topics.add(topic("compacted-transactions", Map.of("cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.01")));
        try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", bootstrap))) {
            admin.createTopics(topics).all().get();
        }
    }

    static NewTopic topic(String name, Map<String, String> more) {
        Map<String, String> configs = new HashMap<>(SMALL);
        configs.putAll(more);
        return new NewTopic(name, 1, (short) 1).configs(configs);
    }

    static KafkaProducer<byte[], byte[]> producer(String... more) {
        Map<String, Object> configs = new HashMap<>();
        configs.put("bootstrap.servers", bootstrap);
        configs.put("linger.ms", "20");
        configs.put("batch.size", "2000");
        for (int i = 0; i < more.length; i += 2) configs.put(more[i], more[i + 1]);
        return new KafkaProducer<>(configs, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static ProducerRecord<byte[], byte[]> record(String topic, Long timestamp, byte[] key, byte[] value) {
        return new ProducerRecord<>(topic, 0, timestamp, key, value);
    }

    // Null and empty keys and values, headers of every kind, timestamps that step back, sizes from nothing to larger than a batch.
    static void fillCodec(String topic, String codec, int round) throws Exception {
        Random random = new Random(17 + round);
        try (KafkaProducer<byte[], byte[]> producer =
                producer("compression.type", codec, "enable.idempotence", String.valueOf(round == 0))) {
            for (int i = 0; i < 300; i++) {
                long timestamp = START_MS + round * 1_000_000L + i * 10 - (i % 50 == 49 ? 300 : 0);
                byte[] key = i % 7 == 0 ? null : i % 11 == 0 ? new byte[0] : bytes("key-" + i % 20);
                byte[] value = i % 13 == 0 ? null : value(random, i);
                ProducerRecord<byte[], byte[]> record = record(topic, timestamp, key, value);
                if (i % 3 == 0) record.headers().add("trace", bytes("t" + i)).add(new RecordHeader("nothing", (byte[]) null));
                if (i % 5 == 0) record.headers().add("ключ", new byte[0]).add("trace", bytes("again"));
                producer.send(record);
                if (i % 60 == 59) producer.flush();
            }
        }
    }

    static byte[] value(Random random, int i) {
        if (i % 17 == 0) return new byte[0];
        if (i % 71 == 0) {
            byte[] noise = new byte[3000];
            random.nextBytes(noise);
            return noise;
        }
        return bytes(("value " + i + " ").repeat(1 + random.nextInt(12)));
    }

    static void fillAppendTime(int round) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer("compression.type", round == 0 ? "none" : "lz4")) {
            for (int i = 0; i < 100; i++) {
                producer.send(record("append-time", START_MS, bytes("k" + i), bytes("value ".repeat(20) + i)));
                if (i % 10 == 9) producer.flush();
            }
        }
    }

    // Few keys, many updates, some tombstones; one key that is written once at the very beginning, and ten deleted for good.
    static void fillCompacted(String topic, String codec, int round) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer("compression.type", codec)) {
            if (round == 0) producer.send(record(topic, START_MS, bytes("only-once"), bytes("still here")));
            for (int i = 0; i < 20 && round == 0; i++) {
                producer.send(record(topic, START_MS, bytes("gone-" + i % 10), i < 10 ? bytes("soon gone") : null));
            }
            for (int i = 0; i < 400; i++) {
                int n = round * 400 + i;
                byte[] value = i % 9 == 8 ? null : bytes(("update " + n + " ").repeat(4));
                producer.send(record(topic, START_MS + n, bytes("key-" + i % 40), value));
                if (i % 20 == 19) producer.flush();
            }
        }
    }

    static void fillTransactions(int round) throws Exception {
        List<KafkaProducer<byte[], byte[]>> producers = new ArrayList<>();
        for (int p = 0; p < 3; p++) {
            KafkaProducer<byte[], byte[]> producer = producer("transactional.id", "tx-" + round + "-" + p);
            producer.initTransactions();
            producers.add(producer);
        }
        int n = 0;
        for (int i = 0; i < 12; i++) {
            for (KafkaProducer<byte[], byte[]> producer : producers) {
                producer.beginTransaction();
                for (int j = 0; j < 4; j++, n++) {
                    producer.send(record("transactions", START_MS + round * 10_000 + n, bytes("k" + n), bytes("v".repeat(100) + n)));
                }
                producer.flush();
            }
            // Ended in the opposite order of their begin every second time, so that they overlap.
            for (int p = 0; p < 3; p++) {
                int which = i % 2 == 0 ? p : 2 - p;
                if ((i + which) % 3 == 0) producers.get(which).abortTransaction();
                else producers.get(which).commitTransaction();
            }
        }
        try (KafkaProducer<byte[], byte[]> plain = producer("enable.idempotence", "false")) {
            plain.send(record("transactions", START_MS + round * 10_000 + n, bytes("plain"), bytes("in between"))).get();
        }
        if (round == 1) {
            producers.get(0).beginTransaction();
            producers.get(0).send(record("transactions", START_MS + 20_000, bytes("open"), bytes("never ended"))).get();
        }
    }

    static void fillCompactedTransactions(int round) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer("transactional.id", "compacted-" + round)) {
            producer.initTransactions();
            for (int i = 0; i < 30; i++) {
                producer.beginTransaction();
                for (int j = 0; j < 5; j++) {
                    int n = round * 150 + i * 5 + j;
                    producer.send(record("compacted-transactions", START_MS + n, bytes("key-" + n % 12), bytes(("v" + n + " ").repeat(20))));
                }
                if (i % 4 == 1) {
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
    }

    static void fillDeleted(int round) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer()) {
            for (int i = 0; i < 200; i++) {
                producer.send(record("deleted", START_MS + round * 1000 + i, bytes("k" + i), bytes("value ".repeat(20) + i)));
                if (i % 10 == 9) producer.flush();
            }
        }
        try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", bootstrap))) {
            RecordsToDelete before = RecordsToDelete.beforeOffset(round == 0 ? 7 : 133);
            admin.deleteRecords(Map.of(new TopicPartition("deleted", 0), before)).all().get();
        }
    }
}
