package io.github.dpnoise;

import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** The tests of the Java client that need no other program; `clients/shared` compares what it makes with Python. */
final class Tests {
    static final String UNARY = "{\"epsilon\":1.0,\"k\":15,\"p\":1024,\"planes\":11,"
            + "\"protocol\":\"optimized_unary_encoding\",\"q\":551,\"version\":1}";
    static final String MEAN = "{\"bound\":135266304,\"epsilon\":1.0,\"k\":2097153,\"protocol\":\"laplace_mean\","
            + "\"unit\":1048576,\"version\":1}";
    static final String SKETCH = "{\"epsilon\":2.0,\"p\":1497,\"planes\":11,\"protocol\":\"count_mean_sketch\","
            + "\"q\":551,\"rows\":3,\"seed\":1,\"version\":1,\"width\":16}";
    /** Reports of this protocol follow from the memo alone. */
    static final String REMEMBERING =
            "{\"d\":4,\"epsilon\":1.0,\"k\":15,\"p\":5099,\"planes\":13,\"protocol\":\"d_bit_flip\","
            + "\"q\":3093,\"version\":1}";
    /** The same with another last digit of epsilon. */
    static final String OTHER_DIGIT =
            "{\"d\":4,\"epsilon\":1.01,\"k\":15,\"p\":1277,\"planes\":11,\"protocol\":\"d_bit_flip\","
            + "\"q\":771,\"version\":1}";

    private static final long PRIVATE = 987_654_321;

    private Tests() {}

    public static void main(String[] arguments) throws Exception {
        if (Arrays.asList(arguments).contains("load")) { // what testOtherVersions runs
            new DiscreteLaplaceSampler(1).close();
            return;
        }
        testMessages();
        testManyAreOneByOne();
        testRefusals();
        testTextsThatAreNoUnicode();
        testGeneratorsThatFail();
        testGeneratorsThatCallTheLibrary();
        testMemos();
        testAnotherWeekIsAnotherCollection();
        testAQuestionHasOneRandomiser();
        testClosedTwiceAndUsed();
        testObjectsOutliveWhatTheyAreMadeOf();
        testTheGarbageCollectorFrees();
        testThreads();
        testAccumulators();
        testNoise();
        testOtherVersions();
        ExampleTests.run();
        WipingTests.run();
        System.out.println("all tests of the Java client passed");
    }

    // --- what tests say ----------------------------------------------------------------------------------------------

    static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    /** Runs what must be refused, with this status and these words. */
    static DpnoiseException refused(Status status, String words, Callable<?> call) {
        try {
            call.call();
        } catch (DpnoiseException exception) {
            String message = exception.getMessage();
            check(exception.status() == status, status + " expected, got " + exception.status() + ": " + message);
            check(message.contains(words), "\"" + words + "\" expected, got " + message);
            for (long secret : new long[] {PRIVATE, -PRIVATE}) {
                check(!message.contains(Long.toString(secret)), "a message shows a private value");
            }
            return exception;
        } catch (Exception exception) {
            throw new AssertionError("a DpnoiseException expected", exception);
        }
        throw new AssertionError(status + " expected, but nothing was thrown");
    }

    /** Bytes that have a pattern, and are the same each time. */
    static Generator patterned() {
        int[] drawn = {0};
        return out -> {
            for (int i = 0; i < out.length; i++) {
                drawn[0] = drawn[0] * 1_664_525 + 1_013_904_223;
                out[i] = (byte) (drawn[0] >>> 24);
            }
        };
    }

    // --- clients -----------------------------------------------------------------------------------------------------

