package io.github.dpnoise;

import com.sun.jna.Pointer;

/**
 * A mechanism that adds noise: {@link Laplace} or {@link Gaussian} to real values, {@link DiscreteLaplace} or {@link
 * DiscreteGaussian} to integers. The values of one call are one release, whose sensitivity is that of the mechanism.
 *
 * <p>The time of a call does not depend on the values, as far as native code is concerned.
 */
public abstract sealed class Mechanism implements AutoCloseable
        permits Laplace, Gaussian, DiscreteLaplace, DiscreteGaussian {
    private final Handle handle;

    Mechanism(Handle handle) {
        this.handle = handle;
    }

    /**
     * Bounds the error of a release.
     *
     * @param level a probability, between 0 and 1
     * @param n the number of values that are released together
     * @return the smallest error that each of them exceeds with a probability of at most 1 - level
     * @throws DpnoiseException if the level is outside its range
     */
    public final double error(double level, int n) {
        if (n < 0) {
            throw new DpnoiseException(Status.PARAMETER, "n must be at least 0, got " + n);
        }
        double[] error = new double[1];
        handle.call(mechanism -> NoiseLibrary.dpnoise_mechanism_error(mechanism, level, Library.size(n), error));
        return error[0];
    }

    final double[] released(double[] values, Source source) {
        try (PrivateMemory memory = PrivateMemory.of(values)) {
            Pointer n = Library.size(values.length);
            source.run((threads, generator) -> handle.status(mechanism ->
                    NoiseLibrary.dpnoise_mechanism_release_numbers(mechanism, memory, n, threads, generator)));
            return memory.getDoubleArray(0, values.length);
        }
    }

    final long[] released(long[] values, Source source) {
        try (PrivateMemory memory = PrivateMemory.of(values)) {
            Pointer n = Library.size(values.length);
            source.run((threads, generator) -> handle.status(mechanism ->
                    NoiseLibrary.dpnoise_mechanism_release_integers(mechanism, memory, n, threads, generator)));
            return memory.getLongArray(0, values.length);
        }
    }

    @Override
    public final void close() {
        handle.close();
    }
}
