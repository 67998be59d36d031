package io.github.dpnoise;

/** Why a call failed. */
public enum Status {
    /** A public parameter is outside its range. */
    PARAMETER,
    /** A private value cannot be used. The message does not say which one. */
    DATA,
    /** A specification, memo or state is damaged, or of another kind. */
    STATE,
    /** The source of randomness failed. Nothing was released. */
    RANDOMNESS,
    /** An object was closed before. */
    HANDLE,
    /** Memory is too short. */
    MEMORY,
    /** A defect of the library. */
    INTERNAL,
    /** The library could not allocate memory. Nothing was released, and all objects are as they were. */
    ALLOCATION;

    private static final Status[] ALL = values();

    /** The status with this number in the C interface, where 0 is success. */
    static Status of(int number) {
        return 1 <= number && number <= ALL.length ? ALL[number - 1] : INTERNAL;
    }
}
