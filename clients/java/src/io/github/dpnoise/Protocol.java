package io.github.dpnoise;

import com.sun.jna.Pointer;
import com.sun.jna.ptr.PointerByReference;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.text.Normalizer;
import java.util.Arrays;

/**
 * A local protocol, made from its specification: it randomises a value on the device, before anything is sent.
 *
 * <p>Which of the methods for integers, numbers and texts a protocol has is said by {@link #takes}. A message is a
 * header of 12 bytes that names the specification, and a report. Calls with many values are for simulations, and for
 * gateways that are trusted with these.
 *
 * <p>The time of a report does not depend on the value, as far as native code is concerned. If a call throws, there is
 * no report.
 */
public final class Protocol implements AutoCloseable {
    /** The most bytes of counters, 128 MiB, that specifications may have unless more are given. */
    public static final long COUNTER_LIMIT = 1L << 27;

    private static final Source ALONE = Source.system(1);

    final Handle handle;
    final long limit;
    private final ValueKind takes;
    private final boolean keepsMemo;
    private final int k;
    private final int reportBytes;
    private final long counterBytes;

    private Protocol(Handle handle, long limit) {
        this.handle = handle;
        this.limit = limit;
        int[] takes = new int[1];
        int[] keepsMemo = new int[1];
        int[] k = new int[1];
        PointerByReference reportBytes = new PointerByReference();
        PointerByReference counterBytes = new PointerByReference();
        handle.call(protocol -> ClientLibrary.dpnoise_protocol_facts(
                protocol, takes, keepsMemo, k, reportBytes, counterBytes));
        this.takes = ValueKind.values()[takes[0]];
        this.keepsMemo = keepsMemo[0] != 0;
        this.k = k[0];
        this.reportBytes = Math.toIntExact(Library.value(reportBytes));
        this.counterBytes = Library.value(counterBytes);
    }

    /**
     * Reads a specification: the bytes as they came, which must never be written again in another form; or a document
     * with a specification and its labels.
     *
     * <p>Whoever wrote the specification chose its epsilon and delta. An application compares {@link #epsilon} and
     * {@link #delta} with what it promises to people, or knows the specification in advance.
     *
     * @param specification JSON in UTF-8
     * @return the protocol, worth keeping for many reports
     * @throws DpnoiseException of status {@link Status#STATE} if the specification is damaged, contradicts itself, or
     *     has other labels than the document or other probabilities than its epsilon gives; {@link Status#PARAMETER} if
     *     its counters have more than {@link #COUNTER_LIMIT} bytes
     */
    public static Protocol fromJson(byte[] specification) {
        return fromJson(specification, COUNTER_LIMIT);
    }

    /**
     * Reads a specification, as {@link #fromJson(byte[])} does, with another limit on the memory that it may ask for.
     *
     * @param specification JSON in UTF-8
     * @param limit the most bytes of counters of an {@link Accumulator}
     * @return the protocol
     * @throws DpnoiseException of status {@link Status#STATE} if the specification cannot be used; of status
     *     {@link Status#PARAMETER} if its counters have more bytes
     */
    public static Protocol fromJson(byte[] specification, long limit) {
        if (limit < 0) {
            throw new DpnoiseException(Status.PARAMETER, "limit must be at least 0, got " + limit);
        }
        Pointer length = Library.size(specification.length);
        Pointer most = Library.size(limit);
        Handle read =
                Handle.of(out -> ClientLibrary.dpnoise_protocol_from_json(specification, length, most, out));
        return new Protocol(read, limit);
    }

    /**
     * Reads a specification, as {@link #fromJson(byte[])} does.
     *
     * @param specification JSON as it came
     * @return the protocol
     * @throws DpnoiseException of status {@link Status#STATE} if the specification cannot be used
     */
    public static Protocol fromJson(String specification) {
        return fromJson(utf8(specification, Status.STATE, "specification"));
    }

