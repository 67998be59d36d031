"""Subsample and aggregate: blocks, aggregates, what counts as no answer, and every input that cannot be used."""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import re
import signal
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from enum import Enum

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpnoise import Laplace, ParameterError, PrivacyCost, PrivateSelection, queries
from dpnoise.accounting import Ledger, ZcdpCost, group_privacy
from dpnoise.hazmat import SeededRng
from dpnoise.stability import Attempt, StableMode, SubsampleAndAggregate
from dpnoise.stability._rows import Rows
from dpnoise.stability._subsample_and_aggregate import _permutation

# Noise of a millionth of the bounds at most: what is released is the exact aggregate.
SURE = 1e9

ROWS = list(range(60))


def asked(data, f, *, rng=None, **options):
    return SubsampleAndAggregate(f=f, **options).release(data, rng=rng)


def mean_of(data, f, **options):
    """The mean of what the blocks answer."""
    settings = {"blocks": 6, "aggregate": "mean", "bounds": (0.0, 100.0), "epsilon": SURE}
    return asked(data, f, **(settings | options))


# --- blocks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "blocks"), [(n, blocks) for n in range(1, 9) for blocks in range(1, n + 1)])
def test_blocks_are_of_nearly_equal_size_and_have_each_row_once(n, blocks):
    seen = []
    mean_of(list(range(n)), lambda block: seen.append(block) or 0.0, blocks=blocks)
    assert sorted(itertools.chain(*seen)) == list(range(n))
    assert len(seen) == blocks
    assert max(map(len, seen)) - min(map(len, seen)) <= 1


def test_the_partition_is_random():
    seen = set()
    for _ in range(1000):  # each of the 6 is missed with a probability of (5/6)^1000 < 1e-79
        blocks = []
        mean_of([1, 2, 3, 4], lambda block, found=blocks: found.append(frozenset(block)) or 0.0, blocks=2)
        seen.add(tuple(blocks))
    assert len(seen) == 6


def test_a_generator_makes_it_reproducible():
    first, second, other = (
        asked(ROWS, max, blocks=6, aggregate="mean", bounds=(0, 100), epsilon=1.0, rng=SeededRng(seed))
        for seed in (1, 1, 2)
    )
    assert first == second != other


@pytest.mark.parametrize(
    "data",
    [
        np.arange(12.0),
        np.arange(24.0).reshape(12, 2),
        np.array([f"row {i}" for i in range(12)], object),
        [f"row {i}" for i in range(12)],
        tuple(range(12)),
        pd.DataFrame({"a": range(12), "b": list("abcdefghijkl")}, index=[5] * 12),
        pd.Series(range(12), index=range(12, 0, -1)),
        pl.DataFrame({"a": range(12), "b": list("abcdefghijkl")}),
        pl.Series(range(12)),
    ],
    ids=["array", "matrix", "objects", "list", "tuple", "pandas", "pandas-series", "polars", "polars-series"],
)
def test_rows_of_every_kind_are_taken_by_position(data):
    kinds, lengths = set(), []

    def f(block):
        kinds.add(type(block))
        lengths.append(len(block))
        return 1.0

    assert mean_of(data, f, blocks=5) == pytest.approx(1.0)
    assert kinds == {list if isinstance(data, tuple) else type(data)}
    assert sorted(lengths) == [2, 2, 2, 3, 3]
    places = _permutation(12, None)
    block = Rows(data).at(places)
    back = Rows(block).at(np.argsort(places))
    assert (np.asarray(back) == np.asarray(data)).all()


def test_a_function_that_changes_its_block_leaves_the_data_alone():
    data = np.arange(60.0)

    def f(block):
        block[:] = 7.0
        return block.mean()

    assert mean_of(data, f) == pytest.approx(7.0)
    assert (data == np.arange(60.0)).all()


# --- aggregates ----------------------------------------------------------------------------------------------------

ANSWERS = [0.0, 10.0, 20.0, 30.0, 90.0, 400.0]
"""Of six blocks of one row; the last counts as the bound of 100."""


