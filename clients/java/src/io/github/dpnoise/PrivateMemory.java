package io.github.dpnoise;

import com.sun.jna.Memory;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetEncoder;
import java.nio.charset.StandardCharsets;

/**
 * Native memory for private values, wiped when closed. JNA could pass arrays by itself: it copies them to memory that
 * it does not wipe.
 */
final class PrivateMemory extends Memory {
    PrivateMemory(long bytes) {
        super(Math.max(bytes, 1)); // JNA has no memory of no bytes
    }

    static PrivateMemory of(byte[] values) {
        PrivateMemory memory = new PrivateMemory(values.length);
        memory.write(0, values, 0, values.length);
        return memory;
    }

    static PrivateMemory of(long[] values) {
        PrivateMemory memory = new PrivateMemory((long) Long.BYTES * values.length);
        memory.write(0, values, 0, values.length);
        return memory;
    }

    static PrivateMemory of(double[] values) {
        PrivateMemory memory = new PrivateMemory((long) Double.BYTES * values.length);
        memory.write(0, values, 0, values.length);
        return memory;
    }

    /** Memory in which texts fit, in UTF-8. */
    static PrivateMemory forTexts(String[] values) {
        long bytes = 0;
        for (String value : values) {
            bytes += mostBytes(value);
        }
        return new PrivateMemory(bytes);
    }

    /** Writes texts one after the other, in UTF-8, and where each ends to {@code offsets}, after a 0. */
    void write(String[] values, PrivateMemory offsets) {
        CharsetEncoder encoder = StandardCharsets.UTF_8.newEncoder(); // reports what is no Unicode, and writes no "?"
        long end = 0;
        offsets.setLong(0, end);
        for (int i = 0; i < values.length; i++) {
            ByteBuffer out = getByteBuffer(end, mostBytes(values[i]));
            if (encoder.reset().encode(CharBuffer.wrap(values[i]), out, true).isError()) {
                throw new DpnoiseException(Status.DATA, "values must be Unicode, got a lone surrogate");
            }
            end += out.position();
            offsets.setLong((long) Long.BYTES * (i + 1), end);
        }
    }

    private static long mostBytes(String value) {
        return 3L * value.length();
    }

    @Override
    public void close() {
        if (valid()) {
            clear();
        }
        super.close();
    }
}
