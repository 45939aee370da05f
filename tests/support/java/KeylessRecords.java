// Sends records without keys with Kafka's own producer, and tells which partition each has gone to.
//
// java KeylessRecords.java BOOTSTRAP
//
// Reads cases from standard input, one per line: TOPIC COUNT SIZE PAUSE_MS KEY=VALUE... (settings of the producer). A new producer
// sends COUNT values of SIZE bytes with PAUSE_MS between them. Prints for each case the topic and, in the order of the records,
// runs of them on one partition: TOPIC PARTITION:RECORDS...

import java.io.*;
import java.util.*;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class KeylessRecords {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            String topic = words[0];
            int count = Integer.parseInt(words[1]), size = Integer.parseInt(words[2]);
            long pauseNanos = Long.parseLong(words[3]) * 1_000_000;
            Properties settings = new Properties();
            settings.put("bootstrap.servers", args[0]);
            for (int i = 4; i < words.length; i++) {
                int at = words[i].indexOf('=');
                settings.put(words[i].substring(0, at), words[i].substring(at + 1));
            }
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            try (Producer<byte[], byte[]> producer =
                    new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
                long next = System.nanoTime();
                for (int number = 0; number < count; number++) {
                    sent.add(producer.send(new ProducerRecord<>(topic, new byte[size])));
                    next += pauseNanos;
                    while (pauseNanos > 0 && System.nanoTime() < next) LockSupport.parkNanos(next - System.nanoTime());
                }
            }
            StringBuilder out = new StringBuilder(topic);
            int partition = -1, run = 0;
            for (Future<RecordMetadata> each : sent) {
                int found = each.get().partition();
                if (found != partition) {
                    if (run > 0) out.append(" ").append(partition).append(":").append(run);
                    partition = found;
                    run = 0;
                }
                run++;
            }
            System.out.println(out.append(" ").append(partition).append(":").append(run));
            System.out.flush();
        }
    }
}
