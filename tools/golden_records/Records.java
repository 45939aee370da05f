// Record batches by Apache Kafka's own classes.
//
//     java -cp 'JARS/*' Records.java make     prints golden batches, one JSON object per line
//     java -cp 'JARS/*' Records.java read     reads "NAME HEX" lines and prints, in the same form, what Kafka finds in the bytes
//
// tools/golden_records/make.py puts the first into tests/golden/records; the tests use the second on bytes that Ottla made.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.function.Consumer;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

public class Records {
    static final long T = 1_700_000_000_000L;
    static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("make")) {
            plain();
            compressed();
            fields();
            compacted();
            control();
            return;
        }
        var in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            show(words[0], ByteBuffer.wrap(HEX.parseHex(words.length > 1 ? words[1] : "")));
        }
    }

    // ---- what is made ----

    static void plain() {
        make("one-record", new Batch(), builder -> builder.append(T, bytes("key"), bytes("value")));
        make("nulls", new Batch().offset(7), builder -> {
            builder.append(T, null, bytes("value"));
            builder.append(T + 5, bytes("key"), (byte[]) null);
            builder.append(T - 5, (byte[]) null, (byte[]) null);
            builder.append(T + 1, bytes(""), bytes(""));
        });
        make("headers", new Batch().offset(100), builder -> {
            builder.append(T, bytes("k"), bytes("v"), new Header[] {header("a", bytes("1")), header("a", null), header("", bytes(""))});
            builder.append(T, bytes("k"), bytes("v"), new Header[] {header("Grüße", bytes("2"))});
            builder.append(T, bytes("k"), bytes("v"), new Header[0]);
        });
        make("gaps", new Batch().offset(1000).epoch(3), builder -> {
            builder.appendWithOffset(1002, T, bytes("a"), bytes("1"));
            builder.appendWithOffset(1200, T + 1, bytes("b"), bytes("2"));
            builder.appendWithOffset(300000, T + 2, bytes("c"), bytes("3"));
        });
        make("timestamps", new Batch(), builder -> {
            builder.append(0L, bytes("zero"), bytes(""));
            builder.append(Long.MAX_VALUE, bytes("largest"), bytes(""));
            builder.append(-1L, bytes("none"), bytes(""));
        });
        make("long-value", new Batch(), builder -> builder.append(T, bytes("k"), filled(20_000)));
    }

    static void compressed() {
        for (CompressionType type : CompressionType.values()) {
            make("codec-" + type.name, new Batch().codec(Compression.of(type).build()), Records::mixture);
            make("codec-" + type.name + "-large", new Batch().codec(Compression.of(type).build()), builder -> {
                for (int i = 0; i < 24; i++) builder.append(T + i, bytes("key-" + i), filled(6_000));
            });
        }
        make("gzip-9", new Batch().codec(Compression.gzip().level(9).build()), Records::mixture);
        make("lz4-17", new Batch().codec(Compression.lz4().level(17).build()), Records::mixture);
        make("lz4-1", new Batch().codec(Compression.lz4().level(1).build()), Records::mixture);
        make("zstd-22", new Batch().codec(Compression.zstd().level(22).build()), Records::mixture);
        make("zstd-minus-7", new Batch().codec(Compression.zstd().level(-7).build()), Records::mixture);
    }

    static void fields() {
        make("idempotent", new Batch().producer(4711, 3, 42, false), Records::mixture);
        make("transactional", new Batch().producer(Long.MAX_VALUE, Short.MAX_VALUE, 0, true), Records::mixture);
        make("sequence-wraps", new Batch().producer(1, 0, Integer.MAX_VALUE - 1, false), Records::mixture);
        make("append-time", new Batch().appendTime(T + 777), Records::mixture);
        make("append-time-zstd", new Batch().appendTime(T + 777).codec(Compression.zstd().build()), Records::mixture);
    }

    static void compacted() {
        make("delete-horizon", new Batch().offset(50).horizon(T + 86_400_000), Records::mixture);
        make("delete-horizon-append-time", new Batch().offset(50).horizon(T + 86_400_000).appendTime(T + 9), Records::mixture);
        make("delete-horizon-gzip", new Batch().horizon(T + 5).codec(Compression.gzip().build()), Records::mixture);
        make("kept-range", new Batch().offset(10).producer(9, 1, 5, false), builder -> {
            builder.appendWithOffset(12, T, bytes("a"), bytes("1"));
            builder.overrideLastOffset(19);
        });
        ByteBuffer empty = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        DefaultRecordBatch.writeEmptyHeader(empty, RecordBatch.MAGIC_VALUE_V2, 77, (short) 2, 5, 30, 39, 4, TimestampType.CREATE_TIME, T, true, false);
        empty.flip();
        show("empty", empty);
    }

    static void control() {
        for (ControlRecordType type : List.of(ControlRecordType.ABORT, ControlRecordType.COMMIT))
            show("end-" + type.name().toLowerCase(),
                MemoryRecords.withEndTransactionMarker(500, T, 6, 4711, (short) 3, new EndTransactionMarker(type, 12)).buffer());
        var directory = new Uuid(1, 2);
        show("leader-change", MemoryRecords.withLeaderChangeMessage(8, T, 2, ByteBuffer.allocate(512),
            new LeaderChangeMessage().setVersion((short) 0).setLeaderId(1)
                .setVoters(List.of(new LeaderChangeMessage.Voter().setVoterId(1)))).buffer());
        show("snapshot-header", MemoryRecords.withSnapshotHeaderRecord(0, T, 2, ByteBuffer.allocate(512),
            new SnapshotHeaderRecord().setVersion((short) 0).setLastContainedLogTimestamp(T)).buffer());
        show("snapshot-footer", MemoryRecords.withSnapshotFooterRecord(9, T, 2, ByteBuffer.allocate(512),
            new SnapshotFooterRecord().setVersion((short) 0)).buffer());
        show("kraft-version", MemoryRecords.withKRaftVersionRecord(1, T, 2, ByteBuffer.allocate(512),
            new KRaftVersionRecord().setVersion((short) 0).setKRaftVersion((short) 1)).buffer());
        show("kraft-voters", MemoryRecords.withVotersRecord(2, T, 2, ByteBuffer.allocate(512),
            new VotersRecord().setVersion((short) 0)
                .setVoters(List.of(new VotersRecord.Voter().setVoterId(3).setVoterDirectoryId(directory)))).buffer());
    }

    static void mixture(MemoryRecordsBuilder builder) {
        builder.append(T, bytes("first"), bytes("the quick brown fox, the quick brown fox, the quick brown fox"));
        builder.append(T + 1500, null, bytes("no key"), new Header[] {header("trace", bytes("abc")), header("empty", null)});
        builder.append(T - 1500, bytes("tombstone"), (byte[]) null);
        builder.append(T + 20, bytes("last"), filled(300));
    }

    /** What a batch is to have besides its records. */
    static class Batch {
        Compression codec = Compression.NONE;
        long offset = 0, appendTime = RecordBatch.NO_TIMESTAMP, horizon = RecordBatch.NO_TIMESTAMP, producerId = -1;
        short producerEpoch = -1;
        int epoch = -1, sequence = -1;
        boolean transactional = false;

        Batch codec(Compression codec) { this.codec = codec; return this; }
        Batch offset(long offset) { this.offset = offset; return this; }
        Batch epoch(int epoch) { this.epoch = epoch; return this; }
        Batch appendTime(long time) { this.appendTime = time; return this; }
        Batch horizon(long time) { this.horizon = time; return this; }
        Batch producer(long id, int epoch, int sequence, boolean transactional) {
            this.producerId = id;
            this.producerEpoch = (short) epoch;
            this.sequence = sequence;
            this.transactional = transactional;
            return this;
        }
    }

    static void make(String name, Batch batch, Consumer<MemoryRecordsBuilder> fill) {
        var type = batch.appendTime == RecordBatch.NO_TIMESTAMP ? TimestampType.CREATE_TIME : TimestampType.LOG_APPEND_TIME;
        var builder = new MemoryRecordsBuilder(new ByteBufferOutputStream(1024), RecordBatch.MAGIC_VALUE_V2, batch.codec, type,
            batch.offset, batch.appendTime, batch.producerId, batch.producerEpoch, batch.sequence, batch.transactional, false,
            batch.epoch, Integer.MAX_VALUE, batch.horizon);
        fill.accept(builder);
        show(name, builder.build().buffer());
    }

    // ---- what is printed ----

    static void show(String name, ByteBuffer buffer) {
        String bytes = HEX.formatHex(copy(buffer));
        var batches = new ArrayList<String>();
        String error = "null";
        try {
            for (MutableRecordBatch batch : MemoryRecords.readableRecords(buffer.duplicate()).batches()) {
                batch.ensureValid();
                batches.add(describe(batch));
            }
        } catch (RuntimeException refused) {
            error = quoted(refused.getClass().getSimpleName() + ": " + refused.getMessage());
        }
        System.out.println("{\"name\": " + quoted(name) + ", \"bytes\": \"" + bytes + "\", \"error\": " + error
            + ", \"batches\": [" + String.join(", ", batches) + "]}");
    }

    static String describe(MutableRecordBatch batch) {
        var records = new ArrayList<String>();
        try (var iterator = batch.streamingIterator(BufferSupplier.NO_CACHING)) {
            while (iterator.hasNext()) records.add(describe(iterator.next()));
        }
        long horizon = batch.deleteHorizonMs().orElse(-1);
        return "{\"base_offset\": " + batch.baseOffset() + ", \"last_offset\": " + batch.lastOffset()
            + ", \"next_offset\": " + batch.nextOffset() + ", \"size\": " + batch.sizeInBytes()
            + ", \"leader_epoch\": " + batch.partitionLeaderEpoch() + ", \"crc\": " + batch.checksum()
            + ", \"base_timestamp\": " + ((DefaultRecordBatch) batch).baseTimestamp() + ", \"max_timestamp\": " + batch.maxTimestamp()
            + ", \"producer_id\": " + batch.producerId() + ", \"producer_epoch\": " + batch.producerEpoch()
            + ", \"base_sequence\": " + batch.baseSequence() + ", \"last_sequence\": " + batch.lastSequence()
            + ", \"count\": " + batch.countOrNull() + ", \"codec\": " + quoted(batch.compressionType().name)
            + ", \"is_append_time\": " + (batch.timestampType() == TimestampType.LOG_APPEND_TIME)
            + ", \"is_transactional\": " + batch.isTransactional() + ", \"is_control\": " + batch.isControlBatch()
            + ", \"has_producer_id\": " + batch.hasProducerId()
            + ", \"delete_horizon_ms\": " + (batch.deleteHorizonMs().isPresent() ? horizon : "null")
            + ", \"records\": [" + String.join(", ", records) + "]}";
    }

    static String describe(Record record) {
        var headers = new ArrayList<String>();
        for (Header header : record.headers())
            headers.add("[" + quoted(header.key()) + ", " + hex(header.value() == null ? null : ByteBuffer.wrap(header.value())) + "]");
        return "[" + record.offset() + ", " + record.timestamp() + ", " + hex(record.key()) + ", " + hex(record.value())
            + ", [" + String.join(", ", headers) + "]]";
    }

    static String hex(ByteBuffer buffer) {
        return buffer == null ? "null" : "\"" + HEX.formatHex(copy(buffer)) + "\"";
    }

    static byte[] copy(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    static String quoted(String text) {
        var out = new StringBuilder("\"");
        for (char c : String.valueOf(text).toCharArray())
            out.append(c == '"' || c == '\\' ? "\\" + c : c < 32 || c > 126 ? String.format("\\u%04x", (int) c) : String.valueOf(c));
        return out.append('"').toString();
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Bytes that compress, but not to nothing. */
    static byte[] filled(int size) {
        byte[] bytes = new byte[size];
        int state = size;
        for (int i = 0; i < size; i++) {
            state = state * 1103515245 + 12345;
            bytes[i] = i < 400 ? (byte) ('a' + (state >>> 16) % 4) : bytes[i - 400];
        }
        return bytes;
    }

    static Header header(String key, byte[] value) {
        return new RecordHeader(key, value);
    }
}
