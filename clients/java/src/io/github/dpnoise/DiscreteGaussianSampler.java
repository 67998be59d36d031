package io.github.dpnoise;

/** Discrete Gaussian noise: P(x) is proportional to exp(-x<sup>2</sup> / (2 sigma<sup>2</sup>)) for all integers x. */
public final class DiscreteGaussianSampler extends Sampler {
    /**
     * Makes a sampler.
     *
     * @param sigma from 2<sup>-20</sup> to 2<sup>40</sup>, and exact: it is the rational number that the double is
     * @throws DpnoiseException if it is outside this range
     */
    public DiscreteGaussianSampler(double sigma) {
        super(Handle.of(out -> NoiseLibrary.dpnoise_discrete_gaussian_sampler(sigma, out)));
    }
}
