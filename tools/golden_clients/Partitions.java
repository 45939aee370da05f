import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.Random;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Utils;

/**
 * Prints one JSON object per line.
 *
 * <p>`keys`: a key, its hash, and its partition for some numbers of partitions. `loads`: the queue lengths of a topic's
 * partitions (all, and how many of them at the front are available), and the running sums that Kafka's partitioner weighs them
 * with; null where it chooses without weights.
 */
public class Partitions {
    public static void main(String[] args) throws Exception {
        if (args[0].equals("keys")) printKeys(new Random(794));
        else printLoads(new Random(480));
    }

    private static void printKeys(Random random) {
        for (int index = 0; index < 1500; index++) {
            byte[] key = new byte[index < 200 ? index % 50 : index < 1490 ? random.nextInt(24) : random.nextInt(3000)];
            random.nextBytes(key);
            int[] counts = {1, 3, 12, 1 + random.nextInt(1000), 1 + random.nextInt(Integer.MAX_VALUE - 1)};
            StringBuilder partitions = new StringBuilder();
            for (int count : counts) {
                String separator = partitions.length() == 0 ? "" : ", ";
                partitions.append(separator).append("[" + count + ", " + BuiltInPartitioner.partitionForKey(key, count) + "]");
            }
            System.out.println("{\"key\": \"" + java.util.HexFormat.of().formatHex(key) + "\", \"hash\": " + Utils.murmur2(key)
                + ", \"partitions\": [" + partitions + "]}");
        }
    }

    private static void printLoads(Random random) throws Exception {
        for (int index = 0; index < 300; index++) {
            int count = 1 + random.nextInt(8);
            int available = random.nextInt(3) == 0 ? random.nextInt(count + 1) : count;
            int[] sizes = new int[count];
            int[] partitions = new int[count];
            int sizesMax = 1 + random.nextInt(9);
            for (int at = 0; at < count; at++) {
                sizes[at] = random.nextInt(sizesMax);
                partitions[at] = at;
            }
            String sizesText = Arrays.toString(sizes);
            BuiltInPartitioner partitioner = new BuiltInPartitioner(new LogContext(), "topic", 1);
            partitioner.updatePartitionLoadStats(sizes, partitions, available);
            System.out.println("{\"sizes\": " + sizesText + ", \"available\": " + available + ", \"sums\": " + sums(partitioner) + "}");
        }
    }

    private static String sums(BuiltInPartitioner partitioner) throws Exception {
        Object stats = field(partitioner, "partitionLoadStats");
        if (stats == null) return "null";
        return Arrays.toString(Arrays.copyOf((int[]) field(stats, "cumulativeFrequencyTable"), (int) field(stats, "length")));
    }

    private static Object field(Object owner, String name) throws Exception {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }
}
