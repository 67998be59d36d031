"""diffprivlib's mechanisms with noise of dpnoise: the host's parameters, checks and errors, and never less noise."""

from __future__ import annotations

import copy
import inspect
import itertools
import math
import pickle
import re
import secrets
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from diffprivlib import mechanisms as host
from host_tests.errors import error_of
from host_tests.silence import LARGEST, NUMBERS, check_silent, columns

import dpnoise_diffprivlib as ours
from dpnoise import ParameterError
from dpnoise.hazmat import SeededRng
from dpnoise_diffprivlib._mechanism import flip_probability, pure_epsilon

from .cases import ALL, ARRAYS, CHOICES, UTILITY, make

INF, NAN = math.inf, math.nan


def without_value(error):
    """Leave out the private value that the host's error shows and ours does not."""
    kind, text = error
    return kind, re.sub(r"(?<=must be None)\. Got: .*|(?<=\"}), got .*|(?<=must be a list, got a ).*", "", text)


@pytest.mark.parametrize("name", ALL)
def test_a_replacement_looks_like_the_host(name):
    kind, original = getattr(ours, name), getattr(host, name)
    assert issubclass(kind, original)
    assert inspect.signature(kind) == inspect.signature(original)
    shown, expected = repr(make(name)), repr(make(name, host))
    assert shown.rpartition(f".{name}(")[2] == expected.rpartition(f".{name}(")[2]
    assert [base for base in ALL if issubclass(getattr(ours, base), kind)] == [
        base for base in ALL if issubclass(getattr(host, base), original)
    ]


def test_a_subclass_of_a_user_shows_its_own_parameters():
    class Halved(ours.Laplace):
        def __init__(self, *, epsilon, name):
            super().__init__(epsilon=epsilon / 2, sensitivity=1.0)
            self.name = name

    class Named(Halved):
        pass

    for kind in (Halved, Named):
        assert list(inspect.signature(kind).parameters) == ["epsilon", "name"]
        assert repr(kind(epsilon=1.0, name="a")).endswith("(epsilon=0.5, name='a')")


def test_everything_is_tested():
    assert set(ours.__all__) - {"patched", "install"} == set(ALL)


BAD_PARAMETERS = [
    *itertools.product(ALL, [{"epsilon": bad} for bad in (-1.0, "1", None, 1j)]),
    *itertools.product(set(ALL) - {"Laplace", "LaplaceBoundedDomain"}, [{"epsilon": 0}]),
    ("Laplace", {"epsilon": 0, "delta": 0}),
    *itertools.product(
        [name for name, case in ARRAYS.items() if "delta" in case.parameters],
        [{"delta": bad} for bad in (-0.1, 1.1, "0", None)],
    ),
    *itertools.product(set(ALL) - {"Binary"}, [{"sensitivity": bad} for bad in (-1, "1", None)]),
    *itertools.product(["Geometric", "GaussianDiscrete", "GeometricFolded"], [{"sensitivity": 1.5}]),
    *itertools.product(
        [name for name, case in ARRAYS.items() if "lower" in case.parameters],
        [{"lower": 3, "upper": 2}, {"lower": "0"}, {"upper": None}],
    ),
    *itertools.product(["GeometricTruncated", "GeometricFolded"], [{"lower": 0.3}]),
    ("Gaussian", {"epsilon": 1.5}),
    ("Gaussian", {"delta": 0}),
    ("Snapping", {"epsilon": 1e-17}),
    *itertools.product(["Binary"], [{"value0": 1}, {"value1": ""}, {"value0": "yes"}]),
    *itertools.product(["Exponential", "PermuteAndFlip"], [{"utility": bad} for bad in ((1, 2), ["a"], [], [1, INF])]),
    *itertools.product(["Exponential", "PermuteAndFlip"], [{"candidates": bad} for bad in ("abcd", ["a"])]),
    *itertools.product(["Exponential"], [{"measure": bad} for bad in ((1, 2, 3, 4), [1], ["a"] * 4, [INF] * 4)]),
    *itertools.product(ALL, [{"unknown": 1}]),
]


@pytest.mark.parametrize(("name", "bad"), sorted(BAD_PARAMETERS, key=str), ids=str)
def test_bad_parameters_get_the_hosts_errors(name, bad):
    expected, found = (error_of(lambda library=library: make(name, library, **bad)) for library in (host, ours))
    assert expected is not None
    assert without_value(found) == without_value(expected)


