"""Projective geometry response against its definition, in exact arithmetic: all values, all reports and all draws."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpnoise import local
from dpnoise.hazmat import ScriptedRng
from tests.vectors import local_spec

DESIGNS = [(prime, dimension) for prime in (2, 3, 5, 7, 11) for dimension in (2, 3, 4)]
SMALL = [design for design in DESIGNS if design[0] ** (design[1] - 1) < 130]
CHUNK = 1024

Array = NDArray[Any]


def points(prime: int, dimension: int) -> int:
    """Give the number of points, which is also that of hyperplanes."""
    return (prime**dimension - 1) // (prime - 1)


@cache
def digits(prime: int, dimension: int) -> Array:
    """Give the digits of all points: vectors whose highest digit but zeros is 1, as numbers in ascending order."""
    rows = np.arange(1, prime**dimension)[:, None] // prime ** np.arange(dimension) % prime
    highest = dimension - 1 - (rows[:, ::-1] != 0).argmax(axis=1)
    return rows[rows[np.arange(len(rows)), highest] == 1]


@cache
def incidence(prime: int, dimension: int) -> Array:
    """Give which reports (columns) support which values (rows)."""
    own = digits(prime, dimension)
    return own @ own[:, ::-1].T % prime == 0


def made(prime: int, dimension: int, epsilon: float = 1.0) -> local.ProjectiveGeometryResponse:
    """Give the protocol of a whole design."""
    protocol = local.ProjectiveGeometryResponse(k=points(prime, dimension), epsilon=epsilon, prime=prime)
    spec = json.loads(protocol.to_json())
    assert (spec["prime"], spec["dimension"]) == (prime, dimension)
    return protocol


def kept_part(protocol: local.ProjectiveGeometryResponse) -> Fraction:
    """Give the probability of a forced report."""
    spec = json.loads(protocol.to_json())
    return Fraction(spec["keep"], 2 ** spec["planes"])


# --- the design ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("prime", "dimension"), DESIGNS)
def test_every_two_values_share_as_many_reports(prime: int, dimension: int) -> None:
    """The blocks are as large as each other, and so is what two of them share."""
    supports = incidence(prime, dimension).astype(float)
    shared = np.full(2 * [len(supports)], points(prime, dimension - 2) if dimension > 2 else 0)
    np.fill_diagonal(shared, points(prime, dimension - 1))
    assert len(supports) == points(prime, dimension)
    assert np.array_equal(supports @ supports.T, shared)
    assert np.array_equal(supports.T @ supports, shared)


@pytest.mark.parametrize(("prime", "dimension"), SMALL)
def test_the_numbers_of_points_are_those_of_the_vectors(prime: int, dimension: int) -> None:
    spec = {"prime": prime, "dimension": dimension}
    rows = digits(prime, dimension).tolist()
    assert [local_spec.digits_of(spec, number, dimension) for number in range(len(rows))] == rows
    assert [local_spec.point_with(spec, row) for row in rows] == list(range(len(rows)))


# --- the client ------------------------------------------------------------------------------------------------------


def words(numbers: Array, k: int) -> Array:
    """Give, for each number below k, the bytes of an index word that becomes it."""
    size = 2 if k <= 256 else 4
    word = (2 * numbers.astype(object) + 1 << 8 * size - 1) // k  # in the middle of those that do
    assert (word * k % 2 ** (8 * size) >= 2 ** (8 * size) % k).all(), "none is rejected"
    return word.astype(f"<u{size}").view(np.uint8).reshape(-1, size)


def told(protocol: local.ProjectiveGeometryResponse, values: Array, w: Array, others: Array, *, keep: bool) -> Array:
    """Give the reports on values when these numbers are drawn, and the coin is the one or the other."""
    spec = json.loads(protocol.to_json())
    prime, dimension = spec["prime"], spec["dimension"]
    coin = next(size for size in (2, 4, 8) if 8 * size >= spec["planes"])
    parts = [
        words(w, points(prime, dimension - 1)),
        np.full((len(w), coin), 0 if keep else 255, np.uint8),
        words(others, points(prime, dimension)),
    ]
    chunks = range(0, len(values), CHUNK)
    stream = b"".join(part[first : first + CHUNK].tobytes() for first in chunks for part in parts)
    rng = ScriptedRng(stream)
    rows = protocol.perturb(values, rng=rng).view(np.uint8).reshape(len(values), protocol.report_bytes)
    assert rng.remaining == 0
    return rows.astype(np.int64) @ 256 ** np.arange(protocol.report_bytes)


def every_draw(prime: int, dimension: int) -> tuple[Array, Array]:
    """Give each value as often as there are draws of w, with all of them."""
    w = np.arange(points(prime, dimension - 1))
    values = np.arange(points(prime, dimension))
    return values.repeat(len(w)), np.tile(w, len(values))


def is_bijection(drawn: Array, prime: int, dimension: int) -> bool:
    """Return whether the draws for every value give each report that supports it once."""
    reports = np.sort(drawn.reshape(points(prime, dimension), -1), axis=1)
    return np.array_equal(reports, np.nonzero(incidence(prime, dimension))[1].reshape(reports.shape))


@pytest.mark.parametrize(("prime", "dimension"), DESIGNS)
def test_kept_reports_are_each_on_the_hyperplane_once(prime: int, dimension: int) -> None:
    values, w = every_draw(prime, dimension)
    others = w * 7 % points(prime, dimension)
    assert is_bijection(told(made(prime, dimension), values, w, others, keep=True), prime, dimension)


@pytest.mark.parametrize(("prime", "dimension"), DESIGNS)
def test_other_reports_are_those_that_are_drawn(prime: int, dimension: int) -> None:
    others = np.tile(np.arange(points(prime, dimension)), 3)
    values, w = others * 5 % points(prime, dimension), others % points(prime, dimension - 1)
    assert np.array_equal(told(made(prime, dimension), values, w, others, keep=False), others)


Insert = Callable[[int, list[int], list[int], int], list[int]]


def insert(prime: int, own: list[int], row: list[int], place: int) -> list[int]:
    """Put the digit in that the value forces."""
    forced = -sum(a * b for a, b in zip(own[:place], row[:place], strict=True)) % prime
    return [*row[:place], forced, *row[place:]]


def with_another_sign(prime: int, own: list[int], row: list[int], place: int) -> list[int]:
    forced = sum(a * b for a, b in zip(own[:place], row[:place], strict=True)) % prime
    return [*row[:place], forced, *row[place:]]


def one_place_lower(prime: int, own: list[int], row: list[int], place: int) -> list[int]:
    return insert(prime, own, row, max(place - 1, 0))


def with_one_instead_of_zeros(prime: int, own: list[int], row: list[int], place: int) -> list[int]:
    """Report a vector that begins with a digit of its own where w vanishes before it."""
    return insert(prime, own, row, place) if any(row[:place]) else [*row[:place], 1, *row[place:]]


def not_reversed(prime: int, own: list[int], row: list[int], place: int) -> list[int]:
    """Read w as a value, whose last digit but zeros is 1: a digit behind it may be the last."""
    return insert(prime, own, row[::-1], place)


def drawn_by(put_in: Insert, prime: int, dimension: int) -> Array:
    """Give the reports that this way of putting a digit in gives."""
    spec = {"prime": prime, "dimension": dimension}
    reports = []
    for value, w in zip(*every_draw(prime, dimension), strict=True):
        own = local_spec.digits_of(spec, value, dimension)
        row = local_spec.digits_of(spec, w, dimension - 1)[::-1]
        vector = np.array(put_in(prime, own, row, local_spec.place_of(own))[::-1])
        reports += np.nonzero((digits(prime, dimension) == vector).all(axis=1))[0].tolist() or [-1]
    return np.array(reports)


@pytest.mark.parametrize(("prime", "dimension"), [(3, 3), (5, 3), (2, 4)])
@pytest.mark.parametrize("fault", [with_another_sign, one_place_lower, with_one_instead_of_zeros, not_reversed])
def test_a_digit_put_in_wrongly_is_noticed(prime: int, dimension: int, fault: Insert) -> None:
    """The positive control. Modulo 2 a number has only one sign, and every digit but 0 is 1."""
    assert is_bijection(drawn_by(insert, prime, dimension), prime, dimension)
    is_none = prime == 2 and fault in (with_another_sign, not_reversed)
    assert is_bijection(drawn_by(fault, prime, dimension), prime, dimension) == is_none


# --- privacy and law -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.5])
@pytest.mark.parametrize(("prime", "dimension"), DESIGNS)
def test_the_largest_likelihood_ratio_is_that_of_the_formula(prime: int, dimension: int, epsilon: float) -> None:
    protocol = made(prime, dimension, epsilon)
    keep, count, width = kept_part(protocol), points(prime, dimension), points(prime, dimension - 1)
    # Probabilities over one denominator, which is that of a fraction with a power of two, K and c below it.
    one = keep.denominator * count * width
    assert one < 2**62
    outside, extra = int((1 - keep) / count * one), int(keep / width * one)
    weights = outside + extra * incidence(prime, dimension).astype(np.int64)
    assert (weights.sum(axis=1) == one).all()
    largest = max(
        Fraction(int(most), int(least)) for most, least in set(zip(weights.max(0), weights.min(0), strict=True))
    )
    spec = json.loads(protocol.to_json())
    assert largest == 1 + Fraction(spec["keep"] * count, (2 ** spec["planes"] - spec["keep"]) * width)
    forgotten = 1 + Fraction(spec["keep"] * count, 2 ** spec["planes"] - spec["keep"])
    assert (largest != forgotten) == (dimension > 2), "the positive control: one report supports each value"
    with localcontext(prec=60):
        exact = (Decimal(largest.numerator) / Decimal(largest.denominator)).ln()
        assert Decimal(math.nextafter(protocol.epsilon, 0)) < exact <= Decimal(protocol.epsilon)
    assert 0.999 * epsilon <= protocol.epsilon <= epsilon


@pytest.mark.parametrize(("prime", "dimension"), DESIGNS)
def test_the_law_is_that_of_an_enumeration(prime: int, dimension: int) -> None:
    protocol = made(prime, dimension)
    keep, count, width = kept_part(protocol), points(prime, dimension), points(prime, dimension - 1)
    supports = incidence(prime, dimension).astype(float)
    in_both = supports @ supports.T
    found = {
        int(both): (1 - keep) * Fraction(width, count) + keep * Fraction(int(both), width) for both in set(in_both.flat)
    }
    other, own = found.values() if dimension > 2 else (found[0], found[width])
    other, own = min(other, own), max(other, own)
    assert own == (width + keep * prime ** (dimension - 1)) / count
    assert other == (width - keep * Fraction(prime ** (dimension - 2), width)) / count
    assert own - other == keep * Fraction(prime ** (dimension - 2), width)
    assert (protocol.p, protocol.q) == pytest.approx((float(own), float(other)), rel=1e-15)
    ratio = 1 + keep * count / ((1 - keep) * width)
    exact = (ratio + prime - 1) * (1 + ratio * (1 - Fraction(1, prime ** (dimension - 2))) / (prime - 1))
    assert other * (1 - other) / (own - other) ** 2 == exact / (ratio - 1) ** 2
    assert protocol.variance(n=7, frequency=0.0) == pytest.approx(7 * float(exact / (ratio - 1) ** 2), rel=1e-12)


# --- the decoder -----------------------------------------------------------------------------------------------------


def supports_of(protocol: local.ProjectiveGeometryResponse, reports: Array) -> Array:
    """Give how many reports support each value, as the library decodes them: from its estimates."""
    rows = reports.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : protocol.report_bytes]
    counts = protocol.estimate(np.ascontiguousarray(rows)).counts
    supports = counts * (protocol.p - protocol.q) + len(reports) * protocol.q
    assert abs(supports - supports.round()).max() < 1e-4
    return supports.round().astype(np.int64)


@pytest.mark.parametrize(("prime", "dimension"), SMALL)
def test_every_single_report_counts_for_what_it_supports(prime: int, dimension: int) -> None:
    protocol, supports = made(prime, dimension), incidence(prime, dimension)
    for report in range(len(supports)):
        assert np.array_equal(supports_of(protocol, np.array([report])), supports[:, report])


@pytest.mark.parametrize(("prime", "dimension"), DESIGNS)
def test_reports_count_for_what_they_support(prime: int, dimension: int) -> None:
    """Any number of values that takes this dimension, and any counters."""
    count, fewer, rng = points(prime, dimension), points(prime, dimension - 1), np.random.default_rng(prime)
    supports = incidence(prime, dimension).astype(np.int64)
    many = rng.integers(fewer + 1, count, 12).tolist() if count > 40 else range(max(2, fewer + 1), count)
    fewest = max(
        2, fewer + 1, math.ceil(count / 4)
    )  # for fewer values the default has less than a fourth of the points
    for k in (fewest, *(k for k in many if k >= fewest), count):
        protocol = local.ProjectiveGeometryResponse(k=k, epsilon=2.0, prime=prime)
        reports = rng.integers(0, count, 50) * rng.integers(0, 2, 50)
        expected = supports[:k] @ np.bincount(reports, minlength=count)
        assert np.array_equal(supports_of(protocol, reports), expected)
        if count > 3:
            assert not np.array_equal(supports_of(protocol, (reports + 1) % count), expected), "the positive control"


@pytest.mark.parametrize(
    ("k", "epsilon"), [(20_000, 1.0), (20_000, 5.0), (20_000, 9.5), (300_000, 3.0), (1_000_000, 1.0)]
)
def test_values_of_large_designs_have_the_supports_of_their_definition(k: int, epsilon: float) -> None:
    protocol = local.ProjectiveGeometryResponse(k=k, epsilon=epsilon)
    spec, rng = json.loads(protocol.to_json()), np.random.default_rng(k)
    count = points(spec["prime"], spec["dimension"])
    reports, values = rng.integers(0, count, 300), np.concatenate([rng.integers(0, k, 200), [0, 1, k - 1]])
    own, other = (
        np.array([local_spec.digits_of(spec, int(number), spec["dimension"]) for number in numbers])
        for numbers in (values, reports)
    )
    expected = (own @ other[:, ::-1].T % spec["prime"] == 0).sum(axis=1)
    assert np.array_equal(supports_of(protocol, reports)[values], expected)


# --- the choice of the prime -----------------------------------------------------------------------------------------


def primes(end: int) -> list[int]:
    """Give the primes below a number."""
    return [n for n in range(2, end) if all(n % d for d in range(2, math.isqrt(n) + 1))]


def cost(x: float) -> float:
    """Give how much larger the variance is than the smallest one, where q - 1 = x e^epsilon."""
    return (1 + x) ** 2 / (4 * x)


def test_a_prime_costs_at_most_as_much_as_the_page_says() -> None:
    """The worst epsilon between two primes is where both cost the same."""
    costs = {pair: cost(math.sqrt((pair[1] - 1) / (pair[0] - 1))) for pair in pairwise(primes(100_000))}
    assert max(costs.values()) == costs[2, 3] == pytest.approx((1 + math.sqrt(2)) ** 2 / (4 * math.sqrt(2)))
    assert [pair for pair, value in costs.items() if value > 1.0184] == [(2, 3), (3, 5)]
    assert costs[2, 3] < 1.031


PAGE = Path(__file__).parents[2] / "docs/proofs/projective_geometry.md"


def excess(k: int, epsilon: float) -> float:
    """Give the variance for the prime that is chosen, as a multiple of the smallest one in the limit."""
    spec = json.loads(local.ProjectiveGeometryResponse(k=k, epsilon=epsilon).to_json())
    prime, dimension, ratio = spec["prime"], spec["dimension"], math.exp(epsilon)
    exact = (ratio + prime - 1) * (1 + ratio * (1 - prime ** (2.0 - dimension)) / (prime - 1))
    return exact / (4 * ratio)


def test_the_table_of_the_page_is_what_the_chosen_primes_cost() -> None:
    table = [row.strip("| ").split(" | ") for row in PAGE.read_text(encoding="utf-8").splitlines() if row[:1] == "|"]
    header, _, *rows = table
    ks = [int(re.sub(r"\D", "", name)) for name in header[1:]]
    for name, *cells in rows:
        first, last = (round(10 * float(end)) for end in name.split(" to "))
        for k, cell in zip(ks, cells, strict=True):
            assert cell == f"{max(excess(k, tenth / 10) for tenth in range(first, last + 1)):.2f}"
