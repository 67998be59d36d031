package io.github.dpnoise;

/**
 * The Laplace mechanism for real values. Values are rounded to a grid first, so the guarantee holds for floating-point
 * numbers, too.
 */
public final class Laplace extends Mechanism {
    /**
     * Makes the mechanism, with the granularity that suits.
     *
     * @param epsilon what a release spends
     * @param sensitivity the L1 sensitivity of the values of a release
     * @throws DpnoiseException if a parameter is outside its range
     */
    public Laplace(double epsilon, double sensitivity) {
        this(epsilon, sensitivity, 0);
    }

    /**
     * Makes the mechanism.
     *
     * @param epsilon what a release spends
     * @param sensitivity the L1 sensitivity of the values of a release
     * @param granularity the grid to which values are rounded first, a power of two; 0 for the one that suits
     * @throws DpnoiseException if a parameter is outside its range
     */
    public Laplace(double epsilon, double sensitivity, double granularity) {
        super(Handle.of(out -> NoiseLibrary.dpnoise_laplace_mechanism(epsilon, sensitivity, granularity, out)));
    }

    /**
     * Releases values.
     *
     * @param values real values, which stay as they are
     * @return a noisy value for each
     * @throws DpnoiseException if a value is not finite, or the system's randomness fails
     */
    public double[] release(double[] values) {
        return release(values, Source.system());
    }

    /**
     * Releases values.
     *
     * @param values real values, which stay as they are
     * @param source where randomness comes from
     * @return a noisy value for each
     * @throws DpnoiseException if a value is not finite, or randomness fails
     */
    public double[] release(double[] values, Source source) {
        return released(values, source);
    }
}
