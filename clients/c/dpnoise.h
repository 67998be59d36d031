#ifndef DPNOISE_H
#define DPNOISE_H

#include <stddef.h>
#include <stdint.h>

/**
 * The version of this interface. It changes when a function changes or goes; new functions do not change it.
 */
#define DPNOISE_ABI_VERSION 1

/**
 * The bytes of a message before its report.
 */
#define DPNOISE_HEADER_BYTES 12

/**
 * The limit, in bytes, on a collector's counters for a specification that comes from others: 128 MiB.
 */
#define DPNOISE_COUNTER_LIMIT 134217728

/**
 * Bare reports are written.
 */
#define DPNOISE_REPORTS 0

/**
 * Messages are written: each is a header and a report.
 */
#define DPNOISE_MESSAGES 1

/**
 * A protocol takes integers from 0 to k - 1, or below 2^bits for prefixes; 1 for yes and 0 for no.
 */
#define DPNOISE_INTEGERS 0

/**
 * A protocol takes numbers, in [-1, 1] or within the bounds of its document for means, and in [0, 1] for distributions.
 */
#define DPNOISE_NUMBERS 1

/**
 * A protocol takes texts in UTF-8.
 */
#define DPNOISE_TEXTS 2

/**
 * A protocol is of several attributes, each with values of its own. Its reports are counted here, and not made.
 */
#define DPNOISE_ATTRIBUTES 3

/**
 * The bytes of a SHA-256.
 */
#define DPNOISE_DIGEST_BYTES 32

/**
 * What every function returns. `dpnoise_error_message` says more.
 */
enum dpnoise_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Done.
   */
  DPNOISE_STATUS_OK = 0,
  /**
   * A public parameter is outside its range.
   */
  DPNOISE_STATUS_PARAMETER = 1,
  /**
   * A private value cannot be used. The message does not say which one.
   */
  DPNOISE_STATUS_DATA = 2,
  /**
   * A specification, memo or state is damaged, or of another kind.
   */
  DPNOISE_STATUS_STATE = 3,
  /**
   * The source of randomness failed. Nothing was released.
   */
  DPNOISE_STATUS_RANDOMNESS = 4,
  /**
   * A handle is not one of the right kind, or was freed.
   */
  DPNOISE_STATUS_HANDLE = 5,
  /**
   * A pointer is null or not aligned, or memory is too short.
   */
  DPNOISE_STATUS_MEMORY = 6,
  /**
   * A defect of the library.
   */
  DPNOISE_STATUS_INTERNAL = 7,
  /**
   * The library could not allocate memory. Nothing was released, and all objects are as they were.
   */
  DPNOISE_STATUS_ALLOCATION = 8,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum dpnoise_status dpnoise_status;
#else
typedef int32_t dpnoise_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Writes `length` random bytes to `out`, and returns 0; or returns another number if it cannot.
 */
typedef int32_t (*dpnoise_random_bytes)(void *context, uint8_t *out, size_t length);

/**
 * The handle of a generator of random words; 0 is the operating system's.
 */
typedef uint64_t dpnoise_generator;

/**
 * The handle of a protocol, with or without the memo of the people who answer.
 */
typedef uint64_t dpnoise_protocol;

/**
 * The handle of a collector's counters.
 */
typedef uint64_t dpnoise_accumulator;

/**
 * The handle of a sampler of noise.
 */
typedef uint64_t dpnoise_sampler;

/**
 * The handle of a mechanism.
 */
typedef uint64_t dpnoise_mechanism;

/**
 * The handle of the secrets of some people.
 */
typedef uint64_t dpnoise_memo;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the interface of this library, to be compared with `DPNOISE_ABI_VERSION` of the header.
 */
uint32_t dpnoise_abi_version(void);