@pytest.mark.parametrize(
    ("aggregate", "options", "expected"),
    [
        ("mean", {}, 250 / 6),
        ("trimmed_mean", {"alpha": 1 / 6}, 150 / 4),
        ("trimmed_mean", {"alpha": 0.34}, 25.0),
        ("trimmed_mean", {"alpha": 0.49999999}, 25.0),
        ("winsorized_mean", {"alpha": np.nextafter(0.5, 0)}, 25.0),
        ("winsorized_mean", {"alpha": 1 / 6}, (10 + 10 + 20 + 30 + 90 + 90) / 6),
        ("winsorized_mean", {"alpha": 0.34}, 25.0),
    ],
)
def test_averages_are_those_of_the_clamped_answers(aggregate, options, expected):
    assert mean_of(ANSWERS, sum, aggregate=aggregate, **options) == pytest.approx(expected, abs=1e-5)


def test_medians_are_between_the_middle_answers():
    assert 20 <= mean_of(ANSWERS, sum, aggregate="median") <= 30


@pytest.mark.parametrize(("alpha", "cut"), [(0.29, 29), (0.07, 7), (0.011, 1), (0.499, 49)])
def test_the_part_that_is_trimmed_is_not_rounded_in_binary(alpha, cut):
    answers = [0.0] * cut + [1.0] * (100 - 2 * cut) + [3.0] * cut
    trimmed = mean_of(answers, sum, blocks=100, aggregate="trimmed_mean", bounds=(0, 3), alpha=alpha)
    assert trimmed == pytest.approx(1.0, abs=1e-6)


def test_several_numbers_are_aggregated_one_by_one():
    several = SubsampleAndAggregate(
        f=lambda block: block[0], blocks=6, aggregate="mean", bounds=[(0, 1000), (-500, 0)], epsilon=SURE
    )
    answer = several.release(np.array([[x, -x] for x in ANSWERS]))
    assert answer == pytest.approx([550 / 6, -550 / 6], abs=1e-4)
    assert answer.dtype == np.float64
    assert several.cost == PrivacyCost(SURE, relation="substitute")
    one = mean_of(ANSWERS, lambda block: block, bounds=np.array([[0.0, 1000.0]]))
    assert one == pytest.approx([550 / 6], abs=1e-4)


@pytest.mark.parametrize("kind", [int, float, np.float32, np.int8, np.float64, np.array, bool])
def test_numbers_of_every_type_are_answers(kind):
    assert mean_of(ROWS, lambda block: kind(1)) == pytest.approx(1.0, abs=1e-5)


class Size(Enum):
    SMALL = 1
    LARGE = 2


@pytest.mark.parametrize("candidates", [["a", "b", "c"], [3, 1, 2], [(1, "x"), (2,), ()], [*Size, None]])
def test_the_candidate_with_the_most_votes_wins(candidates):
    votes = [candidates[1]] * 3 + [candidates[0]] * 2 + [candidates[2]]
    commonest = SubsampleAndAggregate(
        f=lambda block: block[0],
        blocks=6,
        aggregate="noisy_max",
        candidates=candidates,
        epsilon=100.0,  # the next one wins with a probability of e^-50
    )
    assert commonest.attempt(votes) == Attempt(candidates[1])
    assert commonest.cost == PrivacyCost(100.0, relation="substitute")


def test_numbers_of_numpy_are_the_candidates_that_they_equal():
    winner = asked(
        [2] * 6, lambda b: np.int64(b[0]), blocks=6, aggregate="noisy_max", candidates=range(4), epsilon=100.0
    )
    assert type(winner) is int
    assert winner == 2


def nested(levels):
    found = 1
    for _ in range(levels):
        found = (found,)
    return found


