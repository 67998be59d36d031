/// The C++17 interface of dpnoise: the functions of dpnoise.h with handles that free themselves, and exceptions.
///
/// Private values are read where they lie, and copies of them are wiped. No message of an exception shows one.

#ifndef DPNOISE_HPP
#define DPNOISE_HPP

#include "dpnoise.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace dpnoise {

/// Why a call failed: what `dpnoise_status` means in dpnoise.h.
enum class Status : std::int32_t {
    parameter = DPNOISE_STATUS_PARAMETER,
    data = DPNOISE_STATUS_DATA,
    state = DPNOISE_STATUS_STATE,
    randomness = DPNOISE_STATUS_RANDOMNESS,
    handle = DPNOISE_STATUS_HANDLE,
    memory = DPNOISE_STATUS_MEMORY,
    internal = DPNOISE_STATUS_INTERNAL,
    allocation = DPNOISE_STATUS_ALLOCATION,
};

/// What every function of this interface throws, besides std::bad_alloc. The message has no private data.
class Error : public std::runtime_error {
public:
    Error(Status status, const char* message) : std::runtime_error(message), status_(status) {}

    [[nodiscard]] Status status() const noexcept { return status_; }

private:
    Status status_;
};

/// Overwrites memory, which no compiler leaves out.
inline void wipe(void* memory, std::size_t length) noexcept {
    auto* bytes = static_cast<volatile unsigned char*>(memory);
    while (length-- > 0) {
        *bytes++ = 0;
    }
}

/// Wipes memory before it gives it back.
template <class T>
struct WipingAllocator : std::allocator<T> {
    using value_type = T;
    template <class U>
    struct rebind {
        using other = WipingAllocator<U>;
    };

    WipingAllocator() = default;
    template <class U>
    WipingAllocator(const WipingAllocator<U>&) noexcept {}

    void deallocate(T* memory, std::size_t n) {
        wipe(memory, n * sizeof(T));
        std::allocator<T>::deallocate(memory, n);
    }
};

using Bytes = std::vector<std::uint8_t>;
/// Bytes that are wiped when they go.
using SecretBytes = std::vector<std::uint8_t, WipingAllocator<std::uint8_t>>;

/// Items in a row that belong to somebody else: of a std::vector, std::array or std::string_view.
template <class T>
class View {
public:
    constexpr View(const T* data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <class Items,
              class = std::enable_if_t<std::is_convertible_v<decltype(std::declval<const Items&>().data()), const T*>>>
    constexpr View(const Items& items) noexcept : data_(items.data()), size_(items.size()) {}

    [[nodiscard]] const T* data() const noexcept { return data_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] const T* begin() const noexcept { return data_; }
    [[nodiscard]] const T* end() const noexcept { return data_ + size_; }

private:
    const T* data_;
    std::size_t size_;
};

namespace detail {

inline void check(dpnoise_status status) {
    if (status != DPNOISE_STATUS_OK) {
        throw Error(static_cast<Status>(status), dpnoise_error_message());
    }
}

/// A handle that is freed when it goes. It can be moved, not copied; what was moved from is refused by every call.
class Handle {
public:
    explicit Handle(std::uint64_t number) noexcept : number_(number) {}
    Handle(Handle&& other) noexcept : number_(std::exchange(other.number_, 0)) {}
    Handle& operator=(Handle&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle() { (void)dpnoise_free(number_); }

    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

private:
    std::uint64_t number_;
};

/// Calls a function that writes a handle after its other arguments.
template <class Function, class... Arguments>
Handle make(Function function, Arguments... arguments) {
    std::uint64_t number = 0;
    check(function(arguments..., &number));
    return Handle(number);
}

inline const std::uint8_t* bytes(std::string_view text) noexcept {
    return reinterpret_cast<const std::uint8_t*>(text.data());
}

/// Calls a function that writes bytes: once for their number, and once for them.
template <class Written, class Function>
Written written(Function function, const Handle& handle) {
    std::size_t length = 0;
    const dpnoise_status asked = function(handle.number(), nullptr, 0, &length);
    if (asked != DPNOISE_STATUS_MEMORY) {
        check(asked);
    }
    Written out;
    out.resize(length);
    check(function(handle.number(), reinterpret_cast<std::uint8_t*>(out.data()), out.size(), &length));
    return out;
}

/// Byte strings in the form of an Arrow array.
struct Joined {
    SecretBytes bytes;
    std::vector<std::int64_t> offsets;

