// Looks for private data in memory that is given back: that of the library, too, since all of it goes through `free`.
// Prints how many blocks had some, and the same of two planted ones.

#include <dpnoise.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>

namespace {

// They are in no report, which are of other lengths.
constexpr std::int64_t integer = 0x1122334455667788;
constexpr double number = 0.12345678912345678;
constexpr char text[] = "a very private plum!";
std::uint8_t secret[16];

bool watching = false;
int found = 0;

template <class T>
bool contains(const void* memory, std::size_t length, const T& pattern, std::size_t size = sizeof(T)) {
    return memmem(memory, length, &pattern, size) != nullptr;
}

void look(void* memory) {
    if (!watching || memory == nullptr) {
        return;
    }
    const std::size_t length = malloc_usable_size(memory);
    found += contains(memory, length, integer) || contains(memory, length, number) ||
             contains(memory, length, text, sizeof text - 1) || contains(memory, length, secret);
}

}  // namespace

extern "C" void __libc_free(void* memory);
extern "C" void* __libc_realloc(void* memory, std::size_t length);

extern "C" void free(void* memory) {
    look(memory);
    __libc_free(memory);
}

extern "C" void* realloc(void* memory, std::size_t length) {
    look(memory);
    return __libc_realloc(memory, length);
}

int main(int argc, char** argv) {
    // The specifications: of integers, of numbers, of texts, and of integers with a memo.
    if (argc != 5) {
        return EXIT_FAILURE;
    }
    const auto integers = dpnoise::Protocol::from_json(argv[1]);
    const auto numbers = dpnoise::Protocol::from_json(argv[2]);
    const auto texts = dpnoise::Protocol::from_json(argv[3]);
    const auto remembering = dpnoise::Protocol::from_json(argv[4]);

    // The bytes of a memo begin with 16 that are no secret.
    auto bytes = std::make_unique<dpnoise::SecretBytes>(dpnoise::Memo::create().to_bytes());
    std::memcpy(secret, bytes->data() + 16, sizeof secret);

    watching = true;
    for (const auto form : {dpnoise::Form::reports, dpnoise::Form::messages}) {
        const std::int64_t many[] = {integer, integer, integer};
        (void)integers.perturb(dpnoise::View<std::int64_t>(many, 3), form);
        const double some[] = {number, number, number};
        (void)numbers.perturb(dpnoise::View<double>(some, 3), form);
    }
    (void)integers.message(integer);
    (void)numbers.message(number);
    (void)texts.message(text);
    (void)texts.report(std::string_view(text));
    {
        const auto memo = dpnoise::Memo::from_bytes(*bytes);
        (void)memo.to_bytes();
        (void)remembering.with_memo(memo, "colour").message(1);
    }
    for (const auto& refused : {&remembering, &texts}) {
        try {
            (void)refused->message(integer);
            return EXIT_FAILURE;
        } catch (const dpnoise::Error&) {
        }
    }
    bytes.reset();
    std::printf("%d\n", found);

    // What nobody wipes is found: here, and in the library, which takes a question for public.
    found = 0;
    auto* copy = static_cast<char*>(std::malloc(100));
    std::memcpy(copy + 50, &number, sizeof number);
    free(copy);
    std::printf("%d\n", found);
    found = 0;
    (void)remembering.with_memo(dpnoise::Memo::create(), text);
    std::printf("%d\n", found > 0);
    return EXIT_SUCCESS;
}
