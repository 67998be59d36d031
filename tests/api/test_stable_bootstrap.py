"""The stable bootstrap: what subsets vote for, how far that changes between neighbours, and what is released."""

import itertools
import math
import pickle
import re
import signal
import struct
import warnings
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpnoise import ParameterError, PrivacyCost, RandomnessError, stability
from dpnoise._native import StabilityTest, Subsets, SubsetVotes
from dpnoise._processes import Died
from dpnoise.hazmat import ScriptedRng, SeededRng
from dpnoise.stability import _stable_bootstrap, _subset_votes
from dpnoise.stability._mechanism import NOT_STABLE
from dpnoise.stability._stable_bootstrap import NO_VALUE, TOO_OFTEN, _Plan, _released
from dpnoise.stability._subset_votes import NativeFunction, PythonFunction, Votes, _key, _value, _values_and_ranks


def nowhere(units: float) -> None:
    """A bar that is not shown."""


def count(function, subsets, q, rng=None) -> Votes:
    return function.count(subsets, q, rng, nowhere)


def has_a_one(rows):
    """The most that a row can do: each subset that it is in changes its value."""
    return 1 in rows


def commonest(rows):
    return int(np.bincount(np.asarray(rows, int)).argmax())


def lower_median(rows):
    return sorted(rows)[(len(rows) + 1) // 2 - 1].item()


def best_column(rows):
    if len(rows) == 0:
        raise ValueError
    return int(rows.sum(axis=0).argmax())


# --- neighbours ---------------------------------------------------------------------------------------------------


def distance_of(votes: Votes, cap: int) -> int:
    """The distance that is tested."""
    tested = []
    test = SimpleNamespace(epsilon=1.0, delta=0.1, passes=lambda distance, rng: tested.append(distance))
    _released(votes, cap, test, None)
    return tested[0]


def faults(make, values, rows, q, cap_of=lambda most: most) -> tuple[int, int]:
    """Compare all neighbours among all data, for the same subsets; give how many there are, and how many are wrong."""
    found = {}
    for data in itertools.product(values, repeat=rows):
        votes = count(make(list(data)), 150, q, SeededRng(rows + 1))
        # No cap can be smaller than what occurred.
        cap = cap_of(votes.most_appearances)
        found[data] = votes.winner, distance_of(replace(votes, most_appearances=min(cap, votes.most_appearances)), cap)
    pairs = wrong = 0
    for data, (winner, distance) in found.items():
        for row, value in itertools.product(range(rows), values):
            other, other_distance = found[(*data[:row], value, *data[row + 1 :])]
            pairs += 1
            wrong += abs(distance - other_distance) > 1 or (winner != other and max(distance, other_distance) > 0)
    assert len({distance for _, distance in found.values()}) >= 2, "distances that never change prove nothing"
    return pairs, wrong


def python(f):
    return lambda data: PythonFunction(f, data, None)


CASES = {
    "one": (python(has_a_one), (0, 1), 6, 0.03),
    "sum": (python(lambda rows: sum(rows) // 2), (0, 1, 2), 5, 0.1),
    "which": (python(lambda rows: tuple(rows)), (0, 1, 2), 5, 0.03),
    "raises": (python(lambda rows: 1 // (2 - sum(rows))), (0, 1, 2), 5, 0.1),
    "mode": (lambda data: NativeFunction("mode", data, 1), (0, 1, 2), 5, 0.3),
    "median": (lambda data: NativeFunction("median", data, 1), (0, 1, 2), 5, 0.3),
    "argmax": (lambda data: NativeFunction("argmax_column_sum", np.eye(3)[data], 1), (0, 1, 2), 5, 0.3),
}


def test_equal_values_of_any_type_are_one_value():
    third = np.longdouble(1) / 3
    values, ranks = _values_and_ranks("mode", [0.0, third, np.float16(-0.0), Fraction(1, 2), third, 0.5])
    assert repr(values) == "[0, 0.3333333333333333, 0.5]"
    assert ranks.tolist() == [0, 1, 0, 2, 1, 2]


@pytest.mark.parametrize("case", CASES)
def test_no_neighbour_changes_the_distance_by_more_than_1(case):
    pairs, wrong = faults(*CASES[case])
    assert pairs >= 600
    assert wrong == 0


def test_a_cap_that_is_forgotten_is_found():
    """A cap below what occurred, and a difference that is divided by the cap alone."""
    for cap_of in (lambda most: 1, lambda most: most // 2):
        _, wrong = faults(*CASES["one"], cap_of=cap_of)
        assert wrong > 20


def test_a_row_that_is_in_too_many_subsets_stops_the_release():
    test = StabilityTest(1.0, 1e-6)
    votes = Votes("plum", False, 10**9, 0, 50)
    assert _released(votes, 50, test, None) == stability.Attempt("plum")
    assert _released(votes, 49, test, ScriptedRng(b"")) == stability.Attempt(None, TOO_OFTEN)


# --- votes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mode", "median", "argmax_column_sum"])
def test_native_functions_count_what_functions_of_python_do(name):
    rng = np.random.default_rng(5)
    f = {"mode": commonest, "median": lower_median, "argmax_column_sum": best_column}[name]
    for rows, q in itertools.product((1, 7, 300), (0.003, 0.2, 0.49)):
        matrix = name == "argmax_column_sum"
        data = rng.integers(-3, 4, (rows, 4)) if matrix else rng.choice(6, rows, p=[0.1, 0.2, 0.1, 0.3, 0.2, 0.1])
        native = count(NativeFunction(name, data, None), 2000, q, SeededRng(rows))
        called = count(PythonFunction(f, data, None), 2000, q, SeededRng(rows))
        assert native == called
        assert native.failed == (native.winner is None)
        if rows == 300:
            assert (native.failed, native.first > native.second) == (q == 0.003 and native.failed, True)


def test_threads_count_the_same_in_distribution():
    data = np.repeat(np.arange(3), [50, 30, 20])
    found = [count(NativeFunction("mode", data, threads), 200_000, 0.05).first for threads in (1, 2, None)]
    # A vote for the mode has a probability that does not depend on the threads: 10 standard deviations.
    assert max(found) - min(found) < 10 * math.sqrt(200_000 / 4) * math.sqrt(2)


def test_other_processes_count_the_same():
    data = np.repeat([0, 2, 1], [30, 20, 10])
    here, there = (count(PythonFunction(commonest, data, p), 1000, 0.1, SeededRng(3)) for p in (None, 2))
    assert here == there


def test_a_subset_over_which_processes_die_has_no_value(monkeypatch):
    """And nothing else changes: one row must not take the values of other subsets."""
    sizes = []

    def dying(task, parts, processes):
        for name, (positions, ends) in parts:
            sizes.append(len(ends))
            yield name, Died() if 7 in positions else task((positions, ends))

    def raises(rows):
        return commonest(rows) if 7 not in rows else 1 // 0

    data = np.array([4, 5, 5, 6, 6, 6, 4, 7, 4])  # the seventh row is the one with a 7
    expected = count(PythonFunction(raises, data, None), 700, 0.1, SeededRng(2))
    monkeypatch.setattr(_subset_votes, "in_processes", dying)
    monkeypatch.setattr(_subset_votes, "check_importable", nowhere)
    assert count(PythonFunction(commonest, data, 2), 700, 0.1, SeededRng(2)) == expected
    assert expected.second > 0
    assert sizes[0] == 256
    assert sizes.count(1) > 50


def test_a_function_for_other_processes_is_tried_in_another_one(monkeypatch):
    """It may end the process that it is called in."""

    def dead(task, parts, processes):
        assert processes == 1
        for name, _ in parts:
            yield name, Died()

    def ends(rows):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(_subset_votes, "in_processes", dead)
    monkeypatch.setattr(_subset_votes, "check_importable", nowhere)
    assert PythonFunction(ends, [1, 2], 2).seconds_per_subset(0.5) > 0
    with pytest.raises(KeyboardInterrupt):
        PythonFunction(ends, [1, 2], None).seconds_per_subset(0.5)


def test_functions_that_other_processes_cannot_import_are_refused():
    with pytest.raises(TypeError, match=r"^f must be a function that other processes can import"):
        PythonFunction(lambda rows: 0, [1, 2], 2)


def test_a_function_gets_rows_of_the_kind_that_the_data_have():
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [4.0, 5.0, 6.0]}, index=[7, 7, 9])
    kinds = [
        (np.ones((3, 2)), np.ndarray),
        ([1, "2", None], list),
        ((1, 2, 3), list),
        (frame, pd.DataFrame),
        (frame["a"], pd.Series),
        (pl.DataFrame(frame), pl.DataFrame),
        (pl.Series([1, 2, 3]), pl.Series),
    ]
    for data, kind in kinds:
        seen = count(PythonFunction(lambda rows: (type(rows).__name__, len(rows)), data, None), 200, 0.9, SeededRng(1))
        assert seen.winner == (kind.__name__, 3)


def test_values_that_are_equal_and_not_the_same_do_not_stand_for_each_other():
    different = [1, True, 1 + 0j, "1", b"1", None, 0, 0j, -0j, (1,), (True,), (1, 1), ((1,), 1)]
    different += [frozenset({1}), frozenset({True}), frozenset(), float("nan"), Fraction(1), Fraction(1, 2)]
    keys = list(map(_key, different))
    assert len(set(keys)) == len(different)
    same = [
        (1, np.int8(1)),
        (1, 1.0),
        (1, np.float32(1.0)),
        (0, -0.0),
        ("a", np.str_("a")),
        (True, np.True_),
        ((1,), (np.int64(1),)),
    ]
    same += [(frozenset({8, 0}), frozenset({0, 8})), (float("nan"), -float("nan")), (Fraction(1, 2), Fraction(2, 4))]
    for value, other in same:
        assert _key(value) == _key(other)
    for value in different + [value for value, _ in same]:
        made = _value(_key(value))
        assert type(made) is type(value)
        assert isinstance(value, frozenset) or repr(made) == repr(value)
    nested = deeper = 1
    for level in range(32):
        nested, deeper = (nested,), frozenset({deeper}) if level % 2 else (deeper,)
    assert (_value(_key(nested)), _value(_key(deeper))) == (nested, deeper)
    for bad in ([1], {}, ([],), np.ones(2), lambda: 0, (nested,), Unreadable(1, 2)):
        with pytest.raises((TypeError, ValueError, pickle.PicklingError, AttributeError)):
            _key(bad)


class Unreadable(Exception):
    """It can be pickled, but nothing can be made of the pickle."""

    def __init__(self, one, two):
        super().__init__(one)


class Answer:
    """A value with something in it that its pickle has not."""

    seen = None

    def __reduce__(self):
        return Answer, ()


def nan_of(bits):
    return struct.unpack("d", struct.pack("Q", 0x7FF8 << 48 | bits))[0]


@pytest.mark.parametrize(
    ("one", "other", "hidden"),
    [
        (nan_of(1), nan_of(2), lambda value: struct.pack("d", value)),
        (complex(math.nan, 0), complex(-math.nan, 0), lambda value: math.copysign(1, value.real)),
        (frozenset([0, 8]), frozenset([8, 0]), list),
        ((nan_of(1),), (nan_of(2),), lambda value: struct.pack("d", *value)),
    ],
    ids=["nan", "complex", "set", "tuple"],
)
def test_a_released_value_says_no_more_than_what_was_counted(one, other, hidden):
    """Values that are counted together may differ in what a row has left there."""
    winners = [count(PythonFunction(lambda rows, v=v: v, [1, 2, 3], None), 5, 0.5).winner for v in (one, other)]
    assert hidden(winners[0]) == hidden(winners[1])
    assert hidden(one) != hidden(other), "the control"


def test_what_an_object_has_beside_its_pickle_is_not_released():
    def f(rows):
        answer = Answer()
        answer.seen = rows
        return answer

    winner = count(PythonFunction(f, [1, 2, 3], None), 5, 0.5, SeededRng(1)).winner
    assert isinstance(winner, Answer)
    assert winner.seen is None


class Panic(BaseException):
    "As Rust's panics, it is no `Exception`."


def test_functions_that_raise_have_no_value_there():
    def f(rows):
        if 3 not in rows:
            return "fine"
        if 2 in rows:
            raise Panic
        return [] if 1 in rows else rows["no"]

    positions, ends = Subsets(4, 0.3).draw(4000, SeededRng(9))
    fine = sum(3 not in part for part in np.split(positions, ends[:-1]))
    votes = count(PythonFunction(f, [0, 1, 2, 3], None), 4000, 0.3, SeededRng(9))
    assert votes == Votes("fine", False, fine, 4000 - fine, votes.most_appearances)
    votes = count(PythonFunction(f, [3, 3, 3, 3], None), 4000, 0.6, SeededRng(9))
    assert votes.winner is None
    assert votes.failed


# --- releases -------------------------------------------------------------------------------------------------------


def test_releases_are_as_frequent_as_the_formula_says():
    """For subsets that are drawn once, and so a distance that is known."""
    test, n = StabilityTest(0.5, 0.05), 40_000
    data = np.repeat([0, 1], [90, 10])
    votes, rng = count(NativeFunction("mode", data, 1), 3000, 0.05, SeededRng(2)), SeededRng(4)

    def expected(distance):
        """P(N > t - d) = r^(t - d + 1) / (1 + r), and by symmetry."""
        r, above = math.exp(-0.5), test.threshold - distance
        return r ** (above + 1) / (1 + r) if above >= -1 else 1 - r**-above / (1 + r)

    def deviation(distance):
        p = expected(distance)
        return abs(released - n * p) / math.sqrt(n * p * (1 - p))

    for cap in (200, 250, 300, 500):
        distance = (votes.first - votes.second) // (2 * cap) - 1
        assert distance_of(votes, cap) == distance
        outcomes = [_released(votes, cap, test, rng).value for _ in range(n)]
        released = outcomes.count(0)
        assert released + outcomes.count(None) == n
        assert deviation(distance) < 6.5
        assert min(deviation(distance - 1), deviation(distance + 1)) > 15, "a fault that must be seen"


# At epsilon = 40 there are only some ten thousand subsets.
EASY = {"epsilon": 40.0, "delta": 1e-6}


@pytest.mark.parametrize(
    ("data", "f", "expected"),
    [
        (["tea"] * 500 + ["milk"] * 100, "mode", "tea"),
        (pd.Series(["tea"] * 500 + ["milk"] * 100), "mode", "tea"),
        ([True] * 100 + [False] * 600, "mode", False),
        ([2.0] * 500 + [1.5] * 50, "mode", 2),
        ([2**53 + 1] * 500 + [2**53, 0.5], "mode", 2**53 + 1),
        (np.repeat([-0.0, 1.0], [500, 50]), "mode", 0),
        (np.repeat([-7, 0, 9], [100, 500, 100]), "median", 0.0),
        (np.repeat([0.5, 1.5], [500, 50]), "median", 0.5),
        (np.tile([1, 5, 2], (300, 1)), "argmax_column_sum", 1),
        (np.arange(600), lambda rows: len(rows) > 2, True),
        (np.arange(600), lambda rows: len(rows) % 2, None),
    ],
    ids=["texts", "series", "booleans", "floats", "large", "zero", "median", "bins", "matrix", "function", "undecided"],
)
def test_what_most_subsets_agree_on_is_released(data, f, expected):
    rng = SeededRng(1) if expected is None else None  # a false alarm has the probability delta
    stable = stability.StableBootstrap(f=f, **EASY)
    assert stable.cost == PrivacyCost(40.0, 1e-6, "substitute")
    found = stable.attempt(data, rng=rng)
    assert found == stability.Attempt(expected, None if expected is not None else NOT_STABLE)
    assert type(found.value) is type(expected)
    if isinstance(f, str):
        assert stable.release(data, rng=SeededRng(1)) == expected


def test_a_function_that_fails_is_not_released():
    found = stability.StableBootstrap(f=lambda rows: rows["no"], **EASY).attempt([1] * 100)
    assert found == stability.Attempt(None, NO_VALUE)


def test_the_parameters_are_those_of_the_book():
    plan = _Plan.of(100_000, 1.0, 1e-6)
    assert plan.q == 1 / (64 * math.log(1e6))
    assert plan.subsets == math.ceil(math.log(1e11) / plan.q**2) == 19_801_688
    assert plan.cap == math.floor(2 * plan.subsets * plan.q) == 44_790
    bootstrap = stability.StableBootstrap(f="mode", epsilon=1.0, delta=1e-6)
    assert (bootstrap.sample_rate, bootstrap.subsets(100_000)) == (plan.q, plan.subsets)
    with pytest.raises(ParameterError, match=r"^data must have at least .* 885 rows"):
        bootstrap.subsets(884)


def test_what_a_function_raises_on_made_up_rows_is_shown():
    def tried(f, rows=tuple(range(200))):
        return stability.StableBootstrap(f=f, **EASY).try_on(rows)

    with pytest.raises(TypeError, match="'list' object cannot be interpreted as an integer"):
        tried(range)
    with pytest.raises(ParameterError, match=r"^f must return what can be used, got \[\], which counts as no answer$"):
        tried(lambda rows: [])
    with pytest.warns(UserWarning, match="^200 rows"):
        tried(lambda rows: warnings.warn("200 rows", stacklevel=1))
    assert 0 < tried(len) < math.inf
    assert 0 < tried("mode") < math.inf


def test_stable_functions_are_released_with_the_probability_that_is_promised():
    """The inequalities of the proof: the rest is that of Chernoff and of Hoeffding."""
    checked = 0
    for delta in (0.3, 0.01, 1e-6, 1e-12, 1e-100):
        surprise = math.log(1 / delta)
        for epsilon, rows in itertools.product((0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 1.7 * surprise), (1, 10, 10**4, 10**9)):
            if epsilon > 1.7 * surprise or rows * epsilon < 64 * surprise:
                continue
            plan, t = _Plan.of(rows, epsilon, delta), StabilityTest(epsilon, delta).threshold
            assert rows * math.exp(-plan.subsets * plan.q / 3) <= delta
            ahead = plan.subsets / 2 - 2 * math.sqrt(plan.subsets * surprise / 2)
            assert ahead // (2 * plan.cap) - 1 >= 2 * t + 1
            checked += 1
    assert checked > 40


def test_counters_of_appearances_can_exceed_the_cap():
    "They stay at 2**32 - 1."
    rows, delta = 10**9, 1e-6
    least = math.log(rows / delta) * math.log(1 / delta) * 2**-25
    caps = []
    for step in range(-40, 40):
        try:
            caps.append(_Plan.of(rows, least * (1 + step * 2**-36), delta).cap)
        except ParameterError:
            continue
    assert 2**32 - 9 < max(caps) < 2**32 - 1
    assert len(caps) < 80


def test_long_runs_are_announced(monkeypatch):
    def unstarted(*args):
        raise RuntimeError("started")

    monkeypatch.setattr(PythonFunction, "count", unstarted)
    monkeypatch.setattr(PythonFunction, "seconds_per_subset", lambda self, q: 1.0)
    plan = _Plan.of(1000, **EASY)
    message = f"allow_long must be True for m={plan.subsets:,} subsets, which take about 4 hours; a larger epsilon"
    with pytest.raises(ParameterError, match=re.escape(message)):
        stability.StableBootstrap(f=len, **EASY).release([0] * 1000)
    with pytest.raises(RuntimeError, match="started"):
        stability.StableBootstrap(f=len, **EASY, allow_long=True).release([0] * 1000)
    for seconds, text in [
        (0.1, "1 minute"),
        (61, "2 minutes"),
        (3600, "64 minutes"),
        (3601, "2 hours"),
        (1e6, "16 days"),
    ]:
        assert _stable_bootstrap._rounded(seconds) == text


def test_a_native_trial_does_not_look_at_the_data(monkeypatch):
    "Not even at how many values there are, from which on the median is found in another way."
    made = []
    subset_votes = SimpleNamespace(
        median=lambda table, *given: made.append((table.tolist(), given)) or SubsetVotes.median(table, *given)
    )
    monkeypatch.setattr(_subset_votes, "SubsetVotes", subset_votes)
    for values in (1, 256, 257):
        NativeFunction("median", np.arange(1000) % values, 1).seconds_per_subset(0.1)
    assert len(made) == 6
    assert made[1] == made[3] == made[5]


def test_a_trial_takes_time_and_nothing_else():
    asked = []
    function = PythonFunction(lambda rows: asked.append(len(rows)), list(range(50)), None)
    assert 0 < function.seconds_per_subset(0.1) < 1
    assert len(asked) > 100
    assert 0 < NativeFunction("mode", [1, 2, 3], None).seconds_per_subset(0.1) < 1


ROWS = [0, 1] * 500
ARGMAX = "argmax_column_sum"


@pytest.mark.parametrize(
    ("kind", "message", "data", "f", "options"),
    [
        (ParameterError, "epsilon must be positive and finite, got 0.0", ROWS, "mode", {"epsilon": 0.0}),
        (ParameterError, "epsilon must be positive and finite, got NaN", ROWS, "mode", {"epsilon": math.nan}),
        (ParameterError, "epsilon must be below 32 ln(1/delta) = 442.1, got 442.2", ROWS, "mode", {"epsilon": 442.2}),
        (
            ParameterError,
            "data must have at least 64 ln(1/delta) / epsilon = 8,842 rows, so that subsets are not empty, got 1,000",
            ROWS,
            "mode",
            {"epsilon": 0.1},
        ),
        (
            ParameterError,
            "epsilon must be above ln(n/delta) ln(1/delta) / 2**25 = 0.01453, got 0.0144",
            np.zeros(3_100_000, np.int8),
            len,
            {"epsilon": 0.0144, "delta": 1e-300},
        ),
        (ParameterError, "delta must be between 0 and 1, both excluded, got 0.0", ROWS, "mode", {"delta": 0.0}),
        (ParameterError, "delta must be between 0 and 1, both excluded, got 1.0", ROWS, "mode", {"delta": 1.0}),
        (TypeError, "epsilon must be a number, got str", ROWS, "mode", {"epsilon": "1"}),
        (
            ParameterError,
            "f must be a function or one of 'mode', 'median', 'argmax_column_sum', got 'mean'",
            ROWS,
            "mean",
            {},
        ),
        (TypeError, "f must be a text or callable, got int", ROWS, 3, {}),
        (ParameterError, "processes must be None for a native function, got 2", ROWS, "mode", {"processes": 2}),
        (ParameterError, "threads must be None for a Python function, got 2", ROWS, len, {"threads": 2}),
        (ParameterError, "processes must be an integer from 1 to 32767, got 0", ROWS, len, {"processes": 0}),
        (TypeError, "processes must be an int, got float", ROWS, len, {"processes": 2.0}),
        (ParameterError, "threads must be None or a positive integer", ROWS, "mode", {"threads": 0}),
        (ParameterError, "data must have rows", [], "mode", {}),
        (ParameterError, "data must have rows", [], len, {}),
        (ParameterError, "data must have rows", np.zeros((0, 3)), ARGMAX, {}),
        (
            TypeError,
            "data must be a NumPy array, a list, a tensor, or a pandas, polars or pyarrow table or column, got set",
            {1},
            len,
            {},
        ),
        (ParameterError, "data must have no missing and no infinite values", [*ROWS, math.nan], "mode", {}),
        (ParameterError, "data must have no missing and no infinite values", [*ROWS, math.inf], "median", {}),
        (TypeError, "data must be of texts, of numbers or of booleans, got int and str", [*ROWS, "2"], "mode", {}),
        (TypeError, "data must be of texts, of numbers or of booleans, got bool and int", [*ROWS, True], "mode", {}),
        (ParameterError, "data must have no missing and no infinite values", [*ROWS, None], "mode", {}),
        (ParameterError, "data must have no missing and no infinite values", np.array([math.inf]), "mode", {}),
        (TypeError, "data must be of real numbers, got float and str", [*map(float, ROWS), "2"], "median", {}),
        (
            TypeError,
            "data must be of texts, of numbers or of booleans, got dtype complex128",
            np.array(ROWS, complex),
            "mode",
            {},
        ),
        (ParameterError, "data must have integers of at most 2**53", [[2**53 + 1, 0.5]] * 999, ARGMAX, {}),
        (ParameterError, "data must have no missing", np.ma.masked_equal(ROWS, 1), "mode", {}),
        (ParameterError, "data must have no masked values", np.ma.masked_equal([ROWS], 1), ARGMAX, {}),
        (ParameterError, "data must have one dimension, got 2", np.zeros((1000, 2)), "mode", {}),
        (ParameterError, "data must be a matrix with rows and columns, got the shape (1000,)", ROWS, ARGMAX, {}),
        (ParameterError, "data must be finite numbers of at most 2**990", [[1.0, 1e300]] * 999, ARGMAX, {}),
        (ParameterError, "data must be finite numbers of at most 2**990", [[1, math.nan]] * 999, ARGMAX, {}),
        (
            TypeError,
            "rng must be None (secure randomness) or a generator of dpnoise.hazmat, got int",
            ROWS,
            "mode",
            {"rng": 3},
        ),
        (RandomnessError, "the source of randomness failed", ROWS, "mode", {}),
    ],
)
def test_bad_input_is_named(kind, message, data, f, options):
    drawing = {name: options[name] for name in ("threads", "rng") if name in options}
    given = {name: value for name, value in options.items() if name not in drawing}
    with pytest.raises(kind, match="^" + re.escape(message)):
        stability.StableBootstrap(f=f, **EASY | given).release(data, **{"rng": ScriptedRng(b"")} | drawing)


def test_a_large_delta_is_warned_of():
    with pytest.warns(UserWarning, match=r"delta=0\.01 is at least 1/n with n=1000") as caught:
        stability.StableBootstrap(f="mode", epsilon=10.0, delta=0.01).release(ROWS)
    assert caught[0].filename == __file__