    template <class Item>
    explicit Joined(View<Item> items) : offsets{0} {
        std::size_t length = 0;
        for (const Item& item : items) {
            length += item.size();
        }
        bytes.reserve(length);
        offsets.reserve(items.size() + 1);
        for (const Item& item : items) {
            bytes.insert(bytes.end(), item.begin(), item.end());
            offsets.push_back(static_cast<std::int64_t>(bytes.size()));
        }
    }
};

/// A copy of a value on the stack, which is wiped.
template <class T>
struct Copy {
    T value;

    explicit Copy(T given) noexcept : value(given) {}
    Copy(const Copy&) = delete;
    Copy& operator=(const Copy&) = delete;
    ~Copy() { wipe(&value, sizeof value); }
};

}  // namespace detail

/// Random bytes of the caller, for tests and for hardware tokens, in place of the operating system's.
class Generator {
public:
    /// Fills `length` bytes, or throws if it cannot. It is called by one thread at a time.
    using Fill = std::function<void(std::uint8_t* out, std::size_t length)>;

    explicit Generator(Fill fill)
        : fill_(std::make_unique<Fill>(std::move(fill))),
          handle_(detail::make(dpnoise_generator_new, call, fill_.get())) {}

    [[nodiscard]] dpnoise_generator handle() const noexcept { return handle_.number(); }

private:
    static std::int32_t call(void* context, std::uint8_t* out, std::size_t length) noexcept {
        try {
            (*static_cast<Fill*>(context))(out, length);
            return 0;
        } catch (...) {  // must not unwind through the library
            return 1;
        }
    }

    std::unique_ptr<Fill> fill_;
    detail::Handle handle_;
};

/// How a call does its work.
struct Options {
    /// Up to so many threads share the work, at least 1.
    std::uint32_t threads = 1;
    /// The operating system's generator if there is none.
    const Generator* generator = nullptr;

    [[nodiscard]] dpnoise_generator handle() const noexcept { return generator == nullptr ? 0 : generator->handle(); }
};

/// The secrets of some people, from which everything is derived that stays the same in their reports.
class Memo {
public:
    /// Draws the secrets of `n` people. A device makes one for itself, once, and stores its bytes.
    static Memo create(std::uint64_t n = 1) { return Memo(detail::make(dpnoise_memo_new, n)); }

    /// Reads the bytes of a memo. Those that are damaged are refused with `Status::state`: a device that then makes a
    /// new memo answers anew, which costs its epsilon again.
    static Memo from_bytes(View<std::uint8_t> bytes) {
        return Memo(detail::make(dpnoise_memo_from_bytes, bytes.data(), bytes.size()));
    }

    /// Whoever has these bytes has the secrets: store them as the platform stores secrets.
    [[nodiscard]] SecretBytes to_bytes() const {
        return detail::written<SecretBytes>(dpnoise_memo_to_bytes, handle_);
    }

    [[nodiscard]] dpnoise_memo handle() const noexcept { return handle_.number(); }

private:
    explicit Memo(detail::Handle handle) noexcept : handle_(std::move(handle)) {}

    detail::Handle handle_;
};

/// What values of a protocol are.
enum class Kind : std::uint32_t {
    integers = DPNOISE_INTEGERS,
    numbers = DPNOISE_NUMBERS,
    texts = DPNOISE_TEXTS,
    attributes = DPNOISE_ATTRIBUTES,
};

/// What is made of values.
enum class Form : std::uint32_t {
    /// Bare reports.
    reports = DPNOISE_REPORTS,
    /// A header and a report each.
    messages = DPNOISE_MESSAGES,
};

/// A local protocol, with or without the memo of the people who answer.
class Protocol {
public:
    /// Reads a specification, the bytes as they came, or a document with one and its labels. Its epsilon is the choice of
    /// whoever announced it: compare `epsilon` with what the application promises to people. A short specification may
    /// ask for much memory: one whose counters have more than `limit` bytes is refused.
    static Protocol from_json(std::string_view specification, std::size_t limit = DPNOISE_COUNTER_LIMIT) {
        return Protocol(
            detail::make(dpnoise_protocol_from_json, detail::bytes(specification), specification.size(), limit));
    }

