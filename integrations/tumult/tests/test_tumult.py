"""Tumult Core's noise, as it is and under `patched`: laws, checks and errors, for values and series."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from host_tests.errors import error_of
from host_tests.two_samples import ALARM
from scipy import stats
from tmlt.core.domains.numpy_domains import NumpyFloatDomain, NumpyIntegerDomain
from tmlt.core.domains.pandas_domains import PandasSeriesDomain
from tmlt.core.measurements.noise_mechanisms import (
    AddDiscreteGaussianNoise,
    AddGaussianNoise,
    AddGeometricNoise,
    AddLaplaceNoise,
)
from tmlt.core.measurements.pandas_measurements.series import AddNoiseToSeries, NoisyQuantile
from tmlt.core.measures import PureDP
from tmlt.core.random import discrete_gaussian, laplace
from tmlt.core.utils.distributions import discrete_gaussian_pmf, double_sided_geometric_pmf

import dpnoise_tumult as tumult
from dpnoise.audit.attacks import low_order_bits
from dpnoise_tumult import patched

REALS = NumpyFloatDomain()
MAKE = {
    "laplace": lambda scale: AddLaplaceNoise(REALS, scale),
    "geometric": AddGeometricNoise,
    "discrete gaussian": AddDiscreteGaussianNoise,
    "gaussian": lambda sigma_squared: AddGaussianNoise(REALS, sigma_squared),
}
ZERO = {"laplace": 0.0, "geometric": 0, "discrete gaussian": 0, "gaussian": 0.0}
N = 200_000


# --- laws --------------------------------------------------------------------------------------------------------

PMF = {
    "geometric": lambda k, scale: double_sided_geometric_pmf(k, float(Fraction(scale))),
    "discrete gaussian": lambda k, square: discrete_gaussian_pmf(k, float(Fraction(square))),
}


def p_value_of_law(samples, pmf):
    """Compare with probabilities: those of the values that are expected 50 times, and the rest."""
    values = np.arange(-200, 201)
    expected = samples.size * pmf(values)
    common = expected >= 50
    counts = np.array([np.count_nonzero(samples == value) for value in values[common]])
    table = np.append(counts, samples.size - counts.sum()), np.append(expected[common], 0.0)
    table[1][-1] = samples.size - table[1].sum()
    if table[1][-1] < 50:
        table = table[0][:-1], table[1][:-1] * (table[0][:-1].sum() / table[1][:-1].sum())
    return float(stats.chisquare(*table).pvalue)


@pytest.mark.parametrize("parameter", ["1/2", 2, 9, 20, "13/10"])
@pytest.mark.parametrize("name", PMF)
def test_integers_have_the_probabilities_that_the_host_states(name, parameter):
    measurement = AddNoiseToSeries(MAKE[name](parameter))
    with patched():
        noisy = measurement(pd.Series(np.full(N, 3))).to_numpy()
    assert noisy.dtype == np.int64
    assert p_value_of_law(noisy - 3, lambda k: PMF[name](k, parameter)) > ALARM
    other = float(Fraction(parameter)) * 1.1
    assert p_value_of_law(noisy - 3, lambda k: PMF[name](k, other)) < ALARM


@pytest.mark.parametrize("value", [0.0, 0.3, -1e9 / 7])
def test_laplace_noise_has_its_law(value):
    with patched():
        noisy = AddNoiseToSeries(AddLaplaceNoise(REALS, 2))(pd.Series(np.full(N, value))).to_numpy()
    assert stats.kstest(noisy - value, stats.laplace(scale=2).cdf).pvalue > ALARM
    assert stats.kstest(noisy - value, stats.laplace(scale=2.3).cdf).pvalue < ALARM


@pytest.mark.parametrize("name", MAKE)
def test_one_value_has_the_law_of_a_series(name):
    measurement = MAKE[name](4)
    with patched():
        alone = np.array([measurement(ZERO[name]) for _ in range(4000)])
        column = AddNoiseToSeries(measurement)(pd.Series([ZERO[name]] * 4000)).to_numpy()
    assert type(measurement(ZERO[name])) is type(ZERO[name])
    assert stats.ks_2samp(alone, column, method="asymp").pvalue > ALARM
    assert stats.ks_2samp(alone, 2 * column + 1, method="asymp").pvalue < ALARM


@pytest.mark.parametrize("square", [1, 100, 0.3, 2.0**-40, 2.0**80, math.pi, Fraction(1, 3)])
def test_the_root_is_rounded_up_by_less_than_a_step(square):
    root = tumult._root(square)
    assert root**2 >= square
    assert (root - Fraction(1, 2**79)) ** 2 < square


@pytest.mark.parametrize("square", [4, 2.25, 2.0**-40, 2.0**80])
def test_a_root_that_is_a_number_is_exact(square):
    assert tumult._root(square) ** 2 == square


# --- rounding at random ------------------------------------------------------------------------------------------


class Words:
    """Gives a number of 53 bits, as a generator does."""

    def __init__(self, word):
        self.word = word

    def random(self, size):
        return self.word * 2.0**-53 if size is None else np.full(size, self.word * 2.0**-53)


def chance_of_away(x, granularity, monkeypatch, shape):
    """Return the probability of being rounded away from zero, from the three words around where that ends."""
    toward = Fraction(math.floor(abs(Fraction(x)) / Fraction(granularity))) * Fraction(granularity)
    at = (abs(Fraction(x)) - toward) / Fraction(granularity) * 2**53
    coins = []

    def coin(p):
        coins.append(p)
        return False

    monkeypatch.setattr(tumult.samplers, "bernoulli", coin)

    def away(word):
        monkeypatch.setattr(tumult, "_generator", Words(word))
        rounded = Fraction(float(np.max(np.abs(tumult._onto_grid(np.full(shape, x) if shape else x, granularity)))))
        assert rounded in (toward, toward + Fraction(granularity))
        return rounded > toward

    whole = math.floor(at)
    assert all(away(word) for word in (0, whole - 1) if 0 <= word < whole)
    assert not any(coins)
    assert not away(whole)
    assert not any(away(word) for word in (whole + 1, 2**53 - 1) if whole < word < 2**53)
    return (whole + Fraction(max(coins, default=0))) / 2**53


@pytest.mark.parametrize("shape", [None, 3])
@pytest.mark.parametrize("granularity", [2.0**-939, 2.0**-38, 1.0, 2.0**52])
def test_rounding_is_exact_on_average(granularity, shape, monkeypatch):
    generator = np.random.default_rng(1)
    places = [
        0.0,
        0.5,
        1.0,
        1 - 2**-53,
        2.0**53,
        2.0**60,
        2.0**-60 / 3,
        *generator.random(20),
        *generator.normal(size=9),
    ]
    tiny = [5e-324, 2.0**-1022 * 3, granularity * 2.0**-53, granularity * (2.0**-53 + 2.0**-105)]
    for x in [*(place * granularity for place in places), *tiny]:
        for signed in (x, -x):
            chance = chance_of_away(signed, granularity, monkeypatch, shape)
            assert chance == abs(Fraction(signed)) / Fraction(granularity) % 1


def test_the_sign_is_kept():
    grid = [tumult._onto_grid(np.array([-0.75, 0.75]), 1.0) for _ in range(100)]
    assert {tuple(row) for row in grid} == {(-1.0, 1.0), (0.0, 1.0), (-1.0, 0.0), (0.0, 0.0)}


@pytest.mark.parametrize(
    "b", [2.0**-900, 1e-3, 1.0, math.nextafter(1.0, 0), 1.5, 10 / 3, math.nextafter(2.0, 3), 2.0**90]
)
def test_the_scale_is_half_a_step_more_and_at_most_two(b):
    mechanism = tumult._laplace_mechanism(b)
    step, scale = Fraction(mechanism.granularity), Fraction(mechanism.scale)
    assert step / 2 <= scale - Fraction(b) <= 2 * step
    assert 2**38 <= scale / step <= 2**40


def loss(scale, distance):
    """Return the largest loss for values that differ by so much, in steps, rounded at random: by enumeration."""
    worst = 0.0
    for start in np.linspace(0, 1 - distance, 21):
        for k in (-3, 1):  # outputs on either side
            near, far = (math.exp(-abs(k - place) / scale) for place in (0, 1))
            masses = [(1 - place) * near + place * far for place in (start, start + distance)]
            worst = max(worst, abs(math.log(masses[0] / masses[1])))
    return worst


@pytest.mark.parametrize("distance", [1e-6, 0.1, 0.5])
def test_half_a_step_is_what_rounding_at_random_needs(distance):
    for b in (0.7, 2.0, 30.0):
        assert loss(b + 0.5, distance) <= distance / b
        assert loss(b, distance) > distance / b


# --- checks and errors -------------------------------------------------------------------------------------------

CALLS = {
    "laplace of an integer": lambda: MAKE["laplace"](2)(1),
    "laplace of text": lambda: MAKE["laplace"](2)("1"),
    "laplace of nan": lambda: MAKE["laplace"](2)(math.nan),
    "laplace of infinity": lambda: MAKE["laplace"](2)(math.inf),
    "geometric of a float": lambda: MAKE["geometric"](2)(1.0),
    "geometric of int32": lambda: MAKE["geometric"](2)(np.int32(1)),
    "discrete gaussian of a float": lambda: MAKE["discrete gaussian"](2)(1.0),
    "gaussian of an integer": lambda: MAKE["gaussian"](2)(1),
    "a series of floats for integers": lambda: AddNoiseToSeries(MAKE["geometric"](2))(pd.Series([1.0])),
    "a series of integers for floats": lambda: AddNoiseToSeries(MAKE["laplace"](2))(pd.Series([1])),
    "a series with nan": lambda: AddNoiseToSeries(MAKE["laplace"](2))(pd.Series([1.0, math.nan])),
    "a series of text": lambda: AddNoiseToSeries(MAKE["discrete gaussian"](2))(pd.Series(["1"])),
    "a list": lambda: AddNoiseToSeries(MAKE["geometric"](2))([1]),
    "a negative scale": lambda: MAKE["laplace"](-1),
    "an infinite alpha": lambda: MAKE["geometric"](math.inf),
    "a domain with nan": lambda: AddLaplaceNoise(NumpyFloatDomain(allow_nan=True), 1),
    "sample_dgauss of nan": lambda: discrete_gaussian.sample_dgauss(math.nan),
    "sample_dgauss below zero": lambda: discrete_gaussian.sample_dgauss(-1),
    "sample_dgauss of text": lambda: discrete_gaussian.sample_dgauss("1"),
    "sample_dgauss of a list": lambda: discrete_gaussian.sample_dgauss([1]),
    "laplace around nan": lambda: laplace.laplace(math.nan, 1.0),
    "laplace below zero": lambda: laplace.laplace(0.0, -1.0),
    "laplace without end": lambda: laplace.laplace(0.0, math.inf),
    "no step": lambda: laplace.laplace(0.0, 1.0, step_size=0),
}


@pytest.mark.parametrize("name", CALLS)
def test_errors_are_those_of_the_host(name):
    expected = error_of(CALLS[name])
    assert expected is not None
    with patched():
        assert error_of(CALLS[name]) == expected


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_gaussian_noise_of_what_is_not_finite_is_that_of_the_host(value):
    with patched():
        np.testing.assert_equal(MAKE["gaussian"](2)(value), value)


@pytest.mark.parametrize("name", MAKE)
def test_privacy_functions_are_those_of_the_host(name):
    expected = [MAKE[name]("13/7").privacy_function(d_in) for d_in in (0, 1, "1/3", 2)]
    with patched():
        assert [MAKE[name]("13/7").privacy_function(d_in) for d_in in (0, 1, "1/3", 2)] == expected


@pytest.mark.parametrize("name", MAKE)
def test_no_noise_is_no_noise(name):
    with patched():
        assert MAKE[name](0)(ZERO[name]) == ZERO[name]
        assert AddNoiseToSeries(MAKE[name](0))(pd.Series([ZERO[name]] * 3)).tolist() == [ZERO[name]] * 3


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_infinite_noise_is_infinite(name):
    with patched():
        assert math.isinf(MAKE[name](math.inf)(1.0))


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        *(("laplace", scale) for scale in (Fraction(1, 2**901), 2**91, 2**54 + 1)),
        *(("geometric", alpha) for alpha in (Fraction(1, 2**41), 2**41)),
        *(("discrete gaussian", square) for square in (Fraction(1, 2**41), 2**81)),
    ],
    ids=str,
)
def test_what_is_out_of_reach_is_drawn_by_the_host(name, parameter, monkeypatch):
    class Host(Exception):
        pass

    def host(*_):
        raise Host

    measurement = MAKE[name](str(parameter))
    with patched():
        assert np.isfinite(measurement(ZERO[name]))
        assert np.isfinite(AddNoiseToSeries(measurement)(pd.Series([ZERO[name]]))[0])
        monkeypatch.setitem(tumult._host_calls, type(measurement), host)
        with pytest.raises(Host):
            measurement(ZERO[name])


def test_sums_beyond_64_bits_are_those_of_the_host():
    limits = np.iinfo(np.int64)
    add = AddNoiseToSeries(AddGeometricNoise(2**30))
    with patched():
        noisy = add(pd.Series([limits.min, limits.max] * 50)).to_numpy()
    assert np.abs(noisy - np.array([limits.min, limits.max] * 50, object)).max() < 2**38
    assert noisy.min() < limits.min
    assert noisy.max() > limits.max


@pytest.mark.parametrize("name", MAKE)
def test_a_series_keeps_its_index_and_name(name):
    given = pd.Series([ZERO[name]] * 3, index=["a", "b", "c"], name="count")
    with patched():
        noisy = AddNoiseToSeries(MAKE[name](2))(given)
    assert noisy.index.equals(given.index)
    assert (noisy.name, noisy.dtype) == (given.name, given.dtype)
    assert given.tolist() == [ZERO[name]] * 3


@pytest.mark.parametrize("name", MAKE)
def test_an_empty_series_stays_empty(name):
    given = pd.Series([], dtype=type(ZERO[name]))
    expected = AddNoiseToSeries(MAKE[name](2))(given)
    with patched():
        pd.testing.assert_series_equal(AddNoiseToSeries(MAKE[name](2))(given), expected)


# --- what floating point gives away --------------------------------------------------------------------------------


def attack(measurement, parameter):
    """Look for what rho = 1/2, or epsilon = 1, does not allow."""
    claim = {"gaussian": {"epsilon": 3.6, "delta": 0.01}, "laplace": {"epsilon": 1.0, "delta": 0.0, "scale": 1.0}}
    return low_order_bits(MAKE[measurement](parameter), n=20_000, level=1 - 1e-9, **claim[measurement])


def test_gaussian_noise_is_rounded_once():
    assert attack("gaussian", 1).refuted  # a float that is 1.0 plus another has no bits that are smaller than 2**-53
    with patched():
        assert not attack("gaussian", 1).refuted


def test_laplace_noise_gives_nothing_away():
    with patched():
        assert not attack("laplace", 1).refuted
        assert attack("laplace", "1/3").refuted


def test_laplace_noise_is_on_a_grid():
    with patched():
        noisy = [AddLaplaceNoise(REALS, 1)(value) for value in (0.0, 0.1, math.pi, 2.0**-60) for _ in range(100)]
    assert all((x * 2**38) % 1 == 0 for x in noisy)


# --- what stays with the host -------------------------------------------------------------------------------------


def test_the_quantile_draws_secure_bits(monkeypatch):
    class Drawn(Exception):
        pass

    class Generator:
        def integers(self, *_, **__):
            raise Drawn

    quantile = NoisyQuantile(PandasSeriesDomain(NumpyIntegerDomain()), PureDP(), 0.5, 0, 100, epsilon=1)
    with patched():
        assert 0 <= quantile(pd.Series([20, 40, 60])) <= 100
        monkeypatch.setattr(tumult, "_generator", Generator())
        with pytest.raises(Drawn):
            quantile(pd.Series([20, 40, 60]))
