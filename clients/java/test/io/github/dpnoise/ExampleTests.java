package io.github.dpnoise;

import static io.github.dpnoise.Tests.check;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/** The examples do what they say, and the page shows them. */
final class ExampleTests {
    private ExampleTests() {}

    static void run() throws IOException, InterruptedException {
        testNoise();
        testReports();
        testThePageShowsTheExamples();
    }

    private static void testNoise() throws IOException, InterruptedException {
        String printed = Tests.run("", Tests.java("NoiseExample"));
        check(printed.lines().count() == 5 && printed.contains("teachers"), printed);
    }

    private static void testReports() throws IOException, InterruptedException {
        Path folder = Files.createTempDirectory("dpnoise");
        Path specification = folder.resolve("specification");
        Path memo = folder.resolve("memo");
        String[] example = Tests.java("ReportExample", specification.toString(), memo.toString());
        try {
            Files.writeString(specification, Tests.REMEMBERING);
            String first = Tests.run("3\n", example);
            check(first.contains("445001"), "a message: " + first);
            check(Tests.run("3\n", example).equals(first), "the memo is kept: reports of this protocol follow from it");
            check(PosixFilePermissions.toString(Files.getPosixFilePermissions(memo)).equals("rw-------"), "permissions");
            try (Stream<Path> files = Files.list(folder)) {
                check(files.count() == 2, "nothing else is left");
            }
            Files.writeString(specification, Tests.OTHER_DIGIT);
            check(Tests.run("3\n", example).contains("costs epsilon again"), "one question has one randomiser");
            Files.writeString(specification, Tests.REMEMBERING);
            Files.writeString(memo, "x", StandardOpenOption.APPEND);
            byte[] damaged = Files.readAllBytes(memo);
            String refused = Tests.run("3\n", example);
            check(refused.contains("memo is damaged") && !refused.contains("445001"), "a damaged memo: " + refused);
            check(Arrays.equals(Files.readAllBytes(memo), damaged), "a damaged memo is not replaced");
            Files.writeString(specification, Tests.SKETCH);
            check(Tests.run("3\n", example).contains("values must be texts"), "another specification");
            Files.writeString(specification, Tests.UNARY.replace("1.0,", "9.0,"));
            check(Tests.run("3\n", example).contains("specification"), "a wrong specification");
        } finally {
            for (Path file : List.of(memo, specification, folder)) {
                Files.deleteIfExists(file);
            }
        }
    }

    private static void testThePageShowsTheExamples() throws IOException {
        List<String> lines = new ArrayList<>();
        for (String name : List.of("NoiseExample.java", "ReportExample.java")) {
            Files.readAllLines(Path.of("examples", name)).forEach(line -> lines.add(line.strip()));
        }
        String language = "";
        int shown = 0;
        for (String line : Files.readAllLines(Path.of("README.md"))) {
            if (line.startsWith("```")) {
                language = line.substring(3);
            } else if (language.equals("java")) {
                check(lines.contains(line.strip()), "a line of README.md that is in no example: " + line);
                shown++;
            }
        }
        check(shown > 10, "README.md shows the examples");
    }
}