    /// The same randomiser for another collection: with this question and this period, in UTF-8 and Unicode's normal form
    /// NFC, which is not checked. An empty text leaves that of this protocol. A memo that this has is not used.
    [[nodiscard]] Protocol about(std::string_view question, std::string_view period) const {
        return Protocol(detail::make(dpnoise_protocol_about, handle(), detail::bytes(question), question.size(),
                                     detail::bytes(period), period.size()));
    }

    /// The protocol of one question to the people with this memo. The same words must be given each time it is asked,
    /// in UTF-8 and Unicode's normal form NFC, which is not checked; if the specification names a question, it is this
    /// one. The memo keeps in mind how they answer, and refuses another randomiser with `Status::state`: store its bytes
    /// after this call, before reports are sent.
    [[nodiscard]] Protocol with_memo(const Memo& memo, std::string_view question) const {
        return Protocol(detail::make(
            dpnoise_protocol_with_memo, handle(), memo.handle(), detail::bytes(question), question.size()));
    }

    /// What values are.
    [[nodiscard]] Kind takes() const noexcept { return static_cast<Kind>(takes_); }
    /// Whether people keep a memo.
    [[nodiscard]] bool keeps_memo() const noexcept { return keeps_memo_ != 0; }
    /// The number of values; for sketches that of columns, for RAPPOR that of bits.
    [[nodiscard]] std::uint32_t k() const noexcept { return k_; }
    [[nodiscard]] std::size_t report_bytes() const noexcept { return report_bytes_; }
    /// The bytes of a collector's counters.
    [[nodiscard]] std::size_t counter_bytes() const noexcept { return counter_bytes_; }
    /// The bytes of a row of this form.
    [[nodiscard]] std::size_t row_bytes(Form form) const noexcept {
        return report_bytes_ + (form == Form::messages ? DPNOISE_HEADER_BYTES : 0);
    }

    /// The epsilon of a report, rounded up; of all reports on one value together where people keep a memo.
    [[nodiscard]] double epsilon() const {
        double epsilon = 0;
        detail::check(dpnoise_protocol_epsilon(handle(), &epsilon));
        return epsilon;
    }

    /// The delta of a report, beside epsilon: 0 for most protocols.
    [[nodiscard]] double delta() const {
        double delta = 0;
        detail::check(dpnoise_protocol_delta(handle(), &delta));
        return delta;
    }

    /// The specification.
    [[nodiscard]] std::string to_json() const {
        return detail::written<std::string>(dpnoise_protocol_to_json, handle_);
    }

    /// The SHA-256 of the specification without labels, question and period: of how reports are made.
    [[nodiscard]] std::array<std::uint8_t, DPNOISE_DIGEST_BYTES> bare_digest() const {
        std::array<std::uint8_t, DPNOISE_DIGEST_BYTES> digest{};
        detail::check(dpnoise_protocol_bare_digest(handle(), digest.data(), digest.size()));
        return digest;
    }

    /// What stands before the report in a message.
    [[nodiscard]] std::array<std::uint8_t, DPNOISE_HEADER_BYTES> header() const {
        std::array<std::uint8_t, DPNOISE_HEADER_BYTES> header{};
        detail::check(dpnoise_protocol_header(handle(), header.data(), header.size()));
        return header;
    }

    /// Randomises the values of people: a row for each of them, the first one first, one after the other.
    [[nodiscard]] Bytes perturb(View<std::int64_t> values, Form form, const Options& options = {}) const {
        return rows(dpnoise_perturb_integers, values.size(), form, options, values.data());
    }
    [[nodiscard]] Bytes perturb(View<double> values, Form form, const Options& options = {}) const {
        return rows(dpnoise_perturb_numbers, values.size(), form, options, values.data());
    }
    [[nodiscard]] Bytes perturb(View<std::string_view> texts, Form form, const Options& options = {}) const {
        const detail::Joined joined(texts);
        return rows(dpnoise_perturb_texts, texts.size(), form, options, joined.bytes.data(), joined.offsets.data());
    }