def mode_mechanism(answers, f=lambda block: block[0], **options):
    """The commonest answer of blocks of one row, if it is by two or more."""
    settings = {"blocks": len(answers), "aggregate": "mode", "epsilon": 1000.0, "delta": 1e-9}
    mechanism = SubsampleAndAggregate(f=f, **(settings | options))
    assert mechanism.cost == PrivacyCost(mechanism.epsilon, mechanism.delta, "substitute")
    return mechanism


def mode_of(answers, **options):
    return mode_mechanism(answers, **options).release(answers)


@pytest.mark.parametrize(
    ("answer", "released"),
    [
        ("b", "b"),
        (b"b", b"b"),
        (7, 7),
        (-0.5, -0.5),
        (True, True),
        (("b", 2, ("c",)), ("b", 2, ("c",))),
        ((), ()),
        (frozenset({"b", "a"}), frozenset({"a", "b"})),
        ({"b", "a"}, frozenset({"a", "b"})),
        (["b", {1}], ("b", frozenset({1}))),
        (nested(32), nested(32)),
        (np.int8(7), 7),
        (np.str_("b"), "b"),
        ((np.float32(0.5), np.True_), (0.5, True)),
    ],
    ids=[
        "text",
        "bytes",
        "int",
        "float",
        "bool",
        "tuple",
        "empty",
        "frozenset",
        "set",
        "list",
        "nested",
        "int8",
        "str_",
        "mixed",
    ],
)
def test_the_commonest_answer_is_released_as_it_is(answer, released):
    answers = [answer] * 7 + ["a", "a", "other"]
    assert mode_mechanism(answers).cost == PrivacyCost(1000.0, 1e-9, "substitute")
    found = mode_mechanism(answers).attempt(answers)
    assert found == Attempt(released)
    assert type(found.value) is type(released)
    if not isinstance(released, frozenset):
        assert repr(found.value) == repr(released), "with items of the same types"


def test_a_released_set_does_not_show_in_which_order_it_was_made():
    made, otherwise = frozenset([0, 8]), frozenset([8, 0])
    assert list(made) != list(otherwise), "the control"
    for blocks in ([made] * 9, [otherwise] * 9, [made, otherwise] * 5):
        assert list(mode_of(blocks)) == [0, 8]


def test_answers_that_are_equal_but_not_the_same_are_counted_apart():
    assert mode_of([1] * 4 + ["1"] * 4 + [True] * 4 + ["a"] * 7) == "a"
    assert mode_of([(1,)] * 4 + [(True,)] * 4 + ["(1)"] * 4 + ["a"] * 7) == "a"
    assert mode_of([frozenset({f"{i}", "x"}) for i in (1, 2, 1, 3, 1, 1, 1)]) == {"1", "x"}


@pytest.mark.parametrize("answers", [["a", "b"] * 4, ["a"] * 5 + ["b"] * 4, list("abcdefgh"), ["a"]])
def test_a_close_vote_has_no_winner(answers):
    found = mode_mechanism(answers).attempt(answers)
    assert found == Attempt(None, "the test of stability failed")
    assert mode_of(answers) is None


@pytest.mark.parametrize(
    "failed",
    [
        None,
        np.nan,
        [10**5000],
        (1, 10**5000),
        nested(33),
        object(),
        (1, np.inf),
        {"a": 1},
        np.array([1, 2]),
        np.datetime64("NaT"),
    ],
)
def test_what_is_no_outcome_counts_as_the_default_or_as_no_answer(failed):
    answers = [failed] * 7 + ["a", "a"]
    assert mode_of(answers, default="c") == "c"
    found = mode_mechanism(answers).attempt(answers)
    assert found == Attempt(None, "f had no answer more often than any one answer")
    assert mode_of(["a"] * 7 + [failed] * 2) == "a"


SUBSTITUTE = {"epsilon": SURE, "relation": "substitute"}


