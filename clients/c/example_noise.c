/* Publishes a table of counts with differential privacy: each person is counted once, and epsilon is 1. */

#include <dpnoise.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void check(dpnoise_status status) {
    if (status != DPNOISE_STATUS_OK) {
        fprintf(stderr, "example_noise: %s\n", dpnoise_error_message());
        exit(EXIT_FAILURE);
    }
}

int main(void) {
    static const char *const CITIES[] = {"Aachen", "Bonn", "Celle", "Dresden"};
    int64_t counts[] = {1042, 873, 12, 0}; /* how many people live there */
    enum { N = sizeof counts / sizeof *counts };

    /* One person more or less changes one count by 1, so the L1 sensitivity of the whole table is 1. */
    dpnoise_mechanism mechanism;
    check(dpnoise_discrete_laplace_mechanism(1.0, 1, &mechanism));
    double error;
    check(dpnoise_mechanism_error(mechanism, 0.95, N, &error));
    check(dpnoise_mechanism_release_integers(mechanism, counts, N, 1, 0)); /* in place: nothing private is left */
    check(dpnoise_free(mechanism));

    for (size_t i = 0; i < N; i++) {
        printf("%s %" PRId64 "\n", CITIES[i], counts[i]);
    }
    printf("Each is off by at most %.0f with a probability of 95 %%.\n", error);
    return EXIT_SUCCESS;
}
