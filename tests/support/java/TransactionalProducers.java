// Transactional producers, any number in one Java process, each controlled step by step.
//
// A line on standard input is a command, its words separated by tabs; the answer is one line: "ok", or "failed" and why.
//     open NAME key=value...
//     init NAME | begin NAME | flush NAME | commit NAME | abort NAME
//     send NAME topic partition value            answered when the broker has acknowledged the record
//     offsets NAME group topic partition offset  the offset belongs to the transaction
//     close NAME                                 close the producer cleanly
//     abandon NAME                               close it at once, without ending an open transaction
// The process ends with its input.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;

public class TransactionalProducers {
    static final Map<String, KafkaProducer<String, String>> PRODUCERS = new HashMap<>();

    public static void main(String[] unused) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String answer = "ok";
            try {
                run(line.split("\t"));
            } catch (Exception failure) {
                Throwable why = failure instanceof ExecutionException ? failure.getCause() : failure;
                answer = "failed\t" + why.getClass().getSimpleName() + "\t" + String.valueOf(why.getMessage()).replace('\n', ' ');
            }
            System.out.println(answer);
        }
        Runtime.getRuntime().halt(0);
    }

    static void run(String[] words) throws Exception {
        if (words[0].equals("open")) {
            Map<String, Object> settings = new HashMap<>();
            for (int i = 2; i < words.length; i++) {
                String[] pair = words[i].split("=", 2);
                settings.put(pair[0], pair[1]);
            }
            PRODUCERS.put(words[1], new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer()));
            return;
        }
        KafkaProducer<String, String> producer = PRODUCERS.get(words[1]);
        switch (words[0]) {
            case "init" -> producer.initTransactions();
            case "begin" -> producer.beginTransaction();
            case "flush" -> producer.flush();
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "send" -> producer.send(new ProducerRecord<>(words[2], Integer.parseInt(words[3]), null, words[4])).get();
            case "offsets" -> {
                TopicPartition partition = new TopicPartition(words[3], Integer.parseInt(words[4]));
                OffsetAndMetadata offset = new OffsetAndMetadata(Long.parseLong(words[5]), "by a transaction");
                producer.sendOffsetsToTransaction(Map.of(partition, offset), new ConsumerGroupMetadata(words[2]));
            }
            case "close" -> PRODUCERS.remove(words[1]).close();
            case "abandon" -> PRODUCERS.remove(words[1]).close(Duration.ZERO);
            default -> throw new IllegalArgumentException(words[0]);
        }
    }
}