    static void testMessages() {
        try (Protocol unary = Protocol.fromJson(UNARY); Protocol mean = Protocol.fromJson(MEAN);
                Protocol sketch = Protocol.fromJson(SKETCH)) {
            check(unary.takes() == ValueKind.INTEGERS && unary.k() == 15 && unary.reportBytes() == 2, "facts");
            check(!unary.keepsMemo() && unary.epsilon() > 0.99 && unary.epsilon() <= 1, "facts of privacy");
            check(mean.takes() == ValueKind.NUMBERS && sketch.takes() == ValueKind.TEXTS, "kinds of values");
            for (byte[] message : List.of(unary.message(7), unary.messages(new long[] {7})[0])) {
                check(message.length == 14, "length of a message");
                check(Arrays.equals(unary.header(), Arrays.copyOf(message, 12)), "header of a message");
            }
            check(mean.message(0.5).length == 12 + mean.reportBytes(), "message of a number");
            check(sketch.message("plum").length == 12 + sketch.reportBytes(), "message of a text");
            check(unary.messages(new long[0]).length == 0 && unary.reports(new long[0]).length == 0, "no integers");
            check(mean.messages(new double[0]).length == 0 && mean.reports(new double[0]).length == 0, "no numbers");
            check(sketch.messages(new String[0]).length == 0 && sketch.reports(new String[0]).length == 0, "no texts");
            check(unary.reports(new long[1000]).length == 2000, "length of reports");
            check(!Arrays.equals(unary.reports(new long[100]), unary.reports(new long[100])), "new randomness");
        }
    }

    static void testManyAreOneByOne() {
        try (Protocol protocol = Protocol.fromJson(SKETCH)) {
            String[] texts = {"", "plum", "crème brûlée", "\ud83c\udf47", "ß".repeat(200)};
            byte[] reports = protocol.reports(texts, Source.of(patterned()));
            byte[][] messages = protocol.messages(texts, Source.of(patterned()));
            int width = protocol.reportBytes();
            for (int i = 0; i < texts.length; i++) {
                byte[] report = Arrays.copyOfRange(messages[i], 12, messages[i].length);
                check(Arrays.equals(report, Arrays.copyOfRange(reports, i * width, (i + 1) * width)), "rows");
            }
        }
    }

    static void testRefusals() {
        refused(Status.PARAMETER, "threads must be at least 1, got 0", () -> Source.system(0));
        refused(Status.PARAMETER, "people must be at least 0, got -1", () -> Memo.create(-1));
        try (Protocol wide = Protocol.fromJson(UNARY.replace("15", "16777216"))) {
            refused(Status.PARAMETER, "values must be fewer", () -> wide.reports(new long[1024]));
        }
    }

    static void testTextsThatAreNoUnicode() {
        try (Protocol sketch = Protocol.fromJson(SKETCH); Protocol remembering = Protocol.fromJson(REMEMBERING);
                Memo memo = Memo.create()) {
            for (String lone : List.of("\ud83c", "plum\udf47", "\udf47\ud83c", "\ud83cplum")) {
                refused(Status.DATA, "values must be Unicode", () -> sketch.message(lone));
                refused(Status.DATA, "values must be Unicode", () -> sketch.reports(new String[] {"plum", lone}));
                refused(Status.PARAMETER, "question must be Unicode", () -> remembering.withMemo(memo, lone));
                refused(Status.PARAMETER, "question must be Unicode", () -> remembering.about(lone, ""));
                refused(Status.PARAMETER, "period must be Unicode", () -> remembering.about("", lone));
                refused(Status.STATE, "specification must be Unicode", () -> Protocol.fromJson(UNARY + lone));
            }
            remembering.withMemo(memo, "caf\u00e9").close();
            refused(Status.PARAMETER, "question must be in", () -> remembering.withMemo(memo, "cafe\u0301"));
            refused(Status.PARAMETER, "question must be in", () -> remembering.about("cafe\u0301", ""));
            refused(Status.PARAMETER, "period must be in", () -> remembering.about("", "cafe\u0301"));
        }
    }

