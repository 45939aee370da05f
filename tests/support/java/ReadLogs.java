// Prints, one JSON object a line, every record in the .log files of the given folders, as Apache Kafka's own classes read them.
//
// java ReadLogs.java FOLDER...
// {"folder":…,"offset":…,"timestamp":…,"control":…,"key":HEX|null,"value":HEX|null,"headers":[[KEY,HEX|null]…]}

import java.io.File;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.Utils;

public class ReadLogs {
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String folder : args) {
            File[] logs = new File(folder).listFiles((directory, name) -> name.endsWith(".log"));
            Arrays.sort(logs);
            for (File log : logs) {
                try (FileRecords records = FileRecords.open(log, false)) {
                    for (FileChannelRecordBatch batch : records.batches()) {
                        batch.ensureValid();
                        for (Record record : batch) print(out, folder, batch.isControlBatch(), record);
                    }
                }
            }
        }
        out.flush();
    }

    static void print(PrintStream out, String folder, boolean control, Record record) {
        record.ensureValid();
        StringJoiner headers = new StringJoiner(",", "[", "]");
        for (Header header : record.headers()) headers.add("[\"" + header.key() + "\"," + hex(header.value()) + "]");
        out.printf("{\"folder\":\"%s\",\"offset\":%d,\"timestamp\":%d,\"control\":%b,\"key\":%s,\"value\":%s,\"headers\":%s}%n", folder,
                record.offset(), record.timestamp(), control, hex(record.key()), hex(record.value()), headers);
    }

    static String hex(ByteBuffer buffer) {
        return hex(Utils.toNullableArray(buffer));
    }

    static String hex(byte[] bytes) {
        return bytes == null ? "null" : "\"" + HexFormat.of().formatHex(bytes) + "\"";
    }
}
