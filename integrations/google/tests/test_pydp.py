"""The mechanisms of PyDP with our noise: parameters, checks, errors and types are PyDP's."""

import copy
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from host_tests.silence import NUMBERS, check_silent, columns
from mpmath import mpf
from pydp.algorithms import numerical_mechanisms as host

import dpnoise
from dpnoise import ParameterError
from dpnoise_google import pydp as ours

PARAMETERS = {
    "LaplaceMechanism": [(1.0,), (0.1, 3.0), (4, 2), (2.0**-30, 1.0), (100.0, 1e-9)],
    "GaussianMechanism": [(1.0, 1e-6), (0.1, 0.3, 3.0), (4, 1e-12, 2), (1e-6, 1e-3)],
}
CASES = [(name, arguments) for name, several in PARAMETERS.items() for arguments in several]
PROPERTIES = {
    "LaplaceMechanism": ("epsilon", "sensitivity", "diversity"),
    "GaussianMechanism": ("epsilon", "delta", "l2_sensitivity", "std"),
}
SIMPLE = {"LaplaceMechanism": (0.5,), "GaussianMechanism": (0.5, 1e-6)}


def scale_of(mechanism):
    return mechanism.diversity if isinstance(mechanism, host.LaplaceMechanism) else mechanism.std


@pytest.mark.parametrize(("name", "arguments"), CASES)
def test_properties_are_the_hosts(name, arguments):
    theirs, mine = getattr(host, name)(*arguments), getattr(ours, name)(*arguments)
    assert isinstance(mine, getattr(host, name))
    assert isinstance(mine, ours.NumericalMechanism)
    for each in PROPERTIES[name]:
        assert getattr(mine, each) == getattr(theirs, each)


@pytest.mark.parametrize(("name", "arguments"), CASES)
def test_there_is_never_less_noise(name, arguments):
    mine = getattr(ours, name)(*arguments)
    ratio = Fraction(mine._noise.scale) / Fraction(scale_of(mine))
    assert ratio > 1
    # A sensitivity of few steps is rounded up to one more. PyDP's standard deviation suffices here.
    assert ratio < 1.002
    assert ratio < 1.00001 or arguments[0] < 1e-5


def test_a_standard_deviation_that_does_not_suffice_is_replaced():
    theirs, mine = (library.GaussianMechanism(1e9, 1e-5) for library in (host, ours))
    assert theirs.std < 1e-300
    assert mine._noise.scale > dpnoise.Gaussian(epsilon=1e9, delta=1e-5).scale > 1e-5


def delta_of(epsilon, deviation):
    """Return the delta of continuous Gaussian noise for a sensitivity of 1: Balle and Wang (2018), Theorem 8."""

    def tail(x):
        return mpmath.erfc(x / mpmath.sqrt(2)) / 2

    shift = 1 / (2 * deviation)
    return tail(epsilon * deviation - shift) - mpmath.exp(epsilon) * tail(epsilon * deviation + shift)


@pytest.mark.parametrize("epsilon", [709.79, 1e3, 1e5])
@pytest.mark.parametrize("delta", [1e-10, 0.5, 1 - 1e-5])
def test_the_least_deviation_is_exact_where_the_host_has_none(epsilon, delta):
    theirs, mine = (library.GaussianMechanism(epsilon, delta) for library in (host, ours))
    assert theirs.std < 1e-300
    assert host.GaussianMechanism(709.78, delta).std > 0.02
    least = dpnoise.Gaussian(epsilon=epsilon, delta=delta).scale
    with mpmath.workdps(80):
        assert delta_of(epsilon, mpf(least)) <= delta < delta_of(epsilon, mpf(least) * (1 - mpf(2) ** -40))
    assert least < mine._noise.scale < least * 1.002
    # A thousandth of a deviation: as many as 40 of 40 are that small with a probability below 10^-100.
    assert max(abs(mine.add_noise(0.0)) for _ in range(40)) > mine._noise.scale / 1000


