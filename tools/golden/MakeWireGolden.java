// Writes the golden bytes of the wire room with Apache Kafka's own classes: every message, every version, five fills.
//
//     java -cp 'JARS/*' tools/golden/MakeWireGolden.java tests/golden/wire/messages.tsv.gz
//
// One line per case: message name, version, fill, the bytes in hexadecimal, and the JSON that Kafka's converter prints for
// them, separated by tabs. Messages are found by their JSON converters in the jars. Which fields a version has, and which of
// them may be null, is asked of the message's own SCHEMAS, so nothing here comes from Ottla's schema table.
// The fills: defaults; set (everything set, lists of two); nulls (null wherever allowed, lists of one); extremes (largest and
// smallest numbers, texts beyond ASCII, lengths that need two varint bytes, unknown tagged fields); empty (lists of none).
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.lang.reflect.Field;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarFile;
import java.util.zip.GZIPOutputStream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.internal.MemoryRecords;

public class MakeWireGolden {
    enum Fill { DEFAULTS, SET, NULLS, EXTREMES, EMPTY }

    private final short version;
    private final Fill fill;
    private int counter = 0;

    MakeWireGolden(short version, Fill fill) {
        this.version = version;
        this.fill = fill;
    }

    public static void main(String[] arguments) throws Exception {
        try (var out = new PrintWriter(new OutputStreamWriter(
                new GZIPOutputStream(Files.newOutputStream(Path.of(arguments[0]))), StandardCharsets.UTF_8))) {
            for (var found : messageClasses().entrySet()) writeMessage(out, found.getKey(), found.getValue());
        }
    }

    /** Message names (without the ending "Data" of requests and responses) to their classes, sorted. */
    static Map<String, Class<?>> messageClasses() throws Exception {
        var found = new TreeMap<String, Class<?>>();
        for (String path : System.getProperty("java.class.path").split(java.io.File.pathSeparator)) {
            if (!path.endsWith(".jar")) continue;
            try (var jar = new JarFile(path)) {
                for (var entry : jar.stream().toList()) {
                    String name = entry.getName();
                    if (!name.endsWith("JsonConverter.class") || name.endsWith("/JsonConverter.class") || name.contains("$")) continue;
                    var cls = Class.forName(name.replace("JsonConverter.class", "").replace('/', '.'));
                    if (!Message.class.isAssignableFrom(cls) ) continue;
                    String simple = cls.getSimpleName();
                    boolean shorten = cls.getPackageName().equals("org.apache.kafka.common.message");
                    if (found.put(shorten ? simple.replaceFirst("(Request|Response|Header)Data$", "$1") : simple, cls) != null)
                        throw new IllegalStateException("two messages are named " + simple);
                }
            }
        }
        return found;
    }

    static void writeMessage(PrintWriter out, String name, Class<?> cls) throws Exception {
        short lowest = cls.getField("LOWEST_SUPPORTED_VERSION").getShort(null);
        short highest = cls.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
        for (short version = lowest; version <= highest; version++) {
            String before = null;
            for (Fill fill : Fill.values()) {
                var message = (Message) new MakeWireGolden(version, fill).struct(cls);
                var buffer = MessageUtil.toByteBufferAccessor(message, version).buffer();
                var bytes = new byte[buffer.remaining()];
                buffer.duplicate().get(bytes);
                String hex = HexFormat.of().formatHex(bytes);
                if (hex.equals(before)) continue;
                before = hex;
                var converter = Class.forName(cls.getName() + "JsonConverter");
                var json = converter.getMethod("write", cls, short.class, boolean.class).invoke(null, message, version, false);
                out.println(name + "\t" + version + "\t" + fill.name().toLowerCase() + "\t" + hex + "\t" + json);
            }
        }
    }

    Object struct(Class<?> cls) throws Exception {
        var value = cls.getDeclaredConstructor().newInstance();
        var schema = ((Schema[]) cls.getField("SCHEMAS").get(null))[version];
        for (var entry : types(schema).entrySet()) {
            Field field = javaField(cls, entry.getKey());
            boolean mustBeSet = field.getType().getSimpleName().equals("BaseRecords") && !entry.getValue().isNullable();
            if (fill != Fill.DEFAULTS || mustBeSet) field.set(value, value(field, entry.getValue()));
        }
        boolean flexible = schema.numFields() > 0 && schema.get(schema.numFields() - 1).def.type instanceof TaggedFields;
        if (fill == Fill.EXTREMES && flexible) {
            ((Message) value).unknownTaggedFields().add(new RawTaggedField(1000, new byte[] {1, 2, 3}));
            ((Message) value).unknownTaggedFields().add(new RawTaggedField(70000, new byte[0]));
        }
        return value;
    }

