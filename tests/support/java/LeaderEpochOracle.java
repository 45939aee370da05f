// Runs leader epoch scripts (tests/support/logs/epoch_script.py) on Apache Kafka's own leader epoch cache and prints its answers.

import java.io.*;
import java.nio.file.Files;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;

public class LeaderEpochOracle {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out));
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        File folder = Files.createTempDirectory("epochs").toFile();
        LeaderEpochFileCache cache = null;
        int count = 0;
        for (String line; (line = in.readLine()) != null; ) {
            String[] w = line.split(" ");
            String answer = "ok";
            switch (w[0]) {
                case "new":
                    File file = new File(folder, "epochs-" + count++);
                    cache = new LeaderEpochFileCache(new TopicPartition("t", 0),
                            new LeaderEpochCheckpointFile(file, new LogDirFailureChannel(1)), scheduler);
                    break;
                case "assign": cache.assign(Integer.parseInt(w[1]), Long.parseLong(w[2])); break;
                case "truncate-end": cache.truncateFromEndAsyncFlush(Long.parseLong(w[1])); break;
                case "truncate-start": cache.truncateFromStartAsyncFlush(Long.parseLong(w[1])); break;
                case "end-offset":
                    var end = cache.endOffsetFor(Integer.parseInt(w[1]), Long.parseLong(w[2]));
                    answer = end.getKey() + " " + end.getValue();
                    break;
                case "epoch-for": answer = "" + cache.epochForOffset(Long.parseLong(w[1])).orElse(-1); break;
                case "neighbours":
                    int epoch = Integer.parseInt(w[1]);
                    answer = cache.previousEpoch(epoch).orElse(-1) + " " + cache.nextEpoch(epoch).orElse(-1);
                    break;
                default: throw new IllegalArgumentException(line);
            }
            out.println(line + " => " + answer + " | " + cache.epochEntries().stream()
                    .map(entry -> entry.epoch() + "@" + entry.startOffset()).collect(Collectors.joining(" ")));
        }
        out.flush();
        scheduler.shutdown();
        for (File left : folder.listFiles()) left.delete();
        folder.delete();
    }
}
