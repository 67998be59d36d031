package io.github.dpnoise;

/**
 * A mean of people's numbers.
 *
 * @param mean an unbiased estimate, which may be outside of [-1, 1]
 * @param standardError its standard error
 */
public record MeanEstimate(double mean, double standardError) {}
