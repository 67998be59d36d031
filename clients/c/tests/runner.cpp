// Answers the tests of clients, in C++. clients/shared/cases.py describes the lines.

#include <algorithm>
#include <dpnoise.hpp>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>

namespace {

using dpnoise::Bytes;

using Fields = std::istringstream;

std::string field(Fields& fields) {
    std::string word;
    fields >> word;
    return word;
}

std::vector<std::string> rest(Fields& fields) {
    std::vector<std::string> words;
    for (std::string word; fields >> word;) {
        words.push_back(word);
    }
    return words;
}

Bytes from_hex(const std::string& text) {
    Bytes bytes;
    for (std::size_t i = 0; text != "-" && i < text.size(); i += 2) {
        bytes.push_back(static_cast<std::uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
    }
    return bytes;
}

std::string_view text_of(const Bytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

double from_hex_double(const std::string& text) {
    std::uint64_t word = 0;
    const Bytes bytes = from_hex(text);
    for (std::size_t i = 0; i < bytes.size(); i++) {
        word |= std::uint64_t{bytes[i]} << 8 * i;
    }
    double number = 0;
    std::memcpy(&number, &word, sizeof number);
    return number;
}

template <class Container>
std::string to_hex(const Container& bytes) {
    std::ostringstream out;
    out << std::hex << std::setfill('0');
    for (const std::uint8_t byte : bytes) {
        out << std::setw(2) << int{byte};
    }
    return out.str();
}

std::string to_hex(double number) {
    std::uint64_t word = 0;
    std::memcpy(&word, &number, sizeof word);
    Bytes bytes;
    for (int i = 0; i < 8; i++) {
        bytes.push_back(static_cast<std::uint8_t>(word >> 8 * i));
    }
    return to_hex(bytes);
}

std::vector<double> doubles_of(Fields& fields) {
    std::vector<double> numbers;
    for (const std::string& word : rest(fields)) {
        numbers.push_back(from_hex_double(word));
    }
    return numbers;
}

std::vector<std::int64_t> integers_of(Fields& fields) {
    std::vector<std::int64_t> numbers;
    for (const std::string& word : rest(fields)) {
        numbers.push_back(std::stoll(word));
    }
    return numbers;
}

std::string joined(const std::vector<std::int64_t>& numbers) {
    std::string line;
    for (const std::int64_t number : numbers) {
        line += (line.empty() ? "" : " ") + std::to_string(number);
    }
    return line;
}

std::string joined(const std::vector<double>& numbers, const char* between = " ") {
    std::string line;
    for (const double number : numbers) {
        line += (line.empty() ? "" : between) + to_hex(number);
    }
    return line;
}

/// The generator that plays bytes once, or none for the system's.
std::optional<dpnoise::Generator> generator_of(Fields& fields) {
    Bytes script = from_hex(field(fields));
    if (script.empty()) {
        return std::nullopt;
    }
    return dpnoise::Generator([script, at = std::size_t{0}](std::uint8_t* out, std::size_t length) mutable {
        if (length > script.size() - at) {
            throw std::out_of_range("the script has ended");
        }
        std::memcpy(out, script.data() + at, length);
        at += length;
    });
}

dpnoise::Options options_of(const std::optional<dpnoise::Generator>& generator) {
    return {1, generator ? &*generator : nullptr};
}

dpnoise::Protocol protocol_of(Fields& fields) {
    return dpnoise::Protocol::from_json(text_of(from_hex(field(fields))));
}

std::string perturb(Fields& fields) {
    const dpnoise::Form form = field(fields) == "messages" ? dpnoise::Form::messages : dpnoise::Form::reports;
    const std::string kind = field(fields);
    dpnoise::Protocol protocol = protocol_of(fields);
    const auto generator = generator_of(fields);
    const std::string memo = field(fields);
    const Bytes question = from_hex(field(fields));
    if (memo != "-") {
        protocol = protocol.with_memo(dpnoise::Memo::from_bytes(from_hex(memo)), text_of(question));
    }
    const dpnoise::Options options = options_of(generator);
    if (kind == "integers") {
        const auto values = integers_of(fields);
        const bool is_one = values.size() == 1 && form == dpnoise::Form::messages;
        return to_hex(is_one ? protocol.message(values[0], options) : protocol.perturb(values, form, options));
    }
    if (kind == "numbers") {
        const auto values = doubles_of(fields);
        const bool is_one = values.size() == 1 && form == dpnoise::Form::messages;
        return to_hex(is_one ? protocol.message(values[0], options) : protocol.perturb(values, form, options));
    }
    std::vector<Bytes> texts;
    for (const std::string& word : rest(fields)) {
        texts.push_back(from_hex(word));
    }
    std::vector<std::string_view> values;
    for (const Bytes& text : texts) {
        values.push_back(text_of(text));
    }
    const bool is_one = values.size() == 1 && form == dpnoise::Form::messages;
    return to_hex(is_one ? protocol.message(values[0], options) : protocol.perturb(values, form, options));
}

dpnoise::Accumulator collected(const std::string& word, Fields& fields) {
    const std::size_t end = std::min(word.find('@'), word.size());
    const auto protocol = dpnoise::Protocol::from_json(text_of(from_hex(word.substr(0, end))));
    std::vector<Bytes> messages;
    for (const std::string& word : rest(fields)) {
        messages.push_back(from_hex(word));
    }
    dpnoise::Accumulator accumulator(protocol);
    accumulator.add_messages(messages);
    if (end < word.size()) {
        return accumulator.attribute(text_of(from_hex(word.substr(end + 1))));
    }
    return accumulator;
}

std::string about(Fields& fields) {
    const dpnoise::Protocol protocol = protocol_of(fields);
    const Bytes question = from_hex(field(fields)), period = from_hex(field(fields));
    const dpnoise::Protocol other = protocol.about(text_of(question), text_of(period));
    return to_hex(other.to_json()) + " " + to_hex(other.bare_digest());
}

std::string merge(Fields& fields) {
    const std::string specification = field(fields), other = field(fields);
    dpnoise::Accumulator accumulator = collected(specification, fields);
    if (other == "-") {
        accumulator.merge(accumulator);
    } else {
        accumulator.merge(collected(other, fields));
    }
    return to_hex(accumulator.to_bytes());
}

std::string collect(Fields& fields) {
    return to_hex(dpnoise::Accumulator::from_bytes(collected(field(fields), fields).to_bytes()).to_bytes());
}

std::string estimate(Fields& fields) {
    const dpnoise::Estimate estimate = collected(field(fields), fields).estimate();
    return joined(estimate.counts, "") + joined(estimate.standard_errors, "");
}

std::string estimate_mean(Fields& fields) {
    const dpnoise::MeanEstimate estimate = collected(field(fields), fields).estimate_mean();
    return joined(std::vector<double>{estimate.mean, estimate.standard_error}, "");
}

std::string estimate_density(Fields& fields) {
    const std::string specification = field(fields);
    const bool smoothing = field(fields) == "1";
    return joined(collected(specification, fields).estimate_density(smoothing), "");
}

std::string estimate_ranges(Fields& fields) {
    const std::string specification = field(fields);
    const std::int64_t first = std::stoll(field(fields)), last = std::stoll(field(fields));
    const std::vector<double> q{from_hex_double(field(fields))};
    const dpnoise::Accumulator accumulator = collected(specification, fields);
    const dpnoise::Estimate estimate = accumulator.estimate_ranges(std::vector<dpnoise::Range>{{first, last}});
    return joined(estimate.counts) + joined(estimate.standard_errors) + " " + joined(accumulator.estimate_quantiles(q));
}

std::string estimate_candidates(Fields& fields) {
    const std::string specification = field(fields);
    std::vector<Bytes> texts(std::stoul(field(fields)));
    for (Bytes& text : texts) {
        text = from_hex(field(fields));
    }
    std::vector<std::string_view> candidates;
    for (const Bytes& text : texts) {
        candidates.push_back(text_of(text));
    }
    const dpnoise::Estimate estimate = collected(specification, fields).estimate_candidates(candidates);
    return joined(estimate.counts, "") + joined(estimate.standard_errors, "");
}

std::string estimate_prefixes(Fields& fields) {
    const std::string specification = field(fields);
    const double level = from_hex_double(field(fields));
    const dpnoise::HeavyHitters found = collected(specification, fields).estimate_prefixes(level);
    const std::string numbers = joined(found.counts, "") + joined(found.standard_errors, "");
    const std::string values = found.values.empty() ? "-" : numbers + " " + joined(found.values);
    return std::to_string(found.complete) + " " + values;
}

std::string memo(Fields& fields) {
    const auto memo = dpnoise::Memo::from_bytes(from_hex(field(fields)));
    for (std::string word; !(word = field(fields)).empty();) {
        const auto protocol = dpnoise::Protocol::from_json(text_of(from_hex(word)));
        (void)protocol.with_memo(memo, text_of(from_hex(field(fields))));
    }
    return to_hex(memo.to_bytes());
}

std::string new_memo(Fields&) {
    const auto first = dpnoise::Memo::create().to_bytes(), second = dpnoise::Memo::create().to_bytes();
    if (dpnoise::Memo::from_bytes(first).to_bytes() != first) {
        return "not read back";
    }
    return first == second ? "same" : "different";
}

std::string facts(Fields& fields) {
    static const char* const kinds[] = {"integers", "numbers", "texts", "attributes"};
    const auto specification = from_hex(field(fields));
    const auto protocol = dpnoise::Protocol::from_json(text_of(specification), std::stoull(field(fields)));
    std::ostringstream out;
    out << kinds[static_cast<int>(protocol.takes())] << ' ' << protocol.keeps_memo() << ' ' << protocol.k() << ' '
        << protocol.report_bytes() << ' ' << protocol.counter_bytes() << ' ' << to_hex(protocol.epsilon()) << ' ' << to_hex(protocol.delta()) << ' ' << to_hex(protocol.header());
    return out.str();
}

dpnoise::Sampler sampler_of(Fields& fields) {
    const bool is_laplace = field(fields) == "laplace";
    const double scale = from_hex_double(field(fields));
    return is_laplace ? dpnoise::Sampler::discrete_laplace(scale) : dpnoise::Sampler::discrete_gaussian(scale);
}

std::string fill(Fields& fields) {
    const dpnoise::Sampler sampler = sampler_of(fields);
    const auto generator = generator_of(fields);
    return joined(sampler.sample(std::stoul(field(fields)), options_of(generator)));
}

template <class T>
std::string released(const dpnoise::Mechanism<T>& mechanism, Fields& fields) {
    const auto generator = generator_of(fields);
    std::vector<T> values;
    if constexpr (std::is_same_v<T, double>) {
        values = doubles_of(fields);
    } else {
        values = integers_of(fields);
    }
    mechanism.release(values, options_of(generator));
    return joined(values);
}

std::string release(Fields& fields) {
    const std::string kind = field(fields);
    const double epsilon = from_hex_double(field(fields));
    if (kind == "laplace") {
        return released(dpnoise::laplace(epsilon, from_hex_double(field(fields))), fields);
    }
    if (kind == "discrete-laplace") {
        return released(dpnoise::discrete_laplace(epsilon, std::stoull(field(fields))), fields);
    }
    const double delta = from_hex_double(field(fields)), sensitivity = from_hex_double(field(fields));
    if (kind == "gaussian") {
        return released(dpnoise::gaussian(epsilon, delta, sensitivity), fields);
    }
    return released(dpnoise::discrete_gaussian(epsilon, delta, sensitivity), fields);
}

/// Takes the handle out of an object, and frees it.
template <class T>
T& emptied(T& object) {
    const T freed = std::move(object);
    return object;
}

std::string freed(Fields& fields) {
    auto protocol = dpnoise::Protocol::from_json(
        R"({"epsilon":1.0986122886681098,"k":2,"p":3,"planes":2,"protocol":"randomized_response","q":1,"version":1})");
    const std::string what = field(fields);
    if (what == "protocol") {
        return to_hex(emptied(protocol).message(1));
    }
    if (what == "memo") {
        auto memo = dpnoise::Memo::create();
        return to_hex(emptied(memo).to_bytes());
    }
    if (what == "accumulator") {
        dpnoise::Accumulator accumulator(protocol);
        return std::to_string(emptied(accumulator).n());
    }
    if (what == "sampler") {
        auto sampler = dpnoise::Sampler::discrete_laplace(1);
        return joined(emptied(sampler).sample(1));
    }
    auto mechanism = dpnoise::laplace(1, 1);
    std::vector<double> values{1};
    emptied(mechanism).release(values);
    return joined(values);
}

/// The nanoseconds that a call takes.
template <class Call>
double nanoseconds(Call call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

std::string time_messages(Fields& fields) {
    const std::size_t n = std::stoul(field(fields));
    const dpnoise::Protocol protocol = protocol_of(fields);
    std::size_t total = 0;
    const double took = nanoseconds([&] {
        for (std::size_t i = 0; i < n; i++) {
            switch (protocol.takes()) {
                case dpnoise::Kind::integers: total += protocol.message(0).size(); break;
                case dpnoise::Kind::numbers: total += protocol.message(0.0).size(); break;
                case dpnoise::Kind::texts: total += protocol.message("a").size(); break;
                case dpnoise::Kind::attributes: break;
            }
        }
    });
    return total == 0 ? "no messages" : std::to_string(took / static_cast<double>(n));
}

std::string time_samples(Fields& fields) {
    const std::size_t n = std::stoul(field(fields));
    const dpnoise::Sampler sampler = sampler_of(fields);
    std::vector<std::int64_t> samples(n);
    double best = 0;
    for (int i = 0; i < 5; i++) {
        const double took = nanoseconds([&] { sampler.fill(samples.data(), n); });
        best = i == 0 || took < best ? took : best;
    }
    return std::to_string(best / static_cast<double>(n));
}

const std::map<std::string, std::string (*)(Fields&)> commands = {
    {"perturb", perturb}, {"collect", collect}, {"estimate", estimate}, {"mean", estimate_mean},
    {"density", estimate_density}, {"ranges", estimate_ranges}, {"candidates", estimate_candidates},
    {"prefixes", estimate_prefixes}, {"memo", memo}, {"about", about}, {"merge", merge},
    {"newmemo", new_memo}, {"facts", facts}, {"fill", fill}, {"release", release},
    {"freed", freed}, {"time", time_messages}, {"filltime", time_samples},
};

std::string answer(const std::string& line) {
    static const char* const statuses[] = {
        "ok", "parameter", "data", "state", "randomness", "handle", "memory", "internal", "allocation",
    };
    Fields fields(line);
    try {
        return "ok " + commands.at(field(fields))(fields);
    } catch (const dpnoise::Error& error) {
        return std::string("error ") + statuses[static_cast<int>(error.status())] + " " + error.what();
    }
}

}  // namespace

int main() {
    for (std::string line; std::getline(std::cin, line);) {
        std::cout << answer(line) << std::endl;
    }
    return EXIT_SUCCESS;
}
