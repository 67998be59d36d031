"""What can be done with an estimate: consistency, tables, pictures; and estimates without reports."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2, norm

from dpnoise import ParameterError, local

PROTOCOL = local.OptimizedUnaryEncoding(k=6, epsilon=1.0)
TRUE = np.array([4000, 0, 0, 900, 100, 0])
REPORTS = PROTOCOL.perturb(np.repeat(np.arange(6), TRUE))
METHODS = ["base-cut", "norm", "norm-mul", "norm-sub", "norm-cut", "simplex"]


def estimate(post: str | None, level: float = 0.95) -> local.Estimate:
    accumulator = PROTOCOL.accumulator()
    accumulator.add(REPORTS)
    return accumulator.estimate(level=level, post=post)  # type: ignore[arg-type]


def process(post: str, counts: list[float], n: int) -> np.ndarray:
    from dpnoise.local import _estimate

    return _estimate.post_processed(post, np.array(counts, float), n, absent_error=1.0, level=0.95)


@pytest.mark.parametrize("post", METHODS)
def test_only_the_counts_change(post: str) -> None:
    plain, processed = estimate(None), estimate(post)
    assert processed.post == post
    assert plain.post is None
    for name in ("standard_errors", "lower", "upper"):
        assert np.array_equal(getattr(plain, name), getattr(processed, name))
    assert not processed.counts.flags.writeable


def test_relative_errors() -> None:
    result = estimate("base-cut")
    assert 0 < np.count_nonzero(result.counts) < 6
    for i, count in enumerate(result.counts):
        expected = result.standard_errors[i] / count if count > 0 else np.inf
        assert result.relative_errors[i] == expected
    assert np.isinf(PROTOCOL.accumulator().estimate().relative_errors).all()
    assert np.isfinite(PROTOCOL.simulate([10**6] * 6).relative_errors).all()


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.integers(0, 10**6))
@settings(max_examples=300, deadline=None)
def test_methods_keep_what_they_promise(counts: list[float], n: int) -> None:
    near = {"rel": 1e-9, "abs": 1e-6}
    given = np.array(counts)
    for post in ("norm", "norm-mul", "norm-sub", "simplex"):
        assert process(post, counts, n).sum() == pytest.approx(n, **near)
    for post in ("norm-mul", "norm-sub", "norm-cut"):
        assert process(post, counts, n).min() >= 0
    shifts = process("norm", counts, n) - given
    assert np.allclose(shifts, shifts[0], rtol=0, atol=1e-6)
    cut = process("norm-cut", counts, n)
    assert np.all((cut == 0) | (cut == given))
    assert cut.sum() <= n + 1e-6
    base = process("base-cut", counts, n)
    assert np.all((base == 0) | ((base == given) & (given >= norm.isf(0.05 / given.size))))


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=12), st.integers(1, 10**4))
@settings(max_examples=200, deadline=None)
def test_norm_sub_is_the_iteration_of_the_paper(counts: list[float], n: int) -> None:
    values = np.array(counts)
    positive = np.ones(values.size, bool)
    for _ in range(values.size + 1):
        shift = (n - values[positive].sum()) / positive.sum()
        if not (left := positive & (values + shift >= 0)).any() or np.array_equal(left, positive):
            break
        positive = left
    expected = np.where(positive, values + shift, 0)
    assert np.allclose(process("norm-sub", counts, n), expected, rtol=1e-9, atol=1e-6)


def test_methods_by_hand() -> None:
    assert process("norm", [5, -1, 2], 9).tolist() == [6, 0, 3]
    assert process("norm-mul", [6, -1, 2], 4).tolist() == [3, 0, 1]
    assert process("norm-sub", [6, -1, 2], 4).tolist() == [4, 0, 0]
    assert process("norm-sub", [3, -1, 2], 4).tolist() == [2.5, 0, 1.5]
    assert process("norm-cut", [6, -1, 2, 1], 8).tolist() == [6, 0, 2, 0]
    assert process("base-cut", [6, -1, 2], 8).tolist() == [6, 0, 0]
    for post in METHODS:
        assert process(post, [0, 0], 0).tolist() == [0, 0]


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"post must be None or one of 'base-cut', .*, got 'clip'"):
        estimate("clip")


@pytest.mark.parametrize("package", ["pyarrow", "pandas", "polars"])
def test_tables(package: str) -> None:
    pytest.importorskip(package)
    result = estimate("norm-sub")
    table = getattr(result, {"pyarrow": "to_arrow", "pandas": "to_pandas", "polars": "to_polars"}[package])()
    columns = {"pyarrow": "column_names"}.get(package, "columns")
    assert list(getattr(table, columns)) == ["value", "count", "standard_error", "lower", "upper"]
    assert np.asarray(table["value"]).tolist() == list(range(6))
    assert np.array_equal(np.asarray(table["count"]), result.counts)
    assert np.array_equal(np.asarray(table["upper"]), result.upper)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("dpnoise._display.import_module", missing)
    with pytest.raises(ImportError, match="this needs polars: pip install polars"):
        estimate(None).to_polars()


def test_a_picture(tmp_path: Path) -> None:
    estimate("norm-sub").plot(tmp_path / "chart.png")
    assert (tmp_path / "chart.png").stat().st_size > 10_000
    with pytest.raises(ParameterError, match="path must end in one of"):
        estimate(None).plot(tmp_path / "chart.txt")
    with pytest.raises(ParameterError, match="labels must be 6, one for each value, got 2"):
        estimate(None).plot(tmp_path / "chart.png", labels=["a", "b"])


SIMULATED = [
    local.OptimizedUnaryEncoding(k=4, epsilon=1.0),
    local.SymmetricUnaryEncoding(k=4, epsilon=3.0),
    local.UnaryEncoding(k=4, p=0.75, q=0.25),
    local.GeneralizedRandomizedResponse(k=4, epsilon=1.0),
    local.LocalHashing(k=4, epsilon=1.0),
    local.HadamardResponse(k=4, epsilon=1.0),
    local.ProjectiveGeometryResponse(k=4, epsilon=1.0),
    local.SubsetSelection(k=4, epsilon=0.1),
]


def set_bits(protocol: local.Protocol, estimate: local.Estimate) -> np.ndarray:
    return estimate.counts * (protocol.p - protocol.q) + estimate.n * protocol.q


def within(bits: np.ndarray, n: int, probability: float, alarm: float = 1e-11) -> bool:
    """Whether sums of independent trials lie between the quantiles of the binomial distribution."""
    return bool(np.all((binom.ppf(alarm, n, probability) <= bits) & (bits <= binom.isf(alarm, n, probability))))


@pytest.mark.parametrize("protocol", SIMULATED, ids=repr)
def test_a_simulation_has_the_distribution_of_a_collection(protocol: local.Protocol) -> None:
    n, draws = 1000, 400
    bits = np.array([set_bits(protocol, protocol.simulate([n, 0, 0, 0])) for _ in range(draws)])
    assert np.allclose(bits, np.rint(bits), atol=1e-6), "whole numbers of reports"
    assert within(bits[:, 0].sum(), n * draws, protocol.p)
    assert within(bits[:, 1:].sum(), 3 * n * draws, protocol.q)
    # The spread, too: the sum of squares over draws, whose tails are those of chi-squared within a tenth.
    z = (bits[:, 1] - n * protocol.q) / np.sqrt(n * protocol.q * (1 - protocol.q))
    assert chi2(draws).ppf(1e-11) < (z**2).sum() < chi2(draws).isf(1e-11)
    # Positive control: the counts of somebody else's value.
    assert not within(bits[:, 1].sum(), n * draws, protocol.p)


def test_simulated_reports_on_single_values_add_up() -> None:
    protocol = local.GeneralizedRandomizedResponse(k=4, epsilon=1.0)
    for true in ([10, 20, 30, 0], [0, 0, 0, 2**40]):
        assert protocol.simulate(true).counts.sum() == pytest.approx(sum(true), rel=1e-9)
    # Positive control: the counters of bits are independent of each other.
    assert SIMULATED[0].simulate([10**6] * 4).counts.sum() != pytest.approx(4 * 10**6, rel=1e-9)


@pytest.mark.parametrize("protocol", SIMULATED, ids=repr)
def test_a_simulation_of_billions_is_unbiased(protocol: local.Protocol) -> None:
    true = np.array([3 * 10**9, 10**9, 10**6, 0])
    result = protocol.simulate(true)
    assert result.n == true.sum()
    assert np.all(np.abs(result.counts - true) < 6.5 * result.standard_errors)


def test_a_simulation_of_answers_is_unbiased() -> None:
    response = local.RandomizedResponse(epsilon=1.0)
    answers = response.simulate([600_000, 400_000])
    assert np.all(np.abs(answers.counts - [600_000, 400_000]) < 6.5 * answers.standard_errors)
    assert SIMULATED[0].simulate([0, 0, 0, 0]).counts.tolist() == [0, 0, 0, 0]


def test_a_simulation_of_sums_has_their_variance() -> None:
    protocol = local.SummationHistogramEncoding(k=500, epsilon=0.5)
    true = np.arange(500) * 10
    result = protocol.simulate(true)
    errors = (result.counts - true) / result.standard_errors
    assert np.abs(errors).max() < 7.5  # of 500: 3e-11
    assert chi2(500).ppf(1e-11) < (errors**2).sum() < chi2(500).isf(1e-11)
    assert protocol.simulate(np.zeros(500, int)).counts.tolist() == [0] * 500
    with pytest.raises(ParameterError, match=r"true_counts must sum to at most .*, so that sums fit"):
        protocol.simulate([2**40] * 500)


def test_bad_true_counts_are_refused() -> None:
    for bad, message in (
        ([1, 2, 3], r"true_counts must have shape \(4,\), one for each value, got \(3,\)"),
        ([1, 2, 3, -1], "true_counts must be at least 0 and sum to less than"),
        ([2**61, 2**61, 0, 0], "true_counts must be at least 0 and sum to less than"),
    ):
        with pytest.raises(ParameterError, match=message):
            SIMULATED[0].simulate(bad)
    with pytest.raises(TypeError, match="true_counts must be integers, got dtype float64"):
        SIMULATED[0].simulate([1.0, 2.0, 3.0, 4.0])
