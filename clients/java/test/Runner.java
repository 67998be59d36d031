import io.github.dpnoise.Accumulator;
import io.github.dpnoise.DiscreteGaussian;
import io.github.dpnoise.DiscreteGaussianSampler;
import io.github.dpnoise.DiscreteLaplace;
import io.github.dpnoise.DiscreteLaplaceSampler;
import io.github.dpnoise.DpnoiseException;
import io.github.dpnoise.Estimate;
import io.github.dpnoise.Gaussian;
import io.github.dpnoise.Generator;
import io.github.dpnoise.HeavyHitters;
import io.github.dpnoise.Laplace;
import io.github.dpnoise.MeanEstimate;
import io.github.dpnoise.Memo;
import io.github.dpnoise.Protocol;
import io.github.dpnoise.Range;
import io.github.dpnoise.Sampler;
import io.github.dpnoise.Source;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import java.util.stream.LongStream;

/** Does what each line of the standard input asks for, with the public interface of the Java client. */
final class Runner {
    private static final String ANSWERS = "{\"epsilon\":1.0986122886681098,\"k\":2,\"p\":3,\"planes\":2,"
            + "\"protocol\":\"randomized_response\",\"q\":1,\"version\":1}";

    private Runner() {}

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] fields = line.split(" ");
            List<String> rest = Arrays.asList(fields).subList(1, fields.length);
            try {
                out.println("ok " + answer(fields[0], rest));
            } catch (DpnoiseException error) {
                out.println("error " + error.status().name().toLowerCase(Locale.ROOT) + " " + error.getMessage());
            }
        }
    }

    private static String answer(String command, List<String> rest) {
        return switch (command) {
            case "perturb" -> perturb(rest);
            case "about" -> about(rest);
            case "collect" -> collect(rest);
            case "merge" -> merge(rest);
            case "estimate" -> estimate(rest);
            case "mean" -> estimateMean(rest);
            case "density" -> estimateDensity(rest);
            case "ranges" -> estimateRanges(rest);
            case "candidates" -> estimateCandidates(rest);
            case "prefixes" -> estimatePrefixes(rest);
            case "memo" -> memo(rest);
            case "newmemo" -> newMemo();
            case "facts" -> facts(rest.get(0), Long.parseLong(rest.get(1)));
            case "fill" -> fill(rest);
            case "release" -> release(rest);
            case "freed" -> freed(rest.get(0));
            case "time" -> time(rest);
            case "filltime" -> fillTime(rest);
            default -> throw new IllegalArgumentException(command);
        };
    }

    private static String perturb(List<String> rest) {
        boolean messages = rest.get(0).equals("messages");
        List<String> values = rest.subList(6, rest.size());
        Source source = source(rest.get(3));
        try (Protocol announced = Protocol.fromJson(bytes(rest.get(2)));
                Protocol protocol = remembering(announced, rest.get(4), rest.get(5))) {
            return switch (rest.get(1)) {
                case "integers" -> {
                    long[] x = integers(values);
                    yield messages ? hex(protocol.messages(x, source)) : hex(protocol.reports(x, source));
                }
                case "numbers" -> {
                    double[] x = numbers(values);
                    yield messages ? hex(protocol.messages(x, source)) : hex(protocol.reports(x, source));
                }
                case "texts" -> {
                    String[] x = values.stream().map(Runner::text).toArray(String[]::new);
                    yield messages ? hex(protocol.messages(x, source)) : hex(protocol.reports(x, source));
                }
                default -> throw new IllegalArgumentException(rest.get(1));
            };
        }
    }

    /** The protocol with a memo, or as it was if none is given. */
    private static Protocol remembering(Protocol protocol, String memo, String question) {
        if (memo.equals("-")) {
            return protocol;
        }
        try (Memo secrets = Memo.fromBytes(bytes(memo))) {
            return protocol.withMemo(secrets, text(question));
        }
    }

    private static Accumulator collected(List<String> rest) {
        return collected(rest, 0);
    }

    /** Counts the messages that follow the specification and so many other fields. */
    private static Accumulator collected(List<String> rest, int others) {
        byte[][] messages = rest.stream().skip(1 + others).map(Runner::bytes).toArray(byte[][]::new);
        String[] asked = rest.get(0).split("@");
        try (Protocol protocol = Protocol.fromJson(bytes(asked[0]))) {
            Accumulator accumulator = new Accumulator(protocol);
            accumulator.addMessages(messages);
            if (asked.length == 1) {
                return accumulator;
            }
            try (accumulator) {
                return accumulator.attribute(text(asked[1]));
            }
        }
    }

    private static String collect(List<String> rest) {
        try (Accumulator accumulator = collected(rest)) {
            return hex(accumulator.toBytes());
        }
    }

    private static String about(List<String> rest) {
        try (Protocol protocol = Protocol.fromJson(bytes(rest.get(0)));
                Protocol other = protocol.about(text(rest.get(1)), text(rest.get(2)))) {
            return hex(other.toJson().getBytes(StandardCharsets.UTF_8)) + " " + hex(other.bareDigest());
        }
    }

    private static String merge(List<String> rest) {
        String other = rest.get(1);
        try (Accumulator accumulator = collected(rest, 1);
                Accumulator added = other.equals("-") ? null : collected(List.of(other))) {
            accumulator.merge(added == null ? accumulator : added);
            return hex(accumulator.toBytes());
        }
    }

    private static String estimate(List<String> rest) {
        try (Accumulator accumulator = collected(rest)) {
            Estimate estimate = accumulator.estimate();
            return hex(estimate.counts()) + hex(estimate.standardErrors());
        }
    }

    private static String estimateMean(List<String> rest) {
        try (Accumulator accumulator = collected(rest)) {
            MeanEstimate estimate = accumulator.estimateMean();
            return hex(new double[] {estimate.mean(), estimate.standardError()});
        }
    }

    private static String estimateDensity(List<String> rest) {
        try (Accumulator accumulator = collected(rest, 1)) {
            return hex(accumulator.estimateDensity(rest.get(1).equals("1")));
        }
    }

    private static String estimateRanges(List<String> rest) {
        try (Accumulator accumulator = collected(rest, 3)) {
            long[] ends = integers(rest.subList(1, 3));
            Estimate estimate = accumulator.estimateRanges(new Range(ends[0], ends[1]));
            long[] quantiles = accumulator.estimateQuantiles(number(rest.get(3)));
            return hex(estimate.counts()) + hex(estimate.standardErrors()) + " " + decimal(quantiles);
        }
    }

    private static String estimateCandidates(List<String> rest) {
        int n = Integer.parseInt(rest.get(1));
        try (Accumulator accumulator = collected(rest, 1 + n)) {
            String[] texts = rest.subList(2, 2 + n).stream().map(Runner::text).toArray(String[]::new);
            Estimate estimate = accumulator.estimateCandidates(texts);
            return hex(estimate.counts()) + hex(estimate.standardErrors());
        }
    }

    private static String estimatePrefixes(List<String> rest) {
        try (Accumulator accumulator = collected(rest, 1)) {
            HeavyHitters found = accumulator.estimatePrefixes(number(rest.get(1)));
            String complete = found.complete() ? "1 " : "0 ";
            if (found.values().length == 0) {
                return complete + "-";
            }
            return complete + hex(found.counts()) + hex(found.standardErrors()) + " " + decimal(found.values());
        }
    }

    private static String memo(List<String> rest) {
        try (Memo memo = Memo.fromBytes(bytes(rest.get(0)))) {
            for (int i = 1; i < rest.size(); i += 2) {
                try (Protocol protocol = Protocol.fromJson(bytes(rest.get(i)))) {
                    protocol.withMemo(memo, text(rest.get(i + 1))).close();
                }
            }
            return hex(memo.toBytes());
        }
    }

    private static String newMemo() {
        try (Memo one = Memo.create(); Memo other = Memo.create(); Memo again = Memo.fromBytes(one.toBytes())) {
            if (!Arrays.equals(one.toBytes(), again.toBytes())) {
                throw new AssertionError("a memo that was written and read is another");
            }
            return Arrays.equals(one.toBytes(), other.toBytes()) ? "same" : "different";
        }
    }

    private static String facts(String specification, long limit) {
        try (Protocol protocol = Protocol.fromJson(bytes(specification), limit)) {
            return String.join(" ",
                    protocol.takes().name().toLowerCase(Locale.ROOT),
                    protocol.keepsMemo() ? "1" : "0",
                    Integer.toString(protocol.k()),
                    Integer.toString(protocol.reportBytes()),
                    Long.toString(protocol.counterBytes()),
                    hex(protocol.epsilon()),
                    hex(protocol.delta()),
                    hex(protocol.header()));
        }
    }

    private static Sampler sampler(String kind, String scale) {
        double parameter = number(scale);
        return kind.equals("laplace") ? new DiscreteLaplaceSampler(parameter) : new DiscreteGaussianSampler(parameter);
    }

    private static String fill(List<String> rest) {
        long[] out = new long[Integer.parseInt(rest.get(3))];
        try (Sampler sampler = sampler(rest.get(0), rest.get(1))) {
            sampler.fill(out, source(rest.get(2)));
        }
        return decimal(out);
    }

    private static String release(List<String> rest) {
        boolean gaussian = rest.get(0).endsWith("gaussian");
        double epsilon = number(rest.get(1));
        double delta = gaussian ? number(rest.get(2)) : 0;
        String sensitivity = rest.get(gaussian ? 3 : 2);
        Source source = source(rest.get(gaussian ? 4 : 3));
        List<String> values = rest.subList(gaussian ? 5 : 4, rest.size());
        switch (rest.get(0)) {
            case "laplace":
                try (Laplace mechanism = new Laplace(epsilon, number(sensitivity))) {
                    return words(mechanism.release(numbers(values), source));
                }
            case "gaussian":
                try (Gaussian mechanism = new Gaussian(epsilon, delta, number(sensitivity))) {
                    return words(mechanism.release(numbers(values), source));
                }
            case "discrete-laplace":
                try (DiscreteLaplace mechanism = new DiscreteLaplace(epsilon, Long.parseLong(sensitivity))) {
                    return decimal(mechanism.release(integers(values), source));
                }
            case "discrete-gaussian":
                try (DiscreteGaussian mechanism = new DiscreteGaussian(epsilon, delta, number(sensitivity))) {
                    return decimal(mechanism.release(integers(values), source));
                }
            default:
                throw new IllegalArgumentException(rest.get(0));
        }
    }

    /** Uses what was closed twice. */
    private static String freed(String what) {
        switch (what) {
            case "protocol":
                Protocol protocol = closedTwice(Protocol.fromJson(ANSWERS));
                return hex(protocol.message(1));
            case "memo":
                Memo memo = closedTwice(Memo.create());
                return hex(memo.toBytes());
            case "accumulator":
                Accumulator accumulator = closedTwice(collected(List.of(HexFormat.of().formatHex(ANSWERS.getBytes()))));
                return hex(accumulator.toBytes());
            case "sampler":
                Sampler sampler = closedTwice(new DiscreteLaplaceSampler(1));
                sampler.fill(new long[1]);
                return "filled";
            case "mechanism":
                DiscreteLaplace mechanism = closedTwice(new DiscreteLaplace(1, 1));
                return decimal(mechanism.release(new long[1]));
            default:
                throw new IllegalArgumentException(what);
        }
    }

    private static <T extends AutoCloseable> T closedTwice(T object) {
        try {
            object.close();
            object.close();
        } catch (Exception exception) {
            throw new AssertionError(exception);
        }
        return object;
    }

    private static String time(List<String> rest) {
        int n = Integer.parseInt(rest.get(0));
        try (Protocol protocol = Protocol.fromJson(bytes(rest.get(1)))) {
            Runnable message = switch (protocol.takes()) {
                case INTEGERS -> () -> protocol.message(0);
                case NUMBERS -> () -> protocol.message(0.0);
                case TEXTS -> () -> protocol.message("a");
                case ATTRIBUTES -> throw new IllegalArgumentException("several attributes");
            };
            for (int i = 0; i < n; i++) {
                message.run(); // so that the compiler has seen it
            }
            long start = System.nanoTime();
            for (int i = 0; i < n; i++) {
                message.run();
            }
            return Double.toString((System.nanoTime() - start) / (double) n);
        }
    }

    private static String fillTime(List<String> rest) {
        long[] out = new long[Integer.parseInt(rest.get(0))];
        try (Sampler sampler = sampler(rest.get(1), rest.get(2))) {
            long best = Long.MAX_VALUE;
            for (int i = 0; i < 5; i++) {
                long start = System.nanoTime();
                sampler.fill(out);
                best = Math.min(best, System.nanoTime() - start);
            }
            return Double.toString(best / (double) out.length);
        }
    }

    private static Source source(String random) {
        return random.equals("-") ? Source.system() : Source.of(new Script(bytes(random)));
    }

    /** Plays bytes once, and then fails. */
    private record Script(ByteBuffer left) implements Generator {
        Script(byte[] random) {
            this(ByteBuffer.wrap(random));
        }

        @Override
        public void fill(byte[] out) {
            left.get(out);
        }
    }

    private static byte[] bytes(String hex) {
        return hex.equals("-") ? new byte[0] : HexFormat.of().parseHex(hex);
    }

    private static String text(String hex) {
        return new String(bytes(hex), StandardCharsets.UTF_8);
    }

    private static double number(String hex) {
        return ByteBuffer.wrap(bytes(hex)).order(ByteOrder.LITTLE_ENDIAN).getDouble();
    }

    private static double[] numbers(List<String> values) {
        return values.stream().mapToDouble(Runner::number).toArray();
    }

    private static long[] integers(List<String> values) {
        return values.stream().mapToLong(Long::parseLong).toArray();
    }

    private static String hex(byte[]... rows) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (byte[] row : rows) {
            bytes.writeBytes(row);
        }
        return HexFormat.of().formatHex(bytes.toByteArray());
    }

    private static String hex(double... values) {
        ByteBuffer bytes = ByteBuffer.allocate(Double.BYTES * values.length).order(ByteOrder.LITTLE_ENDIAN);
        bytes.asDoubleBuffer().put(values);
        return HexFormat.of().formatHex(bytes.array());
    }

    private static String words(double[] values) {
        return DoubleStream.of(values).mapToObj(Runner::hex).collect(Collectors.joining(" "));
    }

    private static String decimal(long[] values) {
        return LongStream.of(values).mapToObj(Long::toString).collect(Collectors.joining(" "));
    }
}
