"""Bit-for-bit equality of the selections with the specification, fed the same words, and at every threshold."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from vectors.noise_spec import Words
from vectors.selection_spec import Selection, to_grid

from dpnoise import Exponential, ReportNoisyMax, TopK, hazmat

# `make statistical` draws more.
N = 500 if "DPNOISE_TEST_SAMPLES" in os.environ else 1
BYTES = 400_000


def stream(label: str, size: int = BYTES) -> bytes:
    return hashlib.shake_256(label.encode()).digest(size)


def scores_of(name: str, count: int) -> np.ndarray:
    generator = np.random.default_rng(count)
    if name == "near":
        return generator.normal(size=count)
    if name == "ties":
        return generator.integers(0, 3, count).astype(float)
    if name == "far":
        return generator.normal(size=count) * 10.0 ** generator.integers(-300, 300, count)
    return np.sort(generator.exponential(20.0, count))


def spec(mechanism: Any, scores: np.ndarray) -> Selection:
    granularity = Fraction(mechanism.granularity)
    shares = (1 if mechanism.monotonic else 2) * (mechanism.k if isinstance(mechanism, TopK) else 1)
    steps = math.ceil(Fraction(mechanism.sensitivity) / granularity)
    places = [to_grid(score, granularity) for score in scores.tolist()]
    return Selection(steps * shares / Fraction(mechanism.epsilon), places)


def compare(
    mechanism: Any,
    scores: np.ndarray,
    choose: Callable[[Selection, Words], int],
    data: bytes,
    selection: Selection | None = None,
) -> int:
    rng, words = hazmat.ScriptedRng(data), Words(data)
    expected = choose(selection or spec(mechanism, scores), words)
    assert mechanism.release(scores, rng=rng) == expected
    assert rng.remaining == len(data) - words.position, "both took the same words"
    return expected


def name_of(value: Any) -> str:
    """A name of a case that is the same in every process."""
    return getattr(value, "__name__", repr(value))


MECHANISMS = [
    (Exponential(epsilon=1.0), Selection.softmax),
    (Exponential(epsilon=0.3, sensitivity=0.7, monotonic=True), Selection.softmax),
    (ReportNoisyMax(epsilon=1.0), Selection.permute_and_flip),
    (ReportNoisyMax(epsilon=0.3, sensitivity=0.7, monotonic=True), Selection.permute_and_flip),
]


@pytest.mark.parametrize("count", [1, 2, 8, 9, 100, 2049])
@pytest.mark.parametrize("name", ["near", "ties", "far", "sorted"])
@pytest.mark.parametrize(("mechanism", "choose"), MECHANISMS, ids=name_of)
def test_a_choice_equals_the_specification(mechanism: Any, choose: Any, name: str, count: int) -> None:
    scores = scores_of(name, count)
    for i in range(max(1, N // count)):
        compare(mechanism, scores, choose, stream(f"{mechanism} {name} {count} {i}"))


def test_many_candidates_take_one_attempt_more() -> None:
    compare(Exponential(epsilon=1.0), scores_of("near", 2**17 + 1), Selection.softmax, stream("many"))


def test_top_k_equals_the_specification() -> None:
    for count in (5, 40, 2100):
        mechanism = TopK(k=5, epsilon=2.0)
        scores = scores_of("near", count)
        data = stream(f"top {count}")
        words, whole, expected = Words(data), spec(mechanism, scores), []
        for _ in range(5):
            left = [None if index in expected else step for index, step in enumerate(whole.steps)]
            expected.append(Selection(whole.scale, left).softmax(words))
        assert mechanism.release(scores, rng=hazmat.ScriptedRng(data)).tolist() == expected


def word(number: int, total: int) -> bytes:
    """The 32 bytes of the smallest U for which floor(U total) is this number."""
    return (-(-(number << 256) // total)).to_bytes(32, "big")


def prefixes(threshold: Any) -> set[int]:
    near = int(threshold * 2**63)
    return {prefix for prefix in (0, near - 1, near, near + 1, 2**63 - 1) if 0 <= prefix < 2**63}


def test_every_boundary_and_threshold_of_the_exponential_mechanism() -> None:
    mechanism = Exponential(epsilon=1.0)
    # Weights from C down to those that a double cannot tell from zero.
    scores = np.array([0.0, -1, -2.5, -40, -68, -72, -75, -90, -200, -3000, 0, -1e9])
    selection = spec(mechanism, scores)
    (weights,) = selection.weights_in_block
    first = 0
    outcomes = set()
    for index in selection.order:
        length = weights[index]
        for number in {first, first + length - 1} if length else ():
            for prefix in prefixes(selection.threshold_in_block(index)):
                data = bytes(32) + word(number, sum(weights)) + (2 * prefix).to_bytes(8, "little")
                data += stream(f"{number}", 1600)
                outcomes.add(compare(mechanism, scores, Selection.softmax, data) == index)
        first += length
    assert outcomes == {True, False}


def test_every_boundary_and_threshold_of_blocks() -> None:
    mechanism = Exponential(epsilon=1.0)
    scores = np.full(3 * 2048 + 5, -1e6)
    # The best of each block; the last block is worth next to nothing.
    places = [7, 2048 + 9, 2 * 2048, 3 * 2048 + 4]
    scores[places] = [-3.3, 0.0, -50.1, -76.0]
    selection = spec(mechanism, scores)
    first = 0
    outcomes = set()
    for block, (length, index) in enumerate(zip(selection.lengths, places, strict=True)):
        weights = selection.weights_in_block[block]
        before = sum(
            weights[place] for place in selection.order_in_block[: selection.order_in_block.index(index % 2048)]
        )
        for number in {first, first + length - 1}:
            for prefix in prefixes(selection.threshold_in_block(index)):
                data = word(number, sum(selection.lengths)) + word(before, sum(weights))
                data += (2 * prefix).to_bytes(8, "little") + stream(f"{number}", 1600)
                outcomes.add((compare(mechanism, scores, Selection.softmax, data, selection) == index, block))
        first += length
    assert outcomes == {(True, 0), (False, 0), (True, 1), (True, 2), (False, 2), (True, 3), (False, 3)}


def test_every_threshold_of_permute_and_flip() -> None:
    mechanism = ReportNoisyMax(epsilon=1.0)
    scores = np.array([0.0, -1, -2.5, -40, -68, -72, -75, -3000])
    selection = spec(mechanism, scores)
    outcomes = set()
    for index, length in enumerate(selection.weights):
        # Heads for the best one and, on either side of its weight, for this one.
        for coin in {0, length - 1, length} - {2**51}:
            coins = b"".join(((coin if i == index else 2**51 - 1) << 13).to_bytes(8, "little") for i in range(8))
            for prefix in prefixes(selection.threshold(index)):
                for u in (0, 2**256 - 1):
                    data = coins + u.to_bytes(32, "big") + (2 * prefix).to_bytes(8, "little")
                    data += stream("rest", 800)
                    outcomes.add(compare(mechanism, scores, Selection.permute_and_flip, data))
    assert outcomes >= {0, 1, 2, 3}


def test_a_wrong_specification_is_seen() -> None:
    # Positive control: a boundary that is moved by one.
    mechanism, scores = Exponential(epsilon=1.0), np.array([0.0, -1.0])
    wrong = spec(mechanism, scores)
    (weights,) = wrong.weights_in_block
    data = bytes(32) + word(weights[0] - 1, sum(weights)) + bytes(80)
    assert mechanism.release(scores, rng=hazmat.ScriptedRng(data)) == 0
    weights[0] -= 1
    weights[1] += 1
    assert wrong.softmax(Words(data)) == 1