def test_the_rounding_of_many_values_is_paid_for():
    # One more step for each of them is what rounding adds to the sensitivity.
    for epsilon, sensitivity in [(1.0, 1.0), (0.01, 7.3), (3.0, 1e-5), (1.1, 0.999)]:
        noise = ours.LaplaceMechanism(epsilon, sensitivity)._noise
        step = Fraction(noise.granularity)

        def enough(values, noise=noise, step=step, epsilon=epsilon, sensitivity=sensitivity):
            return Fraction(sensitivity) / step + values <= Fraction(epsilon) * Fraction(noise.scale) / step

        assert enough(int(2**18 * epsilon))
        assert not enough(int(2**21 * epsilon))
    for std, sensitivity in [(1.0, 1.0), (7.3, 0.01), (1e-5, 3e-5)]:
        noise = ours.GaussianMechanism.create_from_standard_deviation(std)._noise
        step = Fraction(noise.granularity)

        def enough(root, noise=noise, step=step, std=std, sensitivity=sensitivity):
            multiplier = Fraction(noise.scale) / (Fraction(sensitivity) + root * step)
            return multiplier >= Fraction(std) / Fraction(sensitivity)

        assert enough(2**17 * Fraction(sensitivity / std))
        assert not enough(2**21 * Fraction(sensitivity / std))


@pytest.mark.parametrize("name", SIMPLE)
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (3, int),
        (True, int),
        (2**53, int),
        (np.int32(3), int),
        (np.uint64(3), int),
        (3.0, float),
        (np.float64(3), float),
        (np.float32(3), float),
    ],
    ids=repr,
)
def test_numbers_keep_their_type(name, value, kind):
    assert type(getattr(ours, name)(*SIMPLE[name]).add_noise(value)) is kind


@pytest.mark.parametrize("name", SIMPLE)
@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (np.zeros((2, 3), np.int32), np.int64),
        (np.zeros((3, 2)).T, np.float64),
        (np.zeros(4, np.float32), np.float64),
        (np.array(3), np.int64),
        ([1, 2, 3], np.int64),
        ([1, 2.5], np.float64),
        (np.zeros(0, np.int8), np.int64),
        ([], np.float64),
    ],
    ids=["matrix", "strided", "float32", "no dimension", "list of int", "list of float", "empty int", "empty"],
)
def test_arrays(name, values, dtype):
    released = getattr(ours, name)(*SIMPLE[name]).add_noise(values)
    assert released.dtype == dtype
    assert released.shape == np.shape(values)
    assert values is not released


@pytest.mark.parametrize("name", SIMPLE)
def test_noise_is_on_the_grid(name):
    mechanism = getattr(ours, name)(*SIMPLE[name])
    step = mechanism._noise.granularity
    released = [mechanism.add_noise(0.1), *mechanism.add_noise(np.full(100, 0.1))]
    assert all((value / step).is_integer() for value in released)
    assert len({*released}) > 95  # two are equal by chance with a probability of 5e-9


@pytest.mark.parametrize("name", SIMPLE)
def test_what_is_not_finite_gives_nan(name):
    mechanism, theirs = (getattr(library, name)(*SIMPLE[name]) for library in (ours, host))
    for value in (math.nan, math.inf, -math.inf):
        assert math.isnan(theirs.add_noise(value))
        assert math.isnan(mechanism.add_noise(value))
    released = mechanism.add_noise(np.array([math.nan, 1.0, math.inf]))
    assert np.isnan(released).tolist() == [True, False, True]


WRONG_PARAMETERS = {
    "LaplaceMechanism": [
        (0,), (-1,), (math.nan,), (math.inf,), (1e-20,), ("a",), (None,), (1, 0), (1, -1), (1, math.nan), (1, math.inf),
    ],
    "GaussianMechanism": [
        (0, 0.1), (-1, 0.1), (math.inf, 0.1), (math.nan, 0.1), (1, 0), (1, 1), (1, 2), (1, -1), (1, math.nan),
        (1, 0.1, 0), (1, 0.1, -1), (1, 0.1, math.inf), ("a", 0.1),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "arguments"), [(name, each) for name, several in WRONG_PARAMETERS.items() for each in several], ids=repr
)
def test_errors_of_parameters_are_the_hosts(name, arguments):
    with pytest.raises((RuntimeError, TypeError)) as theirs:
        getattr(host, name)(*arguments)
    with pytest.raises((RuntimeError, TypeError)) as mine:
        getattr(ours, name)(*arguments)
    assert type(mine.value) is type(theirs.value)
    # The rest of a TypeError shows the arguments, default ones too.
    assert str(mine.value).partition("Invoked with")[0] == str(theirs.value).partition("Invoked with")[0]