    /// The message of one person: `value` is an integer, a floating-point number or a text in UTF-8.
    template <class Value>
    [[nodiscard]] Bytes message(const Value& value, const Options& options = {}) const {
        return one(value, Form::messages, options);
    }
    /// The report of one person.
    template <class Value>
    [[nodiscard]] Bytes report(const Value& value, const Options& options = {}) const {
        return one(value, Form::reports, options);
    }

    [[nodiscard]] dpnoise_protocol handle() const noexcept { return handle_.number(); }

private:
    explicit Protocol(detail::Handle given) : handle_(std::move(given)) {
        detail::check(dpnoise_protocol_facts(handle(), &takes_, &keeps_memo_, &k_, &report_bytes_, &counter_bytes_));
    }

    template <class Function, class... Values>
    Bytes rows(Function function, std::size_t n, Form form, const Options& options, Values... values) const {
        Bytes out(n * row_bytes(form));
        detail::check(function(handle(), values..., n, static_cast<std::uint32_t>(form), options.threads,
                               options.handle(), out.data(), out.size()));
        return out;
    }

    template <class Value>
    Bytes one(const Value& value, Form form, const Options& options) const {
        if constexpr (std::is_integral_v<Value>) {
            static_assert(sizeof(Value) < 8 || std::is_signed_v<Value>, "integers have 64 bits and a sign");
            const detail::Copy<std::int64_t> copy(value);
            return perturb(View<std::int64_t>(&copy.value, 1), form, options);
        } else if constexpr (std::is_floating_point_v<Value>) {
            const detail::Copy<double> copy(static_cast<double>(value));
            return perturb(View<double>(&copy.value, 1), form, options);
        } else {
            const std::string_view text(value);  // points to the text
            return perturb(View<std::string_view>(&text, 1), form, options);
        }
    }

    detail::Handle handle_;
    std::uint32_t takes_ = 0;
    std::uint32_t keeps_memo_ = 0;
    std::uint32_t k_ = 0;
    std::size_t report_bytes_ = 0;
    std::size_t counter_bytes_ = 0;
};

/// How many people have each value: unbiased, and possibly negative.
struct Estimate {
    std::vector<double> counts;
    std::vector<double> standard_errors;
};

/// A mean of people's numbers: unbiased, and possibly outside of [-1, 1].
struct MeanEstimate {
    double mean;
    double standard_error;
};

/// The values from `first` to `last`, both included.
struct Range {
    std::int64_t first;
    std::int64_t last;
};

/// Frequent values, the most frequent first, and how many people have each.
struct HeavyHitters {
    std::vector<std::int64_t> values;
    std::vector<double> counts;
    std::vector<double> standard_errors;
    /// Whether all significant prefixes were extended. If not, there were more of them than can be tried.
    bool complete;
};

/// The counters of a collector. Several threads may add to one.
class Accumulator {
public:
    explicit Accumulator(const Protocol& protocol)
        : handle_(detail::make(dpnoise_accumulator_new, protocol.handle())), k_(protocol.k()) {}

    /// Reads a state, as `to_bytes`, Python or the command line wrote it. Counters of more than `limit` bytes are refused.
    static Accumulator from_bytes(View<std::uint8_t> bytes, std::size_t limit = DPNOISE_COUNTER_LIMIT) {
        return Accumulator(detail::make(dpnoise_accumulator_from_bytes, bytes.data(), bytes.size(), limit));
    }
    [[nodiscard]] Bytes to_bytes() const { return detail::written<Bytes>(dpnoise_accumulator_to_bytes, handle_); }

    /// Adds messages, each by itself. One that is not a message of this protocol is counted as rejected.
    void add_messages(View<Bytes> messages, std::uint32_t threads = 1) {
        const detail::Joined joined(messages);
        detail::check(dpnoise_accumulator_add_messages(handle_.number(), joined.bytes.data(), joined.offsets.data(),
                                                       messages.size(), threads));
    }

