"""What docs/proofs/correlated_noise.md says of integers, of patterns and of the range, without the implementation."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from vectors.correlated_noise_spec import BITS, Rounding, fresh_noise, half_to_even, half_up, noise, query, shifts

from dpnoise.sgd import BandedToeplitz, CyclicPoisson, MinSeparation, SingleEpoch

ONE = 2**BITS
ROUNDINGS = [half_up, half_to_even]


def some_numerators(chance: random.Random, bands: int, bits: int = BITS) -> list[int]:
    return [2**bits, *sorted((chance.randrange(2**bits + 1) for _ in range(bands - 1)), reverse=True)]


# --- rounding ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [1, 2, 12])
def test_rounding_commutes_with_multiples_and_half_to_even_does_not(bits: int) -> None:
    one = 2**bits
    for v in range(-one, one):
        assert half_to_even(v, bits) == round(Fraction(v, one)), "the planted fault is what it is called"
        for multiple in range(-3, 4):
            assert half_up(v + multiple * one, bits) == half_up(v, bits) + multiple
            commutes = half_to_even(v + multiple * one, bits) == half_to_even(v, bits) + multiple
            assert commutes == (multiple % 2 == 0 or (v - one // 2) % one != 0)


def test_arrays_are_rounded_as_integers_are() -> None:
    v = np.arange(-3 * ONE, 3 * ONE)
    for rounding in ROUNDINGS:
        assert rounding(v).tolist() == [rounding(one) for one in v.tolist()]


def test_fresh_noise_is_the_inverse() -> None:
    chance = random.Random(1)
    for _ in range(50):
        numerators = some_numerators(chance, chance.randrange(1, 7))
        z = [chance.randrange(-(2**40), 2**40) for _ in range(12)]
        for rounding in ROUNDINGS:
            assert fresh_noise(numerators, noise(numerators, z, rounding), rounding) == z


# --- lemma 1: neighbours -------------------------------------------------------------------------------------------


def wrong_differences(rounding: Rounding, runs: int, seed: int = 2) -> int:
    """Count the steps of random runs in which neighbours' q_t do not differ by the exact shift."""
    chance, wrong = random.Random(seed), 0
    for _ in range(runs):
        numerators = some_numerators(chance, chance.randrange(2, 9))
        # Multiples of half a step make halves frequent, and large numbers show that nothing depends on a range.
        n, size = 12, 2 ** chance.choice([3, 20, 62])
        x = [chance.randrange(-size, size) * ONE // 2 for _ in range(n)]
        sums = [ONE * chance.randrange(-size, size) for _ in range(n)]
        rows = [chance.choice([0, chance.randrange(-(2**22), 2**22)]) for _ in range(n)]
        sums_of_neighbour = [g + ONE * u for g, u in zip(sums, rows, strict=True)]
        for t, shift in enumerate(shifts(numerators, rows)):
            here, there = (query(numerators, g[: t + 1], x[:t], rounding) for g in (sums, sums_of_neighbour))
            wrong += there - here != shift
    return wrong


def test_neighbours_differ_by_the_exact_shift() -> None:
    assert wrong_differences(half_up, runs=500) == 0
    assert wrong_differences(half_to_even, runs=500) > 20, "the planted fault"


def adaptive(data: int, x: tuple[int, ...]) -> int:
    """Give a small integer, a function of the data and of all that was released, without any pattern."""
    return random.Random(f"{data} {x}").randrange(-2, 3)


@pytest.mark.parametrize(("bits", "numerators"), [(1, [2, 1]), (1, [2, 2, 1]), (2, [4, 3, 2]), (2, [4, 1, 1, 1])])
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_neighbours_on_all_trajectories_of_a_box(bits: int, numerators: list[int], rounding: Rounding) -> None:
    """The gradients of both, and whether the example takes part, depend on the trajectory."""
    wrong = 0
    for length in range(4):
        for x in itertools.product(range(-4, 5), repeat=length):
            rows = [adaptive(1, x[:t]) for t in range(length + 1)]
            sums = [2**bits * adaptive(2, x[:t]) for t in range(length + 1)]
            sums_of_neighbour = [g + 2**bits * u for g, u in zip(sums, rows, strict=True)]
            here, there = (query(numerators, g, x, rounding, bits) for g in (sums, sums_of_neighbour))
            wrong += there - here != shifts(numerators, rows)[-1]
    assert (wrong == 0) == (rounding is half_up)


# --- the theorem, all trajectories summed --------------------------------------------------------------------------

SIGMA, REACH = 1.5, 9  # what is beyond the reach has a probability below 1e-8 in each step


def divergence(rounding: Rounding, order: float) -> float:
    """Give the Rényi divergence of an adaptive run of three steps with bits = 1, for an example of norm 1 in step 0."""
    numerators, bits = [2, 1, 1], 1
    weights = [math.exp(-(z**2) / (2 * SIGMA**2)) for z in range(-REACH, REACH + 1)]
    total = math.fsum(weights)
    law = [weight / total for weight in weights]

    def moment(x: tuple[int, ...], sums: tuple[int, ...]) -> float:
        """Give the mean of the likelihood ratio to the power of the order over what follows x."""
        t = len(x)
        if t == 3:
            return 1.0
        sums = (*sums, 2**bits * adaptive(3, x))
        row = 1  # in step 0; its sign and place do not matter for a single number
        q = query(numerators, sums, x, rounding, bits)
        q_neighbour = query(numerators, (sums[0] + 2**bits * row, *sums[1:]), x, rounding, bits)
        shift = q_neighbour - q
        return math.fsum(
            law[z + REACH] * math.exp(order * (2 * z * shift - shift**2) / (2 * SIGMA**2)) * moment((*x, q + z), sums)
            for z in range(-REACH, REACH + 1)
        )

    return math.log(moment((), ())) / (order - 1)


@pytest.mark.parametrize("order", [1.25, 2.0])
def test_the_divergence_of_adaptive_runs_is_bounded(order: float) -> None:
    square = sum(m * m for m in (2, 1, 1))
    bound = order * square / (2 * SIGMA**2)
    assert bound * 0.99 < divergence(half_up, order) <= bound * (1 + 1e-4)  # it is nearly tight
    assert divergence(half_to_even, order) > bound * 1.05, "the planted fault"


# --- the sensitivity, all patterns ---------------------------------------------------------------------------------


def patterns(steps: int, separation: int, most: int) -> Iterator[tuple[int, ...]]:
    for count in range(1, most + 1):
        for pattern in itertools.combinations(range(steps), count):
            if all(b - a >= separation for a, b in itertools.pairwise(pattern)):
                yield pattern


def largest_change(numerators: list[int], steps: int, separation: int, most: int) -> Fraction:
    """Give the largest square of ||C u|| for equal rows of norm 1, by trying all patterns."""
    return max(
        Fraction(sum(change**2 for change in shifts(numerators, [int(t in pattern) for t in range(steps)])), ONE**2)
        for pattern in patterns(steps, separation, most)
    )


@pytest.mark.parametrize("separation", [1, 2, 3, 5])
def test_the_sensitivity_is_that_of_the_worst_pattern(separation: int) -> None:
    chance = random.Random(separation)
    for _ in range(15):
        steps, most = chance.randrange(1, 10), chance.randrange(1, 5)
        numerators = some_numerators(chance, chance.randrange(1, steps + 1))
        strategy = BandedToeplitz([m / ONE for m in numerators], steps=steps)
        found = Fraction(strategy.sensitivity(MinSeparation(separation, max_participations=most)))
        square = largest_change(numerators, steps, separation, most)
        assert square <= found**2 <= square * (1 + Fraction(1, 2**50))
        once = Fraction(strategy.sensitivity(SingleEpoch())) ** 2
        assert once >= largest_change(numerators, steps, 1, 1) == Fraction(sum(m * m for m in numerators), ONE**2)
        assert strategy.sensitivity(CyclicPoisson(steps, sample_rate=0.5)) ** 2 == pytest.approx(float(once))


def test_a_vector_of_rows_changes_no_more_than_equal_rows() -> None:
    generator = np.random.default_rng(3)
    strategy = BandedToeplitz([1.0, 0.75, 0.5, 0.5], steps=8)
    matrix = np.array(
        [shifts(strategy._numerators, [int(t == i) for t in range(8)]) for i in range(8)], dtype=np.float64
    ).T
    claimed = ONE * strategy.sensitivity(MinSeparation(2))
    for _ in range(500):
        rows = np.zeros((8, 3))
        rows[generator.integers(2) :: 2] = generator.normal(size=(4, 3))
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
        assert np.linalg.norm(matrix @ rows) <= claimed
    rows[:] = 0
    rows[::2] = [0.6, 0.0, 0.8]
    assert np.linalg.norm(matrix @ rows) == pytest.approx(claimed)


def test_coefficients_that_increase_make_another_pattern_the_worst() -> None:
    """The planted fault: the formula looks at the first steps, as close as they may be."""
    numerators = [ONE, 0, ONE]
    formula = sum(change**2 for change in shifts(numerators, [1, 1, 0, 0, 0]))
    assert (formula, largest_change(numerators, 5, 1, 2) * ONE**2) == (4 * ONE**2, 6 * ONE**2)


# --- the range -----------------------------------------------------------------------------------------------------


def column_of_inverse(numerators: list[int], steps: int) -> list[Fraction]:
    column = [Fraction(1)]
    for t in range(1, steps):
        column.append(-sum(numerators[j] * column[t - j] for j in range(1, min(t + 1, len(numerators)))) / ONE)
    return column


def test_the_inverse_has_entries_of_at_most_one() -> None:
    chance = random.Random(4)
    for _ in range(30):
        steps = chance.randrange(1, 40)
        numerators = some_numerators(chance, chance.randrange(1, steps + 1))
        column = column_of_inverse(numerators, steps)
        assert max(map(abs, column)) == 1
        square = sum(entry**2 for entry in column)
        gain = Fraction(BandedToeplitz([m / ONE for m in numerators], steps=steps)._gain())
        assert square <= gain**2 <= steps * (1 + Fraction(1, 10**6))
        assert gain**2 <= square * (1 + Fraction(1, 10**6))
    # Without monotone coefficients entries grow geometrically.
    assert max(map(abs, column_of_inverse([ONE, 2 * ONE], 40))) == 2**39


def wrapped(v: int, bits: int = 64) -> int:
    """Read v modulo 2**bits as a signed number."""
    return (v + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def test_wrapping_inside_of_the_rounding_is_seen_and_outside_it_is_not() -> None:
    before, after = 2**63 - ONE, 2**63
    assert half_up(after) - half_up(before) == 1
    assert half_up(wrapped(after)) - half_up(wrapped(before)) == 1 - 2**52, "modulo 2**64 these are not the same"
    chance = random.Random(5)
    for _ in range(200):
        numerators = some_numerators(chance, 5)
        w = noise(numerators, [chance.randrange(-(2**40), 2**40) for _ in range(10)])
        sums = [ONE * chance.randrange(-(2**70), 2**70) for _ in w]
        exact = [g + own for g, own in zip(sums, w, strict=True)]
        assert [wrapped(wrapped(g) + own) for g, own in zip(sums, w, strict=True)] == [wrapped(x) for x in exact]


def test_rounding_errors_move_the_noise_by_no_more_than_the_proof_says() -> None:
    chance = random.Random(6)
    for _ in range(50):
        numerators = some_numerators(chance, 6)
        z = [chance.randrange(-(2**30), 2**30) for _ in range(20)]
        column = column_of_inverse(numerators, 20)
        for t, own in enumerate(noise(numerators, z)):
            linear = sum(column[j] * z[t - j] for j in range(t + 1))
            assert abs(own - linear) <= sum(map(abs, column[: t + 1])) / 2