    /**
     * Makes the same randomiser for another collection. A device that has its specification built in writes the period
     * from its own clock. A memo that this protocol has is not used.
     *
     * @param question what is asked: of at most 255 bytes in UTF-8 and in Unicode's normal form NFC, without a space at
     *     either end and without characters that are not seen; or empty, for the question of this protocol
     * @param period the time in which each person sends one report, such as {@code 2026-W48}: the same, of at most 63
     *     bytes; or empty, for the period of this protocol
     * @return the protocol; this one may be closed before it
     * @throws DpnoiseException of status {@link Status#PARAMETER} for other texts
     */
    public Protocol about(String question, String period) {
        byte[] asked = normalized(question, "question");
        byte[] told = normalized(period, "period");
        return new Protocol(Handle.of(out -> handle.status(protocol -> ClientLibrary.dpnoise_protocol_about(
                protocol, asked, Library.size(asked.length), told, Library.size(told.length), out))), limit);
    }

    /**
     * Makes a protocol with the memo of the person who answers, for protocols in which people keep one. The memo keeps in
     * mind how the question is answered: store its bytes after this call, before a report is sent.
     *
     * @param memo the memo; it and this protocol may be closed before the result
     * @param question the words of the question: the same each time it is asked, and others for another question; in
     *     Unicode's normal form NFC, since two spellings of a text would be two questions; if the specification names a
     *     question, this one
     * @return the protocol, which stands for this question alone
     * @throws DpnoiseException of status {@link Status#PARAMETER} if people keep no memo in this protocol, or the question
     *     is another one or not in NFC; of status {@link Status#STATE} if the question was answered with another
     *     randomiser, which would cost epsilon again
     */
    public Protocol withMemo(Memo memo, String question) {
        byte[] words = normalized(question, "question");
        Pointer length = Library.size(words.length);
        return new Protocol(Handle.of(out -> handle.status(protocol -> memo.handle.status(
                secrets -> ClientLibrary.dpnoise_protocol_with_memo(protocol, secrets, words, length, out)))), limit);
    }

    /** {@return what values are} */
    public ValueKind takes() {
        return takes;
    }

    /** {@return whether people keep a memo, and reports need {@link #withMemo}} */
    public boolean keepsMemo() {
        return keepsMemo;
    }

    /** {@return the number of values; for sketches that of columns, for RAPPOR that of bits} */
    public int k() {
        return k;
    }

    /** {@return the bytes of a report; a message has 12 more} */
    public int reportBytes() {
        return reportBytes;
    }

    /** {@return the bytes of the counters of an {@link Accumulator}} */
    public long counterBytes() {
        return counterBytes;
    }

    /**
     * Computes the epsilon of a report, rounded up; of all reports on one value together where people keep a memo. This
     * takes up to a millisecond.
     *
     * @return epsilon
     */
    public double epsilon() {
        double[] epsilon = new double[1];
        handle.call(protocol -> ClientLibrary.dpnoise_protocol_epsilon(protocol, epsilon));
        return epsilon[0];
    }

    /** {@return the delta of a report, beside epsilon: 0 for most protocols} */
    public double delta() {
        double[] delta = new double[1];
        handle.call(protocol -> ClientLibrary.dpnoise_protocol_delta(protocol, delta));
        return delta[0];
    }

    /**
     * Writes the specification.
     *
     * @return what {@link #fromJson(String)} reads
     */
    public String toJson() {
        PointerByReference length = new PointerByReference();
        handle.status(protocol -> ClientLibrary.dpnoise_protocol_to_json(protocol, null, Library.size(0), length));
        byte[] out = new byte[Math.toIntExact(Library.value(length))];
        handle.call(protocol -> ClientLibrary.dpnoise_protocol_to_json(
                protocol, out, Library.size(out.length), length));
        return new String(out, StandardCharsets.US_ASCII);
    }

    /**
     * Computes the SHA-256 of the specification without labels, question and period: of how reports are made. Whoever
     * answers a question with another randomiser spends epsilon again.
     *
     * @return 32 bytes
     */
    public byte[] bareDigest() {
        byte[] out = new byte[ClientLibrary.DIGEST_BYTES];
        handle.call(protocol -> ClientLibrary.dpnoise_protocol_bare_digest(protocol, out, Library.size(out.length)));
        return out;
    }

    /** {@return the 12 bytes of a message before its report; the last 8 are the id of the specification} */
    public byte[] header() {
        byte[] out = new byte[ClientLibrary.HEADER_BYTES];
        handle.call(protocol -> ClientLibrary.dpnoise_protocol_header(protocol, out, Library.size(out.length)));
        return out;
    }

