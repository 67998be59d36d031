"""Distances to instability of any column, their sensitivity, and the releases of medians and modes."""

import math
import re
import warnings
from fractions import Fraction
from functools import partial
from itertools import product
from statistics import median_low

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnoise import ParameterError, PrivacyCost, stability
from dpnoise._native import StabilityTest, interquartile_range
from dpnoise.hazmat import ScriptedRng, SeededRng
from dpnoise.stability._powers import interval

NUMBERS = [7, 0, 15, 7, 3, 7, 9, 7, 1, 12, 7, 7, 30, 7, 5, 7, 22, 7, 7, 11, 2, 7]
DISTANCES = {
    "median": (stability.median_distance, {"relation": "substitute"}, 5),
    "median, add/remove": (stability.median_distance, {"relation": "add/remove"}, 10),
    "mode": (stability.mode_distance, {"relation": "substitute"}, 4),
    "mode, add/remove": (stability.mode_distance, {"relation": "add/remove"}, 9),
    "iqr": (stability.iqr_distance, {}, 1),
    "iqr, 2": (stability.iqr_distance, {"discretization": 2}, 1),
}
RELEASES = {"median": stability.StableMedian, "mode": stability.StableMode}
SURE = {"epsilon": 5.0, "delta": 1e-9, "relation": "substitute"}  # of what has a distance of 10 or more
MEDIAN, MODE = stability.StableMedian(**SURE), stability.StableMode(**SURE)


COLUMNS = {
    "tuple": tuple(NUMBERS),
    "Fractions": [Fraction(x) for x in NUMBERS],
    "mixed": [np.float32(x) if x > 5 else x for x in NUMBERS],
    **{dtype: np.array(NUMBERS, dtype) for dtype in ("i1", "u2", "i8", "u8", "f4", "f8", ">f8", "O")},
    "strided": np.repeat(np.array(NUMBERS, float), 2)[::-2],
    "read-only": np.broadcast_to(np.array(NUMBERS, float), (1, 22))[0],
    "masked": np.ma.masked_array(NUMBERS, mask=False),
    "pandas": pd.Series(NUMBERS, dtype="Int32"),
    "polars": pl.Series(NUMBERS, dtype=pl.Int16),
    "Arrow": pa.array(NUMBERS),
    "chunked Arrow": pa.chunked_array([NUMBERS[:2], NUMBERS[2:]]),
}


@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_of_any_library(name, column):
    distance, options, expected = DISTANCES[name]
    before = repr(COLUMNS[column])
    assert distance(COLUMNS[column], **options) == expected
    assert repr(COLUMNS[column]) == before, "it is not sorted in place"


def test_modes_of_texts_bytes_and_booleans():
    for one, other in (("tea", "coffee"), (b"tea", b"coffee"), (True, False)):
        rows = [one] * 9 + [other] * 4
        for column in (rows, np.array(rows), np.array(rows, object), pd.Series(rows), pl.Series(rows), pa.array(rows)):
            # With 3 rows more the other wins: on ties it is the mode.
            assert stability.mode_distance(column, relation="substitute") == 2
            assert stability.mode_distance(column) == 4
            assert repr(MODE.release(np.tile(np.asarray(column), 10))) == repr(one)
    assert stability.mode_distance(["a", "b"]) == stability.mode_distance(["b", "a"]) == 0


def test_integers_are_not_rounded_for_a_mode():
    assert MODE.release(np.array([2**53] * 50 + [2**53 + 1] * 90)) == 2**53 + 1
    assert MODE.release(np.array([2**64 - 1] * 90, np.uint64)) == 2**64 - 1
    assert MODE.release([10**400] * 90) == 10**400
    assert MODE.release([Fraction(10**400, 3)] * 90) == Fraction(10**400, 3)


# --- sensitivity -----------------------------------------------------------------------------------------------------

WILD = [0.0, -0.0, 5e-324, -5e-324, 1e-323, 2.0**-1022, 1.0, 2.0**-0.5, 2.0, 4.0, 2.0**52, 1e300, 2.0**1023]
LARGEST = np.finfo(float).max
MAKERS = (
    lambda g, n: g.normal(size=n),
    lambda g, n: g.normal(scale=3, size=n).round(),
    lambda g, n: g.integers(0, 40, n) * 5e-324,
    lambda g, n: np.ldexp(1.0, g.integers(-1074, 1024, n)),
    lambda g, n: np.ldexp(g.choice([-1.0, 1.0], n), g.integers(-3, 4, n)),
    lambda g, n: g.choice([*WILD, -LARGEST, LARGEST], n),
    lambda g, n: g.uniform(-1, 1, n) * LARGEST,
    lambda g, n: np.where(g.random(n) < 0.9, 7.0, g.standard_cauchy(n)),
    lambda g, n: np.linspace(0, 1, n),
)