@pytest.mark.parametrize(
    ("aggregate", "default", "votes", "released"),
    [
        (queries.Histogram(domain=["a", "b"], **SUBSTITUTE), "b", ["a", "a", "b", 1, None, "z"], {"a": 2, "b": 3}),
        (queries.Histogram(edges=[0, 5, 10], **SUBSTITUTE), 7, [1, 2.5, np.int8(7), "x", np.nan, [1]], [2, 4]),
        (queries.Count(**SUBSTITUTE), False, [True, np.True_, 1, "yes", False, None], 2),
        (StableMode(epsilon=SURE, delta=0.1, relation="substitute"), b"", [b"x"] * 5 + ["x"], b"x"),
        (StableMode(epsilon=SURE, delta=0.1, relation="substitute"), "", list("abcabc"), None),
        (
            SubsampleAndAggregate(f=len, blocks=3, aggregate="mode", epsilon=SURE, delta=0.1),
            0.0,
            [1.0] * 6,
            2,
        ),
    ],
)
def test_a_mechanism_aggregates_the_answers_of_one_kind(aggregate, default, votes, released):
    mechanism = SubsampleAndAggregate(f=lambda block: block[0], blocks=6, aggregate=aggregate, default=default)
    found = mechanism.attempt(votes)
    assert np.array_equal(found.value, released)
    assert (found.refusal is None) == (released is not None)
    assert mechanism.cost == aggregate.cost


def test_a_mechanism_is_charged_before_a_block_is_asked():
    mean = SubsampleAndAggregate(f=max, blocks=6, aggregate=MEDIAN, default=0.0)
    ledger = Ledger(":memory:", epsilon=2 * SURE, relation="substitute")
    assert pickle.loads(pickle.dumps(mean)) == mean  # noqa: S301 - made here
    assert 29 <= ledger.release(mean, ROWS) <= 59  # in whatever blocks the rows are
    assert ledger.remaining.epsilon == SURE
    unfit = SubsampleAndAggregate(f=uncalled, blocks=6, aggregate=MEDIAN, default="a")
    with pytest.raises(ParameterError, match="aggregate must take 6 answers"):
        ledger.release(unfit, ROWS)
    assert ledger.remaining.epsilon == SURE


class Dearer(queries.Count):
    @property
    def cost(self):
        return group_privacy(super().cost, 3)


def test_a_mechanism_that_changes_its_cost_is_charged_that():
    mechanism = SubsampleAndAggregate(f=max, blocks=6, aggregate=Dearer(**SUBSTITUTE), default=0.0)
    assert mechanism.cost == PrivacyCost(3 * SURE, 0.0, "substitute")


def test_other_processes_need_no_mechanism():
    inner = SubsampleAndAggregate(f=lambda block: 2.0, blocks=6, aggregate=MEDIAN, default=0.0)
    assert asked(ROWS, max, blocks=6, aggregate=inner, default=0.0, processes=2) == pytest.approx(2.0, abs=1e-3)


def test_a_large_delta_is_warned_of_where_it_is_used():
    with pytest.warns(UserWarning, match=r"delta=0\.01 is at least 1/n with n=100") as caught:
        mode_of(["a"] * 100, blocks=10, delta=0.01)
    assert caught[0].filename == __file__
    mode_of(["a"] * 100, blocks=10, delta=0.0099)  # more than one over the blocks


# --- blocks without an answer --------------------------------------------------------------------------------------


def raising(block):
    raise ValueError(f"these rows are secret: {block}")


def exiting(block):
    sys.exit(3)


def dividing(block):
    return 1 / 0


class Panic(BaseException):
    "As Rust's panics, it is no `Exception`."


def panicking(block):
    raise Panic(f"these rows are secret: {block}")


NO_ANSWERS = {
    "panics": panicking,
    "raises": raising,
    "exits": exiting,
    "divides": dividing,
    "nan": lambda block: np.nan,
    "infinity": lambda block: -np.inf,
    "none": lambda block: None,
    "text": lambda block: "7",
    "complex": lambda block: 7j,
    "vector": lambda block: [7.0, 7.0],
    "ragged": lambda block: [[7.0], [7.0, 7.0]],
    "masked": lambda block: np.ma.masked,
    "object": lambda block: object(),
    "function": lambda block: raising,
}