    /**
     * Randomises an integer, and writes a message.
     *
     * @param value the integer
     * @return the message
     * @throws DpnoiseException if the protocol does not take this value, or the system's randomness fails
     */
    public byte[] message(long value) {
        try (PrivateMemory memory = new PrivateMemory(Long.BYTES)) {
            memory.setLong(0, value);
            return integers(memory, 1, ClientLibrary.MESSAGES, ALONE);
        }
    }

    /**
     * Randomises a number, and writes a message.
     *
     * @param value the number
     * @return the message
     * @throws DpnoiseException if the protocol does not take this value, or the system's randomness fails
     */
    public byte[] message(double value) {
        try (PrivateMemory memory = new PrivateMemory(Double.BYTES)) {
            memory.setDouble(0, value);
            return numbers(memory, 1, ClientLibrary.MESSAGES, ALONE);
        }
    }

    /**
     * Randomises a text, and writes a message.
     *
     * @param value the text
     * @return the message
     * @throws DpnoiseException if the protocol takes no texts, this is not Unicode, or the system's randomness fails
     */
    public byte[] message(String value) {
        return texts(new String[] {value}, ClientLibrary.MESSAGES, ALONE);
    }

    /**
     * Randomises the integers of several people, and writes messages.
     *
     * @param values an integer for each person
     * @return a message for each person
     * @throws DpnoiseException if the protocol does not take a value, or the system's randomness fails
     */
    public byte[][] messages(long[] values) {
        return messages(values, Source.system());
    }

    /**
     * Randomises the integers of several people, and writes messages.
     *
     * @param values an integer for each person
     * @param source where randomness comes from
     * @return a message for each person
     * @throws DpnoiseException if the protocol does not take a value, or randomness fails
     */
    public byte[][] messages(long[] values, Source source) {
        return split(integers(values, ClientLibrary.MESSAGES, source), values.length);
    }

    /**
     * Randomises the numbers of several people, and writes messages.
     *
     * @param values a number for each person
     * @return a message for each person
     * @throws DpnoiseException if the protocol does not take a value, or the system's randomness fails
     */
    public byte[][] messages(double[] values) {
        return messages(values, Source.system());
    }

    /**
     * Randomises the numbers of several people, and writes messages.
     *
     * @param values a number for each person
     * @param source where randomness comes from
     * @return a message for each person
     * @throws DpnoiseException if the protocol does not take a value, or randomness fails
     */
    public byte[][] messages(double[] values, Source source) {
        return split(numbers(values, ClientLibrary.MESSAGES, source), values.length);
    }

    /**
     * Randomises the texts of several people, and writes messages.
     *
     * @param values a text for each person
     * @return a message for each person
     * @throws DpnoiseException if the protocol takes no texts, one is not Unicode, or the system's randomness fails
     */
    public byte[][] messages(String[] values) {
        return messages(values, Source.system());
    }

    /**
     * Randomises the texts of several people, and writes messages.
     *
     * @param values a text for each person
     * @param source where randomness comes from
     * @return a message for each person
     * @throws DpnoiseException if the protocol takes no texts, one is not Unicode, or randomness fails
     */
    public byte[][] messages(String[] values, Source source) {
        return split(texts(values, ClientLibrary.MESSAGES, source), values.length);
    }

    /**
     * Randomises the integers of several people, and writes bare reports.
     *
     * @param values an integer for each person
     * @return the reports, {@link #reportBytes} bytes for each person
     * @throws DpnoiseException if the protocol does not take a value, or the system's randomness fails
     */
    public byte[] reports(long[] values) {
        return reports(values, Source.system());
    }

    /**
     * Randomises the integers of several people, and writes bare reports.
     *
     * @param values an integer for each person
     * @param source where randomness comes from
     * @return the reports, {@link #reportBytes} bytes for each person
     * @throws DpnoiseException if the protocol does not take a value, or randomness fails
     */
    public byte[] reports(long[] values, Source source) {
        return integers(values, ClientLibrary.REPORTS, source);
    }

    /**
     * Randomises the numbers of several people, and writes bare reports.
     *
     * @param values a number for each person
     * @return the reports, {@link #reportBytes} bytes for each person
     * @throws DpnoiseException if the protocol does not take a value, or the system's randomness fails
     */
    public byte[] reports(double[] values) {
        return reports(values, Source.system());
    }

