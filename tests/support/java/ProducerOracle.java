// Runs producer scripts (tests/support/logs/producer_script.py) on Apache Kafka's own producer state and prints what it makes of
// each step: the answer, the first unstable and undecided offsets, and all producers.

import java.io.*;
import java.nio.file.Files;
import java.util.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.*;

public class ProducerOracle {
    static ProducerStateManager state;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out));
        for (String line; (line = in.readLine()) != null; ) {
            if (line.isBlank() || line.startsWith("#")) continue;
            if (line.equals("new")) {
                File folder = Files.createTempDirectory("producers").toFile();
                folder.deleteOnExit();
                state = new ProducerStateManager(new TopicPartition("t", 0), folder, 900000,
                        new ProducerStateManagerConfig(86400000, false), Time.SYSTEM);
                out.println("new");
                continue;
            }
            String answer;
            try {
                answer = step(line.split(" "));
            } catch (RuntimeException refused) {
                answer = refused.getClass().getSimpleName().replace("Exception", "");
            }
            out.println(line + " => " + answer + " | " + shown());
        }
        out.flush();
    }

    static String step(String[] w) throws Exception {
        switch (w[0]) {
            case "data": return data(w);
            case "marker": return marker(w);
            case "verify":
                state.maybeCreateVerificationStateEntry(number(w[1]), (int) number(w[2]), (short) number(w[3]), w[4].equals("1"));
                return "ok";
            case "high-watermark": state.onHighWatermarkUpdated(number(w[1])); return "ok";
            case "log-start": state.onLogStartOffsetIncremented(number(w[1])); return "ok";
            case "expire": state.removeExpiredProducers(number(w[1])); return "ok";
            default: throw new IllegalArgumentException(w[0]);
        }
    }

    static String data(String[] w) {
        AppendOrigin origin = AppendOrigin.valueOf(w[1]);
        long id = number(w[2]), first = number(w[6]), last = number(w[7]);
        short epoch = (short) number(w[3]);
        int firstSequence = (int) number(w[4]), lastSequence = (int) number(w[5]);
        boolean transactional = w[8].equals("1");
        var known = state.lastEntry(id);
        if (origin == AppendOrigin.CLIENT && known.isPresent() && known.get().producerEpoch() == epoch)
            for (BatchMetadata batch : known.get().batchMetadata())
                if (batch.firstSeq() == firstSequence && batch.lastSeq() == lastSequence)
                    return "duplicate " + batch.firstOffset() + " " + batch.lastOffset() + " " + batch.timestamp();
        ProducerAppendInfo append = state.prepareUpdate(id, origin);
        append.appendDataBatch(epoch, firstSequence, lastSequence, 1000 + last, new LogOffsetMetadata(first), last, transactional);
        if (transactional) state.clearVerificationStateEntry(id);
        state.update(append);
        state.updateMapEndOffset(last + 1);
        return "ok";
    }

    static String marker(String[] w) {
        AppendOrigin origin = AppendOrigin.valueOf(w[1]);
        long id = number(w[2]), offset = number(w[6]);
        ControlRecordType type = w[5].equals("commit") ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        ProducerAppendInfo append = state.prepareUpdate(id, origin);
        var ended = append.appendEndTxnMarker(new EndTransactionMarker(type, (int) number(w[4])), (short) number(w[3]), offset,
                1000 + offset, (short) number(w[7]));
        state.clearVerificationStateEntry(id);
        state.update(append);
        String answer = "ok";
        if (ended.isPresent()) {
            CompletedTxn transaction = ended.get();
            answer = "ended " + transaction.firstOffset() + " " + transaction.lastOffset() + " "
                    + (transaction.isAborted() ? "abort" : "commit") + " " + state.lastStableOffset(transaction);
            state.completeTxn(transaction);
        }
        state.updateMapEndOffset(offset + 1);
        return answer;
    }

    static String shown() {
        var unstable = state.firstUnstableOffset();
        var undecided = state.firstUndecidedOffset();
        StringBuilder text = new StringBuilder("unstable " + (unstable.isPresent() ? unstable.get().messageOffset : -1)
                + " undecided " + undecided.orElse(-1));
        for (ProducerStateEntry entry : new TreeMap<>(state.activeProducers()).values()) {
            text.append(" [").append(entry.producerId()).append(' ').append(entry.producerEpoch()).append(' ')
                    .append(entry.coordinatorEpoch()).append(' ').append(entry.lastTimestamp()).append(' ')
                    .append(entry.currentTxnFirstOffset().orElse(-1));
            for (BatchMetadata batch : entry.batchMetadata())
                text.append(' ').append(batch.lastSeq()).append('@').append(batch.firstOffset()).append('-').append(batch.lastOffset());
            text.append(']');
        }
        return text.toString();
    }

    static long number(String word) {
        return Long.parseLong(word);
    }
}