@pytest.mark.parametrize("fault", NO_ANSWERS)
def test_a_block_without_an_answer_counts_as_the_default(fault):
    def f(block):
        return NO_ANSWERS[fault](block) if 13 in block else 20.0

    assert mean_of(ROWS, f) == pytest.approx((5 * 20 + 50) / 6, abs=1e-5)
    assert mean_of(ROWS, f, default=80) == pytest.approx((5 * 20 + 80) / 6, abs=1e-5)


@pytest.mark.parametrize("answer", [7.0, [7.0], [7.0, np.nan], [1.0, 2.0, 3.0], [[1.0, 2.0]]])
def test_several_numbers_without_one_count_as_the_defaults(answer):
    bounds = [(0, 10), (-1, 0)]
    assert mean_of(ROWS, lambda b: answer, bounds=bounds) == pytest.approx([5, -0.5], abs=1e-5)
    assert mean_of(ROWS, lambda b: answer, bounds=bounds, default=(1, 0)) == pytest.approx([1, 0], abs=1e-5)


@pytest.mark.parametrize("answer", ["d", None, 1.5, [1], {"a": 1}, float("nan"), object()])
def test_what_is_no_candidate_is_a_vote_for_the_default_or_for_none(answer):
    def winner(default):
        return asked(
            ROWS,
            lambda block: "c" if 13 in block else answer,
            blocks=6,
            aggregate="noisy_max",
            candidates=["a", "b", "c"],
            default=default,
            epsilon=100.0,
        )

    assert winner(None) == "c"
    assert winner("b") == "b"


def test_what_a_function_raises_on_made_up_rows_is_shown():
    def tried(f, **options):
        settings = {"blocks": 6, "aggregate": "mean", "bounds": (0, 100), "epsilon": 1.0}
        return SubsampleAndAggregate(f=f, **(settings | options)).try_on(ROWS)

    assert sorted(tried(len, blocks=7)) == [8] * 3 + [9] * 4
    with pytest.raises(ValueError, match=r"^these rows are secret: \["):
        tried(raising)
    with pytest.raises(ParameterError, match=r"^f must return what can be used, got nan, which counts as no answer$"):
        tried(lambda block: np.nan)
    with pytest.raises(ParameterError, match="got 'c', which counts as no answer"):
        tried(lambda block: "c", aggregate="noisy_max", bounds=None, candidates=["a", "b"])
    with pytest.raises(ParameterError, match=r"^blocks must be an integer from 1 to 60, got 61"):
        tried(uncalled, blocks=61)


def interrupting(block):
    raise KeyboardInterrupt


def pressing(block):
    with contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    return 1.0


@pytest.mark.parametrize("catches", [False, True])
def test_ctrl_c_ends_it(catches):
    def f(block):
        return pressing(block) if catches else signal.raise_signal(signal.SIGINT)

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        mean_of(ROWS, f)
    assert signal.getsignal(signal.SIGINT) is handler


def test_an_error_called_keyboard_interrupt_is_one_like_any_other():
    assert mean_of(ROWS, interrupting, default=80) == pytest.approx(80, abs=1e-5)
    with ThreadPoolExecutor(1) as other:
        assert other.submit(mean_of, ROWS, interrupting, default=80).result() == pytest.approx(80, abs=1e-5)


# --- processes -----------------------------------------------------------------------------------------------------

