// What Apache Kafka's broker does with produced bytes: the checks of the request, then an append to a real log.
//
//     java -cp 'JARS/*' Produce.java < CASES
//
// A case is a line: NAME REQUEST_VERSION NOW_MS KEY=VALUE;... HEX   (topic settings; "-" for none). Each goes to a log of its own.
// Printed per case, as JSON: the error code and message that would be answered, the errors per record, and the bytes stored.
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

public class Produce {
    static final int LEADER_EPOCH = 5;
    static final HexFormat HEX = HexFormat.of();
    static final KafkaScheduler SCHEDULER = new KafkaScheduler(1);
    static long now;

    public static void main(String[] arguments) throws Exception {
        SCHEDULER.startup();
        var in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            now = Long.parseLong(words[2]);
            ByteBuffer bytes = ByteBuffer.wrap(HEX.parseHex(words.length > 4 ? words[4] : ""));
            System.out.println(produce(words[0], Short.parseShort(words[1]), words[3], bytes));
        }
        System.exit(0);
    }

    static String produce(String name, short version, String settings, ByteBuffer bytes) throws Exception {
        File root = Files.createTempDirectory("produce").toFile();
        File folder = new File(root, "topic-0");
        folder.mkdirs();
        UnifiedLog log = open(folder, settings);
        String message = null;
        Errors error = Errors.NONE;
        var recordErrors = new ArrayList<String>();
        try {
            MemoryRecords records = MemoryRecords.readableRecords(bytes);
            ProduceRequest.validateRecords(version, records);
            log.appendAsLeader(records, LEADER_EPOCH);
        } catch (RecordValidationException refused) {
            error = Errors.forException(refused.invalidException());
            message = refused.invalidException().getMessage();
            refused.recordErrors().forEach(one -> recordErrors.add("[" + one.batchIndex + ", " + quoted(one.message) + "]"));
        } catch (Throwable refused) {
            error = Errors.forException(refused);
            message = refused.getClass().getSimpleName() + ": " + refused.getMessage();
        }
        String stored = "";
        for (LogSegment segment : log.logSegments()) {
            segment.flush();
            stored += HEX.formatHex(Files.readAllBytes(segment.log().file().toPath()));
        }
        log.close();
        return "{\"name\": " + quoted(name) + ", \"code\": " + error.code() + ", \"error\": " + quoted(error.name()) + ", \"message\": "
            + quoted(message) + ", \"record_errors\": [" + String.join(", ", recordErrors) + "], \"stored\": \"" + stored + "\"}";
    }

    static UnifiedLog open(File folder, String settings) throws Exception {
        Properties properties = new Properties();
        if (!settings.equals("-"))
            for (String setting : settings.split(";"))
                properties.put(setting.substring(0, setting.indexOf('=')), setting.substring(setting.indexOf('=') + 1));
        Time clock = (Time) Proxy.newProxyInstance(Produce.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, values) -> method.getName().equals("milliseconds") ? (Object) now : method.invoke(Time.SYSTEM, values));
        return UnifiedLog.create(folder, LogConfig.fromProps(Map.of(), properties), 0L, 0L, SCHEDULER, new BrokerTopicStats(), clock,
            60_000, new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 60_000, new LogDirFailureChannel(1), true,
            Optional.empty());
    }

    static String quoted(String text) {
        if (text == null) return "null";
        var out = new StringBuilder("\"");
        for (char c : text.toCharArray())
            out.append(c == '"' || c == '\\' ? "\\" + c : c < 32 || c > 126 ? String.format("\\u%04x", (int) c) : String.valueOf(c));
        return out.append('"').toString();
    }
}
