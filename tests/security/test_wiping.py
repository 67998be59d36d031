"""After a call neither its key nor its random words, its rejected samples or its noise are left in the process.

A child process makes a call and waits; the test reads all of its memory. So that the test knows what to look for, the
child's getrandom is replaced by one that gives known bytes. Each search is also made for something that is there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from vectors.key_stream import GROUP, key_stream
from vectors.noise_spec import Trials, Words, shift_for

from dpnoise import Laplace, _native, hazmat

KNOWN_RANDOMNESS = """
#include <stdint.h>
#include <sys/types.h>

uint64_t getrandom_calls;

static unsigned char byte_of(uint64_t call, uint64_t i) { // splitmix64
    uint64_t z = (call << 32 | i) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (unsigned char)(z ^ z >> 31);
}

ssize_t getrandom(void *buffer, size_t size, unsigned flags) {
    uint64_t call = __atomic_fetch_add(&getrandom_calls, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)buffer)[i] = byte_of(call, i);
    return (ssize_t)size;
}

void leave_on_the_stack(void) {
    volatile unsigned char key[32];
    (void)getrandom((void *)key, sizeof key, 0);
}
"""

CHILD = """
import ctypes, os, sys
import numpy as np
import dpnoise
from dpnoise import _native, local, samplers

libc = ctypes.CDLL(None)
calls = ctypes.c_uint64.in_dll(libc, "getrandom_calls")
protocol = local.OptimizedUnaryEncoding(k=15, epsilon=1.0)
response = local.RandomizedResponse(epsilon=1.0)
laplace = dpnoise.Laplace(epsilon=1.0)

def call():
    return {call}

# What later code puts on the stack would cover traces: the call is made far below, and only its result comes back.
def below(depth):
    return next(map(below, [depth - 1])) if depth else call()

