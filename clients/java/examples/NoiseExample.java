import io.github.dpnoise.DiscreteLaplace;

/** Releases a table of counts, in which each person is counted once. */
final class NoiseExample {
    private static final String[] OCCUPATIONS = {"farmers", "teachers", "nurses", "pilots"};

    private NoiseExample() {}

    public static void main(String[] arguments) {
        long[] counts = {1202, 845, 933, 14};
        // When a person changes occupation, one count falls by 1 and another one rises by 1: the L1 sensitivity is 2.
        try (DiscreteLaplace mechanism = new DiscreteLaplace(1.0, 2)) {
            long[] released = mechanism.release(counts);
            for (int i = 0; i < released.length; i++) {
                System.out.printf("%-10s %6d%n", OCCUPATIONS[i], released[i]);
            }
            System.out.printf("each is off by more than %.0f with a probability of at most 5 %%%n",
                    mechanism.error(0.95, released.length));
        }
    }
}
