/* Answers a question with local differential privacy, and keeps the memo of whoever answers.
 *
 *     example_report SPECIFICATION MEMO QUESTION < ANSWER
 *
 * SPECIFICATION is the file that was announced. MEMO is the file of this person's secrets: it is made when it is needed
 * for the first time, and keeps in mind how each question is answered. QUESTION is what is asked, the same words each
 * time. ANSWER is an integer; it comes from the standard input, since everybody on a machine sees the arguments of
 * programs. What may leave the device is printed.
 */

#define _POSIX_C_SOURCE 200809L

#include <dpnoise.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The largest epsilon that this application promises to people. */
#define MAX_EPSILON 4.0

enum { MEMO_BYTES = 4096, PATH_BYTES = 4096 }; /* a memo has 64 bytes for each question */

static void stop(const char *what, const char *why) {
    fprintf(stderr, "example_report: %s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

static void check(const char *what, dpnoise_status status) {
    if (status != DPNOISE_STATUS_OK) {
        stop(what, dpnoise_error_message()); /* it has no private data */
    }
}

/* Overwrites secrets; volatile, so that no compiler leaves it out. */
static void wipe(void *memory, size_t length) {
    volatile uint8_t *bytes = memory;
    while (length-- > 0) {
        *bytes++ = 0;
    }
}

/* Reads a file of at most `capacity` bytes. Returns -1 if there is none. */
static ssize_t read_file(const char *path, uint8_t *out, size_t capacity) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        if (errno == ENOENT) {
            return -1;
        }
        stop(path, strerror(errno));
    }
    size_t length = 0;
    ssize_t more;
    while ((more = read(file, out + length, capacity - length)) > 0) {
        length += (size_t)more;
    }
    if (more < 0) {
        stop(path, strerror(errno));
    }
    close(file);
    return (ssize_t)length;
}

/* Waits until a file or folder is on the disk. */
static void flush(const char *path, int file) {
    if (file < 0 || fsync(file) != 0 || close(file) != 0) {
        stop(path, strerror(errno));
    }
}

/* Stores a memo that only its owner can read. At any moment the file is there as a whole or not at all. `place` is `link`,
 * and a memo that another process stored meanwhile stays, or `rename`. */
static void store(const char *path, dpnoise_memo memo, int (*place)(const char *from, const char *to)) {
    char unfinished[PATH_BYTES], folder[PATH_BYTES];
    uint8_t bytes[MEMO_BYTES];
    size_t length;
    check("memo", dpnoise_memo_to_bytes(memo, bytes, sizeof bytes, &length));
    if (snprintf(unfinished, sizeof unfinished, "%s.XXXXXX", path) >= (int)sizeof unfinished) {
        stop(path, "the path is too long");
    }
    int file = mkstemp(unfinished); /* for the owner only: mode 0600 */
    if (file < 0) {
        stop(path, strerror(errno));
    }
    if (write(file, bytes, length) != (ssize_t)length) {
        unlink(unfinished);
        stop(path, "cannot write the memo");
    }
    wipe(bytes, sizeof bytes);
    flush(path, file);
    int placed = place(unfinished, path);
    int why = errno;
    unlink(unfinished);
    if (placed != 0 && why != EEXIST) {
        stop(path, strerror(why));
    }
    strcpy(folder, path);
    flush(path, open(dirname(folder), O_RDONLY | O_CLOEXEC));
}

/* Gives the memo of this person. It is on the disk before a report depends on it: whoever loses it answers anew, which
 * costs its epsilon again. So a file that is damaged is an error, and no reason to make another one. */
static dpnoise_memo stored_memo(const char *path) {
    uint8_t bytes[MEMO_BYTES];
    ssize_t length = read_file(path, bytes, sizeof bytes);
    dpnoise_memo memo;
    if (length < 0) {
        check("memo", dpnoise_memo_new(1, &memo));
        store(path, memo, link);
        check("memo", dpnoise_free(memo));
        length = read_file(path, bytes, sizeof bytes);
    }
    check(path, dpnoise_memo_from_bytes(bytes, (size_t)length, &memo));
    wipe(bytes, sizeof bytes);
    return memo;
}

/* Reads the answer. Its text is private, too. */
static int64_t answer_of_person(void) {
    char text[32];
    setvbuf(stdin, NULL, _IONBF, 0); /* no copy in a buffer that nobody wipes */
    if (fgets(text, sizeof text, stdin) == NULL) {
        stop("answer", "there is none");
    }
    char *end;
    errno = 0;
    int64_t answer = strtoll(text, &end, 10);
    int is_integer = end != text && (*end == '\n' || *end == '\0') && errno == 0;
    wipe(text, sizeof text);
    if (!is_integer) {
        stop("answer", "it must be an integer");
    }
    return answer;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        stop("usage", "example_report SPECIFICATION MEMO QUESTION < ANSWER");
    }
    const char *path = argv[2], *question = argv[3];
    uint8_t specification[4096];
    ssize_t length = read_file(argv[1], specification, sizeof specification);
    if (length < 0) {
        stop(argv[1], "there is no such file");
    }

    /* The bytes are used as they came: their hash is the id by which a collector knows the specification. */
    dpnoise_protocol protocol;
    check("specification", dpnoise_protocol_from_json(specification, (size_t)length, DPNOISE_COUNTER_LIMIT, &protocol));
    uint32_t keeps_memo;
    size_t report_bytes;
    double epsilon, delta;
    check("specification", dpnoise_protocol_facts(protocol, NULL, &keeps_memo, NULL, &report_bytes, NULL));
    check("specification", dpnoise_protocol_epsilon(protocol, &epsilon));
    check("specification", dpnoise_protocol_delta(protocol, &delta));
    if (epsilon > MAX_EPSILON || delta > 0) {
        stop("specification", "its epsilon or its delta is larger than what we promise");
    }
    if (keeps_memo) {
        dpnoise_memo memo = stored_memo(path);
        dpnoise_protocol asked;
        const uint8_t *words = (const uint8_t *)question;
        check("question", dpnoise_protocol_with_memo(protocol, memo, words, strlen(question), &asked));
        store(path, memo, rename); /* it keeps in mind now how the question is answered, and refuses another way */
        check("memo", dpnoise_free(memo));
        check("specification", dpnoise_free(protocol));
        protocol = asked;
    }

    uint8_t message[DPNOISE_HEADER_BYTES + 1024];
    size_t width = DPNOISE_HEADER_BYTES + report_bytes;
    if (width > sizeof message) {
        stop("specification", "its reports are too long for this example");
    }
    int64_t answer = answer_of_person();
    dpnoise_status status = dpnoise_perturb_integers(protocol, &answer, 1, DPNOISE_MESSAGES, 1, 0, message, width);
    wipe(&answer, sizeof answer);
    check("answer", status);
    for (size_t i = 0; i < width; i++) {
        printf("%02x", message[i]);
    }
    printf("\n");
    check("specification", dpnoise_free(protocol)); /* wipes the secrets */
    return EXIT_SUCCESS;
}
