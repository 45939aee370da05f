import io.confluent.kafka.schemaregistry.ParsedSchema;
import io.confluent.kafka.schemaregistry.avro.AvroSchema;
import io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import io.confluent.kafka.schemaregistry.client.SchemaRegistryClient;
import io.confluent.kafka.schemaregistry.client.rest.entities.SchemaReference;
import io.confluent.kafka.schemaregistry.client.rest.exceptions.RestClientException;
import io.confluent.kafka.serializers.KafkaAvroDeserializer;
import io.confluent.kafka.serializers.KafkaAvroSerializer;

import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.Callable;

import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.GenericRecordBuilder;

/**
 * Confluent's own client and Avro serializers, against a registry.
 *
 * Arguments: the registry's address, a framed value in hex. Prints "name \t value" lines; test_java_client.py has what they must be.
 */
public class ConfluentRegistryClient {
    private static final String FIELDS = "{\"type\":\"record\",\"name\":\"R\",\"namespace\":\"n\",\"fields\":[%s]}";
    private static final AvroSchema FIRST = schema("{\"name\":\"a\",\"type\":\"int\"}");
    private static final AvroSchema SECOND =
        schema("{\"name\":\"a\",\"type\":\"int\"},{\"name\":\"b\",\"type\":\"string\",\"default\":\"none\"}");
    private static final AvroSchema BAD = schema("{\"name\":\"c\",\"type\":\"string\"}");

    public static void main(String[] arguments) throws Exception {
        useClient(arguments[0]);
        useSerializers(arguments[0], arguments[1]);
    }

    private static void useClient(String url) throws Exception {
        SchemaRegistryClient client = new CachedSchemaRegistryClient(url, 100);
        int first = client.register("java-value", FIRST);
        int second = client.register("java-value", SECOND);
        SchemaRegistryClient other = new CachedSchemaRegistryClient(url, 100); // has nothing cached
        print("same id", first == other.register("java-value", FIRST) && first == other.getId("java-value", FIRST));
        print("id of another subject", first == other.register("copy-value", FIRST));
        print("by id", other.getSchemaById(second).equals(SECOND));
        print("latest", other.getLatestSchemaMetadata("java-value").getVersion());
        print("version of a schema", other.getVersion("java-value", SECOND));
        print("by version", other.getByVersion("java-value", 1, false).getSchema().equals(FIRST.canonicalString()));
        print("versions", other.getAllVersions("java-value"));
        print("subjects of id", new TreeSet<>(other.getAllSubjectsById(first)));
        print("subjects", new TreeSet<>(other.getAllSubjects()));
        print("incompatible", refused(() -> client.register("java-value", BAD)));
        print("compatible", client.testCompatibility("java-value", FIRST));
        print("reasons", client.testCompatibilityVerbose("java-value", BAD).stream().anyMatch(each -> each.contains("'c'")));
        print("missing subject", refused(() -> other.getLatestSchemaMetadata("missing")));
        print("missing version", refused(() -> other.getSchemaMetadata("java-value", 9)));
        print("missing schema", refused(() -> other.getSchemaById(12345)));
        print("bad level", refused(() -> client.updateCompatibility("java-value", "SIDEWAYS")));
        print("level", client.updateCompatibility("java-value", "FULL") + " " + other.getCompatibility("java-value"));

        SchemaReference reference = new SchemaReference("n.R", "java-value", 1);
        String text = "{\"type\":\"record\",\"name\":\"Outer\",\"namespace\":\"n\",\"fields\":[{\"name\":\"r\",\"type\":\"R\"}]}";
        ParsedSchema outer = new AvroSchema(text, List.of(reference), Map.of("n.R", FIRST.canonicalString()), null);
        int id = client.register("outer-value", outer);
        print("references", other.getSchemaById(id).references());
        print("resolved", ((AvroSchema) other.getSchemaById(id)).rawSchema().getField("r").schema().getFullName());
        print("still referenced", refused(() -> client.deleteSchemaVersion("java-value", "1")));

        print("deleted version", client.deleteSchemaVersion("java-value", "2"));
        print("versions left", other.getAllVersions("java-value") + " " + other.getAllVersions("java-value", true));
        print("deleted subject", client.deleteSubject("copy-value"));
        print("deleted for good", client.deleteSubject("copy-value", true));
        print("mode", client.setMode("READONLY", "java-value") + " " + other.getMode("java-value"));
        print("read only", refused(() -> other.register("java-value", BAD)));
        print("import", client.setMode("IMPORT", "imported-value") + " " + client.register("imported-value", BAD, 3, 900));
    }

    private static void useSerializers(String url, String framed) {
        Map<String, Object> settings = Map.of("schema.registry.url", url);
        try (KafkaAvroSerializer serializer = new KafkaAvroSerializer(); KafkaAvroDeserializer reader = new KafkaAvroDeserializer()) {
            serializer.configure(settings, false);
            reader.configure(settings, false);
            GenericRecord record = new GenericRecordBuilder(SECOND.rawSchema()).set("a", 7).set("b", "Ada").build();
            print("written", HexFormat.of().formatHex(serializer.serialize("java-topic", record)));
            GenericRecord read = (GenericRecord) reader.deserialize("python-topic", HexFormat.of().parseHex(framed));
            print("read", read.getSchema().getFullName() + " " + read);
        }
    }

    private static AvroSchema schema(String fields) {
        return new AvroSchema(String.format(FIELDS, fields));
    }

    private static String refused(Callable<?> call) throws Exception {
        try {
            return "not refused: " + call.call();
        } catch (RestClientException refusal) {
            return refusal.getStatus() + " " + refusal.getErrorCode();
        }
    }

    private static void print(String name, Object value) {
        System.out.println(name + "\t" + value);
    }
}
