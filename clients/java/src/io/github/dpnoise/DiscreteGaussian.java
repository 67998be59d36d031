package io.github.dpnoise;

/** The discrete Gaussian mechanism for integers. */
public final class DiscreteGaussian extends Mechanism {
    /**
     * Makes the mechanism.
     *
     * @param epsilon what a release spends
     * @param delta what a release spends
     * @param sensitivity the L2 sensitivity of the values of a release
     * @throws DpnoiseException if a parameter is outside its range
     */
    public DiscreteGaussian(double epsilon, double delta, double sensitivity) {
        super(Handle.of(out -> NoiseLibrary.dpnoise_discrete_gaussian_mechanism(epsilon, delta, sensitivity, out)));
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