    /// Adds bare reports, one after the other.
    void add_reports(View<std::uint8_t> reports, std::uint32_t threads = 1) {
        detail::check(dpnoise_accumulator_add_reports(handle_.number(), reports.data(), reports.size(), threads));
    }

    /// Adds the counts of another accumulator of the same protocol.
    void merge(const Accumulator& other) {
        detail::check(dpnoise_accumulator_merge(handle_.number(), other.handle_.number()));
    }

    /// The number of reports counted.
    [[nodiscard]] std::uint64_t n() const { return counts().first; }
    /// The number of those rejected.
    [[nodiscard]] std::uint64_t rejected() const { return counts().second; }

    /// The counters of one of several attributes, by its name in UTF-8, for the estimates below. They are those of this
    /// moment; reports cannot be added to them, and they have no bytes. Of reports that are about one attribute each,
    /// estimates are about all people who reported, of whom those who reported on the attribute are a random sample.
    [[nodiscard]] Accumulator attribute(std::string_view name) const {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(name.data());
        return Accumulator(detail::make(dpnoise_accumulator_attribute, handle_.number(), bytes, name.size()));
    }

    /// Estimates how many people have each value. Protocols whose reports are not counted by value are refused with
    /// `Status::parameter`: the functions below are for them, save RAPPOR, which Python decodes.
    [[nodiscard]] Estimate estimate() const {
        Estimate estimate{std::vector<double>(k_), std::vector<double>(k_)};
        detail::check(dpnoise_accumulator_estimate(
            handle_.number(), estimate.counts.data(), estimate.standard_errors.data(), k_));
        return estimate;
    }

    /// Estimates the mean of people's numbers. Protocols that are not for means are refused with `Status::parameter`,
    /// and so is an accumulator without a report.
    [[nodiscard]] MeanEstimate estimate_mean() const {
        MeanEstimate estimate{};
        detail::check(dpnoise_accumulator_estimate_mean(handle_.number(), &estimate.mean, &estimate.standard_error));
        return estimate;
    }

    /// Estimates how people's numbers in [0, 1] are distributed: the shares of k bins. Without smoothing of neighbouring
    /// bins the estimate keeps peaks of single bins, and fits noise as well.
    [[nodiscard]] std::vector<double> estimate_density(bool smoothing = true) const {
        std::vector<double> shares(k_);
        detail::check(
            dpnoise_accumulator_estimate_density(handle_.number(), smoothing ? 1 : 0, shares.data(), shares.size()));
        return shares;
    }

    /// Estimates how many people have a value in each of these ranges; that of a value v alone is {v, v}.
    [[nodiscard]] Estimate estimate_ranges(View<Range> ranges) const {
        std::vector<std::int64_t> first, last;
        for (const Range& range : ranges) {
            first.push_back(range.first);
            last.push_back(range.last);
        }
        Estimate estimate{std::vector<double>(ranges.size()), std::vector<double>(ranges.size())};
        detail::check(dpnoise_accumulator_estimate_ranges(handle_.number(), first.data(), last.data(), ranges.size(),
                                                          estimate.counts.data(), estimate.standard_errors.data()));
        return estimate;
    }

    /// Estimates the smallest values that these shares of all people do not exceed; 0.5 is for the median.
    [[nodiscard]] std::vector<std::int64_t> estimate_quantiles(View<double> q) const {
        std::vector<std::int64_t> values(q.size());
        detail::check(dpnoise_accumulator_estimate_quantiles(handle_.number(), q.data(), q.size(), values.data()));
        return values;
    }

    /// Estimates how many people have each of these texts, from the reports of a sketch.
    [[nodiscard]] Estimate estimate_candidates(View<std::string_view> texts) const {
        const detail::Joined joined(texts);
        Estimate estimate{std::vector<double>(texts.size()), std::vector<double>(texts.size())};
        detail::check(dpnoise_accumulator_estimate_candidates(handle_.number(), joined.bytes.data(),
                                                              joined.offsets.data(), texts.size(),
                                                              estimate.counts.data(), estimate.standard_errors.data()));
        return estimate;
    }

