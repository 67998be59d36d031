"""Marginals and choices for mbi: integer counts, exact noise, exact errors, and nothing private in a message."""

from __future__ import annotations

import itertools
import math
import re
import runpy
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import mbi
import numpy as np
import pytest
from host_tests.silence import INTEGERS, check_silent

import dpnoise
import dpnoise_mbi as ours
from dpnoise import ParameterError, RandomnessError, audit, hazmat
from dpnoise.accounting import Accountant, BudgetExceeded, Ledger

DOMAIN = mbi.Domain(["a", "b", "c"], [2, 3, 4])
CLIQUES = [("a",), ("c", "a"), (), ("a", "b", "c")]
NO_WORDS = hazmat.ScriptedRng(b"")
"""Whatever draws from it fails."""


def some_data(rows: int = 50, dtype: Any = np.uint8) -> Any:
    generator = np.random.default_rng(1)
    columns = {name: generator.integers(0, size, rows).astype(dtype) for name, size in DOMAIN.config.items()}
    return mbi.Dataset(columns, DOMAIN)


class Model:
    """A model of fixed marginals, which projects faster than the host's."""

    def __init__(self, **marginals: Any) -> None:
        self.marginals = marginals

    def project(self, clique: tuple[str, ...]) -> Model:
        return Model(found=self.marginals["".join(clique)])

    def datavector(self) -> Any:
        return np.asarray(self.marginals["found"])


FLAT = mbi.Factor(DOMAIN, np.full(DOMAIN.shape, 50 / 24))


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.uint64])
def test_a_measurement_is_the_hosts_counts_and_discrete_gaussian_noise_bit_for_bit(dtype: Any) -> None:
    data = some_data(dtype=dtype)
    counts = [np.asarray(data.project(clique).datavector()).astype(np.int64) for clique in CLIQUES]
    mechanism = dpnoise.DiscreteGaussian(rho=0.3, sensitivity=2.0)
    expected = mechanism.release(np.concatenate(counts), rng=hazmat.SeededRng(4))
    found = ours.measure(data, CLIQUES, rho=0.3, rng=hazmat.SeededRng(4))
    assert np.array_equal(np.concatenate([one.noisy_measurement for one in found]), expected)
    for one, clique in zip(found, CLIQUES, strict=True):
        assert isinstance(one, mbi.LinearMeasurement)
        assert (one.clique, one.stddev) == (clique, mechanism.scale)
        assert one.noisy_measurement.shape == (DOMAIN.size(clique),)
        assert one.noisy_measurement.dtype == np.float64


def test_the_host_fits_a_model_to_measurements() -> None:
    data = some_data(2000)
    model = mbi.estimation.MirrorDescent().estimate(
        DOMAIN, ours.measure(data, [("a",), ("b", "c")], rho=1e4), iters=200
    )
    assert np.abs(model.project(("b", "c")).datavector() - data.project(("b", "c")).datavector()).sum() < 20


@pytest.mark.parametrize("rows", [0, 1, 50])
def test_no_warning_tells_of_a_row(rows: int) -> None:
    def release(number: int) -> None:
        columns = {**some_data(rows).data, "a": np.full(rows, number)}
        data = mbi.Dataset(columns, DOMAIN)
        ours.measure(data, CLIQUES, rho=1.0)
        ours.choose(data, CLIQUES, FLAT, epsilon=1.0)

    check_silent(release, INTEGERS)


class Recorded(Exception):
    """Ends a call where it would draw."""


def inputs_of(call: Callable[[], Any], name: str) -> tuple[Any, dict[str, Any]]:
    """Give what a mechanism of a name would release, and its parameters."""
    found: list[Any] = []

    class Recording:
        scale = 1.0

        def __init__(self, **parameters: Any) -> None:
            self.parameters = parameters

        def release(self, x: Any, **_: Any) -> Any:
            found.append((x, self.parameters))
            raise Recorded

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dpnoise, name, Recording)
        with pytest.raises(Recorded):
            call()
    return found[0]


