"""Every mechanism releases, knows its cost and its relation, and says how far off it is or why nobody knows."""

from __future__ import annotations

import inspect
import pickle
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from dpnoise import NoErrorBound, ParameterError, PrivacyCost, mechanisms, queries, sgd, stability
from dpnoise.accounting import Accountant, Ledger, pure_zcdp_rho
from tests import noise_kinds

BASES = {mechanisms.Mechanism, queries.Query, stability.StableMechanism}
BOUNDS: Any = {"bounds": (0.0, 9.0), "epsilon": 0.5}
GAUSSIAN: Any = {"epsilon": 0.5, "delta": 1e-6}
COLUMN = [1.0, 2.0, 2.0, 5.0]


def first(rows: Any) -> Any:
    return rows[0]


def one(n: int) -> float:
    return 1.0


def far(data: Any, bound: float) -> int:
    return 10**6


def noisy_sum(data: Any, bound: float, epsilon: float) -> Any:
    return mechanisms.Laplace(epsilon=epsilon, sensitivity=bound).release(float(sum(data)))


def run() -> tuple[float, str]:
    return mechanisms.Laplace(epsilon=0.5).release(3.0), "tea"


class Case(NamedTuple):
    """A mechanism, what it releases, and what its error depends on; None where nothing bounds it."""

    mechanism: Any
    x: Any
    error: dict[str, Any] | None = {}  # noqa: RUF012 # it is not changed


CASES = [
    *(Case(noise, 3) for noise in noise_kinds.EXAMPLES.values()),
    Case(mechanisms.Gaussian(rho=0.1, delta=1e-6), 3.0),
    Case(mechanisms.TruncatedDiscreteLaplace(epsilon=0.5, radius=20), 3),
    Case(mechanisms.TruncatedDiscreteGaussian(epsilon=0.5, scale=9.0, radius=60), 3),
    Case(mechanisms.Staircase(epsilon=2.0, sensitivity=5), 3),
    Case(mechanisms.Exponential(epsilon=0.5), COLUMN, {"count": 4}),
    Case(mechanisms.ReportNoisyMax(epsilon=0.5), COLUMN, {"count": 4}),
    Case(mechanisms.TopK(k=2, epsilon=0.5), COLUMN, {"count": 4}),
    Case(mechanisms.AboveThreshold(epsilon=0.5, threshold=3.0), COLUMN, {"count": 4}),
    Case(mechanisms.PrivateSelection(run_cost=mechanisms.Laplace(epsilon=0.5)), run, None),
    Case(queries.Count(epsilon=0.5), COLUMN),
    Case(queries.Sum(**BOUNDS), COLUMN),
    Case(queries.Mean(**BOUNDS), COLUMN, {"rows": 4}),
    Case(queries.Variance(**BOUNDS), COLUMN, {"rows": 4}),
    Case(queries.StandardDeviation(**BOUNDS), COLUMN, {"rows": 4}),
    Case(queries.Median(**BOUNDS), COLUMN, None),
    Case(queries.Quantile(q=0.25, **BOUNDS), COLUMN, None),
    Case(queries.Quantiles(q=[0.75, 0.25], **BOUNDS), COLUMN, None),
    Case(queries.Histogram(epsilon=0.5, edges=[0, 3, 9]), COLUMN),
    Case(queries.StabilityHistogram(**GAUSSIAN), COLUMN),
    Case(queries.PerPerson(queries.Sum(**BOUNDS), person="user", rows=2), (COLUMN, [7] * len(COLUMN))),
    Case(
        sgd.NoisyGradient(clip_norm=1.0, noise_multiplier=9.0, expected_batch_size=4.0, delta=1e-6),
        np.ones((4, 2)),
        {"d": 2},
    ),
    Case(
        sgd.CorrelatedGradient(
            strategy=sgd.BandedToeplitz([1.0, 0.5], steps=3),
            clip_norm=1.0,
            noise_multiplier=9.0,
            expected_batch_size=4.0,
            participation=sgd.MinSeparation(2),
            delta=1e-6,
        ),
        np.ones((3, 4, 2)),
        {"d": 2},
    ),
    Case(stability.StableValue(**GAUSSIAN), ("tea", 3), None),
    Case(stability.StableMedian(**GAUSSIAN), COLUMN, None),
    Case(stability.StableMode(**GAUSSIAN), COLUMN, None),
    Case(stability.StableScale(**GAUSSIAN), COLUMN, None),
    Case(stability.ProposeTestRelease(propose=one, distance=far, answer=noisy_sum, **GAUSSIAN), COLUMN, None),
    Case(stability.SubsampleAndAggregate(f=first, blocks=2, aggregate="median", **BOUNDS), COLUMN, None),
    Case(stability.SubsampleAndAggregate(f=first, blocks=2, aggregate="mode", **GAUSSIAN), COLUMN, None),
    Case(stability.StableBootstrap(f=first, epsilon=40.0, delta=0.01, processes=1), COLUMN * 5, None),
]

NAMES = [f"{type(case.mechanism).__name__}-{number}" for number, case in enumerate(CASES)]


def missing(mechanism: Any) -> list[str]:
    """Say what a mechanism lacks, without releasing anything."""
    lacks = [
        name for name in ("release", "cost", "relation", "epsilon", "delta", "error") if not hasattr(mechanism, name)
    ]
    if getattr(mechanism, "relation", "") not in (None, "add/remove", "substitute"):
        lacks.append("a relation that there is")
    if not isinstance(getattr(mechanism, "cost", None), PrivacyCost):
        return [*lacks, "a PrivacyCost"]
    if mechanism.cost != PrivacyCost(mechanism.epsilon, mechanism.delta, mechanism.relation, mechanism.person):
        lacks.append("a cost of its epsilon, delta and relation")
    return lacks


