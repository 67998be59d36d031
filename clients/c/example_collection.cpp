// Devices report, and a collector counts: how many of 100 000 people have each of four values.

#include <dpnoise.hpp>

#include <cstdlib>
#include <iomanip>
#include <iostream>

int main() try {
    // As Python's protocol.to_json() or `dpnoise specify` wrote it: the bytes must stay as they are.
    const auto announced = dpnoise::Protocol::from_json(
        R"({"epsilon":1.0,"k":4,"p":1024,"planes":11,"protocol":"optimized_unary_encoding","q":551,"version":1})");
    // Each device has the question built in, and takes the week from its clock.
    const auto protocol = announced.about("favourite season", "2026-W48");

    // Each device makes one message with protocol.message(value). Here one program makes those of all.
    const std::size_t n = 100000;
    std::vector<std::int64_t> values(n);
    for (std::size_t i = 0; i < n; i++) {
        values[i] = i % 10 < 4 ? 0 : i % 10 < 7 ? 1 : i % 10 < 9 ? 2 : 3;
    }
    const dpnoise::Bytes rows = protocol.perturb(values, dpnoise::Form::messages, {2});  // threads

    std::vector<dpnoise::Bytes> messages;
    const auto width = static_cast<std::ptrdiff_t>(protocol.row_bytes(dpnoise::Form::messages));
    for (auto row = rows.begin(); row != rows.end(); row += width) {
        messages.emplace_back(row, row + width);
    }
    // What is of another week, or no message, is counted as rejected.
    messages.push_back(announced.about("favourite season", "2026-W49").message(0));
    messages.push_back({0xFF});

    dpnoise::Accumulator accumulator(protocol);
    accumulator.add_messages(messages, 2);
    std::cout << accumulator.n() << " reports, " << accumulator.rejected() << " rejected\n";

    const dpnoise::Estimate estimate = accumulator.estimate();
    std::cout << std::fixed << std::setprecision(0);
    for (std::size_t value = 0; value < estimate.counts.size(); value++) {
        std::cout << value << ": " << estimate.counts[value] << " +- " << estimate.standard_errors[value] << "\n";
    }
    return EXIT_SUCCESS;
} catch (const dpnoise::Error& error) {
    std::cerr << "example_collection: " << error.what() << "\n";
    return EXIT_FAILURE;
}