/**
 * Makes a generator that calls `fill` with `context`, for tests and for hardware tokens. Functions take it in place of
 * 0, which is the operating system's.
 *
 * Privacy depends on its bytes: they must be uniform, independent, and known to nobody else. The order in which
 * functions ask for bytes is not documented, but what they make of the same bytes stays the same between releases that
 * have the same major version.
 *
 * `fill` is called by the thread that passes the generator to a function. It must not throw, unwind or `longjmp`. One
 * call at a time can use a generator: others, also a call that `fill` makes itself, fail with
 * `DPNOISE_STATUS_RANDOMNESS`.
 *
 * @pre `fill` may be called with `context`, by any thread, until the generator is freed and no call uses it any more.
 */
dpnoise_status dpnoise_generator_new(dpnoise_random_bytes fill, void *context, dpnoise_generator *out);

/**
 * Frees the object with this handle, of whatever kind. The secrets of a memo are wiped, unless a protocol made with it
 * still needs them; they are wiped with that protocol then. Freeing 0 does nothing.
 *
 * A handle that was freed, or never given, is refused with `DPNOISE_STATUS_HANDLE`: no handle is given twice. An
 * object that another thread is using is freed when that call ends.
 */
dpnoise_status dpnoise_free(uint64_t handle);

/**
 * The message of the last error of the calling thread, in UTF-8, ended by a zero; empty if there was none. It has no
 * private data, and may be logged. The pointer is valid until the next error of this thread, or the thread's end.
 */
const char *dpnoise_error_message(void);

/**
 * Makes the counters of a collector, all of them 0; `DPNOISE_STATUS_ALLOCATION` if there is no memory for their
 * `counter_bytes`.
 *
 * @pre `out` points to a handle.
 */
dpnoise_status dpnoise_accumulator_new(dpnoise_protocol protocol, dpnoise_accumulator *out);

/**
 * Reads the state of a collector, as `dpnoise_accumulator_to_bytes`, Python or the command line wrote it. Counters of
 * more than `limit` bytes are refused, as by `dpnoise_protocol_from_json`.
 *
 * @pre `bytes` points to `length` bytes, and `out` to a handle.
 */
dpnoise_status dpnoise_accumulator_from_bytes(const uint8_t *bytes,
                                              size_t length,
                                              size_t limit,
                                              dpnoise_accumulator *out);

/**
 * Writes the state to `out`, and the number of its bytes to `length`, also if they do not fit:
 * `DPNOISE_STATUS_MEMORY`.
 *
 * @pre `out` points to `capacity` bytes, and `length` to a number.
 */
dpnoise_status dpnoise_accumulator_to_bytes(dpnoise_accumulator accumulator,
                                            uint8_t *out,
                                            size_t capacity,
                                            size_t *length);

/**
 * Makes the handle of the protocol whose reports an accumulator counts: for one that was read from bytes.
 *
 * @pre `out` points to a handle.
 */
dpnoise_status dpnoise_accumulator_protocol(dpnoise_accumulator accumulator, dpnoise_protocol *out);

/**
 * Adds messages. Message i is the bytes of `messages` from `offsets[i]` to `offsets[i + 1]`, as in an Arrow array:
 * there are n + 1 offsets, and none is smaller than the one before. One that is not a message of this protocol is
 * counted as rejected. The work is shared by up to `threads` threads, at least 1.
 *
 * @pre `messages` points to as many bytes as the last offset says, and `offsets` to n + 1 items.
 */
dpnoise_status dpnoise_accumulator_add_messages(dpnoise_accumulator accumulator,
                                                const uint8_t *messages,
                                                const int64_t *offsets,
                                                size_t n,
                                                uint32_t threads);

/**
 * Adds bare reports, one after the other without anything between them. One that is malformed is counted as rejected.
 * The work is shared by up to `threads` threads, at least 1.
 *
 * @pre `reports` points to `length` bytes.
 */
dpnoise_status dpnoise_accumulator_add_reports(dpnoise_accumulator accumulator,
                                               const uint8_t *reports,
                                               size_t length,
                                               uint32_t threads);

/**
 * Adds the counts of another accumulator of the same specification: of the same protocol, and about the same.
 */
dpnoise_status dpnoise_accumulator_merge(dpnoise_accumulator accumulator, dpnoise_accumulator other);

