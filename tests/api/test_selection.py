"""The face of the mechanisms that choose or compare: what they take, what they refuse, and what their bounds mean."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import dpnoise
from dpnoise import AboveThreshold, Exponential, PermuteAndFlip, PrivacyCost, ReportNoisyMax, TopK, hazmat
from dpnoise.mechanisms import NoiseBuffer, TruncatedGeometric

KINDS = [Exponential, ReportNoisyMax]
EACH = [Exponential(epsilon=0.7), ReportNoisyMax(epsilon=0.7), TopK(k=2, epsilon=0.7)]
SECRET = 918273645.546372819


@pytest.mark.parametrize("kind", KINDS)
def test_a_choice_is_an_index(kind: Any) -> None:
    mechanism = kind(epsilon=50.0)
    for scores in ([0, 9, 1], (0.0, 9.0, 1.0), np.array([0, 9, 1], np.uint8), np.array([0, 9, 1.0], ">f4")):
        assert mechanism.release(scores) == 1
        assert type(mechanism.release(scores)) is int
    assert mechanism.release(np.arange(20.0)[::-2]) == 0
    assert mechanism.release([-3]) == 0
    assert mechanism.release([-1e308, 1e308, 5e-324]) == 1
    assert {mechanism.release(np.zeros(3)) for _ in range(200)} == {0, 1, 2}


def test_top_k_gives_different_indices_best_first() -> None:
    chosen = TopK(k=3, epsilon=1000.0).release([5, 80, -4, 100, 40, 0])
    assert chosen.dtype == np.int64
    assert chosen.tolist() == [3, 1, 4]
    everything = TopK(k=5000, epsilon=1.0).release(np.zeros(5000))
    assert sorted(everything.tolist()) == list(range(5000))
    assert everything.tolist() != list(range(5000))


def test_permute_and_flip_is_a_name_of_report_noisy_max() -> None:
    assert PermuteAndFlip is ReportNoisyMax


@pytest.mark.parametrize(
    "mechanism",
    [*EACH, Exponential(epsilon=0.7, sensitivity=2.0, monotonic=True), AboveThreshold(epsilon=0.7, threshold=3.0)],
    ids=repr,
)
def test_a_mechanism_is_a_value(mechanism: Any) -> None:
    again = pickle.loads(pickle.dumps(mechanism))  # noqa: S301 - our own bytes
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    assert eval(repr(mechanism), vars(dpnoise)) == mechanism  # noqa: S307 - our own text
    assert mechanism.cost == PrivacyCost(0.7, 0.0)
    with pytest.raises(AttributeError):
        mechanism.epsilon = 1.0


def test_the_scale_is_that_of_the_definition() -> None:
    assert Exponential(epsilon=0.5, sensitivity=3.0).scale == pytest.approx(12.0, rel=1e-11)
    assert Exponential(epsilon=0.5, sensitivity=3.0, monotonic=True).scale == pytest.approx(6.0, rel=1e-11)
    assert TopK(k=5, epsilon=0.5).scale == pytest.approx(20.0, rel=1e-11)
    assert Exponential(epsilon=1.0).granularity == 2.0**-39
    assert Exponential(epsilon=2.0).rho == 0.5
    assert TopK(k=4, epsilon=2.0).rho == 0.125
    assert not hasattr(ReportNoisyMax, "rho")


@pytest.mark.parametrize("mechanism", [Exponential(epsilon=0.5), ReportNoisyMax(epsilon=0.5)], ids=repr)
def test_what_a_choice_misses_is_bounded(mechanism: Any) -> None:
    # The worst case of the bound: one best candidate, and all others equally far below it.
    n, runs = 50, 4000
    for level in (0.5, 0.9):
        noise = mechanism.scale * np.log(n / (1 - level))
        assert mechanism.error(n, level) == pytest.approx(noise + mechanism.granularity, rel=1e-14)
        scores = np.full(n, -mechanism.error(n, level))
        scores[7] = 0.0
        misses = sum(mechanism.release(scores) != 7 for _ in range(runs))
        assert stats.binom.sf(misses, runs, 1 - level) > 1e-9


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *[
            (lambda epsilon=epsilon, kind=kind: kind(epsilon=epsilon), "^epsilon must be positive and finite, got ")
            for epsilon in (0, -1.0, float("nan"), float("inf"))
            for kind in KINDS
        ],
        (lambda: TopK(k=1, epsilon=0), "^epsilon must be positive and finite, got 0"),
        (lambda: Exponential(epsilon=1e-300), "^epsilon must be such that sensitivity/epsilon is below"),
        (lambda: Exponential(epsilon=10**400), "^epsilon must be in the range of a float"),
        (lambda: ReportNoisyMax(epsilon=1, sensitivity=0.0), "^sensitivity must be positive and finite, got 0.0"),
        (lambda: ReportNoisyMax(epsilon=1, sensitivity=-1.0), "^sensitivity must be positive and finite, got -1.0"),
        (lambda: TopK(k=0, epsilon=1.0), r"^k must be an integer from 1 to 2\*\*32 - 1, got 0"),
        (lambda: TopK(k=-1, epsilon=1.0), r"^k must be an integer from 1 to 2\*\*32 - 1, got -1"),
        (lambda: TopK(k=2**32, epsilon=1.0), r"^k must be an integer from 1 to 2\*\*32 - 1, got 4294967296"),
        (
            lambda: TopK(k=4, epsilon=1.0).release([1, 2, 3]),
            "^k must be at most the number of scores, which is 3, got 4",
        ),
        (lambda: Exponential(epsilon=1.0).error(0), "^count must be a positive integer, got 0"),
        (lambda: Exponential(epsilon=1.0).error(-1), "^count must be a positive integer, got -1"),
        (lambda: Exponential(epsilon=1.0).error(5, 1.0), "^level must be between 0 and 1, both excluded, got 1.0"),
        (lambda: AboveThreshold(epsilon=0, threshold=1), "^epsilon must be positive and finite, got 0"),
        (lambda: AboveThreshold(epsilon=1e-300, threshold=1), "^epsilon must be such that"),
        (lambda: AboveThreshold(epsilon=1, threshold=float("inf")), "^threshold must be finite, got inf"),
        (lambda: AboveThreshold(epsilon=1, threshold=1, sensitivity=0), "^sensitivity must be positive and finite"),
        (lambda: AboveThreshold(epsilon=1, threshold=1, max_positives=0), "^max_positives must be an integer from 1"),
        (lambda: AboveThreshold(epsilon=1, threshold=1, max_positives=2**32), "^max_positives must be an integer from"),
    ],
)
def test_bad_parameters_are_named(make: Any, message: str) -> None:
    with pytest.raises(dpnoise.ParameterError, match=message):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: TopK(k=1.5, epsilon=1.0),
        lambda: TopK(k=True, epsilon=1.0),
        lambda: Exponential(epsilon="1"),
        lambda: Exponential(epsilon=1.0, monotonic=1),
        lambda: AboveThreshold(epsilon=1.0, threshold="a"),
        lambda: AboveThreshold(epsilon=1.0, threshold=1.0, max_positives=1.0),
    ],
)
def test_parameters_of_the_wrong_type_are_refused(make: Any) -> None:
    with pytest.raises(TypeError, match=r"must be|monotonic"):
        make()


@pytest.mark.parametrize("mechanism", EACH, ids=repr)
@pytest.mark.parametrize(
    ("scores", "error", "message"),
    [
        ([], ValueError, "^scores must not be empty|^k must be at most the number of scores, which is 0"),
        ([SECRET, float("nan"), 1], ValueError, "^scores must be finite: no NaN and no infinity$"),
        ([SECRET, float("inf"), 1], ValueError, "^scores must be finite: no NaN and no infinity$"),
        ([SECRET, -float("inf"), 1], ValueError, "^scores must be finite: no NaN and no infinity$"),
        (SECRET, ValueError, "^scores must have one dimension, got 0$"),
        ([[SECRET, 1.0]], ValueError, "^scores must have one dimension, got 2$"),
        ([2**53 + 1, 0], ValueError, r"^scores must have integers of at most 2\*\*53 in magnitude$"),
        ([True, False], TypeError, "^scores must be real numbers of at most 64 bits, got dtype bool$"),
        ([1j, 0], TypeError, "^scores must be real numbers"),
        (["a", "b"], TypeError, "^scores must be real numbers"),
        ([None, SECRET], TypeError, "^scores must be real numbers"),
        (np.ma.masked_array([1.0, 2.0], [False, True]), ValueError, "^scores must have no masked values"),
    ],
)
def test_unfit_scores_are_refused_without_showing_them(mechanism: Any, scores: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        mechanism.release(scores, rng=hazmat.ScriptedRng(b""))  # which has nothing to draw
    assert str(SECRET)[:9] not in str(caught.value)


NAMES = ["tea", "milk", "rum"]


@pytest.mark.parametrize(
    "candidates",
    [
        NAMES,
        tuple(NAMES),
        np.array(NAMES),
        pd.Index(NAMES),
        pd.Series(NAMES, [7, 7, 7]),
        pl.Series(NAMES),
        pa.array(NAMES),
    ],
    ids=lambda candidates: f"{type(candidates).__module__}.{type(candidates).__name__}",
)
def test_candidates_are_released_instead_of_their_indices(candidates: Any) -> None:
    for kind in KINDS:
        chosen = kind(epsilon=1000.0).release([1, 0, 9], candidates=candidates)
        assert (chosen, type(chosen)) == ("rum", str)
    assert TopK(k=2, epsilon=1000.0).release([1, 0, 9], candidates=candidates) == ["rum", "tea"]


def test_candidates_may_be_anything_that_is_listed() -> None:
    for candidates in ([{"depth": 3}, {"depth": 4}], [(1, 2), (3, 4)], [None, len], np.array([0.5, 1.5]), range(3, 5)):
        assert Exponential(epsilon=1000.0).release([0, 9], candidates=candidates) == list(candidates)[1]


@pytest.mark.parametrize("mechanism", EACH, ids=repr)
@pytest.mark.parametrize(
    ("candidates", "error", "message"),
    [
        (NAMES[:2], ValueError, "^candidates must have one item for each of the 3 scores, got 2 items$"),
        ([], ValueError, "^candidates must have one item for each of the 3 scores, got 0 items$"),
        (dict.fromkeys(NAMES, 1), TypeError, "^candidates must be a list, an array or a column of labels, got dict$"),
        (set(NAMES), TypeError, "^candidates must be a list, an array or a column of labels, got set$"),
        ("tea", TypeError, "^candidates must be a list, an array or a column of labels, got str$"),
        (np.eye(3), TypeError, "^candidates must be a list, an array or a column of labels, got ndarray$"),
    ],
)
def test_unfit_candidates_are_refused_before_anything_is_drawn(
    mechanism: Any, candidates: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        mechanism.release([SECRET, 1, 2], candidates=candidates, rng=hazmat.ScriptedRng(b""))
    assert str(SECRET)[:9] not in str(caught.value)


def of_the_text(output: int, data: list[int]) -> int:
    return data.count(output)


class Counted:
    def __call__(self, data: list[int], candidate: int) -> int:
        return data.count(candidate)

    def by_position(self, candidate: int, data: list[int], /) -> int:
        return data.count(candidate)


@pytest.mark.parametrize(
    "utility",
    [
        of_the_text,
        lambda data, c: data.count(c),
        lambda c, *rest, data, **others: data.count(c),
        lambda c, weight=1, data=(): weight * data.count(c),
        lambda c, weight=1, data=(), /, **others: weight * data.count(c),
        partial(lambda weight, data, c: weight * data.count(c), 1),
        partial(lambda c, weight, data: weight * data.count(c), weight=1),
        Counted(),
        Counted().by_position,
    ],
)
def test_a_utility_gets_the_data_by_name_whatever_the_order(utility: Any) -> None:
    sure = Exponential(epsilon=1e9)
    assert sure.release_best([3, 1, 3, 3, 2], [1, 2, 3, 4], utility) == 3


@pytest.mark.parametrize(
    ("utility", "got"),
    [
        (lambda d, c: 0, r"\(d, c\)"),  # either order would give scores
        (lambda output, database: 0, r"\(output, database\)"),
        (lambda data: 0, r"\(data\)"),
        (lambda data, c, weight: 0, r"\(data, c, weight\)"),
        (lambda data, *rest: 0, r"\(data\)"),
        (lambda c, *data: 0, r"\(c\)"),
        (partial(of_the_text, [3]), r"\(data\)"),
        (list.count, r"\(self, value\)"),
        (max, ""),
        (np.add, ""),
    ],
)
def test_a_utility_whose_order_cannot_be_told_is_refused_before_it_is_called(utility: Any, got: str) -> None:
    choose = partial(Exponential(epsilon=1.0).release_best, rng=hazmat.ScriptedRng(b""))
    with pytest.raises(TypeError, match=rf"^utility must have a parameter named data and .*{got}"):
        choose([3], [1, 2], utility)


def test_the_best_candidate_by_a_utility_has_the_law_of_its_scores() -> None:
    data = [3, 1, 3, 3, 2]
    for mechanism in EACH:
        named = mechanism.release_best(data, range(1, 5), of_the_text, rng=hazmat.SeededRng(5))
        place = mechanism.release([1, 1, 3, 0], rng=hazmat.SeededRng(5))
        assert named == (place + 1 if isinstance(place, int) else (place + 1).tolist())


def test_unfit_utilities_are_refused_before_anything_is_drawn() -> None:
    choose = partial(Exponential(epsilon=1.0).release_best, rng=hazmat.ScriptedRng(b""))
    with pytest.raises(TypeError, match=r"^utility must be a function of the data and a candidate, got list$"):
        choose([1], NAMES, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"^scores must be finite"):
        choose([1], NAMES, lambda data, candidate: float("nan"))
    with pytest.raises(ValueError, match=r"^candidates must not be empty"):
        choose([1], [], lambda data, candidate: 1.0)
    with pytest.raises(TypeError, match=r"^candidates must be a list, an array or a column of labels, got dict$"):
        choose([1], {"tea": 1}, lambda data, candidate: 1.0)


@pytest.mark.parametrize("place", [0, 7, 8, 2047, 2048, 4999])
def test_what_is_not_finite_is_found_everywhere(place: int) -> None:
    scores = np.zeros(5000)
    scores[place] = np.nan
    with pytest.raises(dpnoise.ParameterError, match="scores must be finite"):
        Exponential(epsilon=1.0).release(scores)


@pytest.mark.parametrize("mechanism", EACH, ids=repr)
def test_a_failing_source_releases_nothing(mechanism: Any) -> None:
    with pytest.raises(dpnoise.RandomnessError):
        mechanism.release([1.0, 2.0], rng=hazmat.ScriptedRng(bytes(40)))


def test_many_scores_are_chosen_from() -> None:
    # More than are looked at without giving up the GIL, and enough for a third candidate.
    scores = np.zeros(2**20 + 3)
    scores[2**20 + 1] = 100.0
    for mechanism in (Exponential(epsilon=5.0), ReportNoisyMax(epsilon=5.0)):
        assert mechanism.release(scores) == 2**20 + 1


def test_a_run_tells_what_is_above_until_it_halts() -> None:
    run = AboveThreshold(epsilon=100.0, threshold=50, max_positives=2).start()
    assert [run.is_above(value) for value in (0, 100.0, np.float32(1))] == [False, True, False]
    assert repr(run) == "<AboveThresholdRun, positives=1>"
    assert run.is_above(np.int64(99))
    assert run.halted
    assert run.positives == 2
    assert repr(run) == "<AboveThresholdRun, positives=2, halted>"
    with pytest.raises(RuntimeError, match=r"^this run has given its max_positives=2 positive answers: start another"):
        run.is_above(0)


def test_a_release_is_a_run() -> None:
    mechanism = AboveThreshold(epsilon=100.0, threshold=50, max_positives=2)
    assert mechanism.release([0, 100, 7, 90, 0, 80]).tolist() == [False, True, False, True]
    assert mechanism.release([0, 100, 7]).tolist() == [False, True, False]
    assert mechanism.release([]).shape == (0,)
    assert mechanism.release([]).dtype == np.bool_
    with pytest.raises(dpnoise.ParameterError, match=r"^values must be an array or a column, got a table: "):
        mechanism.release(pd.DataFrame({"a": [1, 2]}))
    assert mechanism.release(np.array([1e308, -1e308])).tolist() == [True, False]


def test_a_seed_decides_the_noise_of_the_threshold_and_of_each_value() -> None:
    near = AboveThreshold(epsilon=1.0, threshold=0, max_positives=200)

    def ask(of_threshold: int, of_values: int) -> list[bool]:
        run, rng = near.start(rng=hazmat.SeededRng(of_threshold)), hazmat.SeededRng(of_values)
        return [run.is_above(0, rng=rng) for _ in range(200)]

    assert ask(1, 2) == ask(1, 2) != ask(1, 3)
    assert ask(1, 2) != ask(4, 2)
    first, again, other = (near.release(np.zeros(200), rng=hazmat.SeededRng(seed)).tolist() for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize("monotonic", [False, True])
def test_a_run_has_the_parameters_that_were_given(monotonic: bool) -> None:
    given = {"epsilon": 0.7, "threshold": 3.5, "sensitivity": 2.0, "max_positives": 7, "monotonic": monotonic}
    assert {name: getattr(AboveThreshold(**given), name) for name in given} == given


def test_the_scales_of_a_run_spend_its_epsilon() -> None:
    for c in (1, 3, 100, 10**6):
        for monotonic in (False, True):
            mechanism = AboveThreshold(epsilon=0.5, threshold=0, sensitivity=2.0, max_positives=c, monotonic=monotonic)
            shift = (1 if monotonic else 2) * 2.0
            spent = 2.0 / mechanism.threshold_scale + c * shift / mechanism.scale
            assert spent == pytest.approx(0.5, rel=1e-9)
            assert 2.0**39 < mechanism.scale / mechanism.granularity <= 2.0**40 * (1 + 1e-12)
            if c <= 100:
                ratio = (c * shift / mechanism.scale) / (2.0 / mechanism.threshold_scale)
                assert ratio == pytest.approx((c * shift / 2.0) ** (2 / 3), rel=0.02)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (float("nan"), ValueError, "^value must be finite: no NaN and no infinity$"),
        (float("inf"), ValueError, "^value must be finite: no NaN and no infinity$"),
        ([SECRET], ValueError, "^value must be a single number, got 1 dimensions$"),
        (2**53 + 1, ValueError, "^value must have integers of at most"),
        (True, TypeError, "^value must be real numbers"),
        ("a", TypeError, "^value must be real numbers"),
        (None, TypeError, "^value must be real numbers"),
    ],
)
def test_unfit_values_are_refused(value: Any, error: Any, message: str) -> None:
    run = AboveThreshold(epsilon=1.0, threshold=0).start()
    with pytest.raises(error, match=message):
        run.is_above(value, rng=hazmat.ScriptedRng(b""))
    with pytest.raises(error, match=message.replace("value", "values").split(" be a single")[0].split(" integers")[0]):
        AboveThreshold(epsilon=1.0, threshold=0).release([[value]] if isinstance(value, list) else [value])


def test_a_run_can_be_neither_copied_nor_pickled() -> None:
    run = AboveThreshold(epsilon=1.0, threshold=0).start()
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        for thing in (run, run._native):
            with pytest.raises(TypeError, match="a run can be neither copied nor pickled"):
                duplicate(thing)


def _ask(run: Any, answers: Any) -> None:
    try:
        run.is_above(0.0)
    except RuntimeError as error:
        answers.put(str(error))
    else:
        answers.put("an answer")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_process_cannot_go_on_with_a_run() -> None:
    run = AboveThreshold(epsilon=1.0, threshold=1e9).start()
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=_ask, args=(run, answers))
    child.start()
    assert answers.get().startswith("a run cannot go on in another process than the one that started it")
    child.join()
    assert run.is_above(0.0) is False


def test_threads_share_a_run_and_its_limit() -> None:
    run = AboveThreshold(epsilon=50.0, threshold=0, max_positives=5).start()

    def ask(_: int) -> bool | None:
        try:
            return run.is_above(1000.0)
        except RuntimeError:
            return None

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(200)))
    assert answers.count(True) == 5
    assert answers.count(None) == 195


@pytest.mark.parametrize("monotonic", [False, True])
def test_answers_about_values_far_from_the_threshold_are_right(monotonic: bool) -> None:
    """As often as is said, of all that a run gives; a fifth of the distance is not enough."""
    count, level, runs, rng = 20, 0.9, 1000, hazmat.SeededRng(5)
    mechanism = AboveThreshold(epsilon=1.0, threshold=7.0, max_positives=2, monotonic=monotonic)
    far = mechanism.error(count, level)

    def right(distance: float) -> float:
        """How many runs answer all of so many values rightly, of which the last two are above."""
        values = 7.0 + distance * np.array([-1.0] * (count - 2) + [1.0] * 2)
        return sum(np.array_equal(mechanism.release(values, rng=rng), values > 7) for _ in range(runs)) / runs

    assert right(far) >= level
    assert right(far / 5) < level
    assert mechanism.error(2 * count, level) - far == pytest.approx(mechanism.scale * np.log(2))
    noise = mechanism.threshold_scale * np.log(2 / 0.1) + mechanism.scale * np.log(2 * count / 0.1)
    assert noise + 3 * mechanism.granularity <= far < (noise + 3 * mechanism.granularity) * (1 + 2.0**-39)
    for refused in (0, 2**53):
        with pytest.raises(dpnoise.ParameterError, match=rf"^count must be an integer from 1 to \d+, got {refused}$"):
            mechanism.error(refused)


GEOMETRIC = {"epsilon": 5 * 2.0**-20, "delta": 5 * 2.0**-800, "max_partitions_contributed": 5}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: TruncatedGeometric(epsilon=0.0, delta=0.1),
            dpnoise.ParameterError,
            r"epsilon must be at least 2\*\*-20 \* max_partitions_contributed \(which is 1\), and finite, got 0.0$",
        ),
        *(
            (partial(TruncatedGeometric, **(GEOMETRIC | {name: value})), dpnoise.ParameterError, f"^{name} must be")
            for name, value in [
                ("epsilon", 4.99 * 2.0**-20),
                ("epsilon", float("inf")),
                ("delta", 4.99 * 2.0**-800),
                ("delta", 1.5),
                ("max_partitions_contributed", 0),
                ("max_partitions_contributed", 2**63),
            ]
        ),
        (partial(TruncatedGeometric, epsilon=None, delta=0.1), TypeError, "^epsilon must be"),
        (partial(TruncatedGeometric, epsilon=1.0, delta=None), TypeError, "^delta must be"),
        (
            lambda: TruncatedGeometric(epsilon=1.0, delta=0).should_keep(0.5),
            dpnoise.ParameterError,
            "num_users must be",
        ),
        (lambda: NoiseBuffer(TopK(k=1, epsilon=1.0)), TypeError, "mechanism must be a Laplace or a Gaussian, got TopK"),  # type: ignore[arg-type]
        (
            lambda: NoiseBuffer(dpnoise.Laplace(epsilon=1.0)).add_noise(np.inf),
            dpnoise.ParameterError,
            "x must be finite",
        ),
        (lambda: NoiseBuffer(dpnoise.Laplace(epsilon=1.0)).add_noise("1"), TypeError, "x must be a number"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_of_partition_selection(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_buffer_adds_the_noise_of_its_mechanism() -> None:
    buffer = NoiseBuffer(dpnoise.Laplace(epsilon=2.0))
    assert stats.kstest([buffer.add_noise(3) - 3 for _ in range(2000)], stats.laplace(scale=0.5).cdf).pvalue > 1e-9
    assert stats.kstest([buffer.add_noise(3) - 3 for _ in range(2000)], stats.laplace(scale=2.0).cdf).pvalue < 1e-9


def test_truncated_geometric_takes_all_up_to_its_limits() -> None:
    for parameters in (GEOMETRIC, GEOMETRIC | {"delta": 0}, GEOMETRIC | {"delta": 1}):
        assert not TruncatedGeometric(**parameters).should_keep(0)
    assert TruncatedGeometric(epsilon=2.0**43, delta=1.0, max_partitions_contributed=2**63 - 1).should_keep(1)


def test_truncated_geometric_is_what_it_was_made_as():
    selection = TruncatedGeometric(epsilon=1.0, delta=1e-5, max_partitions_contributed=2)
    assert repr(selection) == "TruncatedGeometric(epsilon=1.0, delta=1e-05, max_partitions_contributed=2)"
    assert repr(pickle.loads(pickle.dumps(selection))) == repr(selection)  # noqa: S301
    with pytest.raises(AttributeError):
        selection.epsilon = 3.0