    /// Finds frequent values, at this confidence level, from the reports of prefix extension.
    [[nodiscard]] HeavyHitters estimate_prefixes(double level = 0.95) const {
        std::uint32_t complete = 0;
        for (std::size_t capacity = 256, found = 0;; capacity = found) {
            HeavyHitters hitters{std::vector<std::int64_t>(capacity), std::vector<double>(capacity),
                                 std::vector<double>(capacity), true};
            detail::check(dpnoise_accumulator_estimate_prefixes(handle_.number(), level, hitters.values.data(),
                                                                hitters.counts.data(), hitters.standard_errors.data(),
                                                                capacity, &found, &complete));
            if (found <= capacity) {
                hitters.values.resize(found);
                hitters.counts.resize(found);
                hitters.standard_errors.resize(found);
                hitters.complete = complete == 1;
                return hitters;
            }
        }
    }

private:
    explicit Accumulator(detail::Handle handle) : handle_(std::move(handle)) {
        const detail::Handle protocol = detail::make(dpnoise_accumulator_protocol, handle_.number());
        detail::check(dpnoise_protocol_facts(protocol.number(), nullptr, nullptr, &k_, nullptr, nullptr));
    }

    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> counts() const {
        std::pair<std::uint64_t, std::uint64_t> counts;
        detail::check(dpnoise_accumulator_counts(handle_.number(), &counts.first, &counts.second));
        return counts;
    }

    detail::Handle handle_;
    std::uint32_t k_ = 0;
};

/// A sampler of noise on the integers. Worth keeping: making one takes microseconds.
class Sampler {
public:
    /// P(x) is proportional to exp(-|x| / scale).
    static Sampler discrete_laplace(double scale) {
        return Sampler(detail::make(dpnoise_discrete_laplace_sampler, scale));
    }
    /// P(x) is proportional to exp(-x^2 / (2 sigma^2)).
    static Sampler discrete_gaussian(double sigma) {
        return Sampler(detail::make(dpnoise_discrete_gaussian_sampler, sigma));
    }

    /// The difference of two Poisson variables of mean `mu`.
    static Sampler skellam(double mu) { return Sampler(detail::make(dpnoise_skellam_sampler, mu)); }
    /// What each of `parties` adds for a sum that is exactly discrete Laplace noise.
    static Sampler negative_binomial_share(double scale, std::uint64_t parties) {
        return Sampler(detail::make(dpnoise_negative_binomial_share_sampler, scale, parties));
    }
    /// P(x) falls by exp(-epsilon) at |x| = `inner`, and again after each further `width` integers.
    static Sampler staircase(double epsilon, std::uint64_t width, std::uint64_t inner) {
        return Sampler(detail::make(dpnoise_staircase_sampler, epsilon, width, inner));
    }

    /// The same distribution under the condition that x is at most `radius` in magnitude.
    [[nodiscard]] Sampler truncated(std::uint64_t radius) const {
        return Sampler(detail::make(dpnoise_truncated_sampler, handle_.number(), radius));
    }

    /// Fills `n` items with independent samples.
    void fill(std::int64_t* out, std::size_t n, const Options& options = {}) const {
        detail::check(dpnoise_sampler_fill(handle_.number(), options.threads, options.handle(), out, n));
    }
    [[nodiscard]] std::vector<std::int64_t> sample(std::size_t n, const Options& options = {}) const {
        std::vector<std::int64_t> out(n);
        fill(out.data(), n, options);
        return out;
    }

private:
    explicit Sampler(detail::Handle handle) noexcept : handle_(std::move(handle)) {}

    detail::Handle handle_;
};

/// A mechanism for values of type `T`: double or std::int64_t. `laplace` and the functions beside it make one.
template <class T>
class Mechanism {
    static_assert(std::is_same_v<T, double> || std::is_same_v<T, std::int64_t>);

public:
    explicit Mechanism(detail::Handle handle) noexcept : handle_(std::move(handle)) {}

    /// Replaces `n` values by their release: all of them together are one release, whose sensitivity is that of the
    /// mechanism. They are zeros if this throws.
    void release(T* values, std::size_t n, const Options& options = {}) const {
        if constexpr (std::is_same_v<T, double>) {
            detail::check(
                dpnoise_mechanism_release_numbers(handle_.number(), values, n, options.threads, options.handle()));
        } else {
            detail::check(
                dpnoise_mechanism_release_integers(handle_.number(), values, n, options.threads, options.handle()));
        }
    }
    void release(std::vector<T>& values, const Options& options = {}) const {
        release(values.data(), values.size(), options);
    }