/**
 * Writes the number of reports counted, and of those rejected; of one of several attributes, the number of people whom
 * its estimates are about. Each pointer may be null, and nothing is written there.
 *
 * @pre Each pointer that is not null points to one item.
 */
dpnoise_status dpnoise_accumulator_counts(dpnoise_accumulator accumulator, uint64_t *n, uint64_t *rejected);

/**
 * Makes the handle of the counters of one of several attributes, by its name in UTF-8, for the calls that estimate. They
 * are those of this moment; reports cannot be added to them, and they have no bytes. Of reports that are about one
 * attribute each, estimates are about all people who reported, of whom those who reported on the attribute are a random
 * sample.
 *
 * @pre `name` points to `length` bytes, and `out` to a handle.
 */
dpnoise_status dpnoise_accumulator_attribute(dpnoise_accumulator accumulator,
                                             const uint8_t *name,
                                             size_t length,
                                             dpnoise_accumulator *out);

/**
 * Writes how many people have each value, an unbiased estimate that may be negative, to `counts`, and its standard
 * error to `standard_errors`: k items each; for randomized response those of no and of yes.
 *
 * Protocols whose reports are not counted by value are refused with `DPNOISE_STATUS_PARAMETER`. The functions below
 * are for them, save RAPPOR, which Python decodes from its state.
 *
 * @pre Both pointers point to `k` items.
 */
dpnoise_status dpnoise_accumulator_estimate(dpnoise_accumulator accumulator,
                                            double *counts,
                                            double *standard_errors,
                                            size_t k);

/**
 * Writes the mean of people's numbers, an unbiased estimate that may be outside of [-1, 1] or of the bounds of its document,
 * and its standard error. Where only a specification with a digest of the bounds was read, `DPNOISE_STATUS_STATE`: merge a
 * state into an accumulator of the document.
 *
 * Protocols that are not for means are refused with `DPNOISE_STATUS_PARAMETER`, and so is an accumulator without a
 * report.
 *
 * @pre Both pointers point to one item.
 */
dpnoise_status dpnoise_accumulator_estimate_mean(dpnoise_accumulator accumulator,
                                                 double *mean,
                                                 double *standard_error);

/**
 * Writes how people's numbers in [0, 1] are distributed: the shares of the k bins, which are evenly spaced, are not
 * negative, and sum to 1. `smoothing` is 1 if neighbouring bins are smoothed, as the authors recommend; with 0 the
 * estimate keeps peaks of single bins, and fits noise as well. It takes up to seconds.
 *
 * Protocols other than the square wave are refused with `DPNOISE_STATUS_PARAMETER`, and so is an accumulator without a
 * report.
 *
 * @pre `shares` points to `k` items.
 */
dpnoise_status dpnoise_accumulator_estimate_density(dpnoise_accumulator accumulator,
                                                    uint32_t smoothing,
                                                    double *shares,
                                                    size_t k);

/**
 * Writes how many people have a value from `first[i]` to `last[i]`, both included, for each of `n` ranges: an unbiased
 * estimate that may be negative, and an upper bound on its standard error. That of a value v alone is the range from v
 * to v.
 *
 * Protocols that are not for ranges are refused with `DPNOISE_STATUS_PARAMETER`, and so is a range that does not have
 * 0 <= first <= last < k.
 *
 * @pre All four pointers point to `n` items.
 */
dpnoise_status dpnoise_accumulator_estimate_ranges(dpnoise_accumulator accumulator,
                                                   const int64_t *first,
                                                   const int64_t *last,
                                                   size_t n,
                                                   double *counts,
                                                   double *standard_errors);

/**
 * Writes, for each of `n` shares `q`, the smallest value that this share of all people do not exceed: an estimate; 0.5
 * is for the median.
 *
 * Protocols that are not for ranges are refused with `DPNOISE_STATUS_PARAMETER`, and so is a share that is not from 0
 * to 1.
 *
 * @pre Both pointers point to `n` items.
 */
dpnoise_status dpnoise_accumulator_estimate_quantiles(dpnoise_accumulator accumulator,
                                                      const double *q,
                                                      size_t n,
                                                      int64_t *values);

