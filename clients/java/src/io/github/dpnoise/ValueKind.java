package io.github.dpnoise;

/** What the values of a protocol are. */
public enum ValueKind {
    /** Integers from 0 to k - 1, or below 2^bits for prefixes; 0 for no and 1 for yes in randomized response. */
    INTEGERS,
    /** Numbers, in [-1, 1] or within the bounds of the document for means and in [0, 1] for distributions. */
    NUMBERS,
    /** Texts. */
    TEXTS,
    /** Several attributes, each with values of its own: their reports are counted here, and not made. */
    ATTRIBUTES
}
