package io.github.dpnoise;

/** A call failed, and gave nothing. The message has no private data and may be logged. */
public final class DpnoiseException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** Why the call failed. */
    private final Status status;

    DpnoiseException(Status status, String message) {
        super(message);
        this.status = status;
    }

    /** {@return why the call failed} */
    public Status status() {
        return status;
    }
}
