"""Protocols for numbers: their exact laws, what comes out of them, and every input that cannot be used."""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pyarrow as pa
import pytest
from refusals import refuses

from dpnoise import DiscreteGaussian, ParameterError, local
from dpnoise.accounting import BudgetExceeded, Ledger, PrivacyCost, amplify_by_shuffling
from dpnoise.hazmat import ScriptedRng, SeededRng

EPSILONS = (2.0**-20, 0.1, 0.5, 1.0, 3.0, 10.0, 17.0, 32.0)
KINDS = (local.DuchiMean, local.PiecewiseMean, local.HybridMean)
MEANS = [kind(epsilon=epsilon) for kind in KINDS for epsilon in EPSILONS]
WAVES = [local.SquareWave(k=k, epsilon=epsilon) for k in (2, 64, 4096) for epsilon in (2.0**-20, 1.0, 32.0)]
PROTOCOLS = [*MEANS, *WAVES]
NUMBERS = [Fraction(n, 64) for n in (-64, -63, -20, -1, 0, 7, 32, 64)]


# --- The exact law -------------------------------------------------------------------------------------------------


class WindowLaw(NamedTuple):
    """The numbers that reports stand for and their probabilities, as integers over common denominators.

    Fractions of their own would take ten times as long.
    """

    numbers: list[int]
    unit: Fraction
    weights: list[int]
    total: int

    def moment(self, power: int) -> Fraction:
        sums = sum(number**power * weight for number, weight in zip(self.numbers, self.weights, strict=True))
        return Fraction(sums, self.total) / self.unit**power


def window_law(x: Fraction, k: int, width: int, keep: Fraction) -> WindowLaw:
    """Follow the definition."""
    outputs = k + width - 1
    exact = (1 + x) / 2 * (k - 1)
    below = math.floor(exact)
    anywhere = (1 - keep) / outputs
    starts = {below: keep * (1 - (exact - below)) / width, below + 1: keep * (exact - below) / width}
    total = math.lcm(anywhere.denominator, *(more.denominator for more in starts.values()))
    weights = [int(anywhere * total)] * outputs
    for start, more in starts.items():
        for output in range(start, min(start + width, outputs)) if more else ():
            weights[output] += int(more * total)
    assert sum(weights) == total
    return WindowLaw([2 * r - (outputs - 1) for r in range(outputs)], keep * (k - 1), weights, total)


Mixture = list[tuple[Fraction, WindowLaw]]


def law(protocol: local.MeanProtocol, x: Fraction) -> Mixture:
    """Give the parts of the law of a report, each with its probability."""
    spec = json.loads(protocol.to_json())
    piecewise = window_law(x, spec["k"], spec["width"], Fraction(spec["keep"], 2 ** spec["planes"]))
    if isinstance(protocol, local.HybridMean):
        alpha = Fraction(spec["alpha"], 2**24)
        duchi = window_law(x, 2, 1, Fraction(spec["duchi_keep"], 2 ** spec["duchi_planes"]))
        return [(alpha, piecewise), (1 - alpha, duchi)]
    return [(Fraction(1), piecewise)]


def moment(mixture: Mixture, power: int) -> Fraction:
    return sum((share * part.moment(power) for share, part in mixture), Fraction(0))


def values_of(protocol: local.MeanProtocol) -> np.ndarray:
    """Give the number that each report stands for."""
    parts = [np.array(part.numbers) / float(part.unit) for _, part in law(protocol, Fraction(0))]
    return np.concatenate(parts)


@pytest.mark.parametrize("protocol", MEANS, ids=repr)
def test_reports_are_unbiased_and_their_variance_is_the_formula(protocol: local.MeanProtocol) -> None:
    for x in NUMBERS:
        exact = law(protocol, x)
        assert moment(exact, 1) == x
        variance = moment(exact, 2) - x**2
        assert protocol.variance(7, float(x)) == pytest.approx(float(variance / 7), rel=1e-11)