SMALL = mbi.Domain(["a", "b"], [2, 2])
CELLS = list(itertools.product(range(2), range(2)))
OF_SMALL = [("a",), ("b",), ("a", "b")]


def people(most: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """List all multisets of up to so many rows."""
    for size in range(most + 1):
        yield from itertools.combinations_with_replacement(CELLS, size)


def small_data(rows: tuple[tuple[int, int], ...]) -> Any:
    table = np.array(rows, np.int64).reshape(len(rows), 2)
    return mbi.Dataset({"a": table[:, 0], "b": table[:, 1]}, SMALL)


def neighbours(rows: int, relation: str, others: int = 2) -> Iterator[tuple[Any, Any]]:
    """List all pairs of neighbours with up to so many rows of other people."""
    for base in people(others):
        for person in people(rows):
            for replaced in people(rows) if relation == "substitute" else [()]:
                yield tuple(sorted(base + person)), tuple(sorted(base + replaced))


def by_rows(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    kept: dict[Any, Any] = {}

    def found(rows: Any) -> Any:
        if rows not in kept:
            kept[rows] = function(small_data(rows))
        return kept[rows]

    return found


@pytest.mark.parametrize("relation", ["add/remove", "substitute"])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("cliques", [[("a",)], OF_SMALL, [("a",), ("a",), ()]], ids=str)
def test_the_sensitivity_of_a_measurement_holds_for_all_pairs(relation: Any, rows: int, cliques: Any) -> None:
    counts = by_rows(
        lambda data: inputs_of(
            lambda: ours.measure(data, cliques, rho=1.0, rows=rows, relation=relation), "DiscreteGaussian"
        )
    )
    sensitivity = Fraction(counts(())[1]["sensitivity"])
    most = max(int(((counts(x)[0] - counts(y)[0]) ** 2).sum()) for x, y in neighbours(rows, relation, 1))
    assert most <= sensitivity**2
    if () not in cliques:  # the number of rows does not change where a row is replaced
        assert sensitivity**2 < most * (1 + Fraction(1, 2**50)), "and it is not larger than it has to be"


THREE = {("a",): 2, ("b",): 2, ("a", "b"): 1}
GRID = mbi.Factor(SMALL, np.array([[0.2, 2.7], [0.0, 0.4]]))
"""A row (0, 0) brings a nearer to its marginal, and takes b further away."""
BASE = Fraction(3, 2)
"""Stands for exp(epsilon / 2s), so that probabilities are fractions."""


def law(scores: list[int], coefficient: int = 1) -> list[Fraction]:
    """Give the probabilities of the exponential mechanism; 1 is for epsilon / 2s, and 2 for epsilon / s."""
    odds = [BASE ** (coefficient * score) for score in scores]
    return [each / sum(odds) for each in odds]


def losses(rows: int, relation: str, coefficient: int = 1) -> tuple[Fraction, Fraction, Fraction]:
    """Give the largest ratio of probabilities of neighbours, the largest range of ratios, and exp(epsilon)."""
    scores = by_rows(
        lambda data: inputs_of(
            lambda: ours.choose(data, THREE, GRID, epsilon=1.0, stddev=0.7, rows=rows, relation=relation), "Exponential"
        )
    )
    parameters = scores(())[1]
    assert not parameters.get("monotonic")
    largest = spread = Fraction(0)
    for x, y in neighbours(rows, relation):
        p, q = law(scores(x)[0], coefficient), law(scores(y)[0], coefficient)
        ratios = [a / b for a, b in zip(p, q, strict=True)]
        largest = max(largest, *ratios, *(1 / ratio for ratio in ratios))
        spread = max(spread, max(ratios) / min(ratios))
    return largest, spread, BASE ** (2 * parameters["sensitivity"])


@pytest.mark.parametrize(("rows", "relation"), [(1, "add/remove"), (2, "add/remove"), (1, "substitute")])
def test_a_choice_is_private_and_of_bounded_range_for_all_pairs(rows: int, relation: str) -> None:
    """In fractions. A mechanism whose ratios have a range of exp(epsilon) is epsilon^2/8-zCDP."""
    largest, spread, limit = losses(rows, relation)
    assert 1 < largest <= limit
    assert spread == limit, "a range that is reached: no smaller epsilon would do"


def test_a_choice_for_a_quarter_of_its_cost_is_found() -> None:
    """Scores that are called monotonic, and are not: the range is that of twice the epsilon, and the rho four times."""
    largest, spread, limit = losses(1, "add/remove", coefficient=2)
    assert largest > limit
    assert spread == limit**2
    assert dpnoise.Exponential(epsilon=2.0).rho == 4 * dpnoise.Exponential(epsilon=1.0).rho


@pytest.mark.parametrize(("rows", "relation", "sensitivity"), [(3, "add/remove", 15 * 64), (1, "substitute", 10 * 64)])
def test_a_choice_is_that_of_the_exponential_mechanism_bit_for_bit(rows: int, relation: Any, sensitivity: int) -> None:
    data = some_data()
    candidates = {("a",): 1, ("c", "a"): 5, (): 1, ("a", "b", "c"): 2}
    scores = []
    for clique, weight in candidates.items():
        counts = np.asarray(data.project(clique).datavector()).astype(int).tolist()
        estimates = [round(64 * float(x)) for x in FLAT.project(clique).datavector()]
        error = sum(abs(64 * x - y) for x, y in zip(counts, estimates, strict=True))
        scores.append(weight * (error - round(64 * math.sqrt(2 / math.pi) * 1.5 * len(counts))))
    mechanism = dpnoise.Exponential(epsilon=0.7, sensitivity=sensitivity)
    more = {"epsilon": 0.7, "stddev": 1.5, "rows": rows, "relation": relation}
    found = set()
    for seed in range(30):
        expected = mechanism.release(scores, rng=hazmat.SeededRng(seed))
        chosen = ours.choose(data, candidates, FLAT, **more, rng=hazmat.SeededRng(seed))
        assert chosen == [*candidates][expected]
        found.add(chosen)
    assert len(found) > 1
    given, parameters = inputs_of(lambda: ours.choose(data, candidates, FLAT, **more), "Exponential")
    assert (given, parameters) == (scores, {"epsilon": 0.7, "sensitivity": sensitivity})


def test_errors_are_cut_off_and_estimates_are_clipped_and_rounded() -> None:
    data = small_data(((0, 0), (0, 0), (0, 1)))
    model = Model(a=[-3.0, 2.0**32], b=[-1.7, 2 + 1 / 128])
    scores, _ = inputs_of(lambda: ours.choose(data, [("a",), ("b",)], model, epsilon=1.0), "Exponential")
    assert scores == [2**38, 64 * (2 + 1)], "not above 2**32, and the distance to (0, 2)"


GOOD: dict[str, Any] = {"measure": {"rho": 1.0}, "choose": {"model": FLAT, "epsilon": 1.0}}


def call(name: str, data: Any, cliques: Any, **more: Any) -> Any:
    return getattr(ours, name)(data, cliques, **{**GOOD[name], "rng": NO_WORDS, **more})


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize(
    ("cliques", "shown"),
    [
        ([("d",)], r"attributes of \('a', 'b', 'c'\), got \('d',\)"),
        ([("a", "a")], r"a tuple of different attributes .*, got \('a', 'a'\)"),
        (["a"], "got 'a'"),
        ([["a", "b"]], r"got \['a', 'b'\]"),
        ([], "must have at least one clique, got none"),
    ],
)
def test_cliques_outside_of_the_domain_are_refused(name: str, cliques: Any, shown: str) -> None:
    with pytest.raises(ParameterError, match=shown):
        call(name, some_data(), cliques)


@pytest.mark.parametrize("name", GOOD)
def test_marginals_whose_cells_int64_might_not_count_are_refused(name: str) -> None:
    names = [f"a{number}" for number in range(9)]
    data = mbi.Dataset({each: np.full(3, 255, np.uint8) for each in names}, mbi.Domain(names, [256] * 9))
    for most in (9, 5):
        with pytest.raises(ParameterError, match=r"at most 2\*\*32 cells"):
            call(name, data, [tuple(names[:most])])


@pytest.mark.parametrize("name", GOOD)
def test_bad_data_is_refused_without_a_private_value_before_anything_is_spent(name: str) -> None:
    data, spent = some_data(), []
    for value in (77, -78, 3):
        column = data.data["b"].astype(np.int64)
        column[17] = value
        outside = mbi.Dataset({**data.data, "b": column}, DOMAIN)
        with pytest.raises(ParameterError, match="values from 0 to 2 for 'b'") as caught:
            call(name, outside, [("a",), ("b",)], spend=spent.append)
        assert not {str(value), "17"} & set(re.findall(r"-?\d+", str(caught.value).replace("0 to 2", "")))
        with pytest.raises(RandomnessError):  # a column that is not read does not matter
            call(name, outside, [("a",)])
    for weight in (2.0, 0.987, math.nan):
        weights = np.ones(50)
        weights[3] = weight
        with pytest.raises(ParameterError, match="data must have weights that are all 1") as caught:
            call(name, mbi.Dataset(data.data, DOMAIN, weights), [("a",)], spend=spent.append)
        assert str(weight) not in str(caught.value)
    with pytest.raises(TypeError, match=r"data must be an mbi\.Dataset, got Factor"):
        call(name, data.project(("a", "b")), [("a",)], spend=spent.append)
    assert spent == []


@pytest.mark.parametrize(
    ("name", "more", "shown"),
    [
        ("measure", {"rho": 0.0}, "rho must be"),
        ("measure", {"rho": math.nan}, "rho must be"),
        ("measure", {"rho": None}, "rho must be a number, got NoneType"),
        ("measure", {"rho": 1e-60}, "rho must be such that sigma is from"),
        ("measure", {"rows": 0}, r"rows must be an integer from 1 to 2147483647, got 0"),
        ("measure", {"relation": "swap"}, "relation must be"),
        ("choose", {"epsilon": -1.0}, "epsilon must be"),
        ("choose", {"rows": 2**31}, "rows must be an integer"),
        ("choose", {"relation": None}, "relation must be"),
        ("choose", {"stddev": -0.1}, r"stddev must be from 0 to .*, got -0\.1"),
        ("choose", {"stddev": math.inf}, "stddev must be"),
        ("choose", {"stddev": 2.0**32}, "stddev must be"),
        ("choose", {"model": None}, "model must have the method project of .*, got NoneType"),
        ("choose", {"model": Model(a=[-math.inf, 1.0])}, "model must have marginals of 2 finite numbers"),
        ("choose", {"model": Model(a=[math.nan, 1.0])}, "model must have marginals of 2 finite numbers"),
        ("choose", {"model": Model(a=[2.0**32, 1.0])}, "add up to at most"),
        ("choose", {"model": Model(a=[1.0, 1.0, 1.0])}, r"got shape \(3,\)"),
    ],
)
def test_bad_parameters_are_refused_before_anything_is_spent(name: str, more: Any, shown: str) -> None:
    spent: list[Any] = []
    with pytest.raises((ParameterError, TypeError), match=shown):
        call(name, some_data(), [("a",)], **more, spend=spent.append)
    assert spent == []


@pytest.mark.parametrize("cliques", [None, 5, "a"])
def test_cliques_that_are_no_sequence_are_refused(cliques: Any) -> None:
    for name in GOOD:
        with pytest.raises(TypeError, match=f"must be a sequence of tuples, got {type(cliques).__name__}"):
            call(name, some_data(), cliques)


@pytest.mark.parametrize("weight", [0, 2**14 + 1, 1.0, True])
def test_weights_that_are_no_positive_integers_are_refused(weight: Any) -> None:
    with pytest.raises((ParameterError, TypeError), match="every weight of candidates must be an int"):
        call("choose", some_data(), {("a",): weight, ("b",): 1})


def test_scores_are_in_range_whatever_the_data_are() -> None:
    model = Model(a=[2.0**32, 0.0], b=[0.0, 0.0, 0.0])
    candidates = {("a",): 2**14, ("b",): 2**14}
    more = {"epsilon": 1.0, "stddev": 2.0**32 / 3 / math.sqrt(2 / math.pi) * 0.999}
    scores, _ = inputs_of(lambda: ours.choose(some_data(), candidates, model, **more), "Exponential")
    assert 2**51 < max(map(abs, scores)) <= 2**53
    assert ours.choose(some_data(), candidates, model, **more) == ("a",)


def test_a_seed_is_refused_before_anything_is_spent() -> None:
    spent: list[Any] = []
    for name in GOOD:
        for seed in (7, np.random.default_rng(1)):
            with pytest.raises(ValueError, match="rng must be left out or None"):
                call(name, some_data(), [("a",)], rng=seed, spend=spent.append)
    assert spent == []


def test_the_cost_is_spent_once_and_before_anything_is_drawn(tmp_path: Path) -> None:
    spent: list[Any] = []
    for name in GOOD:
        with pytest.raises(RandomnessError):
            call(name, some_data(), [("a",), ("b",)], spend=spent.append)
    assert [mechanism.rho for mechanism in spent] == [1.0, 1 / 8]
    accountant = Accountant(method="rdp")
    ours.measure(some_data(), CLIQUES, rho=0.1, spend=accountant.compose)
    ours.choose(some_data(), CLIQUES, FLAT, epsilon=0.5, spend=accountant.compose)
    assert 0 < accountant.epsilon(1e-6) < 4
    ledger = Ledger(tmp_path / "ledger.db", epsilon=1.0)
    ours.choose(some_data(), CLIQUES, FLAT, epsilon=0.75, spend=ledger.spend)
    with pytest.raises(BudgetExceeded):
        call("choose", some_data(), CLIQUES, epsilon=0.75, spend=ledger.spend)
    assert ledger.spent.epsilon == 0.75
    concentrated = Ledger(tmp_path / "concentrated.db", rho=0.5)
    ours.measure(some_data(), CLIQUES, rho=0.25, spend=concentrated.spend)
    ours.choose(some_data(), CLIQUES, FLAT, epsilon=1.0, spend=concentrated.spend)
    with pytest.raises(BudgetExceeded, match=r"remains of the budget is rho=0\.125, delta=0\.0"):
        call("measure", some_data(), CLIQUES, rho=0.25, spend=concentrated.spend)


@pytest.mark.parametrize("name", GOOD)
def test_nothing_is_released_without_randomness(name: str) -> None:
    with pytest.raises(RandomnessError):
        call(name, some_data(), [("a",)])


def repeated() -> bool:
    """Say whether two of several measurements have the same noise, within a thread or between threads."""
    data = some_data()

    def noise(_: int) -> tuple[float, ...]:
        return tuple(ours.measure(data, [("a", "b", "c")], rho=1e-9)[0].noisy_measurement.tolist())

    with ThreadPoolExecutor(4) as pool:
        found = [*map(noise, range(10)), *pool.map(noise, range(10))]
    return len(set(found)) < len(found)


def test_every_measurement_draws_fresh_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not repeated()
    release = dpnoise.DiscreteGaussian.release
    monkeypatch.setattr(
        dpnoise.DiscreteGaussian, "release", lambda self, x, **_: release(self, x, rng=hazmat.SeededRng(1))
    )
    assert repeated()


def cells(counts: Any) -> Any:
    """Make a data set with so many rows in each cell of one attribute: each cell is an experiment of its own."""
    column = np.repeat(np.arange(len(counts)), counts)
    return mbi.Dataset({"cell": column}, mbi.Domain(["cell"], [len(counts)]))


RHO = 1 / 8
DELTA = 1e-3
CLAIM = dpnoise.DiscreteGaussian(rho=RHO).epsilon_for(DELTA)


def measured(counts: Any, rho: float = RHO) -> Any:
    return ours.measure(cells(counts), [("cell",)], rho=rho)[0].noisy_measurement


def in_floats(counts: Any) -> Any:
    """Do what programs do: counts of the host in floats, and NumPy's noise."""
    return cells(counts).datavector() + np.random.default_rng().normal(0, 2.0, len(counts))


def lower_bound(release: Callable[[Any], Any]) -> float:
    return audit.epsilon_lower_bound(release, 0, 1, n=20_000, delta=DELTA, level=1 - 1e-9, vectorized=True).epsilon


def test_a_measurement_loses_no_more_than_it_claims_and_mistakes_are_found() -> None:
    """A person in an empty cell, of whom nobody may know."""
    assert lower_bound(measured) <= CLAIM
    assert lower_bound(in_floats) > CLAIM, "told apart by the low bits"
    assert lower_bound(lambda counts: measured(counts, 16 * RHO)) > CLAIM, "a quarter of the noise"


def is_fine(noisy: Any) -> Any:
    """Find numbers that no float sum of a count of at least 1 and noise can give.

    A sum y of a count c >= 1 and a float z with |y| < 1/4 has z <= -3/4. So z is a multiple of 2^-53, and the sum too,
    which is exact. Of floats around zero few are.
    """
    scaled = np.asarray(noisy) * 2.0**53
    return (np.abs(noisy) < 1 / 4) & (scaled != np.rint(scaled))


def test_low_bits_tell_neighbours_of_float_sums_apart_for_certain_and_ours_have_none() -> None:
    """In floats one empty cell of twelve says so itself, and no other cell does: an infinite loss."""
    n = 50_000
    empty, single = (in_floats(np.full(n, count)) for count in (0, 1))
    assert is_fine(empty).sum() > 1000
    assert is_fine(single).sum() == 0
    for count in (0, 1):
        noisy = measured(np.full(n, count))
        assert np.array_equal(noisy, np.rint(noisy))
        assert is_fine(noisy).sum() == 0


def test_counts_of_the_host_in_float32_change_by_two() -> None:
    """The positive control of the sensitivity: with noise for 1 such a count is no release at all."""
    theirs, exact = [], []
    for rows in (2**24 + 1, 2**24 + 2):
        data = mbi.Dataset({"a": np.zeros(rows, np.uint8)}, mbi.Domain(["a"], [2]))
        theirs.append(float(data.project(("a",)).datavector()[0]))
        exact.append(int(inputs_of(lambda: ours.measure(data, [("a",)], rho=1.0), "DiscreteGaussian")[0][0]))  # noqa: B023
    assert theirs == [2**24, 2**24 + 2]
    assert exact == [2**24 + 1, 2**24 + 2]


def test_the_example_finds_a_model() -> None:
    example = runpy.run_path(str(Path(__file__).parents[1] / "examples/aim_adult.py"))
    adult = example["adult"]()
    names = ["sex", "marital", "income"]
    data = mbi.Dataset({name: adult.data[name] for name in names}, adult.domain.project(names))
    workload = [("sex", "marital"), ("marital", "income")]
    spent: list[Any] = []

    def errors(measure: Any, choose: Any) -> float:
        model = example["aim"](data, workload, 0.1, measure, choose, 12)
        return float(example["error"](data, workload, model))

    private = errors(
        lambda *given, **more: ours.measure(*given, **more, spend=spent.append),
        lambda *given, **more: ours.choose(*given, **more, spend=spent.append),
    )
    assert sum(mechanism.rho for mechanism in spent) == pytest.approx(0.1)
    assert private < 0.1
    assert errors(example["measure_in_floats"], example["choose_in_floats"]) < 0.1
