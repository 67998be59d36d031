package io.github.dpnoise;

/**
 * How many people have each value.
 *
 * @param counts for each value an unbiased estimate, which may be negative; for randomized response those of no and of
 *     yes
 * @param standardErrors the standard error of each
 */
public record Estimate(double[] counts, double[] standardErrors) {}
