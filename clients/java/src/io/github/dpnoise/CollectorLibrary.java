package io.github.dpnoise;

import com.sun.jna.Pointer;
import com.sun.jna.ptr.PointerByReference;

/** The functions of the part {@code collector}, which a library for devices need not have. */
final class CollectorLibrary {
    static {
        Library.register(CollectorLibrary.class);
    }

    private CollectorLibrary() {}

    static native int dpnoise_accumulator_new(long protocol, long[] out);

    static native int dpnoise_accumulator_from_bytes(byte[] bytes, Pointer length, Pointer limit, long[] out);

    static native int dpnoise_accumulator_to_bytes(
            long accumulator, byte[] out, Pointer capacity, PointerByReference length);

    static native int dpnoise_accumulator_add_messages(
            long accumulator, Pointer messages, long[] offsets, Pointer n, int threads);

    static native int dpnoise_accumulator_add_reports(long accumulator, byte[] reports, Pointer length, int threads);

    static native int dpnoise_accumulator_merge(long accumulator, long other);

    static native int dpnoise_accumulator_counts(long accumulator, long[] n, long[] rejected);

    static native int dpnoise_accumulator_attribute(
            long accumulator, byte[] name, Pointer length, long[] out);

    static native int dpnoise_accumulator_protocol(long accumulator, long[] out);

    static native int dpnoise_accumulator_estimate(
            long accumulator, double[] counts, double[] standardErrors, Pointer k);

    static native int dpnoise_accumulator_estimate_mean(long accumulator, double[] mean, double[] standardError);

    static native int dpnoise_accumulator_estimate_density(
            long accumulator, int smoothing, double[] shares, Pointer k);

    static native int dpnoise_accumulator_estimate_ranges(
            long accumulator, long[] first, long[] last, Pointer n, double[] counts, double[] standardErrors);

    static native int dpnoise_accumulator_estimate_quantiles(long accumulator, double[] q, Pointer n, long[] values);

    static native int dpnoise_accumulator_estimate_candidates(
            long accumulator, Pointer texts, Pointer offsets, Pointer n, double[] counts, double[] standardErrors);

    static native int dpnoise_accumulator_estimate_prefixes(
            long accumulator,
            double level,
            long[] values,
            double[] counts,
            double[] standardErrors,
            Pointer capacity,
            PointerByReference found,
            int[] complete);
}