def test_a_law_with_another_probability_is_biased() -> None:
    """The positive control: 2 % less is kept than the values that reports stand for assume."""
    keep = Fraction(3, 4)
    exact = window_law(Fraction(1, 2), 10, 4, keep * Fraction(98, 100))
    assert exact.moment(1) * Fraction(98, 100) == Fraction(98, 100) / 2


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.7, 1.0, 2.0, 5.0, 8.0, 10.0])
def test_variances_are_those_of_the_papers(epsilon: float) -> None:
    """Of real numbers and the requested epsilon; the achieved one is up to 0.1 % smaller, and so costs up to 0.2 %."""
    e, s = math.exp(epsilon), math.exp(epsilon / 2)
    for x in (0.0, 0.3, -1.0):
        duchi = ((e + 1) / (e - 1)) ** 2 - x**2
        piecewise = x**2 / (s - 1) + (s + 3) / (3 * (s - 1) ** 2)
        alpha = 1 - 1 / s if epsilon > 0.61 else 0.0
        expected = (duchi, piecewise, alpha * piecewise + (1 - alpha) * duchi)
        for kind, variance in zip(KINDS, expected, strict=True):
            found = kind(epsilon=epsilon).variance(1, x)
            # Rounding to the grid matters where noise is least.
            assert found == pytest.approx(variance, rel=0.01, abs=1e-3 * duchi * (kind is local.DuchiMean))


def test_a_large_epsilon_costs_no_more_than_the_paper_says() -> None:
    for epsilon in (12.0, 16.0, 17.0, 20.0, 24.0, 32.0):
        s = math.exp(epsilon / 2)
        worst = 1 / (s - 1) + (s + 3) / (3 * (s - 1) ** 2)
        protocol = local.PiecewiseMean(epsilon=epsilon)
        assert max(protocol.variance(1, x) for x in np.linspace(-1, 1, 1001)) < 1.02 * worst


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_hybrid_has_the_smallest_largest_variance(epsilon: float) -> None:
    protocols = [kind(epsilon=epsilon) for kind in KINDS]
    largest = [max(protocol.variance(1, x) for x in np.linspace(0, 1, 101)) for protocol in protocols]
    if epsilon <= 10.0:  # beyond, one window and the grid are better than the hybrid by more than it gains
        assert largest[2] <= 1.001 * min(largest)


# --- Means ---------------------------------------------------------------------------------------------------------


def least_variance(protocol: local.MeanProtocol) -> float:
    """Return the variance of randomisation alone, with the window in the middle, exactly from the specification."""
    spec = json.loads(protocol.to_json())
    if "width" not in spec:
        return protocol.variance(1, 1.0)  # of the noise, as 1 is on the grid

    def of(k: int, width: int, keep: int, planes: int) -> Fraction:
        kept = Fraction(keep, 2**planes)
        uniform = kept * (width**2 - 1) + (1 - kept) * ((k + width - 1) ** 2 - 1)
        return uniform / 12 * (2 / (kept * (k - 1))) ** 2

    window = of(spec["k"], spec["width"], spec["keep"], spec["planes"])
    if "alpha" not in spec:
        return float(window)
    share = Fraction(spec["alpha"], 2**24)
    return float(share * window + (1 - share) * of(2, 1, spec["duchi_keep"], spec["duchi_planes"]))


