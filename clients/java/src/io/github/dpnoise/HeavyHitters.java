package io.github.dpnoise;

/**
 * Frequent values, the most frequent first.
 *
 * @param values the values
 * @param counts an unbiased estimate of how many people have each
 * @param standardErrors the standard error of each
 * @param complete whether all significant prefixes were extended; if not, there were more of them than can be tried
 */
public record HeavyHitters(long[] values, double[] counts, double[] standardErrors, boolean complete) {}
