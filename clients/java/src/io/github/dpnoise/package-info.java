/**
 * Differential privacy from Java: reports of local protocols, their collection, and noise.
 *
 * <p>A device reads a specification ({@link io.github.dpnoise.Protocol}), keeps a {@link io.github.dpnoise.Memo} if the
 * protocol asks for one, and sends messages. A collector counts them in an {@link io.github.dpnoise.Accumulator}.
 * Whoever holds data in the clear adds noise with {@link io.github.dpnoise.Laplace}, {@link
 * io.github.dpnoise.Gaussian}, {@link io.github.dpnoise.DiscreteLaplace} or {@link io.github.dpnoise.DiscreteGaussian}.
 *
 * <p>All of it is done by the native library {@code dpnoise}, which JNA loads on first use. Objects may be used by
 * several threads at once, and hold native memory until they are closed. After that their methods throw a {@link
 * io.github.dpnoise.DpnoiseException} of status {@link io.github.dpnoise.Status#HANDLE}; closing again does nothing.
 * What is never closed is freed after the garbage collector has found it.
 */
package io.github.dpnoise;
