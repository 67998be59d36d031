import io.github.dpnoise.DpnoiseException;
import io.github.dpnoise.Memo;
import io.github.dpnoise.Protocol;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Scanner;

/**
 * Asks a question, and prints a message that may be sent. The memo of whoever answers, and of how, is kept in a file.
 *
 * <p>{@code java ReportExample SPECIFICATION MEMO}, with the names of two files; the second one is made if it is not there.
 */
final class ReportExample {
    private static final String QUESTION = "On how many days of the last week did you walk to work?";
    private static final double MOST_EPSILON = 2; // what the people who answer were promised

    private ReportExample() {}

    public static void main(String[] arguments) throws IOException {
        if (arguments.length != 2) {
            System.err.println("usage: java ReportExample SPECIFICATION MEMO");
            System.exit(2);
        }
        try (Protocol announced = Protocol.fromJson(Files.readAllBytes(Path.of(arguments[0])))) {
            if (announced.epsilon() > MOST_EPSILON || announced.delta() > 0) {
                throw new IOException("the specification spends more than it may");
            }
            System.out.println(QUESTION);
            try (Scanner answers = new Scanner(System.in)) {
                System.out.println(HexFormat.of().formatHex(message(announced, Path.of(arguments[1]), answers.nextLong())));
            }
        } catch (DpnoiseException exception) {
            System.err.println(exception.getMessage());
            System.exit(1);
        }
    }

    private static byte[] message(Protocol announced, Path file, long answer) throws IOException {
        if (!announced.keepsMemo()) {
            return announced.message(answer);
        }
        try (Memo memo = kept(file); Protocol protocol = announced.withMemo(memo, QUESTION)) {
            keep(memo, file); // it has in mind now how the question is answered, and refuses another way
            return protocol.message(answer);
        }
    }

    /** The memo in a file. A file that is damaged is an error: a new memo would spend epsilon again. */
    private static Memo kept(Path file) throws IOException {
        if (!Files.exists(file)) {
            try (Memo memo = Memo.create()) {
                keep(memo, file);
            }
        }
        byte[] bytes = Files.readAllBytes(file);
        try {
            return Memo.fromBytes(bytes);
        } finally {
            Arrays.fill(bytes, (byte) 0);
        }
    }

    /** Writes a memo that nobody else may read. The file is there completely or not at all, also after a power failure. */
    private static void keep(Memo memo, Path file) throws IOException {
        Path folder = file.toAbsolutePath().getParent();
        Path written = Files.createTempFile(folder, ".memo", null,
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        byte[] bytes = memo.toBytes();
        try (FileChannel out = FileChannel.open(written, StandardOpenOption.WRITE)) {
            ByteBuffer left = ByteBuffer.wrap(bytes);
            while (left.hasRemaining()) {
                out.write(left);
            }
            out.force(true);
        } finally {
            Arrays.fill(bytes, (byte) 0);
        }
        Files.move(written, file, StandardCopyOption.ATOMIC_MOVE);
        try (FileChannel entries = FileChannel.open(folder)) {
            entries.force(true);
        }
    }
}
