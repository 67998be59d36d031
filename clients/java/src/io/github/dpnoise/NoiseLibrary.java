package io.github.dpnoise;

import com.sun.jna.Pointer;

/** The functions of the part {@code noise}, which a library for devices need not have. */
final class NoiseLibrary {
    static {
        Library.register(NoiseLibrary.class);
    }

    private NoiseLibrary() {}

    static native int dpnoise_discrete_laplace_sampler(double scale, long[] out);

    static native int dpnoise_discrete_gaussian_sampler(double sigma, long[] out);

    static native int dpnoise_sampler_fill(long sampler, int threads, long generator, Pointer out, Pointer n);

    static native int dpnoise_laplace_mechanism(double epsilon, double sensitivity, double granularity, long[] out);

    static native int dpnoise_gaussian_mechanism(
            double epsilon, double delta, double sensitivity, double granularity, long[] out);

    static native int dpnoise_discrete_laplace_mechanism(double epsilon, long sensitivity, long[] out);

    static native int dpnoise_discrete_gaussian_mechanism(
            double epsilon, double delta, double sensitivity, long[] out);

    static native int dpnoise_mechanism_release_numbers(
            long mechanism, Pointer values, Pointer n, int threads, long generator);

    static native int dpnoise_mechanism_release_integers(
            long mechanism, Pointer values, Pointer n, int threads, long generator);

    static native int dpnoise_mechanism_error(long mechanism, double level, Pointer n, double[] error);
}
