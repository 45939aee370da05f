// Apache Kafka's own images and partition changes, for records and states from standard input; one answer per line.
//
// image RECORD...            the records, replayed onto an empty image; answers the records of its snapshot
// same RECORD... / RECORD... whether two lists of records give the same image
// change FIELD=VALUE...      what PartitionChangeBuilder makes of a partition; answers the record, or "none"
//
// Records are the bytes of a metadata log's values, in hexadecimal.

import java.io.*;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.image.*;
import org.apache.kafka.image.writer.*;
import org.apache.kafka.metadata.*;
import org.apache.kafka.server.common.*;

public class MetadataOracle {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out));
        for (String line; (line = in.readLine()) != null; ) {
            List<String> words = new ArrayList<>(List.of(line.split(" ")));
            String what = words.remove(0);
            String answer;
            try {
                switch (what) {
                    case "image": answer = snapshot(image(words)); break;
                    case "same":
                        int cut = words.indexOf("/");
                        answer = "" + image(words.subList(0, cut)).equals(image(words.subList(cut + 1, words.size())));
                        break;
                    case "change": answer = change(words); break;
                    default: throw new IllegalArgumentException(line);
                }
            } catch (RuntimeException e) {
                answer = "error " + e;
            }
            out.println(answer);
        }
        out.flush();
    }

    // One delta per record: Apache does not drop the settings of a topic that is created and removed in one delta.
    static MetadataImage image(List<String> records) {
        MetadataImage image = MetadataImage.EMPTY;
        for (String record : records) {
            byte[] bytes = HexFormat.of().parseHex(record);
            MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
            delta.replay(MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), bytes.length).message());
            image = delta.apply(new MetadataProvenance(100, 1, 0, true));
        }
        return image;
    }

    static String snapshot(MetadataImage image) {
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, new ImageWriterOptions.Builder(image).setEligibleLeaderReplicasEnabled(true).build());
        return writer.records().stream().map(MetadataOracle::hex).collect(Collectors.joining(" "));
    }

    static String hex(ApiMessageAndVersion record) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
        MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(buffer));
        return HexFormat.of().formatHex(buffer.array());
    }

    static String change(List<String> words) {
        Map<String, String> fields = new HashMap<>();
        for (String word : words) fields.put(word.substring(0, word.indexOf('=')), word.substring(word.indexOf('=') + 1));
        PartitionRegistration partition = new PartitionRegistration.Builder().
            setReplicas(ints(fields.get("replicas"))).
            setDirectories(Arrays.stream(ints(fields.get("directories"))).mapToObj(MetadataOracle::directory).toArray(Uuid[]::new)).
            setIsr(ints(fields.get("isr"))).
            setRemovingReplicas(ints(fields.get("removing"))).
            setAddingReplicas(ints(fields.get("adding"))).
            setElr(ints(fields.get("elr"))).
            setLastKnownElr(ints(fields.get("last_known_elr"))).
            setLeader(Integer.valueOf(fields.get("leader"))).
            setLeaderRecoveryState(LeaderRecoveryState.of(Byte.parseByte(fields.get("recovery")))).
            setLeaderEpoch(5).setPartitionEpoch(9).build();
        Set<Integer> acceptable = new HashSet<>(list(fields.get("acceptable")));
        PartitionChangeBuilder builder = new PartitionChangeBuilder(partition, new Uuid(7, 7), 3, acceptable::contains,
            MetadataVersion.fromFeatureLevel(Short.parseShort(fields.get("version"))), Integer.parseInt(fields.get("min_isr")),
            Boolean.parseBoolean(fields.get("elr_enabled")));
        builder.setElection(PartitionChangeBuilder.Election.valueOf(fields.get("election")));
        builder.setDefaultDirProvider(broker -> directory(100 + broker));
        builder.setTargetIsr(list(fields.get("target_isr")));
        builder.setTargetReplicas(list(fields.get("target_replicas")));
        builder.setTargetRemoving(list(fields.get("target_removing")));
        builder.setTargetAdding(list(fields.get("target_adding")));
        builder.setTargetLeaderRecoveryState(LeaderRecoveryState.of(Byte.parseByte(fields.get("target_recovery"))));
        if (!fields.get("unclean").isEmpty()) builder.setUncleanShutdownReplicas(list(fields.get("unclean")));
        for (int broker : ints(fields.get("moved"))) builder.setDirectory(broker, directory(200 + broker));
        return builder.build().map(MetadataOracle::hex).orElse("none");
    }

    static Uuid directory(int number) {
        return new Uuid(0, number);
    }

    static int[] ints(String text) {
        return text.isEmpty() ? new int[0] : Arrays.stream(text.split(",")).mapToInt(Integer::parseInt).toArray();
    }

    static List<Integer> list(String text) {
        return Arrays.stream(ints(text)).boxed().collect(Collectors.toList());
    }
}