/**
 * Writes how many people have each of `n` texts: an estimate that is unbiased over reports and hash functions and may be
 * negative, and its standard error. Texts are given as to `dpnoise_perturb_texts`, in UTF-8.
 *
 * Protocols that are not sketches are refused with `DPNOISE_STATUS_PARAMETER`.
 *
 * @pre `texts` points to as many bytes as the last offset says, `offsets` to n + 1 items, and the others to `n` items.
 */
dpnoise_status dpnoise_accumulator_estimate_candidates(dpnoise_accumulator accumulator,
                                                       const uint8_t *texts,
                                                       const int64_t *offsets,
                                                       size_t n,
                                                       double *counts,
                                                       double *standard_errors);

/**
 * Writes frequent values, the most frequent first, how many people have each, and the standard errors of these counts.
 *
 * A value is found, and a prefix of values is extended, if its count is significantly above zero: at the confidence
 * `level`, which is between 0 and 1, all prefixes of a length together. `found` gets the number of values that were
 * found, of which the first `capacity` are written: if there were more, call again with more memory. `complete` gets 1,
 * or 0 if more prefixes were significant than can be extended: at most 2^20 of a length are tried, which takes seconds.
 *
 * Protocols other than prefix extension are refused with `DPNOISE_STATUS_PARAMETER`.
 *
 * @pre `values`, `counts` and `standard_errors` point to `capacity` items, and the others to one.
 */
dpnoise_status dpnoise_accumulator_estimate_prefixes(dpnoise_accumulator accumulator,
                                                     double level,
                                                     int64_t *values,
                                                     double *counts,
                                                     double *standard_errors,
                                                     size_t capacity,
                                                     size_t *found,
                                                     uint32_t *complete);

/**
 * Makes a sampler of discrete Laplace noise: P(x) is proportional to exp(-|x| / scale) for all integers x. `scale` is
 * from 2^-40 to 2^40, and exact: it is the rational number that the double is. Making it takes ten microseconds: keep
 * it.
 *
 * @pre `out` points to a handle.
 */
dpnoise_status dpnoise_discrete_laplace_sampler(double scale, dpnoise_sampler *out);

/**
 * Makes a sampler of discrete Gaussian noise: P(x) is proportional to exp(-x^2 / (2 sigma^2)) for all integers x.
 * `sigma` is from 2^-20 to 2^40, and exact.
 *
 * @pre `out` points to a handle.
 */
dpnoise_status dpnoise_discrete_gaussian_sampler(double sigma, dpnoise_sampler *out);

/**
 * Makes a sampler of the distribution of `sampler` under the condition that x is at most `radius` in magnitude, which is
 * at least 1 and the scale, or for noise from tables the median magnitude, and at most 2^62.
 *
 * @pre `out` points to a handle.
 */
dpnoise_status dpnoise_truncated_sampler(dpnoise_sampler sampler,
                                         uint64_t radius,
                                         dpnoise_sampler *out);

/**
 * Makes a sampler of Skellam noise, the difference of two Poisson variables of mean `mu`, which is from 2^-40 to 90,000, and
 * exact. Making it takes 2 to 400 milliseconds.
 *
 * @pre `out` points to a handle.
 */
dpnoise_status dpnoise_skellam_sampler(double mu,
                                       dpnoise_sampler *out);

/**
 * Makes a sampler of what one of `parties` parties adds, 1 to 2^32, so that the sum of all is exactly discrete Laplace noise
 * of this scale, from 2^-40 to 88. Making it takes 2 to 400 milliseconds.
 *
 * @pre `out` points to a handle.
 */
dpnoise_status dpnoise_negative_binomial_share_sampler(double scale,
                                                       uint64_t parties,
                                                       dpnoise_sampler *out);

/**
 * Makes a sampler of staircase noise: P(x) is the same for all |x| < `inner`, falls by exp(-epsilon) from there on, and again
 * after each further `width` integers. `width` is from 1 to 3969 epsilon / (44 + epsilon), and `inner` from 1 to `width`.
 *
 * @pre `out` points to a handle.
 */