call()
first = calls.value
kept = below(150)
print(first, calls.value, flush=True)
sys.stdin.read()
"""

Patterns = NDArray[np.uint64]


def key(call: int) -> bytes:
    z = ((np.uint64(call) << np.uint64(32)) + np.arange(32, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return (z ^ z >> np.uint64(31)).astype(np.uint8).tobytes()


def windows(data: bytes) -> Patterns:
    """Give every 8 bytes that begin at a multiple of 4."""
    data = data[: len(data) // 8 * 8]
    return np.concatenate([np.frombuffer(data, np.uint64), np.frombuffer(data[4:-4], np.uint64)])


class Memory:
    """The memory of the child after its call, and the keys that it drew for it."""

    def __init__(self, process: subprocess.Popen[str], keys: list[bytes]) -> None:
        self.keys = keys
        self.parts = list(self.read(process.pid))

    @staticmethod
    def read(pid: int) -> Iterator[tuple[str, Patterns]]:
        """Yield the words that are not zero of each writable part, at multiples of 4 bytes."""
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
                addresses, access, _, _, _, *name = line.split()
                if not access.startswith("rw"):
                    continue
                start, end = (int(address, 16) for address in addresses.split("-"))
                memory.seek(start)
                data = memory.read(end - start)
                assert len(data) == end - start
                for words in (np.frombuffer(data, np.uint64), np.frombuffer(data[4:-4], np.uint64)):
                    yield name[0] if name else "anonymous", words[words != 0]

    def holds(self, *patterns: Patterns) -> dict[str, int]:
        """Count, by place, what is found of the patterns."""
        wanted = np.unique(np.concatenate(patterns))
        low = np.uint64(2**20 - 1)  # most words are told apart by their low bits, which takes no search
        candidates = np.zeros(2**20, bool)
        candidates[wanted & low] = True
        found: dict[str, int] = {}
        for name, every in self.parts:
            words = every[candidates[every & low]]
            nearest = wanted[np.searchsorted(wanted[:-1], words)]
            if count := int(np.sum(nearest == words)):
                found[name] = found.get(name, 0) + count
        return found

    def streams(self, groups: int) -> list[bytes]:
        return [key_stream(key, groups) for key in self.keys]

    def stream(self, groups: int) -> bytes:
        (stream,) = self.streams(groups)
        return stream


@pytest.fixture(scope="module")
def known_randomness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if sys.platform != "linux":
        pytest.skip("the memory of another process is read as Linux shows it")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (cc) to make a known getrandom with")
    source = tmp_path_factory.mktemp("wiping") / "known_randomness.c"
    source.write_text(KNOWN_RANDOMNESS)
    library = source.with_suffix(".so")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", source, "-o", library], check=True)
    return library


def memory_after(call: str, library: Path, instruction_set: str | None = None, generator: str = "chacha12") -> Memory:
    # The debugging allocators overwrite what they free: they would hide what is looked for.
    environment = {**os.environ, "LD_PRELOAD": str(library), "OPENBLAS_NUM_THREADS": "1", "PYTHONDEVMODE": ""}
    environment["DPNOISE_GENERATOR"] = generator  # of ChaCha12 the stream is known
    if instruction_set:
        environment["DPNOISE_INSTRUCTION_SET"] = instruction_set
    command = [sys.executable, "-c", CHILD.format(call=call)]
    with subprocess.Popen(command, env=environment, stdin=-1, stdout=-1, stderr=-1, text=True) as child:
        report = child.stdout.readline()
        if not report:
            error = child.stderr.read()
            if "DPNOISE_INSTRUCTION_SET must be" in error or "DPNOISE_GENERATOR must be" in error:
                pytest.skip(f"this CPU has no {instruction_set or generator}")
            pytest.fail(error)
        first, last = map(int, report.split())
        try:
            memory = Memory(child, [key(number) for number in range(first, last)])
        except PermissionError:
            pytest.skip("this system lets no process read the memory of its child")
        child.stdin.close()
    return memory


CALLS = {
    "an integer": "samplers.discrete_laplace(1000)",
    "integers": "samplers.discrete_gaussian(2**40, size=2000, threads=1)",
    "integers on two threads": "samplers.geometric(2**40, size=100_000, threads=2)",
    "a real number": "samplers.laplace(3.0)",
    "real numbers": "samplers.gaussian(3.0, size=2000)",
    "a coin": "samplers.bernoulli(0.3)",
    "coins": "samplers.bernoulli(1e-300, size=2000)",
    "a release": "laplace.release(1.0)",
    "releases": "laplace.release(np.zeros(2000))",
    "reports": "protocol.perturb(np.zeros(20_000, np.int64), threads=2)",
    "answers": "response.perturb(np.zeros(20_000, bool))",
    "a bit generator": "dpnoise.SecureBitGenerator().random_raw(2000, output=False)",
}
GROUPS = 512  # more than any of these calls takes from a stream


@pytest.mark.parametrize("call", CALLS)
def test_keys_and_words_are_gone(call: str, known_randomness: Path) -> None:
    memory = memory_after(CALLS[call], known_randomness)
    assert memory.keys
    assert memory.holds(*map(windows, [*memory.keys, *memory.streams(GROUPS)])) == {}


@pytest.mark.parametrize("call", CALLS)
def test_keys_of_aes_are_gone(call: str, known_randomness: Path) -> None:
    # The schedule begins with the key.
    memory = memory_after(CALLS[call], known_randomness, generator="aes256")
    assert memory.keys
    assert memory.holds(*map(windows, memory.keys)) == {}


@pytest.mark.parametrize("instruction_set", ["portable", "avx2", "avx512", "neon"])
@pytest.mark.parametrize("call", ["an integer", "a coin", "answers"])
def test_every_instruction_set_wipes(call: str, instruction_set: str, known_randomness: Path) -> None:
    memory = memory_after(CALLS[call], known_randomness, instruction_set)
    assert memory.keys
    assert memory.holds(*map(windows, [*memory.keys, *memory.streams(GROUPS)])) == {}


@pytest.mark.parametrize(("call", "place"), [("os.urandom(32)", None), ("libc.leave_on_the_stack()", "[stack]")])
def test_a_key_that_was_kept_is_found(call: str, place: str | None, known_randomness: Path) -> None:
    memory = memory_after(call, known_randomness)
    found = memory.holds(*map(windows, memory.keys))
    assert found
    assert place is None or place in found


def test_of_random_bytes_only_those_given_are_there(known_randomness: Path) -> None:
    given = GROUP + 256
    memory = memory_after(f"samplers.random_bytes({given})", known_randomness)
    stream = memory.stream(4)
    assert sum(memory.holds(windows(stream[:given])).values()) >= given // 4 - 1
    assert memory.holds(windows(stream[given:])) == {}


def test_words_that_a_bit_generator_gave_out_are_gone(known_randomness: Path) -> None:
    drawn, store = 500, 16_384
    bits = "dpnoise.SecureBitGenerator()"
    memory = memory_after(f"(bits := {bits}, bits.random_raw({drawn}, output=False))", known_randomness)
    stream = memory.stream(store // GROUP)
    assert memory.holds(windows(stream[: 8 * drawn])) == {}
    assert sum(memory.holds(windows(stream[8 * drawn :])).values()) >= (store - 8 * drawn) // 4 - 1


SCALE = 2**40  # samples have some 40 random bits, so that one is not mistaken for another
SPEC = Trials("laplace", Fraction(SCALE), shift_for("laplace", Fraction(SCALE)))
USUAL = f"samplers.discrete_laplace({SCALE}, size=2000, threads=1)"
REFINED = (4, 38)  # a design in which one trial in four is decided by the exact arithmetic
FILLED = (
    f"[out := np.empty(2000, np.int64), _native.Sampler('discrete_laplace', {SCALE}, design={REFINED}).fill(out, 1)]"
)


def replayed(stream: bytes, design: tuple[int, int] | None) -> tuple[NDArray[np.int64], list[tuple[int, int, int]]]:
    """Give the samples of the child's call, and bin, magnitude and acceptance word of all its proposals."""
    samples, script = np.empty(2000, np.int64), hazmat.ScriptedRng(stream)
    _native.Sampler("discrete_laplace", SCALE, design=design).fill(samples, 1, script)
    words, proposals = Words(stream[: len(stream) - script.remaining]), []
    while words.position < len(words.data):
        for bin_word, offset, accept in SPEC.read(words, 64):
            h = SPEC.bin(bin_word)
            proposals.append((h, SPEC.starts[h] + offset % 2 ** (SPEC.shift + SPEC.exponents[h]), accept))
    return samples, proposals