@st.composite
def neighbours_of_columns(draw):
    """A column, where a value is substituted, and by what."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.one_of(st.integers(2, 12), st.integers(13, 3000)))
    column = draw(st.sampled_from(MAKERS))(generator, n)
    place = draw(st.integers(0, n - 1))
    value = draw(st.one_of(st.sampled_from([*WILD, -LARGEST, LARGEST, *column[:8]]), st.floats(-LARGEST, LARGEST)))
    other = column.copy()
    other[place] = value
    return column, place, other


def check_sensitivity(answers, distances, least):
    assert abs(distances[0] - distances[1]) <= 1
    assert answers[0] == answers[1] or distances == (least, least)


def modes(column):
    values, counts = np.unique(column, return_counts=True)
    return values[np.argmax(counts)]


def lower_median(column):
    return np.sort(column)[(len(column) - 1) // 2]


def test_a_null_is_never_a_value_of_another_row():
    """Pyarrow alone makes the last value of a dictionary of it: here that of the last row."""
    rows = ["coffee", *[None] * 200, "tea"]
    encoded = pa.chunked_array([pa.array(rows).dictionary_encode()])
    for relation in ("add/remove", "substitute"):
        with pytest.raises(ParameterError, match="x must have no missing"):
            stability.StableMode(**SURE | {"relation": relation}).release(encoded)


@given(neighbours_of_columns())
def test_distances_change_by_at_most_one_and_are_0_where_the_answer_changes(case):
    column, place, other = case
    less = np.delete(column, place)
    for distance, answer in ((stability.median_distance, lower_median), (stability.mode_distance, modes)):
        answers = answer(column), answer(other)
        check_sensitivity(answers, tuple(distance(data, relation="substitute") for data in (column, other)), 0)
        distances = tuple(distance(data, relation="add/remove") for data in (column, less))
        check_sensitivity((answers[0], answer(less)), distances, 0)
    for discretization in (1, 2):
        with np.errstate(over="ignore"):
            ranges = [interquartile_range(np.sort(data)) for data in (column, other)]
        for base in (2.0, 1.25):
            intervals = [interval(width, base, discretization) for width in ranges]
            distances = tuple(stability.iqr_distance(data, discretization, base=base) for data in (column, other))
            check_sensitivity(intervals, distances, 1)
            assert max(distances) <= math.ceil(len(column) / 4)


def test_the_check_of_sensitivity_can_fail():
    for answers, distances in (((1, 1), (3, 5)), ((1, 2), (0, 1)), ((1, 2), (1, 1))):
        with pytest.raises(AssertionError):
            check_sensitivity(answers, distances, 0)


# --- releases --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["add/remove", "substitute"])
@pytest.mark.parametrize("name", RELEASES)
def test_a_release_is_the_value_when_its_distance_passes(name, relation):
    distance = {"median": stability.median_distance, "mode": stability.mode_distance}[name](NUMBERS, relation=relation)
    stable = RELEASES[name](epsilon=0.5, delta=0.01, relation=relation)
    assert stable.cost == PrivacyCost(0.5, 0.01, relation)
    test, outcomes = StabilityTest(0.5, 0.01), set()
    for seed in range(60):
        released = stable.release(NUMBERS, rng=SeededRng(seed))
        assert released == (7 if test.passes(distance, SeededRng(seed)) else None)
        refusal = "the test of stability failed" if released is None else None
        assert stable.attempt(NUMBERS, rng=SeededRng(seed)) == stability.Attempt(released, refusal)
        outcomes.add(released)
    assert outcomes == {7, None}


@pytest.mark.parametrize("kind", RELEASES.values(), ids=RELEASES)
def test_no_data_are_never_released_and_cost_as_much(kind):
    stable = kind(epsilon=1.0, delta=0.9)
    assert stable.cost == PrivacyCost(1.0, 0.9, "add/remove")
    for seed in range(50):
        for nothing in ([], np.array([]), pl.Series([], dtype=pl.Float64)):
            refused = stable.attempt(nothing, rng=SeededRng(seed))
            assert refused == stability.Attempt(None, "the test of stability failed")
            assert stable.release(nothing, rng=SeededRng(seed)) is None


def test_equal_values_are_released_as_the_same():
    """A bit or a type that differs would be of one person's value, which the distance says nothing about."""
    for zeros in ([0.0] * 99 + [-0.0] * 2, [-0.0] * 99 + [0.0] * 2, [-0.0] * 101):
        assert math.copysign(1, MEDIAN.release(zeros)) == 1
        for column in (zeros, np.array(zeros)):
            assert repr(MODE.release(column)) == "0"
    halves = [Fraction(1, 2), 0.5, np.float32(0.5)]
    wholes = [Fraction(3), 3.0, np.int8(3), 3]
    for kinds in (halves, wholes):
        for first in kinds:
            assert repr(MODE.release([first, *kinds * 30])) == ("3" if kinds is wholes else "0.5")
    text = type("Text", (str,), {"__repr__": lambda self: "another"})
    assert repr(MODE.release([text("tea"), np.str_("tea"), *["tea"] * 90])) == "'tea'"
    # Numbers that NumPy and Python cannot compare with one another.
    thirds = [np.longdouble(1) / 3, Fraction(1, 2), Fraction(1, 2), 10**400]
    assert repr(MODE.release(thirds * 30)) == "0.5"