    static void testGeneratorsThatFail() {
        List<byte[]> given = new ArrayList<>();
        Exception exception = new IOException("the token is gone");
        Error error = new StackOverflowError();
        try (Protocol protocol = Protocol.fromJson(UNARY); Sampler sampler = new DiscreteLaplaceSampler(10);
                Laplace laplace = new Laplace(1, 1)) {
            for (Generator generator : List.<Generator>of(
                    out -> {
                        Arrays.fill(out, (byte) 1);
                        given.add(out);
                        throw exception;
                    },
                    out -> {
                        throw error;
                    })) {
                Throwable cause = given.isEmpty() ? exception : error;
                Source source = Source.of(generator);
                long[] out = {5};
                double[] values = {7};
                List<Callable<?>> calls = List.of(
                        () -> protocol.messages(new long[] {1}, source),
                        () -> laplace.release(values, source),
                        () -> {
                            sampler.fill(out, source);
                            return out;
                        });
                for (Callable<?> call : calls) {
                    DpnoiseException thrown = refused(Status.RANDOMNESS, "generator", call);
                    check(thrown.getCause() == cause, "the cause is what the generator threw");
                }
                check(out[0] == 5 && values[0] == 7, "arrays of the caller stay as they were");
            }
            long[] out = new long[100];
            sampler.fill(out, Source.of(bytes -> {
                patterned().fill(bytes);
                given.add(bytes);
            }));
            check(Arrays.stream(out).anyMatch(x -> x != 0), "noise of a generator");
            refused(Status.DATA, "", () -> protocol.messages(new long[] {PRIVATE}, Source.of(patterned())));
        }
        check(given.size() > 1, "generators were called");
        for (byte[] bytes : given) {
            check(Arrays.equals(bytes, new byte[bytes.length]), "what a generator has filled is wiped");
        }
    }

    static void testGeneratorsThatCallTheLibrary() {
        try (Protocol protocol = Protocol.fromJson(UNARY)) {
            byte[] expected = protocol.reports(new long[] {3}, Source.of(patterned()));
            Generator generator = patterned();
            byte[] reports = protocol.reports(new long[] {3}, Source.of(out -> {
                refused(Status.PARAMETER, "values must be integers", () -> protocol.message("plum"));
                generator.fill(out);
            }));
            check(Arrays.equals(reports, expected), "a generator may use the library");
        }
    }

    static void testMemos() {
        try (Protocol protocol = Protocol.fromJson(REMEMBERING); Memo memo = Memo.create();
                Memo read = Memo.fromBytes(memo.toBytes());
                Protocol colour = protocol.withMemo(memo, "colour"); Protocol again = protocol.withMemo(read, "colour");
                Memo crowd = Memo.create(100); Protocol first = protocol.withMemo(crowd, "colour");
                Protocol other = first.withMemo(crowd, "fruit")) {
            check(protocol.keepsMemo() && colour.keepsMemo(), "a memo is kept");
            check(Arrays.equals(memo.toBytes(), read.toBytes()), "a memo is read as it was written");
            check(Arrays.equals(colour.message(3), again.message(3)), "one memo makes one report");
            long[] values = new long[100];
            check(Arrays.equals(first.reports(values), first.reports(values)), "one memo makes the same reports");
            check(!Arrays.equals(first.reports(values), other.reports(values)), "of each question");
        }
    }

    static void testAnotherWeekIsAnotherCollection() {
        try (Protocol unary = Protocol.fromJson(UNARY); Protocol survey = unary.about("favourite colour", "");
                Protocol week = survey.about("", "2026-W48"); Protocol next = survey.about("", "2026-W49");
                Protocol again = Protocol.fromJson(week.toJson()); Accumulator counted = new Accumulator(week);
                Accumulator other = new Accumulator(next)) {
            check(unary.toJson().equals(UNARY), "a specification is written as it was read");
            check(week.toJson().contains("\"period\":\"2026-W48\",") && week.toJson().contains("favourite colour"), "texts");
            check(Arrays.equals(again.header(), week.header()), "what was written is read");
            check(!Arrays.equals(next.header(), week.header()), "another week has another header");
            check(Arrays.equals(next.bareDigest(), unary.bareDigest()), "another week has the same randomiser");
            counted.addMessages(next.message(7), week.message(7));
            check(counted.n() == 1 && counted.rejected() == 1, "messages of another week are rejected");
            refused(Status.STATE, "about another period", () -> merged(counted, other));
            refused(Status.PARAMETER, "another accumulator", () -> merged(counted, counted));
            check(counted.n() == 1, "nothing was added");
        }
    }