@pytest.mark.parametrize("std", [-1, math.nan, "a"])
def test_errors_of_the_standard_deviation_are_the_hosts(std):
    with pytest.raises((RuntimeError, TypeError)) as theirs:
        host.GaussianMechanism.create_from_standard_deviation(std)
    with pytest.raises((RuntimeError, TypeError)) as mine:
        ours.GaussianMechanism.create_from_standard_deviation(std)
    assert (type(mine.value), str(mine.value)) == (type(theirs.value), str(theirs.value))


@pytest.mark.parametrize("make", [ours.LaplaceMechanism, ours.GaussianMechanism])
def test_missing_parameters(make):
    with pytest.raises(TypeError, match="epsilon"):
        make()


def test_what_is_out_of_reach_is_refused():
    host.LaplaceMechanism(1e308, 1e-5)
    assert host.GaussianMechanism.create_from_standard_deviation(0).std == 0
    with pytest.raises(ParameterError, match="std must be positive"):
        ours.GaussianMechanism.create_from_standard_deviation(0)
    with pytest.raises(ParameterError, match="epsilon must be such that"):
        ours.LaplaceMechanism(1e308, 1e-5)
    with pytest.raises(ParameterError, match="rho must be"):
        ours.GaussianMechanism.create_from_standard_deviation(1e300)


@pytest.mark.parametrize("name", SIMPLE)
def test_wrong_values(name):
    mechanism = getattr(ours, name)(*SIMPLE[name])
    for value in ("17.5", None, 1j, {}, ["17.5"], [17.5, None]):
        with pytest.raises(TypeError, match="result must be real numbers") as caught:
            mechanism.add_noise(value)
        assert "17.5" not in str(caught.value)
    for value in (2**53 + 1, -(2**53) - 1, np.int64(2**53 + 1), [1, 2**53 + 1], 2**70):
        with pytest.raises((ParameterError, TypeError), match="result must") as caught:
            mechanism.add_noise(value)
        assert "900719925474099" not in str(caught.value)
    with pytest.raises(ParameterError, match="result must have no masked values"):
        mechanism.add_noise(np.ma.masked_less([1.0, 2.0], 1.5))


@pytest.mark.parametrize(("name", "arguments"), CASES)
def test_pickling_and_copying(name, arguments):
    mine = getattr(ours, name)(*arguments)
    for other in (pickle.loads(pickle.dumps(mine)), copy.deepcopy(mine), copy.copy(mine)):  # noqa: S301
        assert type(other) is type(mine)
        assert other._noise == mine._noise
        assert [getattr(other, each) for each in PROPERTIES[name]] == [getattr(mine, each) for each in PROPERTIES[name]]


def test_of_a_standard_deviation():
    mine = ours.GaussianMechanism.create_from_standard_deviation(2.5)
    theirs = host.GaussianMechanism.create_from_standard_deviation(2.5)
    for other in (mine, pickle.loads(pickle.dumps(mine))):  # noqa: S301
        for each in PROPERTIES["GaussianMechanism"]:
            assert getattr(other, each) == getattr(theirs, each)
        assert isinstance(other, ours.GaussianMechanism)
        assert other._noise.scale == pytest.approx(2.5, rel=1e-5)
    assert mine.noise_confidence_interval(0.95, 3.0).upper_bound == pytest.approx(3 + 2.5 * 1.959964, rel=1e-5)


@pytest.mark.parametrize(("name", "arguments"), CASES)
@pytest.mark.parametrize("level", [0.01, 0.5, 0.95, 0.999])
def test_confidence_intervals_are_the_hosts(name, arguments, level):
    theirs = getattr(host, name)(*arguments).noise_confidence_interval(level, 0.0)
    mechanism = getattr(ours, name)(*arguments)
    mine = mechanism.noise_confidence_interval(level, 0.0)
    assert mine.confidence_level == level
    assert -mine.lower_bound == mine.upper_bound == mechanism._noise.error(level) > theirs.upper_bound
    assert mine.upper_bound == pytest.approx(theirs.upper_bound, rel=1e-5 if arguments[0] > 1e-5 else 0.002)