SCRIPT = """
import os, sys, warnings
import numpy as np
from dpnoise.stability import SubsampleAndAggregate

def f(block):
    if 1 in block:
        raise ValueError("secret", block)
    if 2 in block:
        sys.exit(3)
    if 3 in block:
        return [lambda: block]
    if 4 in block:
        raise KeyboardInterrupt("secret")
    warnings.warn("secret")
    np.log(-block)
    return block.mean()

if __name__ == "__main__":
    mean = SubsampleAndAggregate(
        f=f,
        blocks=6,
        aggregate="mean",
        bounds=(0, 1),
        epsilon=1e9,
        processes={processes},
    )
    answer = mean.release(np.arange(6))
    print(f"{{answer:.4f}}")
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_nothing_of_a_fault_is_shown(tmp_path, processes):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(processes=processes))
    command = [sys.executable, "-X", "dev", "-W", "always", script]
    shown = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    # Row 0 answers 0, others answer 1, and without an answer they count as 0.5.
    expected = (0 + 4 * 0.5 + 1) / 6
    assert (shown.stdout, shown.stderr) == (f"{expected:.4f}\n", "")


def test_warnings_elsewhere_are_still_shown():
    """The control of the one above: the faults do show when the function is called on its own, and so do later ones."""

    def f(block):
        warnings.warn("about the data", stacklevel=1)
        return 1.0

    with pytest.warns(UserWarning, match="about the data"):
        f(ROWS)
    mean_of(ROWS, f)
    with pytest.warns(UserWarning, match="about the data"):
        f(ROWS)


def test_processes_give_the_answers_of_one():
    ranges = {"aggregate": "mean", "bounds": [(0, 2**32), (0, 60)], "epsilon": 1e12}
    (_, alone), (process, other) = (
        mean_of(np.arange(60), pid_and_sum, blocks=2, processes=processes, rng=SeededRng(3), **ranges)
        for processes in (1, 2)
    )
    assert alone == other
    assert round(process) != os.getpid()


def pid_and_sum(block):
    return os.getpid(), block.max()


@pytest.mark.parametrize("f", [lambda block: 1.0, raising.__get__(object())], ids=["lambda", "method"])
def test_a_function_that_processes_cannot_import_is_refused_before_it_is_called(f):
    with pytest.raises(TypeError, match="f must be a function that other processes can import, by its name"):
        mean_of(ROWS, f, processes=2)


# --- what cannot be used -------------------------------------------------------------------------------------------


def uncalled(block):
    signal.raise_signal(signal.SIGINT)  # any error would be taken for a fault on the data


VOTES = {"aggregate": "noisy_max", "bounds": None, "candidates": ["a", "b"]}

MODE = {"aggregate": "mode", "bounds": None, "delta": 1e-9}

MEDIAN = queries.Median(bounds=(0, 100), epsilon=SURE, relation="substitute")
OF_NUMBERS = {"aggregate": MEDIAN, "bounds": None, "epsilon": None, "default": 0.0}

UNUSABLE = {
    "empty": ([], {}, ParameterError, "data must have rows"),
    "empty-frame": (pd.DataFrame({"a": []}), {}, ParameterError, "data must have rows"),
    "scalar": (np.array(3.0), {}, ParameterError, "data must have rows"),
    "text": (
        "rows",
        {},
        TypeError,
        "data must be a NumPy array, a list, a tensor, or a pandas, polars or pyarrow table or column, got str",
    ),
    "dict": ({"a": [1]}, {}, TypeError, "data must be a NumPy array.* got dict"),
    "lazy": (pl.LazyFrame({"a": [1]}), {}, TypeError, "data must be a NumPy array.* got LazyFrame"),
    "blocks-many": (ROWS, {"blocks": 61}, ParameterError, "blocks must be an integer from 1 to 60, got 61"),
    "blocks-0": (ROWS, {"blocks": 0}, ParameterError, "blocks must be an integer from 1 to 9223372036854775807, got 0"),
    "blocks-half": (ROWS, {"blocks": 1.5}, TypeError, "blocks must be an int, got float"),
    "processes": (ROWS, {"processes": 0}, ParameterError, "processes must be an integer from 1 to 32767, got 0"),
    "aggregate": (
        ROWS,
        {"aggregate": "sum"},
        ParameterError,
        "aggregate must be a query, .* mean, trimmed_mean, .*'sum'",
    ),
    "aggregate-list": (ROWS, {"aggregate": ["mean"]}, ParameterError, r"aggregate must be a query, .*\['mean'\]"),
    "aggregate-of-answers": (
        ROWS,
        OF_NUMBERS | {"aggregate": Laplace(epsilon=1.0)},
        ParameterError,
        'aggregate .*"sub',
    ),
    "aggregate-added": (
        ROWS,
        OF_NUMBERS | {"aggregate": queries.Count(epsilon=1.0)},
        ParameterError,
        "aggregate must be a query or mechanism for the relation .* got Count.* for 'add/remove'",
    ),
    "aggregate-rho": (
        ROWS,
        OF_NUMBERS | {"aggregate": PrivateSelection(run_cost=ZcdpCost(0.1, 0.0, "substitute"))},
        ParameterError,
        "delta must be given for a cost",
    ),
    "aggregate-epsilon": (ROWS, OF_NUMBERS | {"epsilon": 1.0}, ParameterError, "epsilon must be None for the agg"),
    "aggregate-bounds": (ROWS, OF_NUMBERS | {"bounds": (0, 1)}, ParameterError, "bounds must be None for the aggreg"),
    "aggregate-default": (ROWS, OF_NUMBERS | {"default": None}, ParameterError, "default must be .*got None"),
    "aggregate-infinite": (ROWS, OF_NUMBERS | {"default": np.inf}, ParameterError, "default must be .*got inf"),
    "aggregate-several": (ROWS, OF_NUMBERS | {"default": (1, 2)}, ParameterError, "default must be .*got .1, 2."),
    "aggregate-text": (ROWS, OF_NUMBERS | {"default": "a"}, ParameterError, "aggregate must take .* 'a': column"),
    "epsilon-none": (ROWS, {"epsilon": None}, ParameterError, "epsilon must be given for the aggregate 'mean'"),
    "epsilon-0": (ROWS, {"epsilon": 0.0}, ParameterError, "epsilon must be .*got 0"),
    "epsilon-nan": (ROWS, {"epsilon": np.nan}, ParameterError, "epsilon must be .*got (?i:nan)"),
    "epsilon-infinite": (ROWS, {"epsilon": np.inf}, ParameterError, "epsilon must be .*got inf"),
    "epsilon-text": (ROWS, {"epsilon": "1"}, TypeError, ""),
    "bounds-missing": (ROWS, {"bounds": None}, ParameterError, "bounds must be given for the aggregate 'mean'"),
    "bounds-reversed": (
        ROWS,
        {"bounds": (1, 0)},
        ParameterError,
        "bounds must be two finite numbers, .*got \\(1, 0\\)",
    ),
    "bounds-equal": (ROWS, {"bounds": (1, 1)}, ParameterError, "bounds must be two finite numbers"),
    "bounds-infinite": (ROWS, {"bounds": (0, np.inf)}, ParameterError, "bounds must be two finite numbers"),
    "bounds-nan": (ROWS, {"bounds": (np.nan, 1)}, ParameterError, "bounds must be two finite numbers"),
    "bounds-second": (
        ROWS,
        {"bounds": [(0, 1), (1, 0)]},
        ParameterError,
        "bounds must be two finite numbers.*\\(1, 0\\)",
    ),
    "bounds-three": (ROWS, {"bounds": (0, 1, 2)}, TypeError, "bounds must be two numbers"),
    "bounds-none": (ROWS, {"bounds": []}, TypeError, "bounds must be two numbers"),
    "bounds-mixed": (ROWS, {"bounds": [(0, 1), 3]}, TypeError, "bounds must be two numbers"),
    "bounds-scalar": (ROWS, {"bounds": np.array(3.0)}, TypeError, "bounds must be two numbers"),
    "bounds-ragged": (ROWS, {"bounds": [(0, (1, 2)), (0, 1)]}, TypeError, "bounds must be two numbers"),
    "bounds-unused": (
        ROWS,
        VOTES | {"bounds": (0, 1)},
        ParameterError,
        "bounds must be None for the aggregate 'noisy_max'",
    ),
    "alpha-missing": (ROWS, {"aggregate": "trimmed_mean"}, ParameterError, "alpha must be given for .*'trimmed_mean'"),
    "alpha-unused": (ROWS, {"alpha": 0.1}, ParameterError, "alpha must be None for the aggregate 'mean'"),
    "delta-unused": (ROWS, {"delta": 1e-9}, ParameterError, "delta must be None for the aggregate 'mean'"),
    "delta-missing": (ROWS, MODE | {"delta": None}, ParameterError, "delta must be given for the aggregate 'mode'"),
    "delta-0": (ROWS, MODE | {"delta": 0.0}, ParameterError, "delta must be between 0 and 1, both excluded, got 0"),
    "delta-1": (ROWS, MODE | {"delta": 1.0}, ParameterError, "delta must be between 0 and 1, both excluded, got 1"),
    "epsilon-mode": (ROWS, MODE | {"epsilon": -1.0}, ParameterError, "epsilon must be .*got -1"),
    "default-mode": (ROWS, MODE | {"default": np.nan}, TypeError, "default must be a text, bytes, a finite number"),
    "default-huge": (ROWS, MODE | {"default": 10**5000}, ParameterError, "default must have no integers with more dig"),
    "default-deep": (ROWS, MODE | {"default": nested(33)}, ParameterError, "default must have tuples .* 32 deep"),
    "default-object": (ROWS, MODE | {"default": object()}, TypeError, "default must be a text, .*got object"),
    "candidates-missing": (
        ROWS,
        VOTES | {"candidates": None},
        ParameterError,
        "candidates must be given for .*'noisy_max'",
    ),
    "candidates-unused": (
        ROWS,
        {"candidates": [1]},
        ParameterError,
        "candidates must be None for the aggregate 'mean'",
    ),
    "candidates-none": (ROWS, VOTES | {"candidates": []}, ParameterError, "candidates must have at least one"),
    "candidates-twice": (
        ROWS,
        VOTES | {"candidates": [1, 1.0]},
        ParameterError,
        "candidates must have .* no duplicates, got 2 items, 1 of them different",
    ),
    "candidates-number": (ROWS, VOTES | {"candidates": 3}, TypeError, "candidates must be a sequence"),
    "candidates-lists": (
        ROWS,
        VOTES | {"candidates": [[1], [2]]},
        TypeError,
        "candidates must be a sequence, and its items and default hashable",
    ),
    "default-candidate": (
        ROWS,
        VOTES | {"default": "c"},
        ParameterError,
        "default must be None or one of the candidates",
    ),
    "default-outside": (
        ROWS,
        {"default": 101},
        ParameterError,
        r"default must be within the bounds \[\(0.0, 100.0\)\], .*101",
    ),
    "default-nan": (ROWS, {"default": np.nan}, ParameterError, "default must be within the bounds"),
    "default-shape": (ROWS, {"default": [1.0, 2.0]}, ParameterError, "default must be within the bounds"),
    "default-text": (ROWS, {"default": "middle"}, ParameterError, "default must be within the bounds"),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_what_cannot_be_used_is_refused_before_the_function_is_called(case):
    data, options, kind, message = UNUSABLE[case]
    with pytest.raises(kind, match=f"^{message}"):
        mean_of(data, uncalled, **({"epsilon": 1.0} | options))


@pytest.mark.parametrize("alpha", [0, -0.1, 0.5, 0.9, np.nan, 0.16])
@pytest.mark.parametrize("aggregate", ["trimmed_mean", "winsorized_mean"])
def test_too_few_blocks_for_the_trimming(aggregate, alpha):
    message = f"alpha must be below 1/2 and trim at least one of 6 blocks at each end, got {alpha!r}"
    with pytest.raises(ParameterError, match=f"^{re.escape(message)}$"):
        mean_of(ROWS, uncalled, aggregate=aggregate, alpha=alpha)


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="f must be callable, got str"):
        mean_of(ROWS, "mean")