@pytest.mark.parametrize(("design", "call"), [(None, USUAL), (REFINED, FILLED)], ids=["usual", "refined"])
def test_rejected_samples_are_gone(design: tuple[int, int] | None, call: str, known_randomness: Path) -> None:
    memory = memory_after(call, known_randomness)
    stream = memory.stream(GROUPS)
    given, proposals = replayed(stream, design)
    rejected = np.setdiff1d([-x if accept % 2 else x for _, x, accept in proposals], given)
    assert rejected.size > 200
    assert memory.holds(windows(stream)) == {}
    assert memory.holds(rejected.view(np.uint64), (-rejected).view(np.uint64)) == {}
    assert sum(memory.holds(given.view(np.uint64)).values()) >= given.size


def test_the_exact_arithmetic_leaves_nothing(known_randomness: Path) -> None:
    memory = memory_after(FILLED, known_randomness)
    _, proposals = replayed(memory.stream(GROUPS), REFINED)
    # What is compared: the first 64 binary digits after the point.
    uniforms = [(accept >> 1) * SPEC.weights[h] << 1 & 2**64 - 1 for h, _, accept in proposals]
    thresholds = [int(SPEC.threshold(h, x) * SPEC.weights[h] * 2**64) & 2**64 - 1 for h, x, _ in proposals]
    densities = [int(SPEC.f(x) * 2**64) & 2**64 - 1 for _, x, _ in proposals]
    assert memory.holds(*(np.array(traces, np.uint64) for traces in (uniforms, thresholds, densities))) == {}


@pytest.mark.parametrize("count", [1, 2000])
def test_the_noise_of_a_release_is_gone(count: int, known_randomness: Path) -> None:
    value = 1e6 / 3
    call = f"laplace.release({value})" if count == 1 else f"laplace.release(np.full({count}, {value}))"
    memory = memory_after(call, known_randomness)
    laplace = Laplace(epsilon=1.0)
    noise, released = np.zeros(count), np.full(count, value)
    for values in (noise, released):
        script = hazmat.ScriptedRng(memory.stream(GROUPS))
        if count == 1:
            values[0] = laplace.release(values[0], rng=script)
        else:
            values[:] = laplace.release(values, rng=script)
    steps = noise / laplace.granularity
    for trace in (noise, steps, steps.astype(np.int64)):
        assert memory.holds(trace.view(np.uint64), (-trace).view(np.uint64)) == {}
    assert sum(memory.holds(released.view(np.uint64)).values()) >= count
