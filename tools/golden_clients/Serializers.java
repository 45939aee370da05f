import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import org.apache.kafka.common.serialization.BooleanSerializer;
import org.apache.kafka.common.serialization.DoubleSerializer;
import org.apache.kafka.common.serialization.FloatSerializer;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.serialization.ShortSerializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.serialization.UUIDSerializer;

/** Prints one JSON object per line: a value, and the bytes that Kafka's serializer makes of it. Text is in UTF-16BE, as hex. */
public class Serializers {
    private static final int CASES = 100;

    public static void main(String[] args) {
        Random random = new Random(12);
        for (int index = 0; index < CASES; index++) {
            long bits = index == 0 ? Long.MIN_VALUE : index == 1 ? Long.MAX_VALUE : random.nextLong() >> random.nextInt(64);
            print("int64", "" + bits, new LongSerializer(), bits);
            print("int32", "" + (int) bits, new IntegerSerializer(), (int) bits);
            print("int16", "" + (short) bits, new ShortSerializer(), (short) bits);
            double wide = index < 5 ? special(index) : Double.longBitsToDouble(random.nextLong());
            // Java keeps the bits of a NaN; text cannot carry them, so the only NaN is the plain one.
            if (Double.isNaN(wide) && index >= 5) wide = 0.1;
            float narrow = index < 5 ? (float) special(index) : Float.intBitsToFloat(random.nextInt());
            if (Float.isNaN(narrow) && index >= 5) narrow = 0.1f;
            print("float64", "" + wide, new DoubleSerializer(), wide);
            print("float32", "" + (double) narrow, new FloatSerializer(), narrow);
            UUID uuid = new UUID(random.nextLong(), random.nextLong());
            print("uuid", uuid.toString(), new UUIDSerializer(), uuid);
            String text = text(random, index, 0x110000);
            print("str", hex(text.getBytes(StandardCharsets.UTF_16BE)), new StringSerializer(), text);
            for (String encoding : new String[] {"ISO-8859-1", "UTF-16LE", "UTF-16BE", "US-ASCII"}) {
                String narrowText = text(random, index, encoding.equals("US-ASCII") ? 0x80 : 0x100);
                StringSerializer serializer = new StringSerializer();
                serializer.configure(Map.of("value.serializer.encoding", encoding), false);
                print("str " + encoding, hex(narrowText.getBytes(StandardCharsets.UTF_16BE)), serializer, narrowText);
            }
        }
        print("bool", "true", new BooleanSerializer(), true);
        print("bool", "false", new BooleanSerializer(), false);
    }

    private static double special(int index) {
        return new double[] {0.0, -0.0, Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY}[index];
    }

    private static String text(Random random, int length, int bound) {
        StringBuilder text = new StringBuilder();
        while (text.length() < length % 20) {
            int point = random.nextInt(bound);
            if (point < 0xD800 || point > 0xDFFF) text.appendCodePoint(point);
        }
        return text.toString();
    }

    private static <T> void print(String form, String value, Serializer<T> serializer, T data) {
        String bytes = hex(serializer.serialize("topic", data));
        System.out.println("{\"form\": \"" + form + "\", \"value\": \"" + value + "\", \"bytes\": \"" + bytes + "\"}");
    }

    private static String hex(byte[] data) {
        return java.util.HexFormat.of().formatHex(data);
    }
}