@pytest.mark.parametrize("protocol", MEANS, ids=repr)
def test_an_estimate_is_the_mean_of_what_reports_stand_for(protocol: local.MeanProtocol) -> None:
    reports = protocol.perturb(np.linspace(-1, 1, 999), rng=SeededRng(1))
    values = values_of(protocol)
    numbers = values[reports.astype(np.int64) @ 256 ** np.arange(protocol.report_bytes)]
    found = protocol.estimate(reports, level=0.9)
    assert found.mean == pytest.approx(numbers.mean(), rel=1e-9, abs=1e-12 * numbers.std())
    clipped = min(max(found.mean, -1.0), 1.0)
    error = math.sqrt(max(np.mean(numbers**2) - clipped**2, least_variance(protocol)) / 999)
    assert found.standard_error == pytest.approx(error, rel=1e-9)
    assert (found.upper - found.mean) / error == pytest.approx(1.6448536269514722, rel=1e-9)
    assert (found.n, found.rejected, found.level) == (999, 0, 0.9)
    accumulator = protocol.accumulator()
    for part in np.array_split(reports, 3):
        accumulator.add(part)
    assert protocol.estimate(local.Accumulator.from_bytes(accumulator.to_bytes()), level=0.9) == found


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.5])
def test_noisy_means_are_what_their_sums_say(epsilon: float, delta: float) -> None:
    protocol: local.MeanProtocol = local.LaplaceMean(epsilon=epsilon)
    if delta:
        protocol = local.GaussianMean(epsilon=epsilon, delta=delta)
    assert (protocol.epsilon, protocol.delta) == (epsilon, delta)
    assert protocol.cost == PrivacyCost(epsilon, delta, "substitute")
    spec = json.loads(protocol.to_json())
    reports = protocol.perturb(np.linspace(-1, 1, 999), rng=SeededRng(1))
    sums = reports.view("<u4").astype(int).ravel() - spec["bound"]
    found = protocol.estimate(reports)
    assert found.mean == pytest.approx(sums.sum() / spec["unit"] / 999, rel=1e-12)
    if isinstance(protocol, local.GaussianMean):
        noise = protocol.sigma**2
        assert protocol.sigma == spec["sigma"] / spec["unit"]
    else:
        q = mpmath.exp(-mpmath.mpf(epsilon) / (2 * spec["unit"]))
        noise = float(2 * q / (1 - q) ** 2 / spec["unit"] ** 2)
        assert noise == pytest.approx(8 / epsilon**2, rel=1e-3)
    assert protocol.variance(5, 1.0) == pytest.approx(noise / 5, rel=1e-9)
    between = protocol.variance(5, 0.5 / spec["unit"]) - protocol.variance(5, 0.0)
    assert between == pytest.approx(0.25 / spec["unit"] ** 2 / 5, rel=1e-3, abs=1e-9 * noise)
    clipped = min(max(found.mean, -1.0), 1.0)
    assert found.standard_error == pytest.approx(math.sqrt((noise + 1 - clipped**2) / 999), rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [2.0**-64, 1e-6, 0.1, 0.9])
def test_sigma_is_that_of_the_central_mechanism(epsilon: float, delta: float) -> None:
    """In steps it is the next whole number above."""
    spec = json.loads(local.GaussianMean(epsilon=epsilon, delta=delta).to_json())
    central = DiscreteGaussian(epsilon=epsilon, delta=delta, sensitivity=2 * spec["unit"])
    assert spec["sigma"] == math.ceil(central.scale)


@pytest.mark.parametrize("delta", [0.0, -1.0, 1.0, 2.0**-65])
def test_a_delta_that_is_none_is_refused(delta: float) -> None:
    refuses(
        ParameterError,
        f"delta must be at least 2**-64 and below 1, got {delta!r}",
        local.GaussianMean,
        epsilon=1.0,
        delta=delta,
    )


def test_shuffling_takes_no_delta() -> None:
    cost = local.GaussianMean(epsilon=1.0, delta=1e-6).cost
    refuses(ParameterError, "cost must have a delta of 0, got 1e-06", amplify_by_shuffling, cost, n=10**6, delta=1e-9)
    assert amplify_by_shuffling(local.LaplaceMean(epsilon=1.0).cost, n=10**6, delta=1e-9).epsilon < 0.1


def test_deltas_of_several_attributes() -> None:
    deltas = [0.25, 1e-6, 2.0**-64]
    attributes: dict[str, Any] = {f"{d}": local.GaussianMean(epsilon=0.5, delta=d) for d in deltas}
    attributes["none"] = local.DuchiMean(epsilon=0.25)
    split, sampled = local.Split(attributes=attributes), local.Sampled(attributes=attributes)
    exact = sum(map(Fraction, deltas))
    assert exact <= Fraction(split.delta) <= exact * (1 + Fraction(2) ** -51)
    assert (split.cost.delta, sampled.cost) == (split.delta, PrivacyCost(0.5, 0.25, "substitute"))
    pure = {name: attributes["none"] for name in ("a", "b")}
    assert local.Split(attributes=pure).delta == local.Sampled(attributes=pure).delta == 0.0


