// An idempotent producer of Kafka's that sends numbered records to the partitions of a topic in turn, until it gets SIGTERM.
//
// java SteadyProducer.java NAME TOPIC PARTITIONS PAUSE_MS KEY=VALUE...
//
// Prints, with tabs: "sent NUMBER NANOS" before each call of send, "stored NUMBER NANOS OFFSET" or "failed NUMBER NANOS ERROR"
// when it is delivered, "ended" at the end. The value of record n is NAME-n, its partition n modulo PARTITIONS.

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.StringSerializer;

public class SteadyProducer {
    static final PrintStream OUT =
            new PrintStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)), true, StandardCharsets.UTF_8);

    static synchronized void say(String event, int number, Object more) {
        OUT.println(event + "\t" + number + "\t" + System.nanoTime() + "\t" + more);
    }

    public static void main(String[] args) throws Exception {
        String name = args[0], topic = args[1];
        int partitions = Integer.parseInt(args[2]), pauseMs = Integer.parseInt(args[3]);
        Properties settings = new Properties();
        for (int i = 4; i < args.length; i++) {
            int at = args[i].indexOf('=');
            settings.put(args[i].substring(0, at), args[i].substring(at + 1));
        }
        CountDownLatch stop = new CountDownLatch(1), ended = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stop.countDown();
            try {
                ended.await();
            } catch (InterruptedException interrupted) {
                throw new RuntimeException(interrupted);
            }
        }));
        try (Producer<String, String> producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int next = 0; !stop.await(pauseMs, TimeUnit.MILLISECONDS); next++) {
                int number = next;
                say("sent", number, "");
                producer.send(new ProducerRecord<>(topic, number % partitions, null, name + "-" + number), (metadata, error) -> {
                    if (error == null) say("stored", number, metadata.offset());
                    else say("failed", number, error);
                });
            }
            producer.flush();
            say("ended", -1, "");
        } finally {
            ended.countDown();
        }
    }
}
