import java.lang.reflect.InvocationTargetException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Exit;

/**
 * Loads the classes that Kafka's server, clients and tools need, by using them: formats a directory, runs a server on it, sends and
 * reads records. Run with -XX:ArchiveClassesAtExit, it leaves an archive from which later processes map these classes.
 *
 * Arguments: the properties file of the server, and its address.
 */
public class LoadClasses {
    private static final String TOPIC = "t";

    /** Thrown where a tool would end the process. */
    static final class Ended extends Error {}

    public static void main(String[] arguments) throws Exception {
        Thread main = Thread.currentThread();
        Exit.setExitProcedure((code, message) -> {
            if (Thread.currentThread() == main) {
                throw new Ended();
            }
            System.exit(code);
        });
        String config = arguments[0];
        String server = arguments[1];
        runTool("kafka.tools.StorageTool", "format", "--standalone", "-t", "b3R0bGEtdGVzdHMtMDAwMQ", "-c", config);
        Thread broker = new Thread(() -> kafka.Kafka.main(new String[] {config}));
        broker.setDaemon(true);
        broker.start();
        useClients(server);
        runTool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", server, "--list");
        runTool("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--bootstrap-server", server, "--list");
        runTool("kafka.admin.ConfigCommand", "--bootstrap-server", server, "--describe", "--entity-type", "topics");
        System.exit(0);
    }

    private static void useClients(String server) throws Exception {
        Map<String, Object> strings = Map.of(
            "bootstrap.servers", server,
            "key.serializer", StringSerializer.class,
            "value.serializer", StringSerializer.class,
            "key.deserializer", StringDeserializer.class,
            "value.deserializer", StringDeserializer.class
        );
        try (Admin admin = Admin.create(strings)) {
            admin.createTopics(List.of(new NewTopic(TOPIC, 1, (short) 1))).all().get();
        }
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(with(strings, "transactional.id", "one"))) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(TOPIC, "key", "value")).get();
            producer.commitTransaction();
        }
        for (String protocol : List.of("classic", "consumer")) {
            Map<String, Object> group = with(with(strings, "group.id", protocol), "group.protocol", protocol);
            try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(with(group, "auto.offset.reset", "earliest"))) {
                consumer.subscribe(List.of(TOPIC));
                while (consumer.poll(Duration.ofSeconds(1)).isEmpty()) {}
                consumer.commitSync();
            }
        }
    }

    private static Map<String, Object> with(Map<String, Object> settings, String name, Object value) {
        Map<String, Object> extended = new HashMap<>(settings);
        extended.put(name, value);
        return extended;
    }

    /** Runs a tool up to where it would end the process. */
    private static void runTool(String mainClass, String... arguments) throws Exception {
        try {
            Class.forName(mainClass).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException ended) {
            if (!(ended.getCause() instanceof Ended)) {
                throw ended;
            }
        }
    }
}