def test_a_report_can_be_paid_for(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", epsilon=1.5, delta=1e-6, relation="substitute")
    protocol = local.GaussianMean(epsilon=1.0, delta=1e-6)
    ledger.spend(protocol)
    assert (ledger.spent.epsilon, ledger.spent.delta) == (1.0, 1e-6)
    with pytest.raises(BudgetExceeded):
        ledger.spend(local.GaussianMean(epsilon=0.1, delta=1e-9))


@pytest.mark.parametrize(
    "protocol", [*MEANS, local.LaplaceMean(epsilon=1.0), local.GaussianMean(epsilon=1.0, delta=1e-6)], ids=repr
)
@pytest.mark.filterwarnings("ignore::dpnoise.DoubtfulInputWarning")
def test_equal_reports_do_not_look_certain(protocol: local.MeanProtocol) -> None:
    least = least_variance(protocol)
    assert 0 < least <= min(protocol.variance(1, x) for x in np.linspace(-1, 1, 201)) * (1 + 1e-9)
    for n in (1, 2, 5):
        for report in (protocol.perturb([0.3]), protocol.perturb([-1.0])):
            found = protocol.estimate(np.repeat(report, n, axis=0))
            assert found.standard_error >= math.sqrt(least / n) * (1 - 1e-12)


@pytest.mark.filterwarnings("ignore::dpnoise.DoubtfulInputWarning")
def test_what_rounding_makes_negative_is_no_error() -> None:
    protocol = local.PiecewiseMean(epsilon=4.0)
    collected = protocol.accumulator()
    for number, doublings in ((1821, 42), (1822, 2)):  # 2**44 of the first, 4 of the second
        collected.add(np.array([number], "<u2").view(np.uint8)[np.newaxis])
        for _ in range(doublings):
            collected.merge(pickle.loads(pickle.dumps(collected)))  # noqa: S301
    assert protocol.estimate(collected).standard_error > 0


def test_one_report_does_not_look_certain() -> None:
    protocol = local.DuchiMean(epsilon=1.0)
    found = protocol.estimate(np.zeros((2, 1), np.uint8))
    assert found.mean < -2
    assert found.standard_error > 1


@pytest.mark.filterwarnings("ignore::dpnoise.DoubtfulInputWarning")
def test_malformed_reports_are_counted() -> None:
    protocol = local.HybridMean(epsilon=1.0)
    reports = np.vstack([protocol.perturb(np.zeros(10)), np.full((3, 2), 0xFF, np.uint8)])
    found = protocol.estimate(reports)
    assert (found.n, found.rejected) == (10, 3)
    assert protocol.accumulator().rejected_reasons == {}


def test_threads_share_the_work_without_a_seam() -> None:
    """With hardly any noise reports tell the numbers, in their order."""
    numbers = np.sin(np.arange(300_000))
    for protocol in (local.PiecewiseMean(epsilon=32.0), local.HybridMean(epsilon=32.0)):
        values = values_of(protocol)
        told = values[protocol.perturb(numbers, threads=4).view("<u2").ravel()]
        assert np.mean(np.abs(told - numbers) < 1e-3) > 0.9999
    wave = local.SquareWave(k=4096, epsilon=32.0)
    told = wave.perturb(np.abs(numbers), threads=4).view("<u2").ravel()
    assert np.mean(told == np.floor(np.abs(numbers) * 4096)) > 0.9999


# --- Distributions -------------------------------------------------------------------------------------------------


def test_a_density_is_a_distribution() -> None:
    protocol = local.SquareWave(k=20, epsilon=2.0)
    for smoothing in (True, False):
        found = protocol.estimate(protocol.perturb(np.linspace(0, 0.5, 5000), rng=SeededRng(1)), smoothing=smoothing)
        assert found.probabilities.sum() == pytest.approx(1.0)
        assert found.probabilities.min() >= 0
        assert np.array_equal(found.edges, np.linspace(0, 1, 21))
        assert (found.n, found.rejected, found.smoothing) == (5000, 0, smoothing)
        cdf = found.cdf()
        assert (cdf[0], cdf[-1]) == (0.0, 1.0)
        assert found.mean() == pytest.approx(0.25, abs=0.05)
        assert found.quantile(0.5) == pytest.approx(0.25, abs=0.05)
        assert found.quantile([0.0, 1.0]).shape == (2,)
        assert np.allclose(found.quantile(cdf[3:9]), found.edges[3:9])
        for array in (found.probabilities, found.edges):
            assert not array.flags.writeable
        names = ["lower", "upper", "probability"]
        assert found.to_arrow().column_names == found.to_polars().columns == names
        assert found.to_pandas().probability.sum() == pytest.approx(1.0)
        for bad in (-0.1, 1.1, math.nan, [0.5, 2.0]):
            refuses(ParameterError, "q must be between 0 and 1, in every element", found.quantile, bad)
        refuses(TypeError, "q must be a number or an array of numbers, got dtype", found.quantile, "0.5")


def test_the_result_is_always_the_same() -> None:
    protocol = local.SquareWave(k=64, epsilon=1.0)
    reports = protocol.perturb(np.linspace(0, 1, 1000))
    first, second = (protocol.estimate(reports).probabilities for _ in range(2))
    assert np.array_equal(first, second)


# --- Protocols as values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_a_protocol_is_a_value(protocol: local.Protocol) -> None:
    for same in (
        pickle.loads(pickle.dumps(protocol)),  # noqa: S301
        local.protocol_from_json(protocol.to_json()),
        type(protocol).from_json(protocol.to_json()),
        eval(repr(protocol), vars(local).copy()),  # noqa: S307
    ):
        assert same == protocol
        assert type(same) is type(protocol)
        assert (same.spec_id, same.epsilon) == (protocol.spec_id, protocol.epsilon)
    assert 0.999 * protocol.requested_epsilon <= protocol.epsilon <= protocol.requested_epsilon


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_other_fields_are_refused(protocol: local.Protocol) -> None:
    fields = json.loads(protocol.to_json())
    for name in set(fields) - {"protocol", "version", "epsilon"}:
        if name == "k" and isinstance(protocol, local.SquareWave):
            continue  # the windows of two numbers of bins may be the same
        changed = json.dumps({**fields, name: fields[name] + 1})
        refuses(
            ParameterError, "its probabilities are not those that its epsilon gives", type(protocol).from_json, changed
        )


def test_parameters_out_of_range() -> None:
    mean = local.HybridMean(epsilon=1.0)
    for x in (1.5, -1.1, math.nan):
        refuses(ParameterError, f"x must be between -1 and 1, got {x!r}".replace("nan", "NaN"), mean.variance, 10, x)
    refuses(TypeError, "x must be a number, got str", mean.variance, 10, "0")
    for n in (0, -1, 2**64):
        refuses(ParameterError, f"n must be an integer from 1 to 2**64 - 1, got {n}", mean.variance, n, 0.0)


# --- Bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS[::5], ids=repr)
def test_all_ways_to_pass_numbers_agree(protocol: local.MeanProtocol | local.SquareWave) -> None:
    values = [0, 1, 1, 0, 1] * 20
    expected = protocol.perturb(values, rng=SeededRng(1))
    assert expected.shape == (100, protocol.report_bytes)
    strided = np.full(300, 7.0)
    strided[::3] = values
    kinds = [np.array(values, dtype) for dtype in ("i1", "u8", ">f4", "f2", "f8", "g")]
    for given in (*kinds, tuple(values), strided[::3], pa.array(values), np.ma.masked_array(values)):
        assert np.array_equal(protocol.perturb(given, rng=SeededRng(1)), expected)
    for given in ([], (), np.empty(0, np.float32)):
        assert protocol.perturb(given).shape == (0, protocol.report_bytes)
    out = np.empty_like(expected)
    assert protocol.perturb(values, out=out, rng=SeededRng(1)) is out
    assert np.array_equal(out, expected)
    refuses(ParameterError, "out must have the shape", protocol.perturb, values, out=out[:-1])


@pytest.mark.parametrize(
    "bad", [1.0 + 2**-52, -1.0 - 2**-52, math.nan, -math.nan, math.inf, -math.inf, 4242.4242, 2**63, 1e300]
)
def test_a_number_outside_the_range_is_not_shown(bad: float) -> None:
    for protocol, range_ in ((MEANS[0], "[-1, 1]"), (MEANS[-1], "[-1, 1]"), (WAVES[0], "[0, 1]")):
        for rng in (ScriptedRng(b""), None):
            with pytest.raises(ParameterError) as caught:
                protocol.perturb([0.5, bad, 0.5], rng=rng)
            assert str(caught.value) == f"values must be numbers in {range_}"


def test_ranges_have_ends() -> None:
    refuses(ParameterError, "values must be numbers in [0, 1]", WAVES[0].perturb, [-5e-324])
    refuses(ParameterError, "values must be numbers in [0, 1]", WAVES[0].perturb, [-1])
    assert len(WAVES[0].perturb([-0.0, 0.0, 5e-324, 1.0])) == 4
    assert len(MEANS[0].perturb([-1.0, -5e-324, -0.0, 1])) == 4
    too_large = np.array([np.finfo("g").max])
    refuses(ParameterError, "values must be numbers in [-1, 1]", MEANS[0].perturb, too_large)


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        ([0.5, None], TypeError, "values must be real numbers, got dtype object: cast with .astype(float)"),
        ([True, False], TypeError, "values must be real numbers, got dtype bool"),
        (["0.5"], TypeError, "values must be real numbers, got dtype str"),
        ([0.5j], TypeError, "values must be real numbers, got dtype complex128"),
        (None, TypeError, "values must be real numbers, for example a NumPy array of dtype float64, got None"),
        (np.ma.masked_array([0.7, 1], [False, True]), ParameterError, "values must have no masked values"),
        (0.7, ParameterError, "values must be one-dimensional, one for each person, got shape ()"),
        ([[0.7], [7, 7]], ParameterError, "values must be an array, got nested sequences of different lengths"),
    ],
)
def test_values_that_cannot_be_used(values: Any, kind: type[Exception], message: str) -> None:
    for protocol in (MEANS[0], WAVES[0]):
        refuses(kind, message, protocol.perturb, values, rng=ScriptedRng(b""))


def test_what_cannot_be_estimated() -> None:
    mean, wave = local.PiecewiseMean(epsilon=1.0), local.SquareWave(k=64, epsilon=1.0)
    for protocol in (mean, wave):
        refuses(ParameterError, "collected must have at least one report", protocol.estimate, protocol.accumulator())
        refuses(ParameterError, "reports must have shape", protocol.estimate, np.zeros((3, 5), np.uint8))
        refuses(TypeError, "reports must be a NumPy array of dtype uint8", protocol.estimate, [[1.5]])
        other = local.DuchiMean(epsilon=1.0).accumulator()
        refuses(ParameterError, "collected must be of", protocol.estimate, other)
        kind = type(protocol).__name__
        message = f"reports of {kind} are not counted by value: use {kind}.estimate(accumulator)"
        refuses(TypeError, message, protocol.accumulator().estimate)
    for level in (0.0, 1.0, math.nan):
        refuses(ParameterError, "level must be between 0 and 1", mean.estimate, mean.perturb([0.0]), level=level)
    refuses(TypeError, "smoothing must be a bool, got str", wave.estimate, wave.perturb([0.0]), smoothing="no")
