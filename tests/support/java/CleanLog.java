import java.io.File;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.AbortedTxn;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Apache Kafka's own cleaner over partition folders, for comparison with ours.
 *
 * One line of input per log: FOLDER MAP_BYTES NOW:HIGH_WATERMARK,... KEY=VALUE,... (topic settings).
 * The log is recovered, then cleaned once for each NOW, each pass beginning where the last one ended. Printed per pass: the range
 * and where it ended; after all passes every batch, record and aborted transaction that is left, segment by segment.
 */
public class CleanLog {
    static final PrintStream OUT = System.out;
    /** A fixed clock at the time of the test's records, so that no producer has expired. */
    static final Time CLOCK = (Time) Proxy.newProxyInstance(CleanLog.class.getClassLoader(), new Class<?>[] {Time.class},
        (proxy, method, arguments) ->
            method.getName().equals("milliseconds") ? (Object) 1_700_000_000_000L : method.invoke(Time.SYSTEM, arguments));

    public static void main(String[] args) throws Exception {
        for (String line : new String(System.in.readAllBytes()).split("\n"))
            if (!line.isBlank())
                clean(line.trim().split(" "));
        System.exit(0);
    }

    static void clean(String[] words) throws Exception {
        Properties settings = new Properties();
        for (String setting : words[3].split(","))
            settings.put(setting.substring(0, setting.indexOf('=')), setting.substring(setting.indexOf('=') + 1));
        LogConfig config = LogConfig.fromProps(Map.of(), settings);
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        UnifiedLog log = UnifiedLog.create(new File(words[0]), config, 0L, 0L, scheduler, new BrokerTopicStats(), CLOCK,
            60_000, new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 60_000, new LogDirFailureChannel(1), false,
            Optional.empty());
        OUT.println("log " + words[0] + " " + log.logEndOffset());
        Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(Integer.parseInt(words[1])), 1 << 20, 1 << 26, 0.9,
            new Throttler(Double.MAX_VALUE, 300, "throttler", "entries", Time.SYSTEM), Time.SYSTEM, (TopicPartition partition) -> { });
        Optional<Long> checkpoint = Optional.empty();
        for (String text : words[2].split(",")) {
            long now = Long.parseLong(text.substring(0, text.indexOf(':')));
            log.updateHighWatermark(Long.parseLong(text.substring(text.indexOf(':') + 1)));
            Method offsets = LogCleanerManager.class.getDeclaredMethod("cleanableOffsets", UnifiedLog.class, Optional.class, long.class);
            offsets.setAccessible(true);
            Object range = offsets.invoke(null, log, checkpoint, now);
            long dirty = number(range, "firstDirtyOffset"), uncleanable = number(range, "firstUncleanableDirtyOffset");
            LogToClean work = new LogToClean(log, dirty, uncleanable, false);
            OUT.println("range " + dirty + " " + work.firstUncleanableOffset() + " " + work.cleanBytes() + " " + work.cleanableBytes());
            if (work.cleanableBytes() == 0)
                continue;
            Map.Entry<Long, CleanerStats> done = cleaner.doClean(work, now);
            checkpoint = Optional.of(done.getKey());
            OUT.println("pass " + done.getKey());
        }
        for (LogSegment segment : log.logSegments())
            print(segment);
        log.close();
        scheduler.shutdown();
    }

    static long number(Object range, String name) throws Exception {
        Method accessor = range.getClass().getDeclaredMethod(name);
        accessor.setAccessible(true);
        return (Long) accessor.invoke(range);
    }

    static void print(LogSegment segment) throws Exception {
        OUT.println("segment " + segment.baseOffset() + " " + segment.size() + " " + segment.largestRecordTimestamp().orElse(-1L));
        for (RecordBatch batch : segment.log().batches()) {
            batch.ensureValid();
            OUT.println("batch " + batch.baseOffset() + " " + batch.lastOffset() + " " + batch.partitionLeaderEpoch() + " "
                + batch.compressionType().id + " " + batch.timestampType().id + " " + batch.isTransactional() + " "
                + batch.isControlBatch() + " " + batch.deleteHorizonMs().orElse(-1L) + " " + batch.maxTimestamp() + " "
                + batch.producerId() + " " + batch.producerEpoch() + " " + batch.baseSequence() + " " + batch.countOrNull());
            for (Record record : batch)
                OUT.println("record " + record.offset() + " " + record.timestamp() + " " + hex(record.key()) + " " + hex(record.value()));
        }
        for (AbortedTxn txn : segment.txnIndex().allAbortedTxns())
            OUT.println("aborted " + txn.producerId() + " " + txn.firstOffset() + " " + txn.lastOffset() + " " + txn.lastStableOffset());
    }

    static String hex(ByteBuffer bytes) {
        if (bytes == null)
            return "null";
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        return "x" + HexFormat.of().formatHex(copy);
    }
}