def test_no_mechanism_is_forgotten() -> None:
    public = {
        kind
        for module in (mechanisms, queries, sgd, stability)
        for kind in map(vars(module).get, module.__all__)
        if inspect.isclass(kind) and hasattr(kind, "release")
    }
    assert public - BASES == {type(case.mechanism) for case in CASES} | {mechanisms.PermuteAndFlip}


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_each_has_all_that_a_mechanism_has(case: Case) -> None:
    assert missing(case.mechanism) == []


def test_a_function_without_a_name_is_shown_by_its_type() -> None:
    mechanism = stability.StableBootstrap(f=partial(first), epsilon=40.0, delta=0.01)
    assert repr(mechanism).startswith("StableBootstrap(f=partial,")


def test_what_lacks_something_is_found() -> None:
    """The control: a function that releases, and a mechanism without a delta."""
    assert missing(far)[:6] == ["release", "cost", "relation", "epsilon", "delta", "error"]
    for wrong, found in (
        ({"relation": "both", "cost": None}, ["a relation that there is", "a PrivacyCost"]),
        ({"cost": PrivacyCost(0.1)}, ["a cost of its epsilon, delta and relation"]),
    ):
        assert missing(type("Wrong", (mechanisms.Laplace,), wrong)(epsilon=0.5)) == found
    with pytest.raises(ParameterError, match=r"^delta must be given for a cost, got None: rho=0\.5 has an epsilon for"):
        missing(mechanisms.Gaussian(rho=0.5))


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_each_says_how_far_off_it_is_or_why_nobody_knows(case: Case) -> None:
    if case.error is None:
        reason = f"^{type(case.mechanism).__name__} has no bound on its error: .{{20,}}"
        with pytest.raises(NoErrorBound, match=reason):
            case.mechanism.error()
    else:
        narrow, wide = (case.mechanism.error(**case.error, level=level) for level in (0.5, 0.99))
        assert 0 < narrow <= wide
        with pytest.raises(ParameterError, match=r"^level must be between 0 and 1, both excluded, got 1\.0$"):
            case.mechanism.error(**case.error, level=1.0)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_ledgers_and_accountants_take_each(case: Case, memory_path: Path) -> None:
    relation = case.mechanism.relation or "add/remove"
    ledger = Ledger(memory_path / "ledger", epsilon=100.0, delta=0.1, relation=relation, person=case.mechanism.person)
    ledger.spend(case.mechanism, "beforehand")
    assert (ledger.spent.epsilon, ledger.spent.delta) == (case.mechanism.epsilon, case.mechanism.delta)
    assert ledger.entries()[0].mechanism == repr(case.mechanism)
    account = Accountant(method="rdp", relation=relation, person=case.mechanism.person).compose(case.mechanism, 3)
    spent = account.epsilon(3 * case.mechanism.delta + 1e-9)
    assert 0 < spent <= 3 * case.mechanism.epsilon


@pytest.mark.filterwarnings("ignore:delta=")
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_ledgers_of_rho_and_of_orders_take_each(case: Case, memory_path: Path) -> None:
    """A rho bounds the divergences, and is no more than that of every mechanism of this epsilon."""
    mechanism, relation = case.mechanism, case.mechanism.relation or "add/remove"
    concentrated = Ledger(memory_path / "rho", rho=1000.0, delta=0.1, relation=relation, person=case.mechanism.person)
    concentrated.release(mechanism, case.x)
    spent = concentrated.spent
    assert 0 < spent.rho <= pure_zcdp_rho(mechanism.epsilon) * (1 + 1e-15)
    by_orders = Ledger(
        memory_path / "orders",
        epsilon=1000.0,
        delta=0.1,
        orders=(2, 8, 64),
        relation=relation,
        person=case.mechanism.person,
    )
    if spent.delta:
        assert spent.delta == mechanism.delta
        with pytest.raises(ParameterError, match="cost must have a delta of 0 for a ledger of Rényi orders"):
            by_orders.release(mechanism, case.x)
        assert by_orders.entries() == []
        return
    by_orders.release(mechanism, case.x)
    for order, divergence in by_orders.spent.divergences.items():
        assert 0 < divergence <= order * spent.rho * (1 + 1e-12)


@pytest.mark.filterwarnings("ignore:delta=")
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_ledger_pays_for_a_release_and_not_for_what_is_refused(case: Case, memory_path: Path) -> None:
    ledger = Ledger(
        memory_path / "ledger",
        epsilon=100.0,
        delta=0.1,
        relation=case.mechanism.relation or "add/remove",
        person=case.mechanism.person,
    )
    with pytest.raises((ParameterError, TypeError)):
        ledger.release(case.mechanism, object())
    assert ledger.entries() == []
    ledger.release(case.mechanism, case.x)
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_each_is_its_parameters(case: Case) -> None:
    mechanism = case.mechanism
    twin = pickle.loads(pickle.dumps(mechanism))  # noqa: S301
    assert twin == mechanism
    assert hash(twin) == hash(mechanism)
    assert repr(twin) == repr(mechanism)
    assert repr(mechanism).startswith(type(mechanism).__name__ + "(")
    assert " at 0x" not in repr(mechanism)
    for name, value in mechanism._values().items():
        assert not callable(value) or f"{name}={value.__name__}," in repr(mechanism), "a function is shown by its name"
    with pytest.raises((AttributeError, TypeError)):
        mechanism.epsilon = 9.0
    with pytest.raises(TypeError, match=r"by name|positional argument"):
        type(mechanism)(1.0, 2.0, 3.0)
