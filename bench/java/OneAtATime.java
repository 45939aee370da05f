// One record at a time: sent with acks=all, acknowledged, and received by a consumer that was waiting for it.
//
// OneAtATime BOOTSTRAP TOPIC RECORDS WARM_UP_RECORDS RECORD_BYTES      prints {"p50_us": …, "p99_us": …, "max_us": …}

import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

public class OneAtATime {
    static final long GIVE_UP_NS = 30_000_000_000L;

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int count = Integer.parseInt(args[2]);
        int warmUp = Integer.parseInt(args[3]);
        byte[] value = new byte[Integer.parseInt(args[4])];
        new Random(1).nextBytes(value);
        Map<String, Object> writing = Map.of("bootstrap.servers", args[0], "acks", "all", "linger.ms", 0);
        Map<String, Object> reading = Map.of("bootstrap.servers", args[0], "fetch.max.wait.ms", 500);
        TopicPartition partition = new TopicPartition(topic, 0);
        long[] taken = new long[count];
        try (Producer<byte[], byte[]> producer = new KafkaProducer<>(writing, new ByteArraySerializer(), new ByteArraySerializer());
                Consumer<byte[], byte[]> consumer =
                        new KafkaConsumer<>(reading, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            consumer.position(partition);
            for (int index = -warmUp; index < count; index++) {
                long began = System.nanoTime();
                producer.send(new ProducerRecord<>(topic, 0, null, value)).get();
                receiveOne(consumer, began + GIVE_UP_NS);
                if (index >= 0) taken[index] = System.nanoTime() - began;
            }
        }
        Arrays.sort(taken);
        System.out.printf(
                Locale.ROOT,
                "{\"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f}%n",
                taken[count / 2] / 1e3,
                taken[(int) (count * 0.99)] / 1e3,
                taken[count - 1] / 1e3);
    }

    static void receiveOne(Consumer<byte[], byte[]> consumer, long deadline) {
        while (true) {
            int received = consumer.poll(Duration.ofMillis(1000)).count();
            if (received == 1) return;
            if (received > 1) throw new IllegalStateException(received + " records came where one was sent");
            if (System.nanoTime() > deadline) throw new IllegalStateException("a record that was acknowledged did not come");
        }
    }
}
