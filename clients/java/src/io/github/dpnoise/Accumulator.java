package io.github.dpnoise;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.PointerByReference;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * A collector's counters. They are the same bytes, however the reports are split over accumulators, machines and
 * threads.
 */
public final class Accumulator implements AutoCloseable {
    private final Handle handle;
    private final int k;

    /**
     * Makes counters, all of them 0.
     *
     * @param protocol the protocol of the reports; it may be closed before the accumulator
     */
    public Accumulator(Protocol protocol) {
        k = protocol.k();
        handle = Handle.of(out -> protocol.handle.status(
                number -> CollectorLibrary.dpnoise_accumulator_new(number, out)));
    }

    private Accumulator(Accumulator of, String attribute) {
        byte[] name = attribute.getBytes(StandardCharsets.UTF_8);
        handle = Handle.of(out -> of.handle.status(number -> CollectorLibrary.dpnoise_accumulator_attribute(
                number, name, Library.size(name.length), out)));
        int[] values = new int[1];
        try (Handle protocol = Handle.of(out ->
                handle.status(number -> CollectorLibrary.dpnoise_accumulator_protocol(number, out)))) {
            protocol.call(number -> ClientLibrary.dpnoise_protocol_facts(number, null, null, values, null, null));
        } catch (DpnoiseException exception) {
            handle.close();
            throw exception;
        }
        k = values[0];
    }

    /**
     * Reads the state of a collector.
     *
     * @param protocol the protocol of the reports
     * @param state what {@link #toBytes}, Python or the command line wrote
     * @return the accumulator
     * @throws DpnoiseException if the state is damaged, or of another specification; of status {@link Status#PARAMETER} if
     *     its counters have more bytes than the limit with which the protocol was read
     */
    public static Accumulator fromBytes(Protocol protocol, byte[] state) {
        Pointer length = Library.size(state.length);
        Pointer limit = Library.size(protocol.limit);
        Accumulator accumulator = new Accumulator(protocol);
        try (Handle read = Handle.of(out -> CollectorLibrary.dpnoise_accumulator_from_bytes(state, length, limit, out))) {
            accumulator.merge(read);
            return accumulator;
        } catch (DpnoiseException exception) {
            accumulator.close();
            throw exception;
        }
    }

    /** {@return the state} */
    public byte[] toBytes() {
        PointerByReference length = new PointerByReference();
        handle.status(number -> CollectorLibrary.dpnoise_accumulator_to_bytes(
                number, null, Library.size(0), length)); // the length
        byte[] out = new byte[Math.toIntExact(Library.value(length))];
        handle.call(number -> CollectorLibrary.dpnoise_accumulator_to_bytes(
                number, out, Library.size(out.length), length));
        return out;
    }

    /**
     * Adds messages, with all cores. One that is not a message of this protocol is counted as rejected.
     *
     * @param messages the messages
     */
    public void addMessages(byte[]... messages) {
        addMessages(messages, Runtime.getRuntime().availableProcessors());
    }

    /**
     * Adds messages. One that is not a message of this protocol is counted as rejected.
     *
     * @param messages the messages
     * @param threads how many threads share the work at most, at least 1
     * @throws DpnoiseException if there are fewer threads
     */
    public void addMessages(byte[][] messages, int threads) {
        long[] offsets = new long[messages.length + 1];
        for (int i = 0; i < messages.length; i++) {
            offsets[i + 1] = offsets[i] + messages[i].length;
        }
        try (Memory memory = new Memory(Math.max(offsets[messages.length], 1))) {
            for (int i = 0; i < messages.length; i++) {
                memory.write(offsets[i], messages[i], 0, messages[i].length);
            }
            Pointer n = Library.size(messages.length);
            handle.call(accumulator -> CollectorLibrary.dpnoise_accumulator_add_messages(
                    accumulator, memory, offsets, n, Source.checkedThreads(threads)));
        }
    }

    /**
     * Adds bare reports, with all cores. One that is malformed is counted as rejected.
     *
     * @param reports the reports, one after the other
     * @throws DpnoiseException if the last one is not whole
     */
    public void addReports(byte[] reports) {
        addReports(reports, Runtime.getRuntime().availableProcessors());
    }

    /**
     * Adds bare reports. One that is malformed is counted as rejected.
     *
     * @param reports the reports, one after the other
     * @param threads how many threads share the work at most, at least 1
     * @throws DpnoiseException if the last one is not whole, or there are fewer threads
     */
    public void addReports(byte[] reports, int threads) {
        Pointer length = Library.size(reports.length);
        handle.call(accumulator -> CollectorLibrary.dpnoise_accumulator_add_reports(
                accumulator, reports, length, Source.checkedThreads(threads)));
    }

    /**
     * Adds the counts of another accumulator, which stays as it is.
     *
     * @param other the other accumulator
     * @throws DpnoiseException if it is of another specification, or this accumulator itself
     */
    public void merge(Accumulator other) {
        merge(other.handle);
    }

    private void merge(Handle other) {
        handle.call(accumulator -> other.status(
                number -> CollectorLibrary.dpnoise_accumulator_merge(accumulator, number)));
    }

    /** {@return the number of reports counted} */
    public long n() {
        return counts()[0];
    }

    /** {@return the number of reports rejected} */
    public long rejected() {
        return counts()[1];
    }

    private long[] counts() {
        long[] n = new long[1];
        long[] rejected = new long[1];
        handle.call(accumulator -> CollectorLibrary.dpnoise_accumulator_counts(accumulator, n, rejected));
        return new long[] {n[0], rejected[0]};
    }

