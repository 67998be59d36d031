package io.github.dpnoise;

import static io.github.dpnoise.Tests.check;

import com.sun.jna.Memory;
import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.IntToLongFunction;

/**
 * No copy of a private value stays in memory that the client has made: all memory of the process is searched.
 *
 * <p>A test itself has what it searches for only in an inverted form.
 */
final class WipingTests {
    private static final Path MEMORY = Path.of("/proc/self/mem");
    private static final int N = 16;
    private static final Random RANDOM = new Random(1);

    private WipingTests() {}

    static void run() throws IOException {
        if (!Files.isReadable(MEMORY)) {
            System.out.println("skipped: wiping, as the memory of the process can only be searched on Linux");
            return;
        }
        List<Test> tests = List.of(WipingTests::testACopyIsFound, WipingTests::testIntegers, WipingTests::testNumbers,
                WipingTests::testTexts, WipingTests::testNoise, WipingTests::testMemos);
        for (Test test : tests) {
            runWithoutCollection(test);
        }
    }

    private interface Test {
        void run() throws IOException;
    }

    /** Repeats a test during which the garbage collector ran: it leaves copies of arrays that it moves. */
    private static void runWithoutCollection(Test test) throws IOException {
        while (true) {
            System.gc();
            long before = collections();
            try {
                test.run();
                return;
            } catch (AssertionError error) {
                if (collections() == before) {
                    throw error;
                }
            }
        }
    }

    private static long collections() {
        return ManagementFactory.getGarbageCollectorMXBeans().stream()
                .mapToLong(GarbageCollectorMXBean::getCollectionCount).sum();
    }

    /** The positive control: a copy in native memory, and one in an array. */
    private static void testACopyIsFound() throws IOException {
        long[] values = integers();
        byte[] inverted = inverted(values);
        Memory memory = new Memory(8 * N);
        memory.write(0, values, 0, N);
        Arrays.fill(values, 0);
        check(isInMemory(inverted), "a copy in native memory is found");
        memory.clear();
        check(!isInMemory(inverted), "it is not found any more");
        long[] copy = integers();
        inverted = inverted(copy);
        check(isInMemory(inverted), "a copy in an array is found");
        Arrays.fill(copy, 0);
    }

    private static void testIntegers() throws IOException {
        try (Protocol protocol = Protocol.fromJson(Tests.UNARY);
                DiscreteLaplace laplace = new DiscreteLaplace(1e-6, 1)) { // so much noise that no value stays as it was
            long[] values = integers();
            byte[] inverted = inverted(values);
            laplace.release(values);
            Tests.refused(Status.DATA, "", () -> protocol.reports(values));
            Arrays.fill(values, 0);
            check(!isInMemory(inverted), "integers are wiped");
        }
    }

    private static void testNumbers() throws IOException {
        try (Protocol protocol = Protocol.fromJson(Tests.MEAN); Gaussian gaussian = new Gaussian(1, 1e-6, 1)) {
            double[] values = RANDOM.doubles(N).toArray();
            byte[] inverted = inverted(values);
            protocol.messages(values);
            protocol.reports(values);
            gaussian.release(values);
            Arrays.fill(values, 0);
            check(!isInMemory(inverted), "numbers are wiped");
        }
    }

    /** Java keeps these texts in UTF-16, where the garbage collector finds them: in UTF-8 only the client has them. */
    private static void testTexts() throws IOException {
        try (Protocol protocol = Protocol.fromJson(Tests.SKETCH)) {
            char[] letters = new char[40];
            ByteBuffer inverted = ByteBuffer.allocate(3 * letters.length);
            for (int i = 0; i < letters.length; i++) {
                letters[i] = (char) (0x4e00 + RANDOM.nextInt(0x5000));
                inverted.put((byte) ~(0xe0 | letters[i] >> 12));
                inverted.put((byte) ~(0x80 | letters[i] >> 6 & 0x3f));
                inverted.put((byte) ~(0x80 | letters[i] & 0x3f));
            }
            String text = new String(letters);
            protocol.message(text);
            protocol.reports(new String[] {"plum", text});
            Tests.refused(Status.DATA, "", () -> protocol.reports(new String[] {text, "\ud83c"}));
            check(!isInMemory(inverted.array()), "texts are wiped");
        }
    }