    /**
     * Randomises the numbers of several people, and writes bare reports.
     *
     * @param values a number for each person
     * @param source where randomness comes from
     * @return the reports, {@link #reportBytes} bytes for each person
     * @throws DpnoiseException if the protocol does not take a value, or randomness fails
     */
    public byte[] reports(double[] values, Source source) {
        return numbers(values, ClientLibrary.REPORTS, source);
    }

    /**
     * Randomises the texts of several people, and writes bare reports.
     *
     * @param values a text for each person
     * @return the reports, {@link #reportBytes} bytes for each person
     * @throws DpnoiseException if the protocol takes no texts, one is not Unicode, or the system's randomness fails
     */
    public byte[] reports(String[] values) {
        return reports(values, Source.system());
    }

    /**
     * Randomises the texts of several people, and writes bare reports.
     *
     * @param values a text for each person
     * @param source where randomness comes from
     * @return the reports, {@link #reportBytes} bytes for each person
     * @throws DpnoiseException if the protocol takes no texts, one is not Unicode, or randomness fails
     */
    public byte[] reports(String[] values, Source source) {
        return texts(values, ClientLibrary.REPORTS, source);
    }

    @Override
    public void close() {
        handle.close();
    }

    private byte[] integers(long[] values, int form, Source source) {
        try (PrivateMemory memory = PrivateMemory.of(values)) {
            return integers(memory, values.length, form, source);
        }
    }

    private byte[] integers(Pointer values, int n, int form, Source source) {
        return perturb(n, form, source, (protocol, threads, generator, out) -> ClientLibrary.dpnoise_perturb_integers(
                protocol, values, Library.size(n), form, threads, generator, out, Library.size(out.length)));
    }

    private byte[] numbers(double[] values, int form, Source source) {
        try (PrivateMemory memory = PrivateMemory.of(values)) {
            return numbers(memory, values.length, form, source);
        }
    }

    private byte[] numbers(Pointer values, int n, int form, Source source) {
        return perturb(n, form, source, (protocol, threads, generator, out) -> ClientLibrary.dpnoise_perturb_numbers(
                protocol, values, Library.size(n), form, threads, generator, out, Library.size(out.length)));
    }

    private byte[] texts(String[] values, int form, Source source) {
        int n = values.length;
        try (PrivateMemory texts = PrivateMemory.forTexts(values);
                PrivateMemory offsets = new PrivateMemory(Long.BYTES * (n + 1L))) {
            texts.write(values, offsets);
            return perturb(n, form, source, (protocol, threads, generator, out) -> ClientLibrary.dpnoise_perturb_texts(
                    protocol, texts, offsets, Library.size(n), form, threads, generator, out,
                    Library.size(out.length)));
        }
    }

    private interface Perturb {
        int status(long protocol, int threads, long generator, byte[] out);
    }

    private byte[] perturb(int n, int form, Source source, Perturb perturb) {
        int headerBytes = form == ClientLibrary.MESSAGES ? ClientLibrary.HEADER_BYTES : 0;
        long bytes = (long) n * (headerBytes + reportBytes);
        if (bytes > Integer.MAX_VALUE) {
            throw new DpnoiseException(Status.PARAMETER, String.format(
                    "values must be fewer: an array of Java cannot hold %d reports of %d bytes", n, reportBytes));
        }
        byte[] out = new byte[(int) bytes];
        source.run((threads, generator) -> handle.status(
                protocol -> perturb.status(protocol, threads, generator, out)));
        return out;
    }

    private static byte[] normalized(String text, String name) {
        byte[] bytes = utf8(text, Status.PARAMETER, name);
        if (!Normalizer.isNormalized(text, Normalizer.Form.NFC)) {
            throw new DpnoiseException(Status.PARAMETER, name + " must be in the normal form NFC: see Normalizer");
        }
        return bytes;
    }

    private static byte[] utf8(String text, Status status, String name) {
        try {
            ByteBuffer bytes = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
            return Arrays.copyOf(bytes.array(), bytes.limit());
        } catch (CharacterCodingException exception) {
            throw new DpnoiseException(status, name + " must be Unicode, got a lone surrogate");
        }
    }

    private byte[][] split(byte[] rows, int n) {
        int width = ClientLibrary.HEADER_BYTES + reportBytes;
        byte[][] messages = new byte[n][width];
        for (int i = 0; i < n; i++) {
            System.arraycopy(rows, i * width, messages[i], 0, width);
        }
        return messages;
    }
}