dpnoise_status dpnoise_staircase_sampler(double epsilon,
                                         uint64_t width,
                                         uint64_t inner,
                                         dpnoise_sampler *out);

/**
 * Fills `out` with `n` independent samples. The work is shared by up to `threads` threads, at least 1. `generator` is
 * 0, or one that takes the place of the system's; then the calling thread does all the work.
 *
 * Time and addresses do not depend on the samples. If the call fails, `out` is as it was, or zero.
 *
 * @pre `out` points to `n` items.
 */
dpnoise_status dpnoise_sampler_fill(dpnoise_sampler sampler,
                                    uint32_t threads,
                                    dpnoise_generator generator,
                                    int64_t *out,
                                    size_t n);

/**
 * Makes the Laplace mechanism for real values: it spends `epsilon` on values whose L1 sensitivity is at most
 * `sensitivity`. Values are rounded to a grid first, so the guarantee holds for floating-point numbers, too.
 * `granularity` is a power of two, or 0 for the one that suits.
 *
 * @pre `out` points to a handle.
 */
dpnoise_status dpnoise_laplace_mechanism(double epsilon,
                                         double sensitivity,
                                         double granularity,
                                         dpnoise_mechanism *out);

/**
 * Makes the Gaussian mechanism for real values: it spends `epsilon` and `delta` on values whose L2 sensitivity is at
 * most `sensitivity`, with the smallest noise that suffices. `granularity` is as for `dpnoise_laplace_mechanism`.
 *
 * @pre `out` points to a handle.
 */
dpnoise_status dpnoise_gaussian_mechanism(double epsilon,
                                          double delta,
                                          double sensitivity,
                                          double granularity,
                                          dpnoise_mechanism *out);

/**
 * Makes the discrete Laplace mechanism for integers: it spends `epsilon` on values whose L1 sensitivity is at most
 * `sensitivity`.
 *
 * @pre `out` points to a handle.
 */
dpnoise_status dpnoise_discrete_laplace_mechanism(double epsilon, uint64_t sensitivity, dpnoise_mechanism *out);

/**
 * Makes the discrete Gaussian mechanism for integers: it spends `epsilon` and `delta` on values whose L2 sensitivity
 * is at most `sensitivity`.
 *
 * @pre `out` points to a handle.
 */
dpnoise_status dpnoise_discrete_gaussian_mechanism(double epsilon,
                                                   double delta,
                                                   double sensitivity,
                                                   dpnoise_mechanism *out);

/**
 * Makes the discrete Laplace mechanism whose noise has the smallest bound that suffices for `epsilon` and `delta`, on
 * integers whose L1 sensitivity is at most `sensitivity`. `dpnoise_mechanism_radius` tells the bound.
 *
 * @pre `out` points to a handle.
 */
dpnoise_status dpnoise_truncated_discrete_laplace_mechanism(double epsilon,
                                                            double delta,
                                                            uint64_t sensitivity,
                                                            dpnoise_mechanism *out);

/**
 * Makes the discrete Gaussian mechanism with bounded noise: it spends `epsilon` and `delta` on integers whose L2
 * sensitivity is at most `sensitivity`. `dpnoise_mechanism_radius` tells the bound.
 *
 * @pre `out` points to a handle.
 */
dpnoise_status dpnoise_truncated_discrete_gaussian_mechanism(double epsilon,
                                                             double delta,
                                                             double sensitivity,
                                                             dpnoise_mechanism *out);

/**
 * Makes the staircase mechanism: it spends `epsilon` on one integer that changes by at most `sensitivity`, with the least mean
 * error, or for a sensitivity of 1 on integers of which one does.
 *
 * @pre `out` points to a handle.
 */
dpnoise_status dpnoise_staircase_mechanism(double epsilon,
                                           uint64_t sensitivity,
                                           dpnoise_mechanism *out);

/**
 * Makes the Skellam mechanism, of which the releases of `parties` parties, 1 to 2^32, added up modulo 2^64, spend `epsilon` and
 * `delta` on one integer that changes by at most `sensitivity`, 1 to 4096, or for a sensitivity of 1 on integers of which one
 * does. Parties that collude or drop out leave less noise: give the number of the others.
 *
 * @pre `out` points to a handle.
 */
