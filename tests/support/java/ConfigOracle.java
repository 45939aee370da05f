import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;

import kafka.server.KafkaConfig;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.DynamicConfig;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Prints Apache Kafka's own tables of settings, and validates values and files with them.
 *
 * "tables": one line per setting: table, name, type, default, valid values, importance, update mode, internal.
 * "values": for each line table \t name \t value of standard input, "ok \t value as text" or "no \t why".
 * "clients": for each line kind \t name=value \t name=value … of standard input, the same: can such a client be made?
 * "files": for each line name=value \t name=value … of standard input, the same: would a server start with such a file?
 */
public class ConfigOracle {
    public static void main(String[] arguments) throws Exception {
        Map<String, Map<String, ConfigDef.ConfigKey>> tables = new LinkedHashMap<>();
        tables.put("broker", AbstractKafkaConfig.CONFIG_DEF.configKeys());
        Map<String, ConfigDef.ConfigKey> dynamicOnly = new TreeMap<>(DynamicConfig.Broker.configKeys());
        dynamicOnly.keySet().removeAll(AbstractKafkaConfig.CONFIG_DEF.names());
        tables.put("broker dynamic", dynamicOnly);
        tables.put("topic", LogConfig.configDefCopy().configKeys());
        tables.put("group", GroupConfig.CONFIG_DEF.configKeys());
        tables.put("client metrics", ClientMetricsConfigs.configDef().configKeys());
        tables.put("producer", withoutInternal(ProducerConfig.configDef()));
        tables.put("consumer", withoutInternal(ConsumerConfig.configDef()));
        tables.put("admin", withoutInternal(AdminClientConfig.configDef()));
        if (arguments[0].equals("tables")) {
            printTables(tables);
        } else if (arguments[0].equals("values")) {
            judgeValues(tables);
        } else if (arguments[0].equals("clients")) {
            judgeClients();
        } else {
            judgeFiles();
        }
    }

    private static void printTables(Map<String, Map<String, ConfigDef.ConfigKey>> tables) {
        Map<String, String> modes = DynamicBrokerConfig.dynamicConfigUpdateModes();
        tables.forEach((table, keys) -> new TreeMap<>(keys).forEach((name, key) -> {
            String value = !key.hasDefault() ? "REQUIRED" : ConfigDef.convertToString(key.defaultValue, key.type);
            String valid = key.validator == null ? "-" : key.validator.toString();
            System.out.println(String.join("\t", table, name, key.type.name(), value == null ? "null" : value, valid,
                key.importance.name(), modes.getOrDefault(name, "read-only"), String.valueOf(key.internalConfig)));
        }));
    }

    private static Map<String, ConfigDef.ConfigKey> withoutInternal(ConfigDef definition) {
        Map<String, ConfigDef.ConfigKey> keys = new TreeMap<>(definition.configKeys());
        keys.values().removeIf(key -> key.internalConfig);
        return keys;
    }

    private static void judgeClients() throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] entries = line.split("\t");
            Properties settings = new Properties();
            settings.setProperty("bootstrap.servers", "127.0.0.1:1");
            for (int index = 1; index < entries.length; index++) {
                int at = entries[index].indexOf('=');
                settings.setProperty(entries[index].substring(0, at), entries[index].substring(at + 1));
            }
            try (AutoCloseable client = open(entries[0], settings)) {
                System.out.println("ok\t");
            } catch (Exception refused) {
                Throwable cause = refused.getCause() == null ? refused : refused.getCause();
                System.out.println("no\t" + String.valueOf(cause.getMessage()).replace('\n', ' '));
            }
        }
    }

    private static AutoCloseable open(String kind, Properties settings) {
        switch (kind) {
            case "producer": {
                Producer<byte[], byte[]> producer =
                    new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
                return () -> producer.close(Duration.ZERO);
            }
            case "consumer": {
                Consumer<byte[], byte[]> consumer =
                    new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                return () -> consumer.close(CloseOptions.timeout(Duration.ZERO));
            }
            default: {
                Admin admin = Admin.create(settings);
                return () -> admin.close(Duration.ZERO);
            }
        }
    }

    private static void judgeFiles() throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            Properties file = new Properties();
            for (String entry : line.split("\t")) {
                int at = entry.indexOf('=');
                file.setProperty(entry.substring(0, at), entry.substring(at + 1));
            }
            try {
                KafkaConfig.fromProps(file);
                System.out.println("ok\t");
            } catch (Exception refused) {
                System.out.println("no\t" + String.valueOf(refused.getMessage()).replace('\n', ' '));
            }
        }
    }

    private static void judgeValues(Map<String, Map<String, ConfigDef.ConfigKey>> tables) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder verdicts = new StringBuilder();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split("\t", -1);
            ConfigDef.ConfigKey key = tables.get(parts[0]).get(parts[1]);
            try {
                ConfigDef alone = new ConfigDef();
                alone.define(key);
                Object value = alone.parse(Map.of(key.name, parts[2])).get(key.name);
                verdicts.append("ok\t").append(ConfigDef.convertToString(value, key.type)).append('\n');
            } catch (Exception refused) {
                verdicts.append("no\t").append(String.valueOf(refused.getMessage()).replace('\n', ' ')).append('\n');
            }
        }
        System.out.print(verdicts);
    }
}