def test_a_large_delta_is_warned_of_where_the_number_of_rows_is_public():
    for kind in RELEASES.values():
        stable = kind(epsilon=1.0, delta=0.01, relation="substitute")
        for release in (stable.release, stable.attempt):
            with pytest.warns(UserWarning, match=r"delta=0\.01 is at least 1/n with n=100") as caught:
                release([1.0] * 100)
            assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            stable.release([1.0] * 99)
            kind(epsilon=1.0, delta=0.01, relation="add/remove").release([1.0] * 100)


# --- bad input -------------------------------------------------------------------------------------------------------

NOT_FINITE = "x must be finite: no NaN and no infinity"
MISSING = "x must have no missing and no infinite values"
BAD = {
    "no values": ([], ParameterError, "x must be one or more values, got 0"),
    "NaN": ([1.0, math.nan, 2.0], ParameterError, NOT_FINITE),
    "NaN in an array": (np.array([1.0, math.nan, 2.0]), ParameterError, NOT_FINITE),
    "an infinity": (np.array([1.0, math.inf, 2.0]), ParameterError, NOT_FINITE),
    "a negative infinity": (np.array([1.0, -math.inf, 2.0]), ParameterError, NOT_FINITE),
    "infinity in a list": ([1.0, 2, math.inf], ParameterError, NOT_FINITE),
    "None": ([1.0, None, 2.0], ParameterError, NOT_FINITE),
    "a null of pandas": (pd.Series([1, None, 2], dtype="Int64"), ParameterError, NOT_FINITE),
    "a null of polars": (pl.Series([1, None, 2]), ParameterError, NOT_FINITE),
    "a null of Arrow": (pa.array([1, None, 2]), ParameterError, NOT_FINITE),
    "a masked value": (np.ma.masked_array([1, 2], mask=[0, 1]), ParameterError, NOT_FINITE),
    "two dimensions": (np.zeros((3, 2)), ParameterError, "x must have one dimension, got 2"),
    "a number": (
        3.0,
        TypeError,
        "x must be a NumPy array, list, pandas or polars series, Arrow array or tensor, got float",
    ),
    "dates": (
        np.array(["2026-11-21"], "M8[D]"),
        TypeError,
        "x must be of real numbers, got dtype datetime64: cast them to numbers, such as days; queries.Median, Quantile "
        "and Histogram take dates as bounds or edges",
    ),
    "texts": (["a", "b"], TypeError, "x must be of real numbers, got str"),
    "texts and numbers": (["a", 1], TypeError, "x must be of real numbers, got int and str"),
}
OF_MODES = {
    "infinity in a list": MISSING,
    "NaN": MISSING,
    "None": MISSING,
    "a masked value": MISSING,
    "dates": "x must be of texts, of numbers or of booleans, got datetime64",
    "texts and numbers": "x must be of texts, of numbers or of booleans, got int and str",
}


@pytest.mark.parametrize("case", BAD)
def test_a_column_that_cannot_be_used(case):
    column, kind, message = BAD[case]

    def refuses(call, message, **options):
        with pytest.raises(kind, match="^" + re.escape(message) + "$"):
            call(column, **options)

    drawing = {"rng": ScriptedRng(b"")}
    refuses(stability.iqr_distance, message.replace("one or more values", "two or more numbers"))
    for relation in ("substitute",) if case == "no values" else ("add/remove", "substitute"):
        refuses(stability.median_distance, message, relation=relation)
        refuses(stability.StableMedian(**SURE | {"relation": relation}).release, message, **drawing)
        if case != "texts":
            refuses(stability.mode_distance, OF_MODES.get(case, message), relation=relation)
            refuses(
                stability.StableMode(**SURE | {"relation": relation}).release, OF_MODES.get(case, message), **drawing
            )


