package io.github.dpnoise;

/**
 * A generator of random bytes that takes the place of the operating system's, for tests and for hardware tokens.
 *
 * <p>Privacy depends on its bytes: they must be uniform, independent, and nobody else's. If several threads use it at once,
 * it must be made for that.
 */
@FunctionalInterface
public interface Generator {
    /**
     * Fills an array with random bytes. It is called by the thread that asks for reports or noise. The array is wiped
     * after the call.
     *
     * @param out the array, all of which is used
     * @throws Exception if there are no random bytes: then the call that asked for them throws a {@link
     *     DpnoiseException} of status {@link Status#RANDOMNESS}, with this exception as its cause
     */
    void fill(byte[] out) throws Exception;
}