    /** The fields of one version, tagged ones included: snake-case name to type. */
    static Map<String, Type> types(Schema schema) {
        var types = new LinkedHashMap<String, Type>();
        for (var bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                for (var field : tagged.fields().values()) types.put(field.name, field.type);
            } else {
                types.put(bound.def.name, bound.def.type);
            }
        }
        return types;
    }

    static Field javaField(Class<?> cls, String snakeName) {
        for (Field field : cls.getDeclaredFields()) {
            if (field.getName().equalsIgnoreCase(snakeName.replace("_", ""))) {
                field.setAccessible(true);
                return field;
            }
        }
        throw new IllegalStateException(cls + " has no field " + snakeName);
    }

    Object value(Field field, Type type) throws Exception {
        if (fill == Fill.NULLS && type.isNullable()) return null;
        Class<?> cls = field.getType();
        if (!Collection.class.isAssignableFrom(cls)) return single(cls, type);
        Class<?> element;
        Collection<Object> items;
        if (cls == List.class) {
            element = (Class<?>) ((ParameterizedType) field.getGenericType()).getActualTypeArguments()[0];
            items = new ArrayList<>();
        } else {
            element = (Class<?>) ((ParameterizedType) cls.getGenericSuperclass()).getActualTypeArguments()[0];
            @SuppressWarnings("unchecked")
            var made = (Collection<Object>) cls.getDeclaredConstructor().newInstance();
            items = made;
        }
        boolean isStruct = Message.class.isAssignableFrom(element);
        int count = switch (fill) {
            case SET -> 2;
            case EXTREMES -> isStruct ? 1 : 11;
            case NULLS -> 1;
            default -> 0;
        };
        for (int index = 0; index < count; index++) items.add(single(element, type.arrayElementType().get()));
        return items;
    }

    Object single(Class<?> cls, Type type) throws Exception {
        counter++;
        boolean extreme = fill == Fill.EXTREMES;
        boolean largest = counter % 2 == 0;
        if (cls == boolean.class) return counter % 3 != 0;
        if (cls == byte.class || cls == Byte.class) return extreme ? (largest ? Byte.MAX_VALUE : Byte.MIN_VALUE) : (byte) counter;
        if (cls == short.class || cls == Short.class)
            return extreme ? (largest ? Short.MAX_VALUE : Short.MIN_VALUE) : (short) counter;
        if (type == Type.UINT16) return extreme ? (largest ? 65535 : 0) : 1000 + counter;
        if (type == Type.UNSIGNED_INT32) return extreme ? (largest ? 0xffffffffL : 0L) : 3_000_000_000L + counter;
        if (cls == int.class || cls == Integer.class)
            return extreme ? (largest ? Integer.MAX_VALUE : Integer.MIN_VALUE) : 100_000 + counter;
        if (cls == long.class || cls == Long.class)
            return extreme ? (largest ? Long.MAX_VALUE : Long.MIN_VALUE) : 5_000_000_000L + counter;
        if (cls == double.class) return extreme ? -1.0e300 : counter + 0.25;
        if (cls == String.class) return fill == Fill.EMPTY ? "" : extreme ? "ключ-𝕂-é-".repeat(largest ? 1 : 8) : "text-" + counter;
        if (cls == Uuid.class) return extreme ? new Uuid(-1L, Long.MIN_VALUE + counter) : new Uuid(7, counter);
        if (cls == byte[].class) return bytes();
        if (cls == ByteBuffer.class) return ByteBuffer.wrap(bytes());
        if (cls.getSimpleName().equals("BaseRecords")) return MemoryRecords.readableRecords(ByteBuffer.wrap(bytes()));
        return struct(cls);
    }

    byte[] bytes() {
        var bytes = new byte[fill == Fill.EXTREMES ? 130 : fill == Fill.EMPTY ? 0 : 5];
        for (int index = 0; index < bytes.length; index++) bytes[index] = (byte) (counter + 37 * index);
        return bytes;
    }
}