    private static long merged(Accumulator accumulator, Accumulator other) {
        accumulator.merge(other);
        return accumulator.n();
    }

    static void testAQuestionHasOneRandomiser() {
        try (Protocol protocol = Protocol.fromJson(REMEMBERING); Memo memo = Memo.create()) {
            protocol.withMemo(memo, "colour").close();
            try (Memo kept = Memo.fromBytes(memo.toBytes()); Protocol other = Protocol.fromJson(OTHER_DIGIT);
                    Protocol week = protocol.about("colour", "2026-W48")) {
                week.withMemo(kept, "colour").close();
                refused(Status.STATE, "costs epsilon again", () -> other.withMemo(kept, "colour"));
                refused(Status.PARAMETER, "question must be that of the specification", () -> week.withMemo(kept, "food"));
            }
        }
    }

    // --- lifetimes ---------------------------------------------------------------------------------------------------

    static void testClosedTwiceAndUsed() throws Exception {
        Protocol protocol = Protocol.fromJson(UNARY);
        Memo memo = Memo.create();
        Accumulator accumulator = new Accumulator(protocol);
        Sampler sampler = new DiscreteGaussianSampler(2);
        Gaussian mechanism = new Gaussian(1, 1e-6, 1);
        for (int i = 0; i < 2; i++) {
            for (AutoCloseable each : List.of(protocol, memo, accumulator, sampler, mechanism)) {
                each.close();
            }
        }
        List<Callable<?>> calls = List.of(
                () -> protocol.message(1),
                () -> protocol.messages(new long[] {1}, Source.of(patterned())),
                protocol::epsilon,
                protocol::header,
                () -> new Accumulator(protocol),
                memo::toBytes,
                () -> {
                    try (Protocol open = Protocol.fromJson(REMEMBERING)) {
                        return open.withMemo(memo, "colour");
                    }
                },
                accumulator::toBytes,
                accumulator::n,
                accumulator::estimate,
                () -> mechanism.release(new double[] {1}),
                () -> mechanism.error(0.5, 1));
        for (Callable<?> call : calls) {
            refused(Status.HANDLE, "freed", call);
        }
        long[] out = {5};
        refused(Status.HANDLE, "freed", () -> {
            sampler.fill(out);
            return out;
        });
        check(out[0] == 5, "an array stays as it was");
    }

    static void testObjectsOutliveWhatTheyAreMadeOf() {
        Protocol announced = Protocol.fromJson(REMEMBERING);
        Memo memo = Memo.create();
        try (Protocol protocol = announced.withMemo(memo, "colour");
                Accumulator accumulator = new Accumulator(announced)) {
            announced.close();
            memo.close();
            accumulator.addMessages(protocol.message(3));
            check(accumulator.n() == 1, "counted");
        }
    }

    static void testTheGarbageCollectorFrees() throws InterruptedException {
        long[] numbers = new long[2];
        Protocol kept = Protocol.fromJson(UNARY);
        kept.handle.status(number -> (int) (numbers[0] = number));
        Protocol.fromJson(UNARY).handle.status(number -> (int) (numbers[1] = number));
        for (int i = 0; isLive(numbers[1]); i++) {
            check(i < 1000, "what nobody holds is freed");
            System.gc();
            Thread.sleep(1); // so that the thread of the cleaner runs; how long that takes does not matter
        }
        check(isLive(numbers[0]), "what somebody holds is not");
        kept.close();
        check(!isLive(numbers[0]), "what is closed is freed at once");
    }

    private static boolean isLive(long protocol) {
        return ClientLibrary.dpnoise_protocol_epsilon(protocol, new double[1]) == 0;
    }

