import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command line tools one after the other in one Java process, as if each had been started on its own.
 *
 * A line on standard input is one call: the main class, the text for its standard input, then its arguments, each in base64 and
 * separated by blanks. The answer is one line: exit code, standard output and standard error, in base64 too. An empty text is a
 * lone "-". The process ends with its input.
 */
public class RunTools {
    /** Thrown where a tool would end the process. Some tools catch it: their output after that is ignored. */
    static final class Ended extends Error {
        Ended() {
            super("the tool has ended", null, false, false);
        }
    }

    /** Writes to the current buffer: libraries that keep System.out keep this. Output after the end is dropped. */
    static final class Switch extends OutputStream {
        volatile ByteArrayOutputStream target;

        @Override
        public void write(int one) {
            if (exitCode == null) {
                target.write(one);
            }
        }

        @Override
        public void write(byte[] data, int start, int count) {
            if (exitCode == null) {
                target.write(data, start, count);
            }
        }
    }

    /** The first exit code of the current tool; null while it runs. */
    private static volatile Integer exitCode;

    /** The shutdown hooks of the current tool: the producer's last records are sent here. */
    private static final List<Runnable> atEnd = Collections.synchronizedList(new ArrayList<>());

    private static void end(int code) {
        System.out.flush();
        System.err.flush();
        if (exitCode == null) {
            exitCode = code;
        }
        throw new Ended();
    }

    public static void main(String[] unused) throws Exception {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.US_ASCII);
        BufferedReader calls =
            new BufferedReader(new InputStreamReader(new FileInputStream(FileDescriptor.in), StandardCharsets.US_ASCII));
        exitCode = 0;
        Switch out = new Switch();
        Switch err = new Switch();
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        Exit.setExitProcedure((code, message) -> end(code));
        Exit.setHaltProcedure((code, message) -> end(code));
        Exit.setShutdownHookAdder((name, hook) -> atEnd.add(hook));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            List<String> fields = new ArrayList<>();
            for (String field : line.split(" ")) {
                fields.add(decode(field));
            }
            out.target = new ByteArrayOutputStream();
            err.target = new ByteArrayOutputStream();
            System.setIn(new ByteArrayInputStream(fields.get(1).getBytes(StandardCharsets.UTF_8)));
            exitCode = null;
            atEnd.clear();
            int code = run(fields.get(0), fields.subList(2, fields.size()).toArray(new String[0]));
            for (Runnable hook : new ArrayList<>(atEnd)) {
                hook.run();
            }
            System.out.flush();
            System.err.flush();
            exitCode = code;
            answers.println(code + " " + encode(out.target.toByteArray()) + " " + encode(err.target.toByteArray()));
        }
        Runtime.getRuntime().halt(0);
    }

    private static int run(String mainClass, String[] arguments) {
        try {
            Method main = Class.forName(mainClass).getMethod("main", String[].class);
            main.invoke(null, (Object) arguments);
            return exitCode == null ? 0 : exitCode;
        } catch (InvocationTargetException wrapped) {
            if (exitCode != null) {
                return exitCode;
            }
            wrapped.getCause().printStackTrace();
            return 1;
        } catch (ReflectiveOperationException absent) {
            absent.printStackTrace();
            return 127;
        }
    }

    private static String decode(String field) {
        return field.equals("-") ? "" : new String(Base64.getDecoder().decode(field), StandardCharsets.UTF_8);
    }

    private static String encode(byte[] data) {
        return data.length == 0 ? "-" : Base64.getEncoder().encodeToString(data);
    }
}