def test_confidence_intervals_of_integers_count_their_rounding():
    mechanism = ours.LaplaceMechanism(1.0)
    found = mechanism.noise_confidence_interval(0.95, 3)
    half = int(found.upper_bound - 3)
    assert (found.lower_bound, found.upper_bound) == (0.0, 6.0)
    # Rounded noise is this far away, or less, when the noise is within half a step more.
    covered = [1 - math.exp(-(each + 0.5)) for each in (half - 1, half)]
    assert covered[0] < 0.95 <= covered[1]


@pytest.mark.parametrize("name", SIMPLE)
@pytest.mark.parametrize("level", [0, 1, -1, 2, math.nan, "a"])
def test_errors_of_confidence_intervals_are_the_hosts(name, level):
    with pytest.raises((RuntimeError, TypeError)) as theirs:
        getattr(host, name)(*SIMPLE[name]).noise_confidence_interval(level, 3.0)
    with pytest.raises((RuntimeError, TypeError)) as mine:
        getattr(ours, name)(*SIMPLE[name]).noise_confidence_interval(level, 3.0)
    assert type(mine.value) is type(theirs.value)
    assert str(mine.value).partition("Invoked with")[0] == str(theirs.value).partition("Invoked with")[0]


@pytest.mark.parametrize("name", SIMPLE)
def test_thresholds(name):
    mechanism, theirs = (getattr(library, name)(*SIMPLE[name]) for library in (ours, host))
    far = 1e6
    for value, threshold in [
        (far, 0.0),
        (-far, 0.0),
        (math.nan, 0.0),
        (0.0, math.nan),
        (math.inf, 0.0),
        (-math.inf, 0.0),
        (0.0, math.inf),
        (0.0, -math.inf),
        (int(far), 0),
    ]:
        found = mechanism.noised_value_above_threshold(value, threshold)
        assert type(found) is bool
        assert found == theirs.noised_value_above_threshold(value, threshold)
    assert {mechanism.noised_value_above_threshold(0.0, 0.0) for _ in range(60)} == {True, False}
    for wrong in [("1", 0.0), (None, 0.0), (0.0, "1")]:
        with pytest.raises(TypeError):
            theirs.noised_value_above_threshold(*wrong)
        with pytest.raises(TypeError, match="must be a number"):
            mechanism.noised_value_above_threshold(*wrong)
    with pytest.raises(ParameterError, match="result must have integers"):
        mechanism.noised_value_above_threshold(2**60, 0)


@pytest.mark.parametrize("name", SIMPLE)
def test_no_noise_of_the_host_is_used(name, monkeypatch):
    mechanism = getattr(ours, name)(*SIMPLE[name])
    for method in ("add_noise", "noised_value_above_threshold"):
        monkeypatch.setattr(host.NumericalMechanism, method, None)
    with pytest.raises(TypeError):
        getattr(host, name)(*SIMPLE[name]).add_noise(1.0)
    mechanism.add_noise(1.0)
    mechanism.add_noise([1, 2])
    mechanism.noised_value_above_threshold(1.0, 0.0)
    mechanism.noise_confidence_interval(0.9, 1.0)


def test_large_noise_of_integers_saturates():
    mechanism = ours.LaplaceMechanism(1e-6, 2.0**60)
    released = mechanism.add_noise(np.zeros(50, np.int64))
    assert (np.abs(released.astype(float)) > 2.0**60).any()
    assert (released > 0).any()
    assert (released < 0).any()


@pytest.mark.parametrize("name", SIMPLE)
def test_no_warning_tells_of_a_number(name):
    mechanism = getattr(ours, name)(*SIMPLE[name])
    check_silent(mechanism.add_noise, [*NUMBERS, *columns(4)])
    check_silent(lambda number: mechanism.noised_value_above_threshold(number, 1.0), NUMBERS)
    with pytest.raises(AssertionError, match="invalid value encountered in cast"):
        check_silent(lambda column: mechanism.add_noise(column.astype(np.float64)), columns(4))
