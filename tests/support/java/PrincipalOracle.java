// Prints what Java and Apache Kafka make of the subject of a certificate. Each line of the input is a subject (DER, in hex), a
// tab, and mapping rules with `\n` for line ends. The answer is the subject's name, a tab, and the principal's, both escaped.

import java.io.*;
import java.util.HexFormat;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

public class PrincipalOracle {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out), false, "UTF-8");
        for (String line; (line = in.readLine()) != null; ) {
            int tab = line.indexOf('\t');
            String name = new X500Principal(HexFormat.of().parseHex(line.substring(0, tab))).getName();
            String principal;
            try {
                principal = SslPrincipalMapper.fromRules(line.substring(tab + 1).replace("\\n", "\n")).getName(name);
            } catch (Exception e) {
                principal = "! " + e.getClass().getSimpleName();
            }
            out.println(escaped(name) + "\t" + escaped(principal));
        }
        out.flush();
    }

    static String escaped(String text) {
        StringBuilder out = new StringBuilder();
        for (char c : text.toCharArray())
            out.append(c < ' ' || c > '~' || c == '%' ? String.format("%%%04x", (int) c) : "" + c);
        return out.toString();
    }
}