dpnoise_status dpnoise_skellam_mechanism(double epsilon,
                                         double delta,
                                         uint64_t sensitivity,
                                         uint64_t parties,
                                         dpnoise_mechanism *out);

/**
 * Makes the mechanism of which the releases of `parties` parties, 1 to 2^32, added up modulo 2^64, have the noise of
 * `dpnoise_discrete_laplace_mechanism`. `sensitivity` / `epsilon` is at most 88. Parties that collude or drop out leave less
 * noise: give the number of the others.
 *
 * @pre `out` points to a handle.
 */
dpnoise_status dpnoise_negative_binomial_shares_mechanism(double epsilon,
                                                          uint64_t sensitivity,
                                                          uint64_t parties,
                                                          dpnoise_mechanism *out);

/**
 * Replaces each of `n` real values by its release: all of them together are one release, whose sensitivity is that of
 * the mechanism. The work is shared by up to `threads` threads, at least 1. `generator` is as for
 * `dpnoise_sampler_fill`.
 *
 * Time and addresses do not depend on the values. Values that are not finite are refused with `DPNOISE_STATUS_DATA`.
 * If the call fails, `values` has zeros, so that a caller who forgets to look at the status does not publish them as
 * they were; only if the pointer itself is refused, with `DPNOISE_STATUS_MEMORY`, nothing is written.
 *
 * @pre `values` points to `n` items.
 */
dpnoise_status dpnoise_mechanism_release_numbers(dpnoise_mechanism mechanism,
                                                 double *values,
                                                 size_t n,
                                                 uint32_t threads,
                                                 dpnoise_generator generator);

/**
 * Replaces each of `n` integers by its release, as `dpnoise_mechanism_release_numbers` does. Sums outside the range of
 * 64 bits saturate, or wrap around for noise that several parties add.
 *
 * @pre `values` points to `n` items.
 */
dpnoise_status dpnoise_mechanism_release_integers(dpnoise_mechanism mechanism,
                                                  int64_t *values,
                                                  size_t n,
                                                  uint32_t threads,
                                                  dpnoise_generator generator);

/**
 * Writes a bound on the error of each of `n` values that are released together: the smallest one that a given value's
 * error exceeds with a probability of at most 1 - `level`. That all errors are within it at once is less probable.
 *
 * @pre `error` points to a double.
 */
dpnoise_status dpnoise_mechanism_error(dpnoise_mechanism mechanism, double level, size_t n, double *error);

/**
 * Writes the largest magnitude of the noise of `n` values that are released together, for a mechanism with bounded noise.
 *
 * @pre `radius` points to an integer.
 */
dpnoise_status dpnoise_mechanism_radius(dpnoise_mechanism mechanism,
                                        size_t n,
                                        uint64_t *radius);

/**
 * Reads a specification: the bytes as they came, which must never be written again in another form; or a document with
 * one, in any form of JSON: `{"dpnoise.domain":["red","green"],"dpnoise.protocol":"..."}`, whose labels must be those of
 * the specification. `out` is the handle of the protocol, worth keeping for many reports.
 *
 * A specification that is damaged, contradicts itself or has other probabilities than its epsilon gives is refused
 * with `DPNOISE_STATUS_STATE`. Whoever announces a specification chooses its epsilon and delta: an application compares
 * `dpnoise_protocol_epsilon` and `dpnoise_protocol_delta` with what it promises to people, or knows the specification
 * in advance.
 *
 * A short specification may ask for much memory. One whose counters, in a collector, have more than `limit` bytes is
 * refused with `DPNOISE_STATUS_PARAMETER`, before any of it is allocated; `DPNOISE_COUNTER_LIMIT` suits what comes from
 * others.
 *
 * @pre `specification` points to `length` bytes, and `out` to a handle.
 */
dpnoise_status dpnoise_protocol_from_json(const uint8_t *specification,
                                          size_t length,
                                          size_t limit,
                                          dpnoise_protocol *out);