    /** Runs a task in several threads at once. */
    private static void inThreads(int n, Callable<?> task) throws InterruptedException, ExecutionException {
        ExecutorService threads = Executors.newFixedThreadPool(n);
        try {
            for (Future<?> future : threads.invokeAll(Collections.<Callable<Object>>nCopies(n, task::call))) {
                future.get();
            }
        } finally {
            threads.shutdown();
        }
    }

    static void testThreads() throws InterruptedException, ExecutionException {
        try (Protocol unary = Protocol.fromJson(UNARY); Protocol mean = Protocol.fromJson(MEAN);
                Accumulator accumulator = new Accumulator(unary)) {
            inThreads(4, () -> {
                int own = 1 + (int) (Thread.currentThread().getId() % 1000);
                for (int i = 0; i < 500; i++) {
                    accumulator.addMessages(unary.message(i % 15));
                    refused(Status.PARAMETER, "got -" + own, () -> Memo.create(-own));
                    refused(Status.PARAMETER, "got " + (1 + own / 1000.0), () -> errorAt(1 + own / 1000.0));
                    refused(Status.PARAMETER, "values must be numbers", () -> mean.message(PRIVATE));
                }
                return null;
            });
            check(accumulator.n() == 2000 && accumulator.rejected() == 0, "no message is lost");
        }
        Protocol shared = Protocol.fromJson(UNARY);
        inThreads(4, () -> { // closed by one while others use it: each call ends well, or with an error
            for (int i = 0; i < 500; i++) {
                try {
                    check(shared.message(3).length == 14, "a whole message");
                } catch (DpnoiseException exception) {
                    check(exception.status() == Status.HANDLE, "closed");
                }
                if (i == 250) {
                    shared.close();
                }
            }
            return null;
        });
    }

    /** Gives an error whose message shows a public parameter. */
    private static double errorAt(double level) {
        try (DiscreteLaplace mechanism = new DiscreteLaplace(1, 1)) {
            return mechanism.error(level, 1);
        }
    }

    // --- collectors --------------------------------------------------------------------------------------------------

    static void testAccumulators() {
        try (Protocol protocol = Protocol.fromJson(UNARY); Protocol mean = Protocol.fromJson(MEAN);
                Accumulator whole = new Accumulator(protocol); Accumulator part = new Accumulator(protocol);
                Accumulator means = new Accumulator(mean)) {
            byte[][] messages = protocol.messages(new long[1000]);
            whole.addMessages(messages);
            whole.addMessages(new byte[] {1, 2, 3}, new byte[0]);
            part.addMessages(Arrays.copyOf(messages, 400), 1);
            byte[] rest = new byte[600 * 2];
            for (int i = 0; i < 600; i++) {
                System.arraycopy(messages[400 + i], 12, rest, 2 * i, 2);
            }
            part.addReports(rest);
            check(whole.n() == 1000 && whole.rejected() == 2 && part.n() == 1000, "counts");
            check(Arrays.equals(whole.estimate().counts(), part.estimate().counts()), "estimates");
            try (Accumulator read = Accumulator.fromBytes(protocol, whole.toBytes())) {
                check(Arrays.equals(read.toBytes(), whole.toBytes()), "a state is read as it was written");
                read.merge(part);
                check(read.n() == 2000, "merged");
            }
            part.addMessages();
            check(part.estimate().counts().length == 15 && part.estimate().standardErrors()[0] > 0, "errors");
            byte[] state = whole.toBytes();
            refused(Status.STATE, "", () -> Accumulator.fromBytes(protocol, new byte[3]));
            refused(Status.STATE, "other must be of the same protocol", () -> Accumulator.fromBytes(mean, state));
            refused(Status.PARAMETER, "counted by value", means::estimate);
            refused(Status.PARAMETER, "threads must be at least 1, got -1", () -> {
                part.addMessages(messages, -1);
                return null;
            });
            refused(Status.PARAMETER, "", () -> {
                part.addReports(new byte[3]);
                return null;
            });
        }
    }