@pytest.mark.parametrize("name", ALL)
def test_positional_and_missing_parameters_get_the_hosts_errors(name):
    assert error_of(lambda: getattr(ours, name)()) == error_of(lambda: getattr(host, name)())
    assert error_of(lambda: getattr(ours, name)(1.0))[0] is error_of(lambda: getattr(host, name)(1.0))[0] is TypeError


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("bad", ["a", None, 1.5, [1], 1j, 1], ids=repr)
def test_bad_values_get_the_hosts_errors(name, bad):
    expected, found = (error_of(lambda library=library: make(name, library).randomise(bad)) for library in (host, ours))
    assert found == (expected and without_value(expected))


@pytest.mark.parametrize(("name", "attribute"), [("Laplace", "epsilon"), ("Geometric", "sensitivity")])
def test_parameters_that_are_changed_are_checked_again_and_used(name, attribute):
    mechanism = make(name)
    setattr(mechanism, attribute, -1)
    for call in (lambda: mechanism.randomise(1), lambda: mechanism.randomise_many([1])):
        with pytest.raises(ValueError, match="must be non-negative"):
            call()
    setattr(mechanism, attribute, 10**6 if attribute == "epsilon" else 0)
    assert mechanism.randomise(1) == pytest.approx(1, abs=1e-3)


# --- randomness --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("seed", [0, 3, np.random.RandomState(1), "x", np.random.default_rng(1)], ids=lambda s: type(s))
def test_seeds_are_refused(name, seed):
    with pytest.raises(ValueError, match="random_state must be None"):
        make(name, random_state=seed)


@pytest.mark.parametrize("name", ALL)
def test_what_stands_for_no_seed_is_taken(name):
    value = ALL[name].value
    for state in (None, secrets.SystemRandom(), np.random.mtrand._rand):
        make(name, random_state=state).randomise(value)


@pytest.mark.parametrize("name", ALL)
def test_generators_of_hazmat_repeat(name):
    value = ALL[name].value
    seeded = [make(name, random_state=SeededRng(7)) for _ in range(2)]
    first, second = ([mechanism.randomise(value) for _ in range(20)] for mechanism in seeded)
    assert first == second
    assert first != [make(name).randomise(value) for _ in range(20)] or name in ("Binary", *CHOICES)


@pytest.mark.parametrize("name", ALL)
def test_a_mechanism_can_be_copied_and_pickled(name):
    mechanism = make(name)
    for other in (pickle.loads(pickle.dumps(mechanism)), copy.deepcopy(mechanism), mechanism.copy()):  # noqa: S301
        assert repr(other) == repr(mechanism)
        other.randomise(ALL[name].value)


def test_no_sampler_of_the_host_is_used(monkeypatch):
    mechanism = make("Laplace")
    assert mechanism._rng is None
    with pytest.raises(AttributeError):
        host.Laplace.randomise(mechanism, 1.0)


# --- arrays ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3)], ids=str)
def test_arrays_keep_their_shape(name, shape):
    value = ARRAYS[name].value
    given = np.full(shape, value)
    released = make(name).randomise_many(given)
    kind = "U" if name == "Binary" else np.array(make(name).randomise(value)).dtype.kind
    assert released.shape == shape
    # A scalar that is cut at a bound is the bound, whatever it is made of.
    assert released.dtype.kind == ("f" if name in ("LaplaceTruncated", "LaplaceBoundedDomain") else kind)
    assert np.array_equal(given, np.full(shape, value))


@pytest.mark.parametrize("name", sorted(set(ARRAYS) - {"Binary"}))
def test_arrays_are_bounded_as_values_are(name):
    mechanism = make(name, epsilon=0.01)
    released = mechanism.randomise_many(np.arange(-500, 500))
    if "lower" in ARRAYS[name].parameters:
        assert released.min() >= mechanism.lower
        assert released.max() <= mechanism.upper
    else:
        assert released.std() > 100


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *itertools.product(["Laplace", "Gaussian"], [["a"], [1j], [None], np.array(["2020"], "datetime64[D]")]),
        *itertools.product(["Geometric", "GaussianDiscrete"], [["a"], [1.0], [None]]),
        ("Binary", [1]),
    ],
    ids=str,
)
def test_arrays_of_a_wrong_type_are_refused(name, bad):
    with pytest.raises(TypeError, match="Value to be randomised must be"):
        make(name).randomise_many(bad)


def test_labels_that_are_neither_are_refused():
    with pytest.raises(ValueError, match="domain") as caught:
        make("Binary").randomise_many(["no", "perhaps"])
    assert "perhaps" not in str(caught.value)


@pytest.mark.parametrize("name", ["Laplace", "Geometric", "Gaussian"])
def test_truth_values_are_numbers_as_by_the_host(name):
    make(name).randomise(True)
    assert make(name).randomise_many([True, False]).shape == (2,)


