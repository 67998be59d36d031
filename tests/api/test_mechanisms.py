"""The face of the mechanisms: what they take, what they refuse, and what their error bars mean."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import dpnoise
from dpnoise import (
    AboveThreshold,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PrivacyCost,
    Skellam,
    TruncatedDiscreteGaussian,
    hazmat,
    samplers,
)

NOT_FINITE = "x must be finite: no NaN and no infinity"


def test_scalars_and_arrays() -> None:
    mechanism = Laplace(epsilon=1.0, sensitivity=2.0)
    assert type(mechanism.release(3)) is float
    assert type(mechanism.release(np.float32(3))) is float
    assert mechanism.release([1.0, 2.0]).shape == (2,)
    assert mechanism.release(np.ones((2, 3), np.float32)).dtype == np.float64
    assert mechanism.release(np.array(1.0)).shape == ()
    assert mechanism.release([]).shape == (0,)
    counts = DiscreteLaplace(epsilon=1.0)
    assert type(counts.release(3)) is int
    assert type(counts.release(np.uint8(3))) is int
    assert counts.release(np.ones((2, 3), np.uint16)).dtype == np.int64
    assert counts.release([]).shape == (0,)


@pytest.mark.parametrize("mechanism", [Laplace(epsilon=1e6), Gaussian(rho=1e9), DiscreteLaplace(epsilon=50)])
def test_a_series_gives_a_series_with_its_labels(mechanism: Any) -> None:
    counts = pd.Series([5, 7, 9], ["tea", "milk", "rum"], name="cups")
    for given in (counts, counts.astype("Int64"), counts.astype("int64[pyarrow]"), counts.set_axis([3, 3, None])):
        released = mechanism.release(given)
        pd.testing.assert_series_equal(
            released, given.astype(mechanism.release([1]).dtype), check_exact=False, atol=0.01
        )
        for bound in mechanism.confidence_interval(released):
            assert bound.index.equals(given.index)
            assert bound.name == "cups"
    released = mechanism.release(pl.Series("cups", [5, 7, 9]))
    assert isinstance(released, pl.Series)
    assert (released.name, released.round().to_list()) == ("cups", [5, 7, 9])
    assert type(mechanism.release(counts.index.str.len())) is np.ndarray
    assert type(mechanism.release(counts.array)) is np.ndarray
    assert counts.tolist() == [5, 7, 9]


def test_the_input_is_left_alone_and_may_have_any_layout() -> None:
    values = np.arange(12.0).reshape(3, 4)
    for given in (values, values[:, ::2], values.T, values.astype(">f8"), values[::-1]):
        before = given.copy()
        released = Laplace(epsilon=1e6).release(given)
        assert np.array_equal(given, before)
        assert np.allclose(released, given, atol=1e-3)
    assert np.array_equal(DiscreteLaplace(epsilon=50.0).release(np.arange(10)[::3]), [0, 3, 6, 9])


def test_releases_are_on_the_grid() -> None:
    mechanism = Laplace(epsilon=1.0, sensitivity=1.0, granularity=0.25)
    released = mechanism.release(np.linspace(-1, 1, 10_001))
    assert np.array_equal(released * 4, np.rint(released * 4))
    assert mechanism.granularity == 0.25
    assert Laplace(epsilon=1.0).granularity == 2.0**-40


def test_the_scale_is_sensitivity_over_epsilon() -> None:
    assert Laplace(epsilon=0.5, sensitivity=3.0).scale == pytest.approx(6.0, rel=1e-11)
    assert DiscreteLaplace(epsilon=0.5, sensitivity=3).scale == 6.0
    # Too coarse a grid widens the noise: a value moves by up to two steps of 0.5 where its sensitivity is 0.6.
    assert Laplace(epsilon=1.0, sensitivity=0.6, granularity=0.5).scale == 1.0


@pytest.mark.parametrize(
    "mechanism", [Laplace(epsilon=0.7, sensitivity=2.5), DiscreteLaplace(epsilon=0.7, sensitivity=3)]
)
def test_a_mechanism_is_a_value(mechanism: Any) -> None:
    again = pickle.loads(pickle.dumps(mechanism))  # noqa: S301 - our own bytes
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    assert eval(repr(mechanism), vars(dpnoise)) == mechanism  # noqa: S307 - our own text
    assert mechanism != type(mechanism)(epsilon=0.8)
    assert mechanism.cost == PrivacyCost(0.7, 0.0)
    assert (mechanism.epsilon, mechanism.delta) == (0.7, 0.0)
    with pytest.raises(AttributeError):
        mechanism.epsilon = 1.0


GAUSSIANS = [
    Gaussian(epsilon=0.7, delta=1e-6, sensitivity=2.5),
    Gaussian(epsilon=0.7, delta=1e-6, method="classical", granularity=0.125),
    Gaussian(rho=0.3),
    Gaussian(rho=0.3, delta=1e-6, sensitivity=3.0),
    DiscreteGaussian(epsilon=0.7, delta=1e-6, sensitivity=3),
    DiscreteGaussian(epsilon=0.7, delta=1e-6, sensitivity=2**0.5),
    DiscreteGaussian(rho=0.3),
    DiscreteGaussian(rho=0.3, delta=1e-6, sensitivity=3),
]


@pytest.mark.parametrize("mechanism", GAUSSIANS, ids=repr)
def test_a_gaussian_mechanism_is_a_value(mechanism: Any) -> None:
    again = pickle.loads(pickle.dumps(mechanism))  # noqa: S301 - our own bytes
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    assert eval(repr(mechanism), vars(dpnoise)) == mechanism  # noqa: S307 - our own text
    assert again.scale == mechanism.scale
    assert all(other != mechanism for other in GAUSSIANS if other is not mechanism)


def test_what_a_gaussian_costs() -> None:
    for kind in (Gaussian, DiscreteGaussian):
        assert kind(epsilon=0.7, delta=1e-6).cost == PrivacyCost(0.7, 1e-6)
        assert kind(epsilon=0.7, delta=1e-6).rho is None
        concentrated = kind(rho=0.5)
        assert (concentrated.epsilon, concentrated.delta, concentrated.rho, concentrated.scale) == (
            None,
            None,
            0.5,
            1.0,
        )
        with pytest.raises(dpnoise.ParameterError, match=rf"^delta must be given .*: rho=0.5 .*say {kind.__name__}\("):
            concentrated.cost  # noqa: B018 - it raises
        both = kind(rho=0.5, delta=1e-6)
        assert both.cost == PrivacyCost(both.epsilon, 1e-6)
        assert both.epsilon == pytest.approx(concentrated.epsilon_for(1e-6), rel=1e-11)
        # Standard conversion of zCDP: rho + 2 sqrt(rho ln(1/delta)) is an upper bound.
        assert 4 < both.epsilon < 0.5 + 2 * np.sqrt(0.5 * np.log(1e6))


def test_gaussian_scales() -> None:
    assert Gaussian(rho=0.5, sensitivity=3.0).scale == 3.0
    assert DiscreteGaussian(rho=2.0, sensitivity=3).scale == 1.5
    assert Gaussian(epsilon=1.0, delta=1e-6).granularity == 2.0**-36
    assert Gaussian(rho=0.5).granularity == 2.0**-39
    # Steps for 1, 1 + 2 and 1 + 5 roundings, which add up to at most a hundredth of the sensitivity.
    assert [Gaussian(rho=2.0**-67).granularity_for(n) for n in (1, 4, 17)] == [2.0**-7, 2.0**-9, 2.0**-10]
    assert DiscreteGaussian(epsilon=1.0, delta=1e-6).sensitivity == 1
    analytic = Gaussian(epsilon=0.5, delta=1e-5)
    assert analytic.scale < Gaussian(epsilon=0.5, delta=1e-5, method="classical").scale
    # Too coarse a grid widens the noise.
    assert Gaussian(epsilon=0.5, delta=1e-5, granularity=4.0).scale > 4 * analytic.scale
    # The values of a vector are rounded one by one, which counts when they are many or the grid is coarse.
    rough = Gaussian(epsilon=0.5, delta=1e-5, granularity=0.5)
    assert rough.confidence_interval(np.zeros(10_000))[1][0] > 20 * rough.error()


LENGTHS = [1, 2, 3, 10, 1000, 10**5, 10**6, 3 * 10**6, 10**7]


def growth(mechanism: Any, count: int, least: float) -> float:
    """Give the part by which the noise for so many values exceeds that of continuous noise."""
    grown = mechanism.scale_for(count) / least - 1
    # What makes the difference is that the granularity follows the length.
    fixed = type(mechanism)(**{**mechanism._values(), "granularity": mechanism.granularity})
    assert fixed.granularity_for(count) == mechanism.granularity
    assert fixed.scale_for(count) >= mechanism.scale_for(count)
    return float(grown)


@pytest.mark.parametrize("epsilon", [1e-6, 3e-6, 1e-4, 0.01, 1.0, 10.0])
def test_rounding_adds_at_most_a_hundredth_to_the_noise(epsilon: float) -> None:
    for sensitivity in (1.0, 3.0, 1.99999e-7):
        laplace = Laplace(epsilon=epsilon, sensitivity=sensitivity)
        grown = [growth(laplace, count, sensitivity / epsilon) for count in LENGTHS]
        assert -1e-12 < min(grown) <= max(grown) <= 0.01
    for delta in (1e-12, 1e-6):
        gaussian = Gaussian(epsilon=epsilon, delta=delta)
        grown = [growth(gaussian, count, gaussian._native.multiplier) for count in LENGTHS]
        assert -1e-12 < min(grown) <= max(grown) <= 0.01
    concentrated = Gaussian(rho=epsilon**2 / 2)
    assert max(growth(concentrated, count, 1 / epsilon) for count in LENGTHS) <= 0.01


def test_the_grid_of_a_single_value_would_double_the_noise() -> None:
    # Positive control of the test above.
    epsilon = 1e-6
    fixed = Laplace(epsilon=epsilon, granularity=Laplace(epsilon=epsilon).granularity)
    assert fixed.scale_for(10**6) * epsilon > 1.9
    assert Laplace(epsilon=epsilon).granularity_for(10**6) < fixed.granularity


def test_what_is_reported_is_what_is_used() -> None:
    mechanism, count = Laplace(epsilon=1e-5), 200_000
    step, scale = mechanism.granularity_for(count), mechanism.scale_for(count)
    assert step < mechanism.granularity
    released = mechanism.release(np.zeros(count))
    assert np.array_equal(np.remainder(released, step), np.zeros(count))
    assert np.any(np.remainder(released, 2 * step))
    # The magnitudes' mean has a standard error of scale / sqrt(count).
    assert abs(np.mean(np.abs(released)) / scale - 1) < 7 / np.sqrt(count)
    low, high = mechanism.confidence_interval(released, level=0.5)
    assert high[0] - low[0] == pytest.approx(2 * scale * np.log(2), rel=1e-6)


@pytest.mark.parametrize("sensitivity", [1.0, 2.5])
@pytest.mark.parametrize(("count", "rounding"), [(49, 7), (50, 8)])
def test_a_gaussian_release_is_the_sampler_on_the_grid(sensitivity: float, count: int, rounding: int) -> None:
    mechanism = Gaussian(rho=0.5, sensitivity=sensitivity, granularity=2.0**-10)
    x = np.linspace(-3, 3, count)
    released = mechanism.release(x, rng=hazmat.SeededRng(1))
    sigma = sensitivity * 2**10 + rounding  # ceil(sqrt(count)) steps
    noise = samplers.discrete_gaussian(sigma, size=count, rng=hazmat.SeededRng(1))
    assert np.array_equal(released, (np.floor(x * 2**10 + 0.5) + noise) / 2**10)
    one = mechanism.release(0.3, rng=hazmat.SeededRng(1))
    assert one == (307 + samplers.discrete_gaussian(sensitivity * 2**10, rng=hazmat.SeededRng(1))) / 2**10


def test_a_discrete_gaussian_release_is_the_sampler() -> None:
    mechanism = DiscreteGaussian(epsilon=0.7, delta=1e-6)
    noise = samplers.discrete_gaussian(mechanism.scale, size=50, rng=hazmat.SeededRng(1))
    assert np.array_equal(mechanism.release(np.arange(50), rng=hazmat.SeededRng(1)), np.arange(50) + noise)


@pytest.mark.parametrize("sigma", [0.3, 4.0, 77.7, 1e6])
@pytest.mark.parametrize("level", [1e-3, 0.5, 0.9, 0.95, 1 - 1e-9])
def test_the_error_is_the_quantile(sigma: float, level: float) -> None:
    t = int(DiscreteGaussian(rho=1 / (2 * sigma**2)).error(level))
    if sigma < 100:
        weights = np.exp(-(np.arange(-3000, 3001) ** 2) / (2 * sigma**2))
        inside = [np.sum(weights[3000 - t + i : 3001 + t - i]) / np.sum(weights) for i in (0, 1)]
        assert inside[0] >= level - 1e-12
        assert t == 0 or inside[1] < level + 1e-12
    else:
        assert t / sigma == pytest.approx(stats.norm.ppf(0.5 + level / 2), abs=1e-5)


def test_the_error_of_a_gaussian_is_that_of_its_scale() -> None:
    mechanism = Gaussian(epsilon=0.5, delta=1e-5, sensitivity=3.0)
    assert mechanism.error(0.95) == pytest.approx(stats.norm.ppf(0.975) * mechanism.scale, rel=1e-9)


@pytest.mark.parametrize("mechanism", [Laplace(epsilon=0.5, sensitivity=3.0), *GAUSSIANS[:4:3]], ids=repr)
def test_the_density_is_that_of_the_noise(mechanism: Any) -> None:
    for level in (0.1, 0.5, 0.95):
        error = mechanism.error(level)
        x = np.linspace(-error, error, 20_001)[1:] - error / 20_000
        assert mechanism.density(x).mean() * 2 * error == pytest.approx(level, rel=1e-6)
    assert isinstance(mechanism.density(1), float)
    assert mechanism.density(pd.Series([1.0, -1.0], index=["a", "b"])).index.tolist() == ["a", "b"]
    assert np.array_equal(mechanism.density([[1e300, -np.inf, np.nan]]), [[0.0, 0.0, np.nan]], equal_nan=True)
    with pytest.raises(TypeError, match=r"^x must be real numbers, got dtype bool$"):
        mechanism.density([True])


@pytest.mark.parametrize("size", [1, 50])
def test_confidence_intervals_cover(size: int) -> None:
    for mechanism, value in (
        (Laplace(epsilon=0.3, sensitivity=2.0), 17.3),
        (DiscreteLaplace(epsilon=0.3), 17),
        (Gaussian(epsilon=0.3, delta=1e-5, sensitivity=2.0), 17.3),
        (DiscreteGaussian(epsilon=0.3, delta=1e-5, sensitivity=2), 17),
    ):
        n, misses = 40_000, 0
        for _ in range(n // size if size > 1 else 1):
            released = mechanism.release(np.full(size if size > 1 else n, value))
            low, high = mechanism.confidence_interval(released, level=0.9)
            misses += int(np.sum((value < low) | (value > high)))
        # Discrete noise covers at least the level, and not much more.
        assert stats.binom.cdf(misses, n, 0.1) > 1e-11 or mechanism.scale < 10
        assert stats.binom.sf(misses, n, 0.1) > 1e-11


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, float("nan")])
@pytest.mark.parametrize("mechanism", [Laplace(epsilon=1.0), DiscreteLaplace(epsilon=1.0), *GAUSSIANS[::4]])
def test_a_level_out_of_range_is_refused(mechanism: Any, level: float) -> None:
    with pytest.raises(dpnoise.ParameterError, match="level must be between 0 and 1, both excluded, got"):
        mechanism.error(level)
    with pytest.raises(dpnoise.ParameterError, match="level must be"):
        mechanism.confidence_interval(1, level)


@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("kind", [Laplace, DiscreteLaplace])
def test_a_bad_epsilon_is_refused(kind: Any, epsilon: float) -> None:
    with pytest.raises(dpnoise.ParameterError, match=r"^epsilon must be positive and finite, got "):
        kind(epsilon=epsilon)


@pytest.mark.parametrize("bad", [0, -1.0, float("nan"), float("inf"), 1.0])
@pytest.mark.parametrize("kind", [Gaussian, DiscreteGaussian])
def test_bad_parameters_of_gaussians_are_refused(kind: Any, bad: float) -> None:
    with pytest.raises(dpnoise.ParameterError, match=r"^delta must be between 0 and 1, both excluded, got "):
        kind(epsilon=1.0, delta=bad)
    with pytest.raises(dpnoise.ParameterError, match=r"^delta must be between 0 and 1, both excluded, got "):
        kind(rho=1.0, delta=bad)
    if bad != 1:
        with pytest.raises(dpnoise.ParameterError, match=r"^delta must be above 0 and at most 1, got "):
            kind(rho=1.0).epsilon_for(bad)
        with pytest.raises(dpnoise.ParameterError, match=r"^epsilon must be positive and finite, got "):
            kind(epsilon=bad, delta=1e-6)
        with pytest.raises(dpnoise.ParameterError, match=r"^rho must be positive and finite, got "):
            kind(rho=bad)
        if bad != 0:
            with pytest.raises(dpnoise.ParameterError, match=r"^epsilon must be zero or more and finite, got "):
                kind(rho=1.0).delta_for(bad)
        with pytest.raises(dpnoise.ParameterError, match=r"^sensitivity must be (positive|a number from 1)"):
            kind(rho=1.0, sensitivity=bad)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Laplace(epsilon=1.0, sensitivity=0.0), "^sensitivity must be positive and finite, got 0.0"),
        (lambda: Laplace(epsilon=1.0, sensitivity=float("inf")), "^sensitivity must be positive and finite, got inf"),
        (lambda: Laplace(epsilon=1.0, granularity=0.1), r"^granularity must be a power of two .* got 0.1"),
        (lambda: Laplace(epsilon=1.0, granularity=2.0**-52), "^granularity must be at least 4.44.* got 2.2"),
        (lambda: Laplace(epsilon=1e-300), "^epsilon must be such that sensitivity/epsilon is below"),
        (lambda: DiscreteLaplace(epsilon=1.0, sensitivity=0), r"^sensitivity must be a positive integer .* got 0"),
        (lambda: DiscreteLaplace(epsilon=1.0, sensitivity=-3), r"^sensitivity must be a positive integer .* got -3"),
        (lambda: DiscreteLaplace(epsilon=1.0, sensitivity=2**64), "^sensitivity must be a positive integer below"),
        (lambda: DiscreteLaplace(epsilon=10**400), "^epsilon must be in the range of a float"),
        (lambda: Laplace(epsilon=10**400), "^epsilon must be in the range of a float"),
        (lambda: DiscreteLaplace(epsilon=1e-13), "^epsilon must be such that sensitivity/epsilon is from"),
        (lambda: Gaussian(), "^epsilon must be given, with delta, or else rho: got neither"),
        (lambda: Gaussian(epsilon=1.0), "^delta must be given with epsilon, got None"),
        (lambda: Gaussian(epsilon=1.0, delta=1e-6, rho=0.1), "^rho must be None when epsilon is given, got 0.1"),
        (
            lambda: Gaussian(epsilon=2 * math.log(2.5), delta=1e-6, method="classical"),
            r'^epsilon must be at most 1.83258146374831 for method "classical" '
            r'\("analytic" is proved for every epsilon\), got 1.8325814637483102',
        ),
        (lambda: Gaussian(rho=1.0, method="classical"), '^method must be "analytic" when rho is given'),
        (lambda: Gaussian(rho=1.0, method="exact"), '^method must be "analytic" or "classical", got \'exact\''),
        (lambda: Gaussian(rho=1.0, granularity=0.1), r"^granularity must be a power of two .* got 0.1"),
        (
            lambda: Gaussian(rho=0.5, granularity=2.0**-44),
            "^granularity must be at least 1.1.* for this sigma, got 5.6",
        ),
        (lambda: Gaussian(epsilon=1e-300, delta=1e-300), "^epsilon must be such that sigma is below"),
        (lambda: Gaussian(rho=1e-300), "^rho must be such that sigma is below"),
        (lambda: Gaussian(rho=0.5, sensitivity=1e300), "^rho must be such that sigma is below"),
        (lambda: DiscreteGaussian(), "^epsilon must be given, with delta, or else rho: got neither"),
        (
            lambda: DiscreteGaussian(rho=1.0, sensitivity=0.5),
            r"^sensitivity must be a number from 1 to 2\*\*40, got 0.5",
        ),
        (
            lambda: DiscreteGaussian(rho=1.0, sensitivity=2**41),
            r"^sensitivity must be a number from 1 to 2\*\*40, got 2",
        ),
        (lambda: DiscreteGaussian(rho=1e-30), "^rho must be such that sigma is from"),
        (lambda: DiscreteGaussian(epsilon=1e-20, delta=1e-20), "^epsilon must be such that sigma is from"),
        (lambda: DiscreteGaussian(rho=1.0).delta_for(1.0, 0), "^count must be an integer from 1 to"),
        (lambda: DiscreteGaussian(rho=1.0).epsilon_for(1e-6, 0), "^count must be an integer from 1 to"),
        (lambda: TruncatedDiscreteGaussian(epsilon=1.0, delta=1e-6).delta_for(1.0, 0), "^count must be an integer"),
        (lambda: TruncatedDiscreteGaussian(epsilon=1.0, delta=1e-6).radius_for(0), "^count must be an integer from 1"),
        (lambda: Skellam(epsilon=1.0, delta=1e-6, parties=3).delta_for(1.0, -1), "^colluding must be an integer"),
        (lambda: Skellam(epsilon=1.0, delta=1e-6, parties=3).epsilon_for(0.1, -1), "^colluding must be an integer"),
        (lambda: AboveThreshold(epsilon=1.0, threshold=0).error(2**53), "^count must be .* to 9007199254740991, got"),
        (lambda: Gaussian(epsilon=10**400, delta=0.1), "^epsilon must be in the range of a float"),
        (lambda: Laplace(epsilon=1.0).scale_for(0), "^count must be an integer from 1 to"),
        (
            lambda: Laplace(epsilon=1e-12).scale_for(10**7),
            "^epsilon must be larger for a release of 10000000 values, each of which is rounded to a grid, got 1e-12",
        ),
        (
            lambda: Laplace(epsilon=1e-12, granularity=1.0).granularity_for(10**7),
            "^granularity must be coarser for a release of 10000000 values at this epsilon, got 1.0",
        ),
        (lambda: Gaussian(rho=1e-20).scale_for(2**59), r"^rho must be larger for a release of \d+ values, each of"),
    ],
)
def test_bad_parameters_are_named(make: Any, message: str) -> None:
    with pytest.raises(dpnoise.ParameterError, match=message):
        make()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("mechanism", [Laplace(epsilon=1.0), Gaussian(rho=1.0)], ids=repr)
def test_values_that_are_not_finite_are_refused_before_anything_is_drawn(mechanism: Any, bad: float) -> None:
    dry = hazmat.ScriptedRng(b"")
    for x in (bad, [1.0, bad], [bad, bad], np.array([bad])):
        with pytest.raises(dpnoise.ParameterError, match=NOT_FINITE):
            mechanism.release(x, rng=dry)


SECRET = 918273645546372819


@pytest.mark.parametrize(
    ("mechanism", "x", "error", "message"),
    [
        (Laplace(epsilon=1.0), "a", TypeError, "x must be real numbers"),
        (Laplace(epsilon=1.0), [True], TypeError, "x must be real numbers"),
        (Laplace(epsilon=1.0), [1j], TypeError, "x must be real numbers"),
        (Laplace(epsilon=1.0), [None], TypeError, "x must be real numbers"),
        (Laplace(epsilon=1.0), [SECRET], ValueError, "x must have integers of at most 2"),
        (
            Laplace(epsilon=1.0),
            np.ma.masked_array([1.0, 2.0], [False, True]),
            ValueError,
            "x must have no masked values",
        ),
        (
            Laplace(epsilon=1.0),
            [np.array([1.0, 2.0]), np.ma.masked_array([1.0, 2.0], [False, True])],
            ValueError,
            "x must have no masked values",
        ),
        (Laplace(epsilon=1.0), [1.0, np.ma.masked], ValueError, "x must have no masked values"),
        (DiscreteLaplace(epsilon=1.0), 1.5, TypeError, "x must be integers, got dtype float64"),
        (DiscreteLaplace(epsilon=1.0), [True], TypeError, "x must be integers, got dtype bool"),
        (
            DiscreteLaplace(epsilon=1.0),
            np.array([2**63 + SECRET], np.uint64),
            ValueError,
            "x must be in the range of int64",
        ),
        (
            DiscreteLaplace(epsilon=1.0),
            np.array([2**63 + SECRET], ">u8"),
            ValueError,
            "x must be in the range of int64",
        ),
        (Laplace(epsilon=1.0), [SECRET, 0.5], ValueError, "x must have integers of at most 2"),
        (Laplace(epsilon=1.0), [[2**63, -1]], ValueError, "x must have integers of at most 2"),
        (DiscreteLaplace(epsilon=1.0), 100 * SECRET, ValueError, "x must be in the range of int64"),
        (DiscreteLaplace(epsilon=1.0), [100 * SECRET], TypeError, "x must be integers"),
        (DiscreteLaplace(epsilon=1.0), np.ma.masked_array([1, 2], [False, True]), ValueError, "x must have no masked"),
    ],
)
def test_unfit_values_are_refused_without_showing_them(mechanism: Any, x: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        mechanism.release(x)
    assert str(SECRET) not in str(caught.value)


def test_integers_saturate() -> None:
    top = np.full(1000, 2**63 - 1)
    for mechanism in (DiscreteLaplace(epsilon=0.01), DiscreteGaussian(rho=1e-4)):
        released = mechanism.release(top)
        assert np.all(released > 2**62)
        assert np.any(released == 2**63 - 1)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(-1.0, 0.0), (float("nan"), 0.0), (1.0, 1.0), (1.0, -0.1), (1.0, float("nan"))]
)
def test_a_cost_out_of_range_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(dpnoise.ParameterError, match=r"^(epsilon|delta) must be "):
        PrivacyCost(epsilon, delta)


@pytest.mark.parametrize(
    "mechanism",
    [Laplace(epsilon=1.0), DiscreteLaplace(epsilon=1.0), Gaussian(rho=1.0), DiscreteGaussian(rho=1.0)],
    ids=repr,
)
@pytest.mark.parametrize("rng", [None, hazmat.SeededRng(1)])
def test_threads_must_be_positive(mechanism, rng) -> None:
    for x in (1, [1, 2]):
        for threads in (0, -1, 2**64):
            with pytest.raises(dpnoise.ParameterError, match="threads must be None or a positive integer below"):
                mechanism.release(x, threads=threads, rng=rng)
        mechanism.release(x, threads=2**64 - 1, rng=rng)