def test_parameters_out_of_range():
    def refuses(message, call, *args, kind=ParameterError, **options):
        with pytest.raises(kind, match="^" + re.escape(message) + "$"):
            call([1.0], *args, **options)

    wrong = 'relation must be "add/remove" or "substitute", got '
    for call in (stability.median_distance, stability.mode_distance):
        refuses(wrong + "'add_remove'", call, relation="add_remove")
        refuses(wrong + "['substitute']", call, relation=["substitute"])
    for kind in RELEASES.values():
        for relation in (None, ["substitute"], "add_remove"):
            with pytest.raises(ParameterError, match=r'^relation must be "add/remove" or "substitute", got '):
                kind(epsilon=1.0, delta=1e-9, relation=relation)
        for epsilon, delta, error, message in (
            (-1, 1e-9, ParameterError, "epsilon must be positive and finite, got -1.0"),
            (0, 1e-9, ParameterError, "epsilon must be positive and finite, got 0.0"),
            (1.0, 0, ParameterError, "delta must be between 0 and 1, both excluded, got 0.0"),
            (1.0, "1", TypeError, "delta must be a number, got str"),
        ):
            with pytest.raises(error, match=re.escape(message)):
                kind(epsilon=epsilon, delta=delta)
    refuses("x must be two or more numbers, got 1", stability.iqr_distance)
    refuses("discretization must be an integer from 1 to 2, got 3", stability.iqr_distance, 3)
    refuses("discretization must be an integer from 1 to 2, got -1", stability.iqr_distance, -1)
    refuses("discretization must be an int, got float", stability.iqr_distance, 1.0, kind=TypeError)
    assert stability.iqr_distance([3.0] * 40) == 10, "all values equal are data as any other"


# --- local sensitivity ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["add/remove", "substitute"])
def test_a_median_has_a_local_sensitivity_where_its_distance_is_zero(relation):
    domain, zero = [-1.0, 0.0, 1.0, 2.0], 0
    for x in (x for n in range(2, 7) for x in product([0.0, 1.0], repeat=n)):
        most = stability.local_sensitivity(median_low, x, domain, relation=relation)
        assert (most > 0) == (stability.median_distance(x, relation=relation) == 0)
        zero += most == 0
    assert zero > 10, "both occur"


def test_a_local_sensitivity_is_of_the_rows_and_the_domain():
    assert stability.local_sensitivity(sum, [3, 8], range(-5, 8)) == 8
    assert stability.local_sensitivity(sum, [3, 8], range(-5, 8), relation="substitute") == 13
    counts = stability.local_sensitivity(partial(np.bincount, minlength=2), [0, 1], [0, 1], relation="substitute")
    assert counts == 2, "the answers are vectors"
    assert stability.local_sensitivity(len, [], ["a"]) == 1
    assert stability.local_sensitivity(list.pop, [0, 9], [0, 9]) == 9, "a function may change its list"


@pytest.mark.parametrize(
    ("f", "data", "options", "kind", "message"),
    [
        ("sum", [1], {}, TypeError, "f must be callable, got str"),
        (sum, [1], {"domain": []}, ParameterError, "domain must have one or more values, got none"),
        (sum, [], {"relation": "substitute"}, ParameterError, "data must have one or more values, got none"),
        (sum, [1], {"relation": "add"}, ParameterError, "relation must be"),
        (tuple, [1], {}, ParameterError, "f must return finite numbers, as many for all data"),
        (lambda x: math.inf if len(x) > 1 else 0, [1], {}, ParameterError, "f must return finite numbers"),
        (lambda x: math.nan, [1], {}, ParameterError, "f must return finite numbers"),
        (lambda x: "many", [1], {}, ParameterError, "f must return finite numbers"),
        (lambda x: 10**400, [1], {}, ParameterError, "f must return finite numbers"),
        (len, 1, {}, TypeError, "data must be an iterable of rows, got int"),
        (len, pd.DataFrame({"a": [1]}), {}, TypeError, "data must be .* got DataFrame, whose items are its columns"),
    ],
)
def test_what_has_no_local_sensitivity_is_refused(f, data, options, kind, message):
    with pytest.raises(kind, match=f"^{message}"):
        stability.local_sensitivity(f, data, **{"domain": [0]} | options)