@pytest.mark.parametrize("name", ["Laplace", "LaplaceTruncated", "LaplaceFolded", "Gaussian", "LaplaceBoundedDomain"])
def test_what_is_not_finite_is_given_back_as_by_the_host(name):
    mechanism = make(name)
    assert math.isnan(mechanism.randomise(NAN))
    released = mechanism.randomise_many([0.0, NAN, 0.0])
    assert np.array_equal(np.isnan(released), [False, True, False])
    if name in ("Laplace", "Gaussian"):
        assert mechanism.randomise(-INF) == -INF


@pytest.mark.parametrize("value", [2**53 + 1, Fraction(1, 3), 10**400])
def test_values_that_a_float_does_not_hold_are_refused(value):
    with pytest.raises(ParameterError, match="value must be a number that a float holds exactly") as caught:
        make("Laplace").randomise(value)
    assert str(value) not in str(caught.value)


@pytest.mark.parametrize("name", ["Laplace", "LaplaceBoundedDomain", "Snapping", "LaplaceTruncated", "Gaussian"])
@pytest.mark.parametrize(
    "values", [np.array([2**60 + 127, 2**60 + 129]), [2**53 + 1, 0.5], [2**63, -1], [[2**53 + 1, INF]]], ids=str
)
def test_arrays_whose_integers_would_be_rounded_are_refused(name, values):
    bounds = {"lower": 2**60 - 4096, "upper": 2**60 + 4096} if "lower" in ARRAYS[name].parameters else {}
    with pytest.raises(ParameterError, match="must have integers of at most") as caught:
        make(name, **bounds).randomise_many(values)
    assert str(2**53 + 1) not in str(caught.value)


def test_arrays_of_more_than_64_bits_are_refused():
    for name in ("Laplace", "LaplaceBoundedDomain", "Snapping"):
        with pytest.raises(TypeError, match="64 bits"):
            make(name).randomise_many(np.array([1], np.longdouble))


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.bool_])
def test_arrays_of_any_numbers_are_taken(dtype):
    for name in set(ARRAYS) - {"Binary"}:
        if dtype is not np.float16 or isinstance(make(name)._example, float):
            assert make(name).randomise_many(np.array([1, 0], dtype)).shape == (2,)


@pytest.mark.parametrize("name", ["Geometric", "GeometricFolded", "GaussianDiscrete"])
def test_integers_out_of_range_are_refused_without_noise_too(name):
    mechanism = make(name, sensitivity=0)
    for call in (lambda: mechanism.randomise(2**63), lambda: mechanism.randomise_many(np.array([2**63], np.uint64))):
        with pytest.raises(ParameterError, match="range of int64"):
            call()


@pytest.mark.parametrize("bad", [INF, NAN])
def test_a_sensitivity_that_is_not_finite_is_refused(bad):
    for name in sorted({*ALL} - {"Binary", "Geometric", "GeometricTruncated", "GeometricFolded", "GaussianDiscrete"}):
        with np.errstate(all="ignore"), pytest.raises(ParameterError, match="must be"):
            make(name, sensitivity=bad)


@pytest.mark.parametrize("name", sorted({*ARRAYS} - {"Binary"}))
def test_no_warning_tells_of_a_value(name):
    for changes in ({}, {"sensitivity": 0}, *[{"lower": -LARGEST, "upper": LARGEST}] * (name == "LaplaceFolded")):
        mechanism = make(name, **changes)
        check_silent(mechanism.randomise, NUMBERS)
        check_silent(mechanism.randomise_many, [*columns(4), *columns(4, [np.float16])])


@pytest.mark.parametrize("name", CHOICES)
def test_no_warning_tells_of_a_utility(name):
    def choose(library, **changes):
        return lambda utility: make(name, library, utility=utility, **changes).randomise()

    utilities = [*([number, 1, 2.5, 0] for number in NUMBERS), *map(np.ndarray.tolist, columns(4))]
    weighed = [{"measure": [1, 0, 0, 0]}, {"measure": [0, 0, 0, 1], "epsilon": INF}] * (name == "Exponential")
    for changes in ({}, {"sensitivity": 0}, {"epsilon": INF}, *weighed):
        check_silent(choose(ours, **changes), utilities)
        with pytest.raises(AssertionError):
            check_silent(choose(host, **changes), utilities)


# --- never less noise than the parameters ask for ------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0, 1e-9, 0.5, 3.0])
@pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-17, 1e-6, 0.1, 0.9, 1 - 2**-53])
def test_delta_is_turned_into_epsilon_and_rounded_down(epsilon, delta):
    with mpmath.workdps(700):
        exact = mpmath.mpf(epsilon) - mpmath.log(1 - mpmath.mpf(delta))
        found = mpmath.mpf(pure_epsilon(epsilon, delta))
        assert 0 < exact - found <= exact * mpmath.mpf(2) ** -51 + mpmath.mpf(2) ** -1073


