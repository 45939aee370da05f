// Reads groups as JSON, one per line, runs Apache Kafka's own assignors on them and prints each member's assignment as bytes.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.*;
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.*;

public class Assignors {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out), false, "UTF-8");
        ObjectMapper json = new ObjectMapper();
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode group = json.readTree(line);
            Map<String, String> result = new TreeMap<>();
            try {
                GroupAssignment assignment = assignor(group.get("assignor").asText()).assign(cluster(group), subscriptions(group));
                assignment.groupAssignment().forEach((member, given) -> result.put(member, hex(ConsumerProtocol.serializeAssignment(given))));
                out.println(json.writeValueAsString(result));
            } catch (RuntimeException failed) {
                out.println("null");
            }
        }
        out.flush();
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        switch (name) {
            case "range": return new RangeAssignor();
            case "roundrobin": return new RoundRobinAssignor();
            case "sticky": return new StickyAssignor();
            case "cooperative-sticky": return new CooperativeStickyAssignor();
            default: throw new IllegalArgumentException(name);
        }
    }

    private static Cluster cluster(JsonNode group) {
        List<Node> nodes = new ArrayList<>();
        JsonNode racks = group.get("racks");
        for (int id = 0; id < racks.size(); id++)
            nodes.add(new Node(id, "host", 9092, racks.get(id).isNull() ? null : racks.get(id).asText()));
        List<PartitionInfo> partitions = new ArrayList<>();
        group.get("topics").properties().forEach(topic -> {
            for (int index = 0; index < topic.getValue().size(); index++) {
                JsonNode ids = topic.getValue().get(index);
                Node[] replicas = new Node[ids.size()];
                for (int i = 0; i < replicas.length; i++) replicas[i] = nodes.get(ids.get(i).asInt());
                partitions.add(new PartitionInfo(topic.getKey(), index, replicas[0], replicas, replicas));
            }
        });
        return new Cluster("c", nodes, partitions, Set.of(), Set.of());
    }

    private static GroupSubscription subscriptions(JsonNode group) {
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (JsonNode member : group.get("members")) {
            Subscription subscription = ConsumerProtocol.deserializeSubscription(
                    ByteBuffer.wrap(HexFormat.of().parseHex(member.get("metadata").asText())));
            if (!member.get("instance").isNull())
                subscription.setGroupInstanceId(Optional.of(member.get("instance").asText()));
            subscriptions.put(member.get("id").asText(), subscription);
        }
        return new GroupSubscription(subscriptions);
    }

    private static String hex(ByteBuffer data) {
        byte[] bytes = new byte[data.remaining()];
        data.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
