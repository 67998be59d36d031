"""Hierarchical ranges: estimates against the normal equations and the truth, and every input that cannot be used."""

from __future__ import annotations

import copy
import json
import pickle
import re

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import hadamard
from scipy.stats import chi2

from dpnoise import ParameterError, local
from dpnoise.hazmat import SeededRng

Floats = NDArray[np.float64]

SHAPES = [(2, 2), (5, 2), (16, 4), (17, 4), (11, 8), (40, 4), (100, 16)]


def equations(protocol: local.HierarchicalRange, collected: local.Accumulator) -> tuple[Floats, Floats, Floats]:
    """Which leaves are under each node, its own share, and its precision, from the counters of reports."""
    spec = json.loads(protocol.to_json())
    keep, k, step = spec["keep"] / 2 ** spec["planes"], protocol.k, protocol.branching.bit_length() - 1
    depth, (counters, _, _) = (k - 1).bit_length(), collected._state.counters()
    under, shares, precisions = [], [], []
    for bits in range(depth, 0, -step):
        reports = counters[2 << bits : 4 << bits].reshape(-1, 2).astype(float)
        counts, n = hadamard(2**bits) @ (reports[:, 0] - reports[:, 1]) / keep, reports.sum()
        nodes = -(-k >> depth - bits)
        under += [np.arange(k) >> depth - bits == node for node in range(nodes)]
        shares += (counts[:nodes] / n).tolist()
        precisions += [n * keep**2] * nodes
    return np.array(under, float), np.array(shares), np.array(precisions)


