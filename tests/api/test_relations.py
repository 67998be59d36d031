"""Costs of different neighbouring relations never add up: a row that is replaced is one removed and one added."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpnoise
from dpnoise import Laplace, ParameterError, PrivacyCost, accounting, queries, sgd, stability
from dpnoise.accounting import Accountant, Ledger, LedgerError, compose_parallel, compose_sequential

BOUNDS: Any = {"bounds": (90.0, 100.0), "epsilon": 1.0}
ADD, REPLACE = "add/remove", "substitute"

COLUMN = [95.0] * 200


STABLE: Any = {"epsilon": 1.0, "delta": 1e-9}


def asked(**options: Any) -> PrivacyCost:
    return stability.SubsampleAndAggregate(f=np.median, blocks=5, epsilon=1.0, **options).cost


COSTS: dict[str, tuple[Any, str | None]] = {
    **{
        f"{kind.__name__} {relation}": (kind(**options, relation=relation).cost, relation)
        for relation in (ADD, REPLACE)
        for kind, options in (
            (queries.Count, {"epsilon": 1.0}),
            (queries.Sum, BOUNDS),
            (queries.Mean, BOUNDS),
            (queries.Variance, BOUNDS),
            (queries.Median, BOUNDS),
            (queries.Histogram, {"epsilon": 1.0, "edges": [0, 1]}),
            (queries.StabilityHistogram, {"epsilon": 1.0, "delta": 1e-9}),
        )
    },
    "Laplace": (Laplace(epsilon=1.0).cost, None),
    "Gaussian": (dpnoise.Gaussian(epsilon=1.0, delta=1e-9).cost, None),
    "AboveThreshold": (dpnoise.AboveThreshold(epsilon=1.0, threshold=0.0).cost, None),
    "median": (stability.StableMedian(**STABLE).cost, ADD),
    "median substitute": (stability.StableMedian(**STABLE, relation=REPLACE).cost, REPLACE),
    "mode": (stability.StableMode(**STABLE).cost, ADD),
    "mode substitute": (stability.StableMode(**STABLE, relation=REPLACE).cost, REPLACE),
    "scale": (stability.StableScale(**STABLE).cost, REPLACE),
    "stable value": (stability.StableValue(**STABLE).cost, None),
    "mean of blocks": (asked(aggregate="mean", bounds=(0, 100)), REPLACE),
    "votes of blocks": (asked(aggregate="noisy_max", candidates=[95.0]), REPLACE),
    "mode of blocks": (asked(aggregate="mode", delta=1e-9), REPLACE),
    "bootstrap": (stability.StableBootstrap(f=len, epsilon=40.0, delta=1e-3).cost, REPLACE),
}


@pytest.mark.parametrize("name", COSTS)
def test_a_cost_knows_its_relation(name: str) -> None:
    cost, relation = COSTS[name]
    assert cost.relation == relation


@pytest.mark.parametrize("first", [PrivacyCost(1.0), Laplace(epsilon=1.0), queries.Count(epsilon=1.0)])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_a_ledger_keeps_its_relation(memory_path: Path, relation: Any, first: Any) -> None:
    ledger = Ledger(memory_path / "ledger", epsilon=10.0, relation=relation)
    if getattr(first, "relation", None) in (None, relation):
        ledger.spend(first)
    spent = ledger.spent
    other: Any = REPLACE if relation == ADD else ADD
    message = f'^cost must be for the neighbouring relation of the ledger, "{relation}", got "{other}"'
    for wrong in (PrivacyCost(1.0, relation=other), queries.Sum(**BOUNDS, relation=other)):
        with pytest.raises(ParameterError, match=message):
            ledger.spend(wrong)
        with pytest.raises((ParameterError, TypeError), match=message if hasattr(wrong, "release") else "mechanism"):
            ledger.release(wrong, COLUMN)
    assert ledger.spent == spent, "nothing was spent"
    assert Ledger(memory_path / "ledger").relation == relation
    assert Ledger(memory_path / "ledger", epsilon=10.0).relation == relation
    assert {cost.relation for cost in (ledger.budget, ledger.spent, ledger.remaining)} == {relation}
    with pytest.raises(LedgerError, match=f'is a ledger for neighbours by "{relation}", not "{other}"$'):
        Ledger(memory_path / "ledger", relation=other)
    with pytest.raises(ParameterError, match=r'^relation must be "add/remove" or "substitute", got'):
        Ledger(memory_path / "ledger", relation="both")  # type: ignore[arg-type]


def test_what_was_found_is_refused(memory_path: Path) -> None:
    """A sum for replaced rows beside a count for added ones showed 2.0, where the sum alone loses 10."""
    ledger = Ledger(memory_path / "ledger", epsilon=2.0)
    ledger.release(queries.Count(epsilon=1.0), COLUMN)
    total = queries.Sum(bounds=(90, 100), epsilon=1.0, relation="substitute")
    assert queries.Sum(bounds=(90, 100), epsilon=1.0).sensitivity == 10 * total.sensitivity
    for account in (lambda: ledger.release(total, COLUMN), lambda: Accountant().compose(total)):
        with pytest.raises(ParameterError, match="must be for the neighbouring relation of the"):
            account()
    assert ledger.spent.epsilon == 1.0


def test_an_accountant_keeps_its_relation() -> None:
    noisy = sgd.NoisyGradient(clip_norm=1.0, noise_multiplier=1.0, expected_batch_size=1)
    assert Accountant().compose(noisy, sample_rate=0.5).compose(Laplace(epsilon=0.1)).relation == ADD
    accountant = Accountant(relation=REPLACE)
    accountant.compose(queries.Count(epsilon=0.1, relation=REPLACE)).compose(PrivacyCost(0.1))
    message = '^mechanism must be for the neighbouring relation of the accountant, "substitute", got "add/remove"'
    for wrong in (noisy, queries.Count(epsilon=0.1), PrivacyCost(0.1, relation=ADD)):
        with pytest.raises(ParameterError, match=message):
            accountant.compose(wrong)
    with pytest.raises(ParameterError, match=r"^relation must be"):
        Accountant(relation="both")  # type: ignore[arg-type]


def test_compositions_refuse_a_mixture_and_keep_what_they_know() -> None:
    one, other, any_one = PrivacyCost(1.0, 0.1, ADD), PrivacyCost(1.0, 0.1, REPLACE), PrivacyCost(1.0, 0.1)
    message = re.escape('costs must be for one neighbouring relation, got "add/remove" and "substitute"')
    for compose in (compose_sequential, compose_parallel):
        with pytest.raises(ParameterError, match=message):
            compose([one, any_one, other])
    assert compose_sequential([any_one, other]).relation == REPLACE
    assert compose_sequential([any_one]).relation is None
    assert accounting.compose_advanced(other, 3, epsilon=3.0).relation == REPLACE
    assert accounting.compose_advanced(other, 3, delta=0.5).relation == REPLACE
    assert accounting.group_privacy(one, 2).relation == ADD
    assert accounting.amplify_by_poisson_sampling(any_one, sample_rate=0.5).relation == ADD
    assert accounting.amplify_by_sampling_without_replacement(other, size=1, population=2).relation == REPLACE
    with pytest.raises(ParameterError, match="must be for the neighbouring relation of the sample"):
        accounting.amplify_by_poisson_sampling(other, sample_rate=0.5)
    with pytest.raises(ParameterError, match="must be for the neighbouring relation of the sample"):
        accounting.amplify_by_sampling_without_replacement(one, size=1, population=2)


def test_a_cost_shows_its_relation() -> None:
    assert repr(PrivacyCost(1.0)) == "PrivacyCost(epsilon=1.0, delta=0.0)"
    assert repr(PrivacyCost(1.0, 0.1, ADD)) == "PrivacyCost(epsilon=1.0, delta=0.1, relation='add/remove')"
    with pytest.raises(ParameterError, match=r"^relation must be"):
        PrivacyCost(1.0, relation="both")  # type: ignore[arg-type]
