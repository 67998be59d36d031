package io.github.dpnoise;

import com.sun.jna.Callback;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.PointerByReference;

/**
 * The C interface, as {@code dpnoise.h} documents it. A {@code size_t} is passed as a pointer, which is as wide: JNA's own
 * way needs a public class.
 */
final class Library {
    static final int REPORTS = 0;
    static final int MESSAGES = 1;
    static final int HEADER_BYTES = 12;

    private static final int ABI_VERSION = 1;

    static {
        NativeLibrary library = NativeLibrary.getInstance("dpnoise");
        int version = library.getFunction("dpnoise_abi_version").invokeInt(new Object[0]);
        if (version != ABI_VERSION) {
            throw new UnsatisfiedLinkError(String.format(
                    "%s must have version %d of its interface, got %d: install the native library of this release",
                    library.getFile(), ABI_VERSION, version));
        }
        Native.register(Library.class, library);
    }

    private Library() {}

    /** Writes random bytes, and returns 0; or returns another number. */
    interface RandomBytes extends Callback {
        int invoke(Pointer context, Pointer out, Pointer length);
    }

    static Pointer size(long size) {
        return Pointer.createConstant(size);
    }

    static long value(PointerByReference size) {
        return Pointer.nativeValue(size.getValue());
    }

    /** Throws what the last call of this thread returned, unless that is success. */
    static void check(int status) {
        if (status != 0) {
            throw new DpnoiseException(Status.of(status), dpnoise_error_message().getString(0, "UTF-8"));
        }
    }

    private static native Pointer dpnoise_error_message();

    static native int dpnoise_free(long handle);

    static native int dpnoise_generator_new(RandomBytes fill, Pointer context, long[] out);

    static native int dpnoise_protocol_from_json(byte[] specification, Pointer length, long[] out);

    static native int dpnoise_protocol_with_memo(
            long protocol, long memo, byte[] question, Pointer length, long[] out);

    static native int dpnoise_protocol_facts(
            long protocol, int[] takes, int[] keepsMemo, int[] k, PointerByReference reportBytes);

    static native int dpnoise_protocol_epsilon(long protocol, double[] epsilon);

    static native int dpnoise_protocol_header(long protocol, byte[] out, Pointer capacity);

    static native int dpnoise_perturb_integers(
            long protocol, Pointer values, Pointer n, int form, int threads, long generator, byte[] out, Pointer length);

    static native int dpnoise_perturb_numbers(
            long protocol, Pointer values, Pointer n, int form, int threads, long generator, byte[] out, Pointer length);

    static native int dpnoise_perturb_texts(
            long protocol, Pointer texts, Pointer offsets, Pointer n, int form, int threads, long generator, byte[] out,
            Pointer length);

    static native int dpnoise_memo_new(long n, long[] out);

    static native int dpnoise_memo_from_bytes(Pointer bytes, Pointer length, long[] out);

    static native int dpnoise_memo_to_bytes(long memo, Pointer out, Pointer capacity, PointerByReference length);

    static native int dpnoise_accumulator_new(long protocol, long[] out);

    static native int dpnoise_accumulator_from_bytes(byte[] bytes, Pointer length, long[] out);

    static native int dpnoise_accumulator_to_bytes(long accumulator, byte[] out, Pointer capacity, PointerByReference length);

    static native int dpnoise_accumulator_add_messages(
            long accumulator, Pointer messages, long[] offsets, Pointer n, int threads);

    static native int dpnoise_accumulator_add_reports(long accumulator, byte[] reports, Pointer length, int threads);

    static native int dpnoise_accumulator_merge(long accumulator, long other);

    static native int dpnoise_accumulator_counts(long accumulator, long[] n, long[] rejected);

    static native int dpnoise_accumulator_estimate(
            long accumulator, double[] counts, double[] standardErrors, Pointer k);

    static native int dpnoise_discrete_laplace_sampler(double scale, long[] out);

    static native int dpnoise_discrete_gaussian_sampler(double sigma, long[] out);

    static native int dpnoise_sampler_fill(long sampler, int threads, long generator, Pointer out, Pointer n);

    static native int dpnoise_laplace_mechanism(double epsilon, double sensitivity, double granularity, long[] out);

    static native int dpnoise_gaussian_mechanism(
            double epsilon, double delta, double sensitivity, double granularity, long[] out);

    static native int dpnoise_discrete_laplace_mechanism(double epsilon, long sensitivity, long[] out);

    static native int dpnoise_discrete_gaussian_mechanism(
            double epsilon, double delta, double sensitivity, long[] out);

    static native int dpnoise_mechanism_release_numbers(
            long mechanism, Pointer values, Pointer n, int threads, long generator);

    static native int dpnoise_mechanism_release_integers(
            long mechanism, Pointer values, Pointer n, int threads, long generator);

    static native int dpnoise_mechanism_error(long mechanism, double level, Pointer n, double[] error);
}
