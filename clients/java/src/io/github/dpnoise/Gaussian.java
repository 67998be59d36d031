package io.github.dpnoise;

/**
 * The Gaussian mechanism for real values, with the smallest noise that suffices. Values are rounded to a grid first, so
 * the guarantee holds for floating-point numbers, too.
 */
public final class Gaussian extends Mechanism {
    /**
     * Makes the mechanism, with the granularity that suits.
     *
     * @param epsilon what a release spends
     * @param delta what a release spends
     * @param sensitivity the L2 sensitivity of the values of a release
     * @throws DpnoiseException if a parameter is outside its range
     */
    public Gaussian(double epsilon, double delta, double sensitivity) {
        this(epsilon, delta, sensitivity, 0);
    }

    /**
     * Makes the mechanism.
     *
     * @param epsilon what a release spends
     * @param delta what a release spends
     * @param sensitivity the L2 sensitivity of the values of a release
     * @param granularity the grid to which values are rounded first, a power of two; 0 for the one that suits
     * @throws DpnoiseException if a parameter is outside its range
     */
    public Gaussian(double epsilon, double delta, double sensitivity, double granularity) {
        super(Handle.of(out -> NoiseLibrary.dpnoise_gaussian_mechanism(epsilon, delta, sensitivity, granularity, out)));
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
