package io.github.dpnoise;

import com.sun.jna.Pointer;
import java.lang.ref.Reference;
import java.util.Arrays;
import java.util.Objects;

/** Where a call gets its randomness, and how many threads do its work. */
public final class Source {
    private final int threads;
    private final Generator generator;

    private Source(int threads, Generator generator) {
        this.threads = threads;
        this.generator = generator;
    }

    /**
     * Gives the operating system's randomness, with all cores. Methods without a source use it.
     *
     * @return the source
     */
    public static Source system() {
        return system(Runtime.getRuntime().availableProcessors());
    }

    /**
     * Gives the operating system's randomness, with some threads.
     *
     * @param threads how many threads share the work at most, at least 1
     * @return the source
     * @throws DpnoiseException if there are fewer
     */
    public static Source system(int threads) {
        return new Source(checkedThreads(threads), null);
    }

    /**
     * Gives the bytes of a generator. The calling thread does all the work.
     *
     * @param generator the generator
     * @return the source
     */
    public static Source of(Generator generator) {
        return new Source(1, Objects.requireNonNull(generator, "generator"));
    }

    static int checkedThreads(int threads) {
        if (threads < 1) {
            throw new DpnoiseException(Status.PARAMETER, "threads must be at least 1, got " + threads);
        }
        return threads;
    }

    /** A native function that takes threads and a generator, and returns a status. */
    interface Call {
        int status(int threads, long generator);
    }

    void run(Call call) {
        if (generator == null) {
            Library.check(call.status(threads, 0));
            return;
        }
        Fill fill = new Fill(generator);
        try (Handle handle = Handle.of(out -> Library.dpnoise_generator_new(fill, null, out))) {
            handle.call(number -> call.status(threads, number));
        } catch (DpnoiseException exception) {
            throw (DpnoiseException) exception.initCause(fill.thrown);
        } finally {
            Reference.reachabilityFence(fill); // JNA frees the function of a callback that nobody holds
        }
    }

    private static final class Fill implements Library.RandomBytes {
        private final Generator generator;
        private Throwable thrown;

        Fill(Generator generator) {
            this.generator = generator;
        }

        @Override
        public int invoke(Pointer context, Pointer out, Pointer length) {
            try {
                byte[] bytes = new byte[Math.toIntExact(Pointer.nativeValue(length))];
                try {
                    generator.fill(bytes);
                    out.write(0, bytes, 0, bytes.length);
                } finally {
                    Arrays.fill(bytes, (byte) 0);
                }
                return 0;
            } catch (Throwable throwable) { // JNA would print it, and return 0 for success
                thrown = throwable;
                return 1;
            }
        }
    }
}
