package io.github.dpnoise;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;

/**
 * The number of a native object, which is freed once: when this is closed, or else after the garbage collector has
 * found it. The library gives no number twice, and refuses those that were freed.
 */
final class Handle implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();

    private final long number;
    private final Cleaner.Cleanable cleanable;

    /** A function that writes a number, and returns a status. */
    interface Maker {
        int make(long[] out);
    }

    /** A function that takes the number, and returns a status. */
    interface Call {
        int status(long number);
    }

    private Handle(long number) {
        this.number = number;
        cleanable = CLEANER.register(this, () -> Library.dpnoise_free(number)); // the argument: not `this`
    }

    static Handle of(Maker maker) {
        long[] out = new long[1];
        Library.check(maker.make(out));
        return new Handle(out[0]);
    }

    /** The status of a call, during which the native object is not freed by the garbage collector. */
    int status(Call call) {
        try {
            return call.status(number);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    void call(Call call) {
        Library.check(status(call));
    }

    @Override
    public void close() {
        cleanable.clean();
    }
}