@pytest.mark.parametrize(("k", "branching"), SHAPES)
def test_estimates_solve_the_normal_equations(k: int, branching: int) -> None:
    protocol, n = local.HierarchicalRange(k=k, epsilon=1.0, branching=branching), 2000
    collected = protocol.accumulator()
    collected.add(protocol.perturb(np.arange(n) * k // n, rng=SeededRng(k)))
    under, shares, precisions = equations(protocol, collected)
    weighted = under.T * precisions
    # Least squares with a Lagrange multiplier for the sum.
    matrix = np.block([[weighted @ under, np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]])
    solution = np.linalg.solve(matrix, np.append(weighted @ shares, 1.0))[:k]
    estimate = protocol.estimate(collected)
    assert estimate.counts == pytest.approx(n * solution, rel=1e-9, abs=1e-9 * n)
    map_of_own = np.linalg.inv(matrix)[:k, :k] @ weighted
    for first, last in np.sort(np.random.default_rng(k).integers(0, k, (20, 2))).tolist():
        query = ((first <= np.arange(k)) & (np.arange(k) <= last)).astype(float)
        expected = n * np.sqrt(((query @ map_of_own) ** 2 / precisions).sum())
        found = estimate.range(first, last)
        assert found.count == pytest.approx(n * query @ solution, rel=1e-9, abs=1e-9 * n)
        assert found.standard_error == pytest.approx(expected, rel=1e-9, abs=1e-6 * n)


def test_an_estimate_is_copied_as_it_is() -> None:
    protocol = local.HierarchicalRange(k=50, epsilon=1.0)
    estimate = protocol.estimate(protocol.perturb(np.arange(50)))
    for copied in (pickle.loads(pickle.dumps(estimate)), copy.deepcopy(estimate)):  # noqa: S301
        assert np.array_equal(copied.counts, estimate.counts)
        assert (copied.range(3, 31), copied.quantile(0.3)) == (estimate.range(3, 31), estimate.quantile(0.3))


@pytest.mark.parametrize(("k", "branching", "epsilon"), [(2, 4, 1.0), (13, 2, 3.0), (100, 4, 1.0), (100, 16, 0.5)])
def test_ranges_are_unbiased_and_as_accurate_as_they_say(k: int, branching: int, epsilon: float) -> None:
    protocol = local.HierarchicalRange(k=k, epsilon=epsilon, branching=branching)
    values = np.minimum(np.random.default_rng(k).geometric(min(0.5, 5 / k), 20_000) - 1, k - 1)
    first, last = k // 4, 2 * k // 3 - 1
    true = np.count_nonzero((first <= values) & (values <= last))
    repetitions = 300
    scores = []
    for _ in range(repetitions):
        found = protocol.estimate(protocol.perturb(values)).range(first, last)
        scores.append((found.count - true) / found.standard_error)
    # Standard errors are bounds, so the mean square is at most 1 but by chance: 1e-11 of chi squared.
    assert abs(np.mean(scores)) * np.sqrt(repetitions) < 6.5
    assert np.sum(np.square(scores)) < chi2.isf(1e-11, repetitions)
    # And not by far: a bound that is twice the error would be caught.
    assert np.mean(np.square(scores)) > 0.4


def test_a_tree_of_another_shape_is_caught() -> None:
    """The positive control: reports made with other levels."""
    sender = local.HierarchicalRange(k=64, epsilon=4.0, branching=2)
    reader = local.HierarchicalRange(k=64, epsilon=4.0, branching=8)
    reports = sender.perturb(np.full(20_000, 11))
    accumulator = reader.accumulator()
    accumulator.add(reports)
    assert accumulator.rejected > 10_000, "two thirds are on levels that the reader does not have"
    # A reader of rows that are shifted by one.
    found = sender.estimate(sender.perturb(np.full(20_000, 12))).range(11, 11)
    assert abs(found.count - 20_000) > 50 * found.standard_error


def test_counts_quantiles_and_the_whole() -> None:
    protocol = local.HierarchicalRange(k=100, epsilon=4.0)
    values = np.repeat(np.arange(100), 20_000)
    collected = protocol.accumulator()
    collected.add(protocol.perturb(values[:1_000_000]))
    collected.add(protocol.perturb(values[1_000_000:]))
    estimate = protocol.estimate(collected, level=0.9)
    assert estimate.counts.shape == (100,)
    assert estimate.counts.sum() == pytest.approx(2_000_000)
    whole = estimate.range(0, 99)
    assert (whole.count, whole.standard_error) == (pytest.approx(2_000_000), pytest.approx(0.0, abs=1e-3))
    part = estimate.range(20, 39)
    assert part.count == pytest.approx(estimate.counts[20:40].sum())
    assert (part.upper - part.count) / part.standard_error == pytest.approx(1.6449, abs=1e-4)
    assert part.count - part.lower == pytest.approx(part.upper - part.count)
    assert [estimate.quantile(q) for q in (0.0, 1.0)] == [0, pytest.approx(98, abs=2)]
    assert estimate.quantile(0.5) == pytest.approx(49, abs=5)
    single = local.OptimizedUnaryEncoding(k=100, epsilon=4.0)
    assert local.HierarchicalRange(k=100, epsilon=1.0).report_bytes == 2
    assert repr(estimate).startswith("RangeEstimate(n=2000000, rejected=0, level=0.9)\nvalue ")
    assert single.variance(2_000_000) > 0
    table = estimate.to_pandas()
    assert (table.columns.tolist(), table["count"].tolist()) == (["value", "count"], estimate.counts.tolist())
    with pytest.raises(ValueError, match="read-only"):
        estimate.counts[0] = 0.0


def test_a_long_range_is_more_accurate_than_a_sum_of_counts() -> None:
    protocol, single = (
        local.HierarchicalRange(k=1024, epsilon=1.0),
        local.OptimizedUnaryEncoding(k=1024, epsilon=1.0),
    )
    found = protocol.estimate(protocol.perturb(np.zeros(10_000, int))).range(100, 611)
    assert found.standard_error < 0.5 * np.sqrt(512 * single.variance(10_000))


def test_nobody_and_one_person() -> None:
    protocol = local.HierarchicalRange(k=50, epsilon=1.0)
    nothing = protocol.estimate(protocol.accumulator())
    assert (nothing.n, nothing.counts.tolist(), nothing.range(3, 9).count) == (0, [0.0] * 50, 0.0)
    one = protocol.estimate(protocol.perturb([7]))
    assert np.isfinite(one.counts).all()
    assert one.range(0, 24).standard_error > 1


def test_what_cannot_be_used_is_named() -> None:
    protocol = local.HierarchicalRange(k=50, epsilon=1.0)
    estimate = protocol.estimate(protocol.perturb([1, 2, 3]))
    for call, kind, message in [
        (lambda: local.HierarchicalRange(k=1, epsilon=1.0), ParameterError, "k must be an integer from 2 to 1048576"),
        (lambda: local.HierarchicalRange(k=9, epsilon=0.0), ParameterError, "epsilon must be between 2**-20 and 32"),
        (
            lambda: local.HierarchicalRange(k=9, epsilon=1.0, branching=3),
            ParameterError,
            "branching must be a power of two from 2 to 1024, got 3",
        ),
        (
            lambda: local.HierarchicalRange(k=9, epsilon=1.0, branching=2.0),
            TypeError,
            "branching must be an int",
        ),
        (lambda: protocol.perturb([50]), ParameterError, "values must be integers in [0, k) with k = 50"),
        (lambda: protocol.perturb([0.5]), TypeError, "values must be integers, got dtype float64"),
        (lambda: estimate.range(-1, 3), ParameterError, "first must be an integer from 0 to 49, got -1"),
        (lambda: estimate.range(4, 3), ParameterError, "last must be an integer from 4 to 49, got 3"),
        (lambda: estimate.range(4, 50), ParameterError, "last must be an integer from 4 to 49, got 50"),
        (lambda: estimate.quantile(1.5), ParameterError, "q must be between 0 and 1, got 1.5"),
        (lambda: protocol.estimate(protocol.accumulator(), level=1.0), ParameterError, "level must be between 0 and 1"),
        (
            lambda: protocol.estimate(local.HierarchicalRange(k=51, epsilon=1.0).accumulator()),
            ParameterError,
            f"collected must be of the same protocol, {protocol.to_json()}, got ",
        ),
        (
            lambda: protocol.accumulator().estimate(),
            TypeError,
            "reports of HierarchicalRange are not counted by value: use HierarchicalRange.estimate(accumulator)",
        ),
    ]:
        with pytest.raises(kind, match=re.escape(message)):
            call()
