package io.github.dpnoise;

import com.sun.jna.Pointer;
import com.sun.jna.ptr.PointerByReference;

/**
 * The secret of a person, from which everything is derived that stays the same in their reports, and how they answer each
 * question. A device makes one, once, and stores its bytes as the platform stores secrets, after {@link
 * Protocol#withMemo} and before it sends a report.
 */
public final class Memo implements AutoCloseable {
    final Handle handle;

    private Memo(Handle handle) {
        this.handle = handle;
    }

    /**
     * Draws the secret of one person.
     *
     * @return a new memo
     * @throws DpnoiseException if the system's randomness fails
     */
    public static Memo create() {
        return create(1);
    }

    /**
     * Draws the secrets of several people, as simulations need them: the i-th value of a bulk call is of the i-th
     * person.
     *
     * @param people how many
     * @return a new memo
     * @throws DpnoiseException if there cannot be so many, or the system's randomness fails
     */
    public static Memo create(int people) {
        if (people < 0) {
            throw new DpnoiseException(Status.PARAMETER, "people must be at least 0, got " + people);
        }
        return new Memo(Handle.of(out -> ClientLibrary.dpnoise_memo_new(people, out)));
    }

    /**
     * Reads the bytes of a memo.
     *
     * @param bytes what {@link #toBytes} or Python gave; wipe it after the call
     * @return the memo
     * @throws DpnoiseException of status {@link Status#STATE} if they are damaged: a device that then makes a new memo
     *     answers anew, which costs its epsilon again
     */
    public static Memo fromBytes(byte[] bytes) {
        try (PrivateMemory memory = PrivateMemory.of(bytes)) {
            Pointer length = Library.size(bytes.length);
            return new Memo(Handle.of(out -> ClientLibrary.dpnoise_memo_from_bytes(memory, length, out)));
        }
    }

    /**
     * Writes the memo.
     *
     * @return the bytes: whoever has them has the secret, so wipe them after use
     */
    public byte[] toBytes() {
        PointerByReference length = new PointerByReference();
        handle.status(memo -> ClientLibrary.dpnoise_memo_to_bytes(memo, null, Library.size(0), length)); // the length
        try (PrivateMemory memory = new PrivateMemory(Library.value(length))) {
            Pointer capacity = Library.size(memory.size());
            handle.call(memo -> ClientLibrary.dpnoise_memo_to_bytes(memo, memory, capacity, length));
            return memory.getByteArray(0, Math.toIntExact(Library.value(length)));
        }
    }

    /** Wipes the secret, unless a protocol that was made with this memo is still open. */
    @Override
    public void close() {
        handle.close();
    }
}
