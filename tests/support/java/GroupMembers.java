// Members of consumer groups, any number in one Java process, each with its own thread.
//
// A line on standard input is a command, its words separated by tabs:
//     open NAME TOPICS key=value...    subscribe to TOPICS: names separated by commas, or ~ and a regular expression
//     close NAME                       leave the group (a static member does not leave, as in Kafka's consumer)
//     abandon NAME                     end without leaving the group
// Events are printed on standard output, one per line, with tabs:
//     NAME assigned|revoked|lost topic-0 topic-1...
//     NAME record topic partition offset value
//     NAME failed text, NAME closed
// The process ends with its input.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

public class GroupMembers {
    static final Map<String, Member> MEMBERS = new ConcurrentHashMap<>();

    public static void main(String[] unused) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t");
            switch (words[0]) {
                case "open" -> open(words);
                case "close" -> MEMBERS.remove(words[1]).end(false);
                case "abandon" -> MEMBERS.remove(words[1]).end(true);
                default -> throw new IllegalArgumentException(line);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    static void open(String[] words) {
        Map<String, Object> settings = new HashMap<>();
        for (int i = 3; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        Member member = new Member(words[1], words[2], settings);
        MEMBERS.put(words[1], member);
        member.start();
    }

    static synchronized void tell(String... words) {
        System.out.println(String.join("\t", words).replace('\n', ' '));
    }

    static final class Member extends Thread implements ConsumerRebalanceListener {
        private final String name;
        private final String topics;
        private final Map<String, Object> settings;
        private volatile KafkaConsumer<String, String> consumer;
        private volatile boolean isOver;
        private volatile boolean isAbandoned;

        Member(String name, String topics, Map<String, Object> settings) {
            super(name);
            this.name = name;
            this.topics = topics;
            this.settings = settings;
            setDaemon(true);
        }

        void end(boolean abandoned) {
            isAbandoned = abandoned;
            isOver = true;
            if (consumer != null) consumer.wakeup();
        }

        @Override
        public void run() {
            try {
                consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
                subscribe();
                while (!isOver) {
                    try {
                        for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(100)))
                            tell(name, "record", each.topic(), "" + each.partition(), "" + each.offset(), each.value());
                    } catch (WakeupException woken) {
                        // Woken up to end: the loop's condition is false now.
                    }
                }
                var how = isAbandoned ? CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP
                        : CloseOptions.GroupMembershipOperation.DEFAULT;
                consumer.close(CloseOptions.groupMembershipOperation(how));
                tell(name, "closed");
            } catch (Throwable thrown) {
                tell(name, "failed", thrown.toString());
                if (consumer != null) {
                    try {
                        consumer.close(CloseOptions.timeout(Duration.ofMillis(200)));
                    } catch (RuntimeException again) {
                        // The reason is printed already.
                    }
                }
            }
        }

        private void subscribe() {
            boolean isNew = "consumer".equals(settings.get("group.protocol"));
            if (!topics.startsWith("~")) consumer.subscribe(List.of(topics.split(",")), this);
            else if (isNew) consumer.subscribe(new SubscriptionPattern(topics.substring(1)), this);
            else consumer.subscribe(Pattern.compile(topics.substring(1)), this);
        }

        private void tellOf(String what, Collection<TopicPartition> partitions) {
            String[] rest = partitions.stream().map(TopicPartition::toString).sorted().toArray(String[]::new);
            String[] words = new String[rest.length + 2];
            words[0] = name;
            words[1] = what;
            System.arraycopy(rest, 0, words, 2, rest.length);
            tell(words);
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            tellOf("assigned", partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            tellOf("revoked", partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            tellOf("lost", partitions);
        }
    }
}
