/* Answers the tests of clients, in C. clients/shared/cases.py describes the lines. */

#define _POSIX_C_SOURCE 200809L /* getline, clock_gettime */

#include <dpnoise.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- memory: whatever a line needs, until it is answered -------------------------------------------------------- */

struct block {
    struct block *next;
    max_align_t memory[];
};

static struct block *blocks;

static void *take(size_t size) {
    struct block *block = calloc(1, sizeof *block + size);
    if (block == NULL) {
        exit(EXIT_FAILURE);
    }
    block->next = blocks;
    blocks = block;
    return block->memory;
}

static void give_back(void) {
    while (blocks != NULL) {
        struct block *next = blocks->next;
        free(blocks);
        blocks = next;
    }
}

/* --- fields ----------------------------------------------------------------------------------------------------- */

struct bytes {
    uint8_t *data;
    size_t length;
};

/* Takes the next field out of a line; an empty one when there is none. */
static char *field(char **line) {
    char *start = *line;
    size_t length = strcspn(start, " ");
    *line = start + length + (start[length] == ' ');
    start[length] = '\0';
    return start;
}

static size_t count_fields(const char *line) {
    size_t count = *line != '\0';
    for (; *line != '\0'; line++) {
        count += *line == ' ';
    }
    return count;
}

static uint8_t digit(char c) {
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static struct bytes from_hex(const char *text) {
    struct bytes bytes = {NULL, strcmp(text, "-") == 0 ? 0 : strlen(text) / 2};
    bytes.data = take(bytes.length + 1);
    for (size_t i = 0; i < bytes.length; i++) {
        bytes.data[i] = (uint8_t)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
    }
    return bytes;
}

static double from_hex_double(const char *text) {
    uint64_t word = 0;
    double number = 0;
    struct bytes bytes = from_hex(text);
    for (size_t i = 0; i < bytes.length; i++) {
        word |= (uint64_t)bytes.data[i] << 8 * i;
    }
    memcpy(&number, &word, sizeof number);
    return number;
}

static void print_hex(const uint8_t *data, size_t length) {
    for (size_t i = 0; i < length; i++) {
        printf("%02x", data[i]);
    }
}

static void print_doubles(const double *numbers, size_t n, const char *between) {
    for (size_t i = 0; i < n; i++) {
        uint64_t word;
        memcpy(&word, &numbers[i], sizeof word);
        fputs(i == 0 ? "" : between, stdout);
        for (int byte = 0; byte < 8; byte++) {
            printf("%02x", (unsigned)(word >> 8 * byte & 0xFF));
        }
    }
}

static void print_integers(const int64_t *numbers, size_t n) {
    for (size_t i = 0; i < n; i++) {
        printf("%s%" PRId64, i == 0 ? "" : " ", numbers[i]);
    }
}

static double *doubles_of(char **line, size_t n) {
    double *numbers = take(n * sizeof *numbers);
    for (size_t i = 0; i < n; i++) {
        numbers[i] = from_hex_double(field(line));
    }
    return numbers;
}

static int64_t *integers_of(char **line, size_t n) {
    int64_t *numbers = take(n * sizeof *numbers);
    for (size_t i = 0; i < n; i++) {
        numbers[i] = strtoll(field(line), NULL, 10);
    }
    return numbers;
}

/* Joins fields in the form of an Arrow array. */
static struct bytes joined(char **line, size_t n, int64_t **offsets) {
    struct bytes all = {take(strlen(*line) / 2 + n + 1), 0};
    *offsets = take((n + 1) * sizeof **offsets);
    for (size_t i = 0; i < n; i++) {
        struct bytes one = from_hex(field(line));
        memcpy(all.data + all.length, one.data, one.length);
        all.length += one.length;
        (*offsets)[i + 1] = (int64_t)all.length;
    }
    return all;
}

/* --- random bytes that are played once -------------------------------------------------------------------------- */

static int32_t play(void *context, uint8_t *out, size_t length) {
    struct bytes *left = context;
    if (length > left->length) {
        return 1;
    }
    memcpy(out, left->data, length);
    left->data += length;
    left->length -= length;
    return 0;
}

static dpnoise_status generator_of(const char *random, dpnoise_generator *out) {
    struct bytes *left = take(sizeof *left);
    *left = from_hex(random);
    return left->length == 0 ? DPNOISE_STATUS_OK : dpnoise_generator_new(play, left, out);
}

/* --- commands --------------------------------------------------------------------------------------------------- */

/* Ends a command with the status of a call that failed. The handles that it has are freed by `answer`. */
#define TRY(call)                            \
    do {                                     \
        dpnoise_status status_ = (call);     \
        if (status_ != DPNOISE_STATUS_OK) {  \
            return status_;                  \
        }                                    \
    } while (0)

/* The handles of a command; 0 for none. */
struct handles {
    dpnoise_generator generator;
    dpnoise_protocol protocol;
    dpnoise_memo memo;
    uint64_t other; /* another memo, or another accumulator */
    dpnoise_protocol asked; /* the protocol with the memo, or about something else */
    dpnoise_accumulator accumulator;
    dpnoise_sampler sampler;
    dpnoise_mechanism mechanism;
};

static dpnoise_status read_protocol(const char *hex, dpnoise_protocol *out) {
    struct bytes specification = from_hex(hex);
    return dpnoise_protocol_from_json(specification.data, specification.length, DPNOISE_COUNTER_LIMIT, out);
}

static dpnoise_status perturb(char *line, struct handles *h) {
    uint32_t form = strcmp(field(&line), "messages") == 0 ? DPNOISE_MESSAGES : DPNOISE_REPORTS;
    const char *kind = field(&line);
    TRY(read_protocol(field(&line), &h->protocol));
    TRY(generator_of(field(&line), &h->generator));
    const char *memo_field = field(&line);
    struct bytes memo = from_hex(memo_field), question = from_hex(field(&line));
    dpnoise_protocol protocol = h->protocol;
    if (strcmp(memo_field, "-") != 0) {
        TRY(dpnoise_memo_from_bytes(memo.data, memo.length, &h->memo));
        TRY(dpnoise_protocol_with_memo(h->protocol, h->memo, question.data, question.length, &h->asked));
        protocol = h->asked;
    }
    size_t n = count_fields(line), width = 0;
    TRY(dpnoise_protocol_facts(protocol, NULL, NULL, NULL, &width, NULL));
    width += form == DPNOISE_MESSAGES ? DPNOISE_HEADER_BYTES : 0;
    uint8_t *out = take(n * width);
    if (strcmp(kind, "integers") == 0) {
        TRY(dpnoise_perturb_integers(protocol, integers_of(&line, n), n, form, 1, h->generator, out, n * width));
    } else if (strcmp(kind, "numbers") == 0) {
        TRY(dpnoise_perturb_numbers(protocol, doubles_of(&line, n), n, form, 1, h->generator, out, n * width));
    } else {
        int64_t *offsets;
        struct bytes texts = joined(&line, n, &offsets);
        TRY(dpnoise_perturb_texts(protocol, texts.data, offsets, n, form, 1, h->generator, out, n * width));
    }
    printf("ok ");
    print_hex(out, n * width);
    return DPNOISE_STATUS_OK;
}

static dpnoise_status about(char *line, struct handles *h) {
    TRY(read_protocol(field(&line), &h->protocol));
    struct bytes question = from_hex(field(&line)), period = from_hex(field(&line));
    TRY(dpnoise_protocol_about(h->protocol, question.data, question.length, period.data, period.length, &h->asked));
    size_t length = 0;
    (void)dpnoise_protocol_to_json(h->asked, NULL, 0, &length); /* asks for the length */
    uint8_t *specification = take(length), digest[DPNOISE_DIGEST_BYTES];
    TRY(dpnoise_protocol_to_json(h->asked, specification, length, &length));
    TRY(dpnoise_protocol_bare_digest(h->asked, digest, sizeof digest));
    printf("ok ");
    print_hex(specification, length);
    printf(" ");
    print_hex(digest, sizeof digest);
    return DPNOISE_STATUS_OK;
}

/* Counts the messages that are left of a line. */
static dpnoise_status counted(char **line, struct handles *h) {
    TRY(dpnoise_accumulator_new(h->protocol, &h->accumulator));
    size_t n = count_fields(*line);
    int64_t *offsets;
    struct bytes messages = joined(line, n, &offsets);
    return dpnoise_accumulator_add_messages(h->accumulator, messages.data, offsets, n, 1);
}

static dpnoise_status collected(char **line, struct handles *h) {
    char *specification = field(line), *name = strchr(specification, '@');
    if (name != NULL) {
        *name++ = '\0';
    }
    TRY(read_protocol(specification, &h->protocol));
    TRY(counted(line, h));
    if (name == NULL) {
        return DPNOISE_STATUS_OK;
    }
    const struct bytes attribute = from_hex(name);
    const dpnoise_accumulator all = h->accumulator;
    const dpnoise_protocol several = h->protocol;
    const dpnoise_status status = dpnoise_accumulator_attribute(all, attribute.data, attribute.length, &h->accumulator);
    (void)dpnoise_free(all);
    TRY(status);
    (void)dpnoise_free(several);
    return dpnoise_accumulator_protocol(h->accumulator, &h->protocol);
}

static dpnoise_status print_state(dpnoise_accumulator accumulator) {
    size_t length = 0;
    (void)dpnoise_accumulator_to_bytes(accumulator, NULL, 0, &length); /* asks for the length */
    uint8_t *state = take(length);
    TRY(dpnoise_accumulator_to_bytes(accumulator, state, length, &length));
    printf("ok ");
    print_hex(state, length);
    return DPNOISE_STATUS_OK;
}

static dpnoise_status collect(char *line, struct handles *h) {
    TRY(collected(&line, h));
    return print_state(h->accumulator);
}

static dpnoise_status merge(char *line, struct handles *h) {
    TRY(read_protocol(field(&line), &h->protocol));
    const char *other = field(&line);
    TRY(counted(&line, h));
    if (strcmp(other, "-") == 0) {
        return dpnoise_accumulator_merge(h->accumulator, h->accumulator);
    }
    TRY(read_protocol(other, &h->asked));
    TRY(dpnoise_accumulator_new(h->asked, &h->other));
    TRY(dpnoise_accumulator_merge(h->accumulator, h->other));
    return print_state(h->accumulator);
}

static dpnoise_status estimate(char *line, struct handles *h) {
    TRY(collected(&line, h));
    uint32_t k;
    TRY(dpnoise_protocol_facts(h->protocol, NULL, NULL, &k, NULL, NULL));
    double *counts = take(2 * k * sizeof *counts);
    TRY(dpnoise_accumulator_estimate(h->accumulator, counts, counts + k, k));
    printf("ok ");
    print_doubles(counts, 2 * k, "");
    return DPNOISE_STATUS_OK;
}

static dpnoise_status estimate_mean(char *line, struct handles *h) {
    double numbers[2];
    TRY(collected(&line, h));
    TRY(dpnoise_accumulator_estimate_mean(h->accumulator, &numbers[0], &numbers[1]));
    printf("ok ");
    print_doubles(numbers, 2, "");
    return DPNOISE_STATUS_OK;
}

static dpnoise_status estimate_density(char *line, struct handles *h) {
    char *specification = field(&line), *smoothing = field(&line);
    uint32_t k;
    TRY(read_protocol(specification, &h->protocol));
    TRY(dpnoise_protocol_facts(h->protocol, NULL, NULL, &k, NULL, NULL));
    TRY(counted(&line, h));
    double *shares = take(k * sizeof *shares);
    TRY(dpnoise_accumulator_estimate_density(h->accumulator, smoothing[0] == '1', shares, k));
    printf("ok ");
    print_doubles(shares, k, "");
    return DPNOISE_STATUS_OK;
}

static dpnoise_status estimate_ranges(char *line, struct handles *h) {
    TRY(read_protocol(field(&line), &h->protocol));
    int64_t *ends = integers_of(&line, 2), quantile;
    double q = from_hex_double(field(&line)), numbers[2];
    TRY(counted(&line, h));
    TRY(dpnoise_accumulator_estimate_ranges(h->accumulator, &ends[0], &ends[1], 1, &numbers[0], &numbers[1]));
    TRY(dpnoise_accumulator_estimate_quantiles(h->accumulator, &q, 1, &quantile));
    printf("ok ");
    print_doubles(numbers, 2, "");
    printf(" %" PRId64, quantile);
    return DPNOISE_STATUS_OK;
}

static dpnoise_status estimate_candidates(char *line, struct handles *h) {
    TRY(read_protocol(field(&line), &h->protocol));
    size_t n = strtoull(field(&line), NULL, 10);
    int64_t *offsets;
    struct bytes texts = joined(&line, n, &offsets);
    TRY(counted(&line, h));
    double *counts = take(2 * n * sizeof *counts);
    TRY(dpnoise_accumulator_estimate_candidates(h->accumulator, texts.data, offsets, n, counts, counts + n));
    printf("ok ");
    print_doubles(counts, 2 * n, "");
    return DPNOISE_STATUS_OK;
}

static dpnoise_status estimate_prefixes(char *line, struct handles *h) {
    TRY(read_protocol(field(&line), &h->protocol));
    double level = from_hex_double(field(&line));
    TRY(counted(&line, h));
    size_t n = 0, found;
    uint32_t complete;
    TRY(dpnoise_accumulator_estimate_prefixes(h->accumulator, level, NULL, NULL, NULL, 0, &n, &complete)); /* asks */
    int64_t *values = take((n + 1) * sizeof *values);
    double *counts = take((2 * n + 1) * sizeof *counts);
    TRY(dpnoise_accumulator_estimate_prefixes(h->accumulator, level, values, counts, counts + n, n, &found, &complete));
    printf("ok %" PRIu32 " ", complete);
    print_doubles(counts, 2 * found, "");
    printf(found == 0 ? "-" : " ");
    print_integers(values, found);
    return DPNOISE_STATUS_OK;
}

static dpnoise_status memo_bytes(dpnoise_memo memo, struct bytes *out) {
    (void)dpnoise_memo_to_bytes(memo, NULL, 0, &out->length); /* asks for the length */
    out->data = take(out->length);
    return dpnoise_memo_to_bytes(memo, out->data, out->length, &out->length);
}

static dpnoise_status memo(char *line, struct handles *h) {
    struct bytes given = from_hex(field(&line)), written;
    TRY(dpnoise_memo_from_bytes(given.data, given.length, &h->memo));
    while (*line != '\0') {
        TRY(read_protocol(field(&line), &h->protocol));
        struct bytes question = from_hex(field(&line));
        TRY(dpnoise_protocol_with_memo(h->protocol, h->memo, question.data, question.length, &h->asked));
        TRY(dpnoise_free(h->protocol));
        TRY(dpnoise_free(h->asked));
    }
    TRY(memo_bytes(h->memo, &written));
    printf("ok ");
    print_hex(written.data, written.length);
    return DPNOISE_STATUS_OK;
}

static int same(struct bytes a, struct bytes b) {
    return a.length == b.length && memcmp(a.data, b.data, a.length) == 0;
}

static dpnoise_status new_memo(char *line, struct handles *h) {
    (void)line;
    struct bytes first, second, again;
    TRY(dpnoise_memo_new(1, &h->memo));
    TRY(dpnoise_memo_new(1, &h->other));
    TRY(memo_bytes(h->memo, &first));
    TRY(memo_bytes(h->other, &second));
    TRY(dpnoise_free(h->other));
    TRY(dpnoise_memo_from_bytes(first.data, first.length, &h->other));
    TRY(memo_bytes(h->other, &again));
    printf("ok %s", !same(first, again) ? "not read back" : same(first, second) ? "same" : "different");
    return DPNOISE_STATUS_OK;
}

static dpnoise_status facts(char *line, struct handles *h) {
    static const char *const KINDS[] = {"integers", "numbers", "texts", "attributes"};
    struct bytes specification = from_hex(field(&line));
    size_t limit = (size_t)strtoull(field(&line), NULL, 10);
    TRY(dpnoise_protocol_from_json(specification.data, specification.length, limit, &h->protocol));
    uint32_t takes, keeps_memo, k;
    size_t width, counters;
    double guarantee[2];
    uint8_t header[DPNOISE_HEADER_BYTES];
    TRY(dpnoise_protocol_facts(h->protocol, &takes, &keeps_memo, &k, &width, &counters));
    TRY(dpnoise_protocol_epsilon(h->protocol, &guarantee[0]));
    TRY(dpnoise_protocol_delta(h->protocol, &guarantee[1]));
    TRY(dpnoise_protocol_header(h->protocol, header, sizeof header));
    printf("ok %s %" PRIu32 " %" PRIu32 " %zu %zu ", KINDS[takes], keeps_memo, k, width, counters);
    print_doubles(guarantee, 2, " ");
    printf(" ");
    print_hex(header, sizeof header);
    return DPNOISE_STATUS_OK;
}

static dpnoise_status sampler_of(char **line, dpnoise_sampler *out) {
    int is_laplace = strcmp(field(line), "laplace") == 0;
    double scale = from_hex_double(field(line));
    return is_laplace ? dpnoise_discrete_laplace_sampler(scale, out) : dpnoise_discrete_gaussian_sampler(scale, out);
}

static dpnoise_status fill(char *line, struct handles *h) {
    TRY(sampler_of(&line, &h->sampler));
    TRY(generator_of(field(&line), &h->generator));
    size_t n = strtoull(field(&line), NULL, 10);
    int64_t *samples = take(n * sizeof *samples);
    TRY(dpnoise_sampler_fill(h->sampler, 1, h->generator, samples, n));
    printf("ok ");
    print_integers(samples, n);
    return DPNOISE_STATUS_OK;
}

static dpnoise_status release(char *line, struct handles *h) {
    const char *kind = field(&line);
    int is_discrete = strncmp(kind, "discrete-", 9) == 0;
    double epsilon = from_hex_double(field(&line));
    if (strcmp(kind, "laplace") == 0) {
        TRY(dpnoise_laplace_mechanism(epsilon, from_hex_double(field(&line)), 0, &h->mechanism));
    } else if (strcmp(kind, "discrete-laplace") == 0) {
        TRY(dpnoise_discrete_laplace_mechanism(epsilon, strtoull(field(&line), NULL, 10), &h->mechanism));
    } else {
        double delta = from_hex_double(field(&line)), sensitivity = from_hex_double(field(&line));
        if (is_discrete) {
            TRY(dpnoise_discrete_gaussian_mechanism(epsilon, delta, sensitivity, &h->mechanism));
        } else {
            TRY(dpnoise_gaussian_mechanism(epsilon, delta, sensitivity, 0, &h->mechanism));
        }
    }
    TRY(generator_of(field(&line), &h->generator));
    size_t n = count_fields(line);
    if (is_discrete) {
        int64_t *values = integers_of(&line, n);
        TRY(dpnoise_mechanism_release_integers(h->mechanism, values, n, 1, h->generator));
        printf("ok ");
        print_integers(values, n);
    } else {
        double *values = doubles_of(&line, n);
        TRY(dpnoise_mechanism_release_numbers(h->mechanism, values, n, 1, h->generator));
        printf("ok ");
        print_doubles(values, n, " ");
    }
    return DPNOISE_STATUS_OK;
}

#define RESPONSE                                                                                 \
    "{\"epsilon\":1.0986122886681098,\"k\":2,\"p\":3,\"planes\":2,\"protocol\":\"randomized_response\",\"q\":1," \
    "\"version\":1}"

/* Uses what was freed. That it can be freed twice is an error, and no more. */
static dpnoise_status freed(char *line, struct handles *h) {
    const char *what = field(&line);
    size_t length = 0;
    TRY(dpnoise_protocol_from_json((const uint8_t *)RESPONSE, strlen(RESPONSE), DPNOISE_COUNTER_LIMIT, &h->protocol));
    if (strcmp(what, "protocol") == 0) {
        int64_t value = 1;
        uint8_t report = 0;
        TRY(dpnoise_free(h->protocol));
        return dpnoise_perturb_integers(h->protocol, &value, 1, DPNOISE_REPORTS, 1, 0, &report, 1);
    }
    if (strcmp(what, "memo") == 0) {
        TRY(dpnoise_memo_new(1, &h->memo));
        TRY(dpnoise_free(h->memo));
        return dpnoise_memo_to_bytes(h->memo, NULL, 0, &length);
    }
    if (strcmp(what, "accumulator") == 0) {
        TRY(dpnoise_accumulator_new(h->protocol, &h->accumulator));
        TRY(dpnoise_free(h->accumulator));
        return dpnoise_accumulator_counts(h->accumulator, NULL, NULL);
    }
    if (strcmp(what, "sampler") == 0) {
        int64_t sample;
        TRY(dpnoise_discrete_laplace_sampler(1, &h->sampler));
        TRY(dpnoise_free(h->sampler));
        return dpnoise_sampler_fill(h->sampler, 1, 0, &sample, 1);
    }
    double value = 1;
    TRY(dpnoise_laplace_mechanism(1, 1, 0, &h->mechanism));
    TRY(dpnoise_free(h->mechanism));
    return dpnoise_mechanism_release_numbers(h->mechanism, &value, 1, 1, 0);
}

static double nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static dpnoise_status time_messages(char *line, struct handles *h) {
    size_t n = strtoull(field(&line), NULL, 10), width;
    uint32_t takes;
    TRY(read_protocol(field(&line), &h->protocol));
    TRY(dpnoise_protocol_facts(h->protocol, &takes, NULL, NULL, &width, NULL));
    width += DPNOISE_HEADER_BYTES;
    uint8_t *message = take(width);
    double start = nanoseconds(), number = 0;
    int64_t integer = 0, offsets[] = {0, 1};
    for (size_t i = 0; i < n; i++) {
        if (takes == DPNOISE_INTEGERS) {
            TRY(dpnoise_perturb_integers(h->protocol, &integer, 1, DPNOISE_MESSAGES, 1, 0, message, width));
        } else if (takes == DPNOISE_NUMBERS) {
            TRY(dpnoise_perturb_numbers(h->protocol, &number, 1, DPNOISE_MESSAGES, 1, 0, message, width));
        } else {
            TRY(dpnoise_perturb_texts(h->protocol, (const uint8_t *)"a", offsets, 1, DPNOISE_MESSAGES, 1, 0, message,
                                      width));
        }
    }
    printf("ok %.0f", (nanoseconds() - start) / (double)n);
    return DPNOISE_STATUS_OK;
}

static dpnoise_status time_samples(char *line, struct handles *h) {
    size_t n = strtoull(field(&line), NULL, 10);
    TRY(sampler_of(&line, &h->sampler));
    int64_t *samples = take(n * sizeof *samples);
    double best = 0;
    for (int i = 0; i < 5; i++) {
        double start = nanoseconds();
        TRY(dpnoise_sampler_fill(h->sampler, 1, 0, samples, n));
        double took = nanoseconds() - start;
        best = i == 0 || took < best ? took : best;
    }
    printf("ok %.3f", best / (double)n);
    return DPNOISE_STATUS_OK;
}

static const struct {
    const char *name;
    dpnoise_status (*run)(char *line, struct handles *handles);
} COMMANDS[] = {
    {"perturb", perturb}, {"collect", collect}, {"estimate", estimate}, {"mean", estimate_mean},
    {"density", estimate_density}, {"ranges", estimate_ranges}, {"candidates", estimate_candidates},
    {"prefixes", estimate_prefixes}, {"memo", memo}, {"about", about}, {"merge", merge},
    {"newmemo", new_memo}, {"facts", facts}, {"fill", fill}, {"release", release},
    {"freed", freed}, {"time", time_messages}, {"filltime", time_samples},
};

static void answer(char *line) {
    static const char *const STATUSES[] = {
        "ok", "parameter", "data", "state", "randomness", "handle", "memory", "internal", "allocation",
    };
    struct handles h = {0};
    const char *name = field(&line);
    for (size_t i = 0; i < sizeof COMMANDS / sizeof *COMMANDS; i++) {
        if (strcmp(name, COMMANDS[i].name) == 0) {
            dpnoise_status status = COMMANDS[i].run(line, &h);
            if (status != DPNOISE_STATUS_OK) {
                printf("error %s %s", STATUSES[status], dpnoise_error_message());
            }
        }
    }
    const uint64_t used[] = {h.generator, h.protocol, h.memo, h.other, h.asked, h.accumulator, h.sampler, h.mechanism};
    for (size_t i = 0; i < sizeof used / sizeof *used; i++) {
        (void)dpnoise_free(used[i]);
    }
    give_back();
    printf("\n");
    fflush(stdout);
}

int main(void) {
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    while ((length = getline(&line, &capacity, stdin)) > 0) {
        line[length - 1] = '\0'; /* the end of the line */
        answer(line);
    }
    free(line);
    return dpnoise_abi_version() == DPNOISE_ABI_VERSION ? EXIT_SUCCESS : EXIT_FAILURE;
}
