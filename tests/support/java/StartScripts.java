import com.github.dockerjava.api.command.InspectContainerResponse;
import com.github.dockerjava.api.model.ContainerConfig;
import java.lang.reflect.Field;
import java.util.Map;
import org.testcontainers.containers.wait.strategy.LogMessageWaitStrategy;
import org.testcontainers.containers.wait.strategy.WaitStrategy;
import org.testcontainers.images.builder.Transferable;
import org.testcontainers.kafka.ConfluentKafkaContainer;
import org.testcontainers.kafka.KafkaContainer;
import org.testcontainers.utility.DockerImageName;

/** Prints how testcontainers starts the image: variables, command, start script and the line it waits for. No engine is asked. */
public final class StartScripts {
    private static final class Apache extends KafkaContainer {
        Apache(DockerImageName image) {
            super(image);
        }

        @Override
        public String getHost() {
            return "localhost";
        }

        @Override
        public Integer getMappedPort(int port) {
            return port;
        }

        @Override
        public void copyFileToContainer(Transferable content, String path) {
            print("file", path, content.getBytes());
        }

        void start(InspectContainerResponse container) throws Exception {
            configure();
            show(getEnvMap(), getCommandParts(), waitStrategy);
            containerIsStarting(container);
        }
    }

    private static final class Confluent extends ConfluentKafkaContainer {
        Confluent(DockerImageName image) {
            super(image);
        }

        @Override
        public String getHost() {
            return "localhost";
        }

        @Override
        public Integer getMappedPort(int port) {
            return port;
        }

        @Override
        public void copyFileToContainer(Transferable content, String path) {
            print("file", path, content.getBytes());
        }

        void start(InspectContainerResponse container) throws Exception {
            configure();
            show(getEnvMap(), getCommandParts(), waitStrategy);
            containerIsStarting(container);
        }
    }

    public static void main(String[] arguments) throws Exception {
        ContainerConfig config = new ContainerConfig().withHostName(arguments[1]);
        InspectContainerResponse container = new InspectContainerResponse() {
            @Override
            public ContainerConfig getConfig() {
                return config;
            }
        };
        DockerImageName image = DockerImageName.parse("ottla:latest");
        if (arguments[0].equals("apache")) {
            new Apache(image.asCompatibleSubstituteFor("apache/kafka")).start(container);
        } else {
            new Confluent(image.asCompatibleSubstituteFor("confluentinc/cp-kafka")).start(container);
        }
    }

    private static void show(Map<String, String> variables, String[] command, WaitStrategy strategy) throws Exception {
        variables.forEach((name, value) -> print("variable", name, value.getBytes()));
        for (String part : command) {
            print("command", "", part.getBytes());
        }
        Field expression = LogMessageWaitStrategy.class.getDeclaredField("regEx");
        expression.setAccessible(true);
        print("line", "", ((String) expression.get(strategy)).getBytes());
    }

    /** One line: kind, name, and the content in hexadecimal digits. */
    private static void print(String kind, String name, byte[] content) {
        StringBuilder digits = new StringBuilder();
        for (byte each : content) {
            digits.append(String.format("%02x", each));
        }
        System.out.println(kind + "\t" + name + "\t" + digits);
    }
}
