"""NumPy's samplers on the words of SecureBitGenerator.

Each check rejects correct words with a probability of 1e-11, so that all checks of a test together do so with less
than 1e-9, and is also run on words with a planted fault.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpnoise import SecureBitGenerator

ALARM = 1e-11
N = 400_000

generator = np.random.Generator(SecureBitGenerator())


def biased_bit(words: NDArray[np.unsignedinteger]) -> float:
    """Return the p-value of the most lopsided bit, times the number of bits."""
    width = 8 * words.dtype.itemsize
    ones = [int(np.sum(words >> words.dtype.type(bit) & words.dtype.type(1))) for bit in range(width)]
    return width * min(float(stats.binomtest(count, words.size).pvalue) for count in ones)


WORDS: dict[str, Callable[[], NDArray[np.unsignedinteger]]] = {
    "raw": lambda: generator.bit_generator.random_raw(N),
    "64 bits": lambda: generator.integers(0, 2**64, N, np.uint64),
    "32 bits": lambda: generator.integers(0, 2**32, N, np.uint32),
    "8 bits": lambda: generator.integers(0, 2**8, N, np.uint8),
    "bytes": lambda: np.frombuffer(generator.bytes(N), np.uint8),
}


@pytest.mark.parametrize("kind", WORDS)
def test_every_bit_is_a_fair_coin(kind: str) -> None:
    words = WORDS[kind]()
    assert biased_bit(words) > ALARM
    # Two words are independent: so is a bit of one and the same bit of the next.
    assert biased_bit(words[1:] ^ words[:-1]) > 2 * ALARM
    faulty = np.where(generator.random(N) < 0.025, words | words.dtype.type(1 << 5), words)
    assert biased_bit(faulty) < ALARM
    stuck = np.where(generator.random(N) < 0.025, np.roll(words, 1), words)
    assert biased_bit(stuck[1:] ^ stuck[:-1]) < ALARM


def uniform(values: NDArray[np.integer], count: int) -> float:
    return float(stats.chisquare(np.bincount(values, minlength=count)).pvalue)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.int64])
def test_integers(dtype: type[np.integer]) -> None:
    assert uniform(generator.integers(0, 100, N, dtype), 100) > ALARM
    assert uniform(np.minimum(generator.integers(0, 101, N, dtype), 99), 100) < ALARM


def test_permutations() -> None:
    number = {order: i for i, order in enumerate(itertools.permutations(range(4)))}

    def numbers(tosses: NDArray[np.integer]) -> NDArray[np.int64]:
        return np.array([number[tuple(row)] for row in tosses.tolist()])

    deck = np.broadcast_to(np.arange(4), (20_000, 4))
    assert uniform(numbers(generator.permuted(deck, axis=1)), math.factorial(4)) > ALARM
    # The fault of swapping every card with any card.
    swapped = deck.copy()
    for i in range(4):
        j = generator.integers(0, 4, len(deck))
        rows = np.arange(len(deck))
        swapped[rows, i], swapped[rows, j] = swapped[rows, j].copy(), swapped[rows, i].copy()
    assert uniform(numbers(swapped), math.factorial(4)) < ALARM


@pytest.mark.parametrize(
    ("draw", "distribution", "faulty"),
    [
        (lambda: generator.random(N), stats.uniform(), lambda: generator.random(N) ** 1.05),
        (lambda: generator.random(N, np.float32), stats.uniform(), lambda: generator.random(N, np.float32) * 0.98),
        (lambda: generator.normal(size=N), stats.norm(), lambda: generator.normal(0.03, 1, N)),
        (lambda: generator.exponential(size=N), stats.expon(), lambda: generator.exponential(1.05, N)),
    ],
    ids=["random", "float32", "normal", "exponential"],
)
def test_real_values(draw: Callable[[], NDArray], distribution: object, faulty: Callable[[], NDArray]) -> None:
    assert stats.kstest(draw(), distribution.cdf).pvalue > ALARM
    assert stats.kstest(faulty(), distribution.cdf).pvalue < ALARM
