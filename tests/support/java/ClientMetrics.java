// Prints the metrics of Apache Kafka's own clients after a record was sent and read: group, tag names without the client's, name.
// Arguments: the bootstrap servers, and an existing topic.

import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.serialization.*;

public class ClientMetrics {
    static final Set<String> LINES = new TreeSet<>();

    static void note(String client, Map<MetricName, ? extends Metric> metrics) {
        for (MetricName name : metrics.keySet()) {
            List<String> tags = new ArrayList<>(name.tags().keySet());
            tags.remove("client-id");
            LINES.add(client + "\t" + name.group() + "\t" + String.join(",", tags) + "\t" + name.name());
        }
    }

    public static void main(String[] args) throws Exception {
        Map<String, Object> common = Map.of("bootstrap.servers", args[0]);
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(common, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.send(new ProducerRecord<>(args[1], new byte[5])).get();
            note("producer", producer.metrics());
        }
        for (String protocol : List.of("classic", "consumer")) {
            Map<String, Object> settings = new HashMap<>(common);
            settings.putAll(Map.of("group.id", "metrics-" + protocol, "group.protocol", protocol, "auto.offset.reset", "earliest"));
            try (KafkaConsumer<byte[], byte[]> consumer =
                    new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                consumer.subscribe(List.of(args[1]));
                while (consumer.poll(Duration.ofMillis(100)).isEmpty()) {}
                consumer.commitSync();
                note(protocol, consumer.metrics());
            }
        }
        try (Admin admin = Admin.create(common)) {
            admin.listTopics().names().get();
            note("admin", admin.metrics());
        }
        LINES.forEach(System.out::println);
    }
}