    private static void testNoise() throws IOException {
        try (Sampler sampler = new DiscreteGaussianSampler(1e12)) {
            long[] out = new long[N];
            sampler.fill(out);
            byte[] inverted = inverted(out);
            Arrays.fill(out, 0);
            check(!isInMemory(inverted), "noise is wiped");
        }
    }

    private static void testMemos() throws IOException {
        Memo memo = Memo.create();
        byte[] bytes = memo.toBytes();
        byte[] inverted = new byte[32]; // the secret, which is the same in all forms of a memo
        for (int i = 0; i < inverted.length; i++) {
            inverted[i] = (byte) ~bytes[16 + i];
        }
        Memo.fromBytes(bytes).close();
        Arrays.fill(bytes, (byte) 0);
        check(isInMemory(inverted), "an open memo has its secret");
        memo.close();
        check(!isInMemory(inverted), "memos are wiped");
    }

    private static long[] integers() {
        return RANDOM.longs(N).toArray();
    }

    private static byte[] inverted(long[] values) {
        return inverted(values.length, i -> values[i]);
    }

    private static byte[] inverted(double[] values) {
        return inverted(values.length, i -> Double.doubleToRawLongBits(values[i]));
    }

    private static byte[] inverted(int n, IntToLongFunction value) {
        ByteBuffer bytes = ByteBuffer.allocate(Long.BYTES * n).order(ByteOrder.nativeOrder());
        for (int i = 0; i < n; i++) {
            bytes.putLong(~value.applyAsLong(i));
        }
        return bytes.array();
    }

    /** Whether the middle of these bytes, inverted, is in memory: what frees memory writes to its ends. */
    private static boolean isInMemory(byte[] inverted) throws IOException {
        byte[] middle = Arrays.copyOfRange(inverted, inverted.length / 2 - 12, inverted.length / 2 + 12);
        ByteBuffer buffer = ByteBuffer.allocateDirect(1 << 20);
        boolean found = false;
        try (FileChannel memory = FileChannel.open(MEMORY, StandardOpenOption.READ)) {
            for (String region : Files.readAllLines(Path.of("/proc/self/maps"))) {
                if (region.contains(" rw")) {
                    String[] ends = region.split("[- ]");
                    found |= isIn(memory, Long.parseLong(ends[0], 16), Long.parseLong(ends[1], 16), buffer, middle);
                }
            }
        }
        return found;
    }

    private static boolean isIn(FileChannel memory, long start, long end, ByteBuffer buffer, byte[] inverted) {
        boolean found = false;
        for (long place = start; place < end; place += buffer.capacity() - inverted.length) {
            buffer.clear().limit((int) Math.min(buffer.capacity(), end - place));
            try {
                memory.read(buffer, place);
            } catch (IOException exception) {
                continue; // a page that nobody may read, such as the guard of a stack
            }
            int last = buffer.position() - inverted.length;
            for (int i = 0; i <= last; i++) {
                found |= buffer.get(i) == (byte) ~inverted[0] && isAt(buffer, i, inverted);
            }
            for (int i = 0; i < buffer.limit(); i++) {
                buffer.put(i, (byte) 0); // or else the next search would find what this one has read
            }
        }
        return found;
    }

    private static boolean isAt(ByteBuffer buffer, int place, byte[] inverted) {
        for (int i = 1; i < inverted.length; i++) {
            if (buffer.get(place + i) != (byte) ~inverted[i]) {
                return false;
            }
        }
        return true;
    }
}