@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 1.0, 30.0, 700.0, 1e300])
def test_labels_are_flipped_often_enough(epsilon):
    with mpmath.workdps(60):
        found, exact = mpmath.mpf(flip_probability(epsilon)), 1 / (1 + mpmath.exp(mpmath.mpf(min(epsilon, 1e5))))
        assert found >= min(exact, 0.5)
        assert found - exact <= exact * mpmath.mpf(2) ** -51 + mpmath.mpf(2) ** -1073


@pytest.mark.parametrize("name", ["Laplace", "Geometric", "Gaussian", "GaussianAnalytic", "GaussianDiscrete"])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_the_scale_is_the_hosts_or_a_little_more(name, epsilon, sensitivity):
    mechanism = make(name, epsilon=epsilon, sensitivity=sensitivity)
    if "Gaussian" in name:
        expected = make(name, host, epsilon=epsilon, sensitivity=sensitivity)._scale
    else:
        expected = sensitivity / (epsilon - math.log1p(-mechanism.delta))
    noise = mechanism._noise()
    assert expected * (1 - 1e-15) <= noise.scale <= expected * (1 + 1e-6)
    if "Gaussian" in name:
        assert noise.scale >= expected
        # The sensitivity of the integers is what the mechanism of dpnoise for arrays was not told.
        if name != "GaussianDiscrete" or sensitivity == 1:
            assert noise.delta_for(epsilon) <= mechanism.delta


def test_the_discrete_gaussian_is_widened_where_the_host_rounds_down():
    below = [
        (epsilon, delta)
        for epsilon, delta in itertools.product([0.1, 0.5, 1.0, 2.0, 4.0], [1e-2, 1e-4, 1e-6, 1e-8])
        if make("GaussianDiscrete", host, epsilon=epsilon, delta=delta)._scale
        < make("GaussianDiscrete", epsilon=epsilon, delta=delta)._noise().scale * (1 - 1e-12)
    ]
    assert below, "the host's scale always suffices: nothing is shown"


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        *itertools.product(sorted(set(ARRAYS) - {"Binary"}), [{"sensitivity": 0}]),
        *itertools.product(sorted(set(ARRAYS) - {"Binary", "Gaussian"}), [{"epsilon": INF}]),
    ],
    ids=str,
)
def test_without_noise_a_value_is_what_it_is_by_the_host(name, changes):
    mechanism, original = make(name, **changes), make(name, host, **changes)
    for value in (-7, 0, 1, 2):
        expected = original.randomise(value)
        assert mechanism.randomise(value) == expected
        assert mechanism.randomise_many([value]).tolist() == [expected]


def test_without_noise_a_label_is_what_it_is():
    mechanism = make("Binary", epsilon=INF)
    assert {mechanism.randomise("yes") for _ in range(20)} == {"yes"}


@pytest.mark.parametrize("name", ["LaplaceTruncated", "Geometric", "Gaussian", "PermuteAndFlip"])
def test_parameters_out_of_reach_are_refused_when_they_are_given(name):
    with pytest.raises(ParameterError, match="must be"):
        make(name, epsilon=1e-300)


# --- choices -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Exponential", "PermuteAndFlip"])
def test_candidates_are_given_out(name):
    chosen = make(name, candidates=list("abcd")).randomise()
    assert chosen in "abcd"
    assert make(name, epsilon=INF).randomise() == 2


@pytest.mark.parametrize(("measure", "best"), [([0, 0, 0, 1], {3}), ([1, 0, 0, 0], {0}), ([1, 5, 0, 0], {1})])
def test_weights_of_zero_are_never_chosen(measure, best):
    assert {make("Exponential", epsilon=INF, measure=measure).randomise() for _ in range(20)} == best
    allowed = set(np.flatnonzero(measure))
    assert {make("Exponential", measure=measure).randomise() for _ in range(50)} <= allowed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"measure": [1, 1, 1, -1]}, "measure must have no negative"),
        ({"utility": [NAN, 1, 2, 3]}, "utility must have no NaN"),
        ({"utility": [0, 1e300, 2, 3]}, "utility must be numbers below"),
        ({"utility": [0, 2**53 + 1, 2, 3]}, "utility must have integers of at most"),
    ],
    ids=str,
)
def test_weighed_choices_that_cannot_be_exact_are_refused(changes, message):
    mechanism = make("Exponential", **changes)
    with pytest.raises(ValueError, match=message):
        mechanism.randomise()


def test_weights_need_room_for_their_rounding():
    with pytest.raises(ParameterError, match=r"epsilon must be at least 2\*\*-20 with a measure"):
        make("Exponential", epsilon=2.0**-21)
    make("Exponential", epsilon=2.0**-21, measure=None).randomise()
    assert make("Exponential", utility=UTILITY[:1], measure=[0.5]).randomise() == 0