/**
 * Makes the handle of the same randomiser for another collection: with this question and this period, each of them UTF-8
 * in Unicode's normal form NFC, which is not checked here. One of length 0 stays as it is. So a device that has its
 * specification built in writes the period from its own clock. A memo that `protocol` has is not used.
 *
 * A question of more than 255 bytes or a period of more than 63, one with a space at either end or characters that are
 * not seen, is refused with `DPNOISE_STATUS_PARAMETER`.
 *
 * @pre `question` and `period` point to so many bytes, and `out` to a handle.
 */
dpnoise_status dpnoise_protocol_about(dpnoise_protocol protocol,
                                      const uint8_t *question,
                                      size_t question_length,
                                      const uint8_t *period,
                                      size_t period_length,
                                      dpnoise_protocol *out);

/**
 * Writes the specification of a protocol to `out`, and the number of its bytes to `length`, also if they do not fit:
 * `DPNOISE_STATUS_MEMORY`.
 *
 * @pre `out` points to `capacity` bytes, and `length` to a number.
 */
dpnoise_status dpnoise_protocol_to_json(dpnoise_protocol protocol, uint8_t *out, size_t capacity, size_t *length);

/**
 * Writes the SHA-256 of the specification without labels, question and period: of how reports are made. Who answers a
 * question with another randomiser spends epsilon again.
 *
 * @pre `out` points to `capacity` bytes.
 */
dpnoise_status dpnoise_protocol_bare_digest(dpnoise_protocol protocol, uint8_t *out, size_t capacity);

/**
 * Makes the handle of a protocol with the memo of the people who answer, for protocols in which people keep one. `out`
 * then stands for this question alone: the same words, in UTF-8, must be given each time it is asked, and other words
 * for another question. Give them in Unicode's normal form NFC, which is not checked here: two spellings of a text are
 * two questions. If the specification names a question, it must be this one.
 *
 * The memo keeps in mind that its people answer the question with this randomiser, and another one, which would cost
 * epsilon again, is refused with `DPNOISE_STATUS_STATE`; labels and period may change. So store the memo's bytes after
 * this call and before reports are sent.
 *
 * A memo that `protocol` has already is not used. `protocol` and `memo` may be freed before `out`; the secrets are wiped
 * when both the memo and all protocols made with it are freed.
 *
 * @pre `question` points to `length` bytes, and `out` to a handle.
 */
dpnoise_status dpnoise_protocol_with_memo(dpnoise_protocol protocol,
                                          dpnoise_memo memo,
                                          const uint8_t *question,
                                          size_t length,
                                          dpnoise_protocol *out);

/**
 * Writes facts about a protocol. Each pointer may be null, and nothing is written there then.
 *
 * - `takes`: what values are: `DPNOISE_INTEGERS`, `DPNOISE_NUMBERS` or `DPNOISE_TEXTS`; or `DPNOISE_ATTRIBUTES`.
 * - `keeps_memo`: 1 if people keep a memo, 0 if not.
 * - `k`: the number of values; for sketches that of columns, for RAPPOR that of bits, and for several attributes theirs.
 * - `report_bytes`: the bytes of a report. A message has `DPNOISE_HEADER_BYTES` more.
 * - `counter_bytes`: the bytes of a collector's counters.
 *
 * @pre Each pointer that is not null points to one item.
 */
dpnoise_status dpnoise_protocol_facts(dpnoise_protocol protocol,
                                      uint32_t *takes,
                                      uint32_t *keeps_memo,
                                      uint32_t *k,
                                      size_t *report_bytes,
                                      size_t *counter_bytes);

/**
 * Writes the epsilon of a report, rounded up; of all reports on one value together where people keep a memo. This
 * takes up to a millisecond.
 *
 * @pre `epsilon` points to a double.
 */
dpnoise_status dpnoise_protocol_epsilon(dpnoise_protocol protocol, double *epsilon);

/**
 * Writes the delta of a report: 0, unless the guarantee is (epsilon, delta)-differential privacy, as for `gaussian_mean`.
 *
 * @pre `delta` points to a double.
 */
