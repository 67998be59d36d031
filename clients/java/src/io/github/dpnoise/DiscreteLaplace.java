package io.github.dpnoise;

/** The discrete Laplace mechanism for integers. */
public final class DiscreteLaplace extends Mechanism {
    /**
     * Makes the mechanism.
     *
     * @param epsilon what a release spends
     * @param sensitivity the L1 sensitivity of the values of a release
     * @throws DpnoiseException if a parameter is outside its range
     */
    public DiscreteLaplace(double epsilon, long sensitivity) {
        super(Handle.of(out -> NoiseLibrary.dpnoise_discrete_laplace_mechanism(epsilon, checked(sensitivity), out)));
    }

    private static long checked(long sensitivity) {
        if (sensitivity < 0) { // native code would read it as a large number
            throw new DpnoiseException(Status.PARAMETER, "sensitivity must be at least 1, got " + sensitivity);
        }
        return sensitivity;
    }

    /**
     * Releases values.
     *
     * @param values integers, which stay as they are
     * @return a noisy integer for each; what is outside the range of 64 bits saturates
     * @throws DpnoiseException if the system's randomness fails
     */
    public long[] release(long[] values) {
        return release(values, Source.system());
    }

    /**
     * Releases values.
     *
     * @param values integers, which stay as they are
     * @param source where randomness comes from
     * @return a noisy integer for each; what is outside the range of 64 bits saturates
     * @throws DpnoiseException if randomness fails
     */
    public long[] release(long[] values, Source source) {
        return released(values, source);
    }
}