    // --- noise -------------------------------------------------------------------------------------------------------

    static void testNoise() {
        refused(Status.PARAMETER, "granularity", () -> new Laplace(1, 1, 3));
        refused(Status.PARAMETER, "sensitivity must be at least 1, got -1", () -> new DiscreteLaplace(1, -1));
        refused(Status.PARAMETER, "sensitivity", () -> new DiscreteLaplace(1, 0));
        refused(Status.PARAMETER, "sensitivity", () -> new DiscreteGaussian(1, 1e-6, -1));
        try (Laplace laplace = new Laplace(1, 1); Gaussian gaussian = new Gaussian(1, 1e-6, 1, 0.25);
                DiscreteLaplace discreteLaplace = new DiscreteLaplace(1, 1);
                DiscreteGaussian discreteGaussian = new DiscreteGaussian(1, 1e-6, 1)) {
            double[] numbers = new double[1000];
            long[] integers = new long[1000];
            for (double[] released : List.of(laplace.release(numbers), gaussian.release(numbers, Source.system(1)))) {
                check(Arrays.stream(released).anyMatch(x -> x != 0), "noise on numbers");
            }
            for (long[] released : List.of(discreteLaplace.release(integers), discreteGaussian.release(integers))) {
                check(Arrays.stream(released).anyMatch(x -> x != 0), "noise on integers");
            }
            check(Arrays.equals(numbers, new double[1000]) && Arrays.equals(integers, new long[1000]), "inputs stay");
            check(laplace.release(new double[0]).length == 0, "no values");
            check(Math.abs(laplace.error(0.95, 1) - Math.log(20)) < 0.01, "error of the Laplace mechanism");
            check(Arrays.stream(gaussian.release(numbers)).allMatch(x -> x * 4 == Math.rint(x * 4)), "granularity");
            refused(Status.PARAMETER, "n must be at least 0, got -1", () -> laplace.error(0.5, -1));
            refused(Status.PARAMETER, "level", () -> laplace.error(1.5, 1));
        }
        try (Sampler sampler = new DiscreteLaplaceSampler(10)) {
            sampler.fill(new long[0]);
        }
    }

    // --- loading -----------------------------------------------------------------------------------------------------

    /** A native library of another version is refused, and nothing of it is called. */
    static void testOtherVersions() throws IOException, InterruptedException {
        Path folder = Files.createTempDirectory("dpnoise");
        File library = folder.resolve(System.mapLibraryName("dpnoise")).toFile();
        Path source = folder.resolve("other.c");
        Files.writeString(source, "unsigned dpnoise_abi_version(void) { return 2; }\n");
        String loaded;
        try {
            run("", "cc", "-shared", "-fPIC", "-o", library.getPath(), source.toString());
            loaded = run("", java(Path.of(library.getParent()), Tests.class.getName(), "load"));
        } catch (IOException exception) {
            System.out.println("skipped: no C compiler, to make a library of another version");
            return;
        } finally {
            Files.deleteIfExists(library.toPath());
            Files.deleteIfExists(source);
            Files.deleteIfExists(folder);
        }
        check(loaded.contains("must have version 1 of its interface, got 2"), "another version: " + loaded);
    }

    /** The command that runs a Java program with the native library of these tests. */
    static String[] java(String name, String... arguments) {
        return java(Path.of(System.getProperty("jna.library.path")), name, arguments);
    }

    private static String[] java(Path library, String name, String... arguments) {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Djna.library.path=" + library, "-cp",
                System.getProperty("java.class.path"), name));
        command.addAll(Arrays.asList(arguments));
        return command.toArray(String[]::new);
    }

    /** Runs a program, and returns what it prints. */
    static String run(String input, String... command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        try (OutputStream in = process.getOutputStream()) {
            in.write(input.getBytes(StandardCharsets.UTF_8));
        }
        String printed = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        process.waitFor();
        return printed;
    }
}
