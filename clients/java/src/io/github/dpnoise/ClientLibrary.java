package io.github.dpnoise;

import com.sun.jna.Pointer;
import com.sun.jna.ptr.PointerByReference;

/** The functions of the part {@code client}: reports. */
final class ClientLibrary {
    static final int REPORTS = 0;
    static final int MESSAGES = 1;
    static final int HEADER_BYTES = 12;
    static final int DIGEST_BYTES = 32;

    static {
        Library.register(ClientLibrary.class);
    }

    private ClientLibrary() {}

    static native int dpnoise_protocol_from_json(byte[] specification, Pointer length, Pointer limit, long[] out);

    static native int dpnoise_protocol_about(
            long protocol, byte[] question, Pointer questionLength, byte[] period, Pointer periodLength, long[] out);

    static native int dpnoise_protocol_to_json(long protocol, byte[] out, Pointer capacity, PointerByReference length);

    static native int dpnoise_protocol_bare_digest(long protocol, byte[] out, Pointer capacity);

    static native int dpnoise_protocol_with_memo(
            long protocol, long memo, byte[] question, Pointer length, long[] out);

    static native int dpnoise_protocol_facts(
            long protocol, int[] takes, int[] keepsMemo, int[] k, PointerByReference reportBytes,
            PointerByReference counterBytes);

    static native int dpnoise_protocol_epsilon(long protocol, double[] epsilon);

    static native int dpnoise_protocol_delta(long protocol, double[] delta);

    static native int dpnoise_protocol_header(long protocol, byte[] out, Pointer capacity);

    static native int dpnoise_perturb_integers(
            long protocol, Pointer values, Pointer n, int form, int threads, long generator, byte[] out,
            Pointer length);

    static native int dpnoise_perturb_numbers(
            long protocol, Pointer values, Pointer n, int form, int threads, long generator, byte[] out,
            Pointer length);

    static native int dpnoise_perturb_texts(
            long protocol, Pointer texts, Pointer offsets, Pointer n, int form, int threads, long generator, byte[] out,
            Pointer length);

    static native int dpnoise_memo_new(long n, long[] out);

    static native int dpnoise_memo_from_bytes(Pointer bytes, Pointer length, long[] out);

    static native int dpnoise_memo_to_bytes(long memo, Pointer out, Pointer capacity, PointerByReference length);
}
