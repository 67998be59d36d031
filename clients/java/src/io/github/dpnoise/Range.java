package io.github.dpnoise;

/**
 * The values from one to another, both included.
 *
 * @param first the first one
 * @param last the last one
 */
public record Range(long first, long last) {}