    /// The smallest error that each of `n` values released together exceeds with a probability of at most 1 - level.
    [[nodiscard]] double error(double level = 0.95, std::size_t n = 1) const {
        double error = 0;
        detail::check(dpnoise_mechanism_error(handle_.number(), level, n, &error));
        return error;
    }
    /// The largest magnitude of the noise of each of `n` values released together, where it is bounded.
    [[nodiscard]] std::uint64_t radius(std::size_t n = 1) const {
        std::uint64_t radius = 0;
        detail::check(dpnoise_mechanism_radius(handle_.number(), n, &radius));
        return radius;
    }

private:
    detail::Handle handle_;
};

/// The Laplace mechanism: values of an L1 sensitivity, rounded to a grid that suits, or to multiples of `granularity`.
inline Mechanism<double> laplace(double epsilon, double sensitivity, double granularity = 0) {
    return Mechanism<double>(detail::make(dpnoise_laplace_mechanism, epsilon, sensitivity, granularity));
}
/// The Gaussian mechanism: values of an L2 sensitivity, with the smallest noise that suffices.
inline Mechanism<double> gaussian(double epsilon, double delta, double sensitivity, double granularity = 0) {
    return Mechanism<double>(detail::make(dpnoise_gaussian_mechanism, epsilon, delta, sensitivity, granularity));
}
/// The discrete Laplace mechanism: integers of an L1 sensitivity.
inline Mechanism<std::int64_t> discrete_laplace(double epsilon, std::uint64_t sensitivity = 1) {
    return Mechanism<std::int64_t>(detail::make(dpnoise_discrete_laplace_mechanism, epsilon, sensitivity));
}
/// The discrete Gaussian mechanism: integers of an L2 sensitivity.
inline Mechanism<std::int64_t> discrete_gaussian(double epsilon, double delta, double sensitivity) {
    return Mechanism<std::int64_t>(
        detail::make(dpnoise_discrete_gaussian_mechanism, epsilon, delta, sensitivity));
}

/// The discrete Laplace mechanism with bounded noise: integers of an L1 sensitivity.
inline Mechanism<std::int64_t> truncated_discrete_laplace(double epsilon, double delta, std::uint64_t sensitivity = 1) {
    return Mechanism<std::int64_t>(
        detail::make(dpnoise_truncated_discrete_laplace_mechanism, epsilon, delta, sensitivity));
}
/// The discrete Gaussian mechanism with bounded noise: integers of an L2 sensitivity.
inline Mechanism<std::int64_t> truncated_discrete_gaussian(double epsilon, double delta, double sensitivity) {
    return Mechanism<std::int64_t>(
        detail::make(dpnoise_truncated_discrete_gaussian_mechanism, epsilon, delta, sensitivity));
}

/// The staircase mechanism: one integer that changes by at most `sensitivity`.
inline Mechanism<std::int64_t> staircase(double epsilon, std::uint64_t sensitivity = 1) {
    return Mechanism<std::int64_t>(detail::make(dpnoise_staircase_mechanism, epsilon, sensitivity));
}
/// The Skellam mechanism: one integer of each of `parties`, of which only the sum is seen.
inline Mechanism<std::int64_t> skellam(
    double epsilon, double delta, std::uint64_t sensitivity = 1, std::uint64_t parties = 1) {
    return Mechanism<std::int64_t>(detail::make(dpnoise_skellam_mechanism, epsilon, delta, sensitivity, parties));
}
/// Discrete Laplace noise in shares: integers of each of `parties`, of which only the sum is seen.
inline Mechanism<std::int64_t> negative_binomial_shares(
    double epsilon, std::uint64_t sensitivity, std::uint64_t parties) {
    return Mechanism<std::int64_t>(
        detail::make(dpnoise_negative_binomial_shares_mechanism, epsilon, sensitivity, parties));
}

}  // namespace dpnoise

#endif  // DPNOISE_HPP
