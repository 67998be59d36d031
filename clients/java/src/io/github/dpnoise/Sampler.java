package io.github.dpnoise;

import com.sun.jna.Pointer;

/**
 * A sampler of noise, worth keeping for many samples: {@link DiscreteLaplaceSampler} or {@link
 * DiscreteGaussianSampler}.
 *
 * <p>The time of a call does not depend on the samples, as far as native code is concerned.
 */
public abstract sealed class Sampler implements AutoCloseable permits DiscreteLaplaceSampler, DiscreteGaussianSampler {
    private final Handle handle;

    Sampler(Handle handle) {
        this.handle = handle;
    }

    /**
     * Fills an array with independent samples.
     *
     * @param out the array, all of which is filled, or nothing of it if the call throws
     * @throws DpnoiseException if the system's randomness fails
     */
    public final void fill(long[] out) {
        fill(out, Source.system());
    }

    /**
     * Fills an array with independent samples.
     *
     * @param out the array, all of which is filled, or nothing of it if the call throws
     * @param source where randomness comes from
     * @throws DpnoiseException if randomness fails
     */
    public final void fill(long[] out, Source source) {
        try (PrivateMemory memory = new PrivateMemory((long) Long.BYTES * out.length)) {
            Pointer n = Library.size(out.length);
            source.run((threads, generator) -> handle.status(
                    sampler -> NoiseLibrary.dpnoise_sampler_fill(sampler, threads, generator, memory, n)));
            memory.read(0, out, 0, out.length);
        }
    }

    @Override
    public final void close() {
        handle.close();
    }
}