dpnoise_status dpnoise_protocol_delta(dpnoise_protocol protocol,
                                      double *delta);

/**
 * Writes the `DPNOISE_HEADER_BYTES` bytes of a message before its report. The last 8 of them are the id of the
 * specification.
 *
 * @pre `out` points to `capacity` bytes.
 */
dpnoise_status dpnoise_protocol_header(dpnoise_protocol protocol, uint8_t *out, size_t capacity);

/**
 * Randomises the integers of `n` people: a row for each of them in `out`, the first one first.
 *
 * `form` is `DPNOISE_REPORTS`, and a row is a report, or `DPNOISE_MESSAGES`, and a row is a message. The work is
 * shared by up to `threads` threads, at least 1. `generator` is 0, or one that takes the place of the system's; then
 * the calling thread does all the work.
 *
 * Time and addresses do not depend on the values. If the call fails there is no report in `out`: it is as it was, or
 * zero.
 *
 * `out` must not overlap the values.
 *
 * @pre `values` points to `n` items, and `out` to `length` bytes.
 */
dpnoise_status dpnoise_perturb_integers(dpnoise_protocol protocol,
                                        const int64_t *values,
                                        size_t n,
                                        uint32_t form,
                                        uint32_t threads,
                                        dpnoise_generator generator,
                                        uint8_t *out,
                                        size_t length);

/**
 * Randomises the numbers of `n` people, as `dpnoise_perturb_integers` does. Where a document has bounds, numbers are clamped
 * to them; where only its specification was read, which has a digest of them, `DPNOISE_STATUS_STATE`.
 *
 * @pre `values` points to `n` items, and `out` to `length` bytes.
 */
dpnoise_status dpnoise_perturb_numbers(dpnoise_protocol protocol,
                                       const double *values,
                                       size_t n,
                                       uint32_t form,
                                       uint32_t threads,
                                       dpnoise_generator generator,
                                       uint8_t *out,
                                       size_t length);

/**
 * Randomises the texts of `n` people, as `dpnoise_perturb_integers` does. Text i is the bytes of `texts` from
 * `offsets[i]` to `offsets[i + 1]`, as in an Arrow array: there are n + 1 offsets, the first is 0, and none is smaller
 * than the one before.
 *
 * The time depends on the lengths of the texts in steps of 64 bytes, and on nothing else of them. That they are UTF-8
 * is not checked, since that takes a time that depends on the text.
 *
 * @pre `texts` points to as many bytes as the last offset says, `offsets` to n + 1 items, and `out` to `length` bytes.
 */
dpnoise_status dpnoise_perturb_texts(dpnoise_protocol protocol,
                                     const uint8_t *texts,
                                     const int64_t *offsets,
                                     size_t n,
                                     uint32_t form,
                                     uint32_t threads,
                                     dpnoise_generator generator,
                                     uint8_t *out,
                                     size_t length);

/**
 * Draws the secrets of `n` people, from which everything is derived that stays the same in their reports. A device
 * makes one for itself, once, and stores its bytes.
 *
 * @pre `out` points to a handle.
 */
dpnoise_status dpnoise_memo_new(uint64_t n, dpnoise_memo *out);

/**
 * Reads the bytes of a memo, as `dpnoise_memo_to_bytes` wrote them. Bytes that are damaged are refused with
 * `DPNOISE_STATUS_STATE`: a device that then makes a new memo answers anew, which costs its epsilon again.
 *
 * @pre `bytes` points to `length` bytes, and `out` to a handle.
 */
dpnoise_status dpnoise_memo_from_bytes(const uint8_t *bytes, size_t length, dpnoise_memo *out);

/**
 * Writes the bytes of a memo to `out`, and their number to `length`, also if they do not fit: `DPNOISE_STATUS_MEMORY`.
 * Whoever has them has the secrets: store them as the platform stores secrets, and wipe `out`.
 *
 * @pre `out` points to `capacity` bytes, and `length` to a number.
 */
dpnoise_status dpnoise_memo_to_bytes(dpnoise_memo memo, uint8_t *out, size_t capacity, size_t *length);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DPNOISE_H */
