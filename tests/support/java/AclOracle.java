import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Lets Apache Kafka's StandardAuthorizer decide. Lines of standard input, with tabs between the fields and Kafka's codes:
 *
 * "world  super users  allow everyone": forget everything before.
 * "acl  type  name  pattern type  principal  host  operation  permission": add a binding. "drop": remove the oldest.
 * "ask  principal type  principal name  host  operation  type  name": prints 1 if it is allowed, else 0.
 * "any  principal type  principal name  host  operation  type": the same for any resource of a type.
 */
public class AclOracle {
    private record Client(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        public String listenerName() {
            return "L";
        }

        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.PLAINTEXT;
        }

        public int requestType() {
            return 3;
        }

        public int requestVersion() {
            return 9;
        }

        public String clientId() {
            return "oracle";
        }

        public int correlationId() {
            return 1;
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintWriter answers = new PrintWriter(new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8)));
        StandardAuthorizer authorizer = new StandardAuthorizer();
        Plugin.wrapInstance(authorizer, new Metrics(), "authorizer.class.name");
        Deque<Uuid> ids = new ArrayDeque<>();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] fields = line.split("\t", -1);
            switch (fields[0]) {
                case "world" -> {
                    authorizer.loadSnapshot(Map.of());
                    authorizer.configure(
                        Map.of("node.id", "1", "super.users", fields[1], "allow.everyone.if.no.acl.found", fields[2]));
                    authorizer.completeInitialLoad();
                    ids.clear();
                }
                case "acl" -> {
                    Uuid id = Uuid.randomUuid();
                    ids.add(id);
                    authorizer.addAcl(id, new StandardAcl(
                        ResourceType.fromCode(Byte.parseByte(fields[1])), fields[2],
                        PatternType.fromCode(Byte.parseByte(fields[3])), fields[4], fields[5],
                        AclOperation.fromCode(Byte.parseByte(fields[6])), AclPermissionType.fromCode(Byte.parseByte(fields[7]))));
                }
                case "drop" -> authorizer.removeAcl(ids.remove());
                case "ask" -> {
                    Action action = new Action(
                        AclOperation.fromCode(Byte.parseByte(fields[4])),
                        new ResourcePattern(ResourceType.fromCode(Byte.parseByte(fields[5])), fields[6], PatternType.LITERAL),
                        1, true, true);
                    answers.println(text(authorizer.authorize(client(fields), List.of(action)).get(0)));
                }
                default -> answers.println(text(authorizer.authorizeByResourceType(
                    client(fields), AclOperation.fromCode(Byte.parseByte(fields[4])),
                    ResourceType.fromCode(Byte.parseByte(fields[5])))));
            }
        }
        answers.flush();
    }

    private static Client client(String[] fields) throws Exception {
        return new Client(new KafkaPrincipal(fields[1], fields[2]), InetAddress.getByName(fields[3]));
    }

    private static String text(AuthorizationResult result) {
        return result == AuthorizationResult.ALLOWED ? "1" : "0";
    }
}