    /**
     * Takes the counters of one of several attributes, for estimates. They are those of this moment; reports cannot be
     * added to them, and they have no bytes. Of reports that are about one attribute each, estimates are about all
     * people who reported, of whom those who reported on the attribute are a random sample.
     *
     * @param name the name of the attribute
     * @return its counters
     * @throws DpnoiseException if no attribute has the name, or the counters are not of several
     */
    public Accumulator attribute(String name) {
        return new Accumulator(this, name);
    }

    /**
     * Estimates how many people have each value.
     *
     * @return the estimates
     * @throws DpnoiseException if reports of the protocol are not counted by value: the methods below are for them, save
     *     RAPPOR, which Python decodes from its state
     */
    public Estimate estimate() {
        Estimate estimate = new Estimate(new double[k], new double[k]);
        handle.call(accumulator -> CollectorLibrary.dpnoise_accumulator_estimate(
                accumulator, estimate.counts(), estimate.standardErrors(), Library.size(k)));
        return estimate;
    }

    /**
     * Estimates the mean of people's numbers.
     *
     * @return the mean and its standard error
     * @throws DpnoiseException if the protocol is not for means, or no report was counted
     */
    public MeanEstimate estimateMean() {
        double[] mean = new double[1];
        double[] standardError = new double[1];
        handle.call(accumulator ->
                CollectorLibrary.dpnoise_accumulator_estimate_mean(accumulator, mean, standardError));
        return new MeanEstimate(mean[0], standardError[0]);
    }

    /**
     * Estimates how people's numbers in [0, 1] are distributed.
     *
     * @param smoothing whether neighbouring bins are smoothed, as the authors recommend; without it the estimate keeps
     *     peaks of single bins, and fits noise as well
     * @return the shares of the k bins, which are evenly spaced
     * @throws DpnoiseException if the protocol is not for distributions, or no report was counted
     */
    public double[] estimateDensity(boolean smoothing) {
        double[] shares = new double[k];
        handle.call(accumulator -> CollectorLibrary.dpnoise_accumulator_estimate_density(
                accumulator, smoothing ? 1 : 0, shares, Library.size(k)));
        return shares;
    }

    /**
     * Estimates how many people have a value in each range.
     *
     * @param ranges the ranges; that of a value alone is from it to itself
     * @return the estimates
     * @throws DpnoiseException if the protocol is not for ranges, or a range is not one of values
     */
    public Estimate estimateRanges(Range... ranges) {
        long[] first = Arrays.stream(ranges).mapToLong(Range::first).toArray();
        long[] last = Arrays.stream(ranges).mapToLong(Range::last).toArray();
        Estimate estimate = new Estimate(new double[ranges.length], new double[ranges.length]);
        handle.call(accumulator -> CollectorLibrary.dpnoise_accumulator_estimate_ranges(
                accumulator, first, last, Library.size(ranges.length), estimate.counts(), estimate.standardErrors()));
        return estimate;
    }

    /**
     * Estimates the smallest values that some shares of all people do not exceed.
     *
     * @param q the shares, from 0 to 1; 0.5 is for the median
     * @return a value for each
     * @throws DpnoiseException if the protocol is not for ranges, or a share is out of range
     */
    public long[] estimateQuantiles(double... q) {
        long[] values = new long[q.length];
        handle.call(accumulator -> CollectorLibrary.dpnoise_accumulator_estimate_quantiles(
                accumulator, q, Library.size(q.length), values));
        return values;
    }

    /**
     * Estimates how many people have each text.
     *
     * @param texts the texts to look for
     * @return the estimates
     * @throws DpnoiseException if the protocol is not a sketch, or a text is not Unicode
     */
    public Estimate estimateCandidates(String... texts) {
        Estimate estimate = new Estimate(new double[texts.length], new double[texts.length]);
        try (PrivateMemory joined = PrivateMemory.forTexts(texts);
                PrivateMemory offsets = new PrivateMemory(Long.BYTES * (texts.length + 1L))) {
            joined.write(texts, offsets);
            handle.call(accumulator -> CollectorLibrary.dpnoise_accumulator_estimate_candidates(
                    accumulator,
                    joined,
                    offsets,
                    Library.size(texts.length),
                    estimate.counts(),
                    estimate.standardErrors()));
        }
        return estimate;
    }

    /**
     * Finds frequent values.
     *
     * @param level the confidence level: the result contains any value that nobody has with a probability of about 1 -
     *     level
     * @return the values
     * @throws DpnoiseException if the protocol is not prefix extension, or the level is not between 0 and 1
     */
    public HeavyHitters estimatePrefixes(double level) {
        PointerByReference found = new PointerByReference();
        int[] complete = new int[1];
        int capacity = 256;
        while (true) {
            long[] values = new long[capacity];
            double[] counts = new double[capacity];
            double[] standardErrors = new double[capacity];
            Pointer size = Library.size(capacity);
            handle.call(accumulator -> CollectorLibrary.dpnoise_accumulator_estimate_prefixes(
                    accumulator, level, values, counts, standardErrors, size, found, complete));
            int n = Math.toIntExact(Library.value(found));
            if (n <= capacity) {
                return new HeavyHitters(
                        Arrays.copyOf(values, n),
                        Arrays.copyOf(counts, n),
                        Arrays.copyOf(standardErrors, n),
                        complete[0] == 1);
            }
            capacity = n;
        }
    }

    @Override
    public void close() {
        handle.close();
    }
}
