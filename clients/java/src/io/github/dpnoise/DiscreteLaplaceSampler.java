package io.github.dpnoise;

/** Discrete Laplace noise: P(x) is proportional to exp(-|x| / scale) for all integers x. */
public final class DiscreteLaplaceSampler extends Sampler {
    /**
     * Makes a sampler.
     *
     * @param scale from 2<sup>-40</sup> to 2<sup>40</sup>, and exact: it is the rational number that the double is
     * @throws DpnoiseException if it is outside this range
     */
    public DiscreteLaplaceSampler(double scale) {
        super(Handle.of(out -> NoiseLibrary.dpnoise_discrete_laplace_sampler(scale, out)));
    }
}
