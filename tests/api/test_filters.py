"""The filters of ledgers: all adaptive strategies of small trees, in fractions, and the costs that filters take."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal, localcontext
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dpnoise import (
    BudgetExceeded,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    ParameterError,
    PrivacyCost,
    ReportNoisyMax,
    TopK,
    local,
    queries,
    sgd,
)
from dpnoise.accounting import (
    Accountant,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    Ledger,
    LedgerError,
    PrivacyLoss,
    RenyiCost,
    ZcdpCost,
    pure_zcdp_rho,
    zcdp_epsilon,
    zcdp_rho,
)
from dpnoise.accounting._filters import Filter, RenyiFilter, SequentialFilter, ZcdpFilter, filter_of
from dpnoise.accounting._losses import ApproximateLoss

Outcomes = tuple[tuple[Fraction, Fraction], ...]
"""The probabilities of each output, for one data set and for its neighbour."""


def exponential(value: Fraction | float, *, up: bool) -> Fraction:
    """Bound exp from one side."""
    exact = Fraction(value)
    with localcontext(prec=50):
        found = Fraction((Decimal(exact.numerator) / exact.denominator).exp())
    return found * (1 + Fraction(1 if up else -1, 10**40))


def logarithm(ratio: Fraction) -> float:
    """Return the smallest of the floats that are certainly above a logarithm."""
    with localcontext(prec=50):
        return math.nextafter(float((Decimal(ratio.numerator) / ratio.denominator).ln()), math.inf)


@dataclass(frozen=True)
class Mechanism:
    outcomes: Outcomes
    cost: Any


def response(ratio: Fraction) -> Mechanism:
    """Randomised response of one bit."""
    yes = ratio / (1 + ratio)
    return Mechanism(((yes, 1 - yes), (1 - yes, yes)), PrivacyCost(logarithm(ratio)))


def reveal(probability: Fraction) -> Mechanism:
    """Tell the data set with a probability."""
    rest = 1 - probability
    outcomes = ((probability, Fraction(0)), (Fraction(0), probability), (rest, rest))
    return Mechanism(outcomes, PrivacyCost(0.0, math.nextafter(float(probability), 1.0)))


def lopsided(ratio: Fraction) -> Mechanism:
    """Tell one data set apart with less than half of the probability; it has the range of its epsilon."""
    return Mechanism(
        ((Fraction(1, 4) * ratio, Fraction(1, 4)), (1 - Fraction(1, 4) * ratio, Fraction(3, 4))),
        PrivacyCost(logarithm(max(ratio, Fraction(3, 4) / (1 - ratio / 4)))),
    )


PURE = [response(Fraction(3, 2)), response(Fraction(2)), response(Fraction(6, 5)), lopsided(Fraction(3, 2))]
APPROXIMATE = [*PURE[:2], reveal(Fraction(1, 50)), reveal(Fraction(1, 20))]

Grants = Callable[[tuple[Any, ...]], bool]
Objective = Callable[[Fraction, Fraction], Fraction]


def largest(menu: Sequence[Mechanism], grants: Grants, objective: Objective, depth: int) -> Fraction:
    """Return the largest objective of all programs: each chooses a mechanism, or to stop, by the answers so far.

    The objective of a program is a sum over its transcripts, so the best way to go on is found for each transcript by
    itself. `grants` takes the mechanisms of a transcript in order, the next one included.
    """

    @cache
    def best(first: Fraction, second: Fraction, used: tuple[Mechanism, ...]) -> Fraction:
        found = objective(first, second)
        for mechanism in menu if len(used) < depth else ():
            longer = (*used, mechanism)
            if grants(longer):
                rest = (best(first * p, second * q, longer) for p, q in mechanism.outcomes)
                found = max(found, sum(rest, Fraction(0)))
        return found

    return best(Fraction(1), Fraction(1), ())


def by(rule: Filter[Any], price: Callable[[Any], tuple[Fraction, ...]] | None = None) -> Grants:
    """Grant what a filter grants, and what it would grant if its prices were others."""
    ask = cache(price or rule.price)

    def grants(used: tuple[Mechanism, ...]) -> bool:
        return rule.grants(tuple(map(sum, zip(*(ask(mechanism.cost) for mechanism in used), strict=True))))

    return grants


def rounded_down(rule: Filter[Any]) -> Callable[[Any], tuple[Fraction, ...]]:
    """Return prices of one digit, rounded down: the fault that must be found."""

    def price(cost: Any) -> tuple[Fraction, ...]:
        with localcontext(prec=1, rounding=ROUND_DOWN):
            return tuple(Fraction(Decimal(one.numerator) / Decimal(one.denominator)) for one in rule.price(cost))

    return price


def hockey_stick(epsilon: float) -> Objective:
    """Return the part of delta(epsilon) of a transcript, from above."""
    growth = exponential(epsilon, up=False)
    return lambda first, second: max(first - growth * second, Fraction(0))


def moment(order: int) -> Objective:
    """Return the part of exp((order - 1) * divergence) of a transcript."""
    return lambda first, second: first**order / second ** (order - 1) if first else Fraction(0)


RELATION: Any = "add/remove"
DEPTH = 4


# --- all adaptive strategies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_no_program_exceeds_a_budget_of_epsilon_and_delta(delta: float) -> None:
    rule = SequentialFilter.of(RELATION, None, 1.2, delta)
    menu = APPROXIMATE if delta else PURE
    found = largest(menu, by(rule), hockey_stick(1.2), DEPTH)
    assert found <= Fraction(delta)
    # It is used up: what is granted has a loss close to the budget.
    assert largest(menu, by(rule), hockey_stick(1.0), DEPTH) > Fraction(delta)
    # The fault: costs that are rounded down.
    assert largest(menu, by(rule, rounded_down(rule)), hockey_stick(1.2), DEPTH) > Fraction(delta)


@pytest.mark.parametrize("rho", [0.1, 0.3])
def test_no_program_exceeds_a_budget_of_rho(rho: float) -> None:
    rule = ZcdpFilter.of(RELATION, None, rho, 0.0, None)
    for order in (2, 3, 8):
        bound = exponential(order * (order - 1) * Fraction(rho), up=True)
        assert largest(PURE, by(rule), moment(order), DEPTH) <= bound
        if order == 2:
            assert largest(PURE, by(rule, rounded_down(rule)), moment(order), DEPTH) > bound
    for delta in (0.01, 0.2):
        epsilon = zcdp_epsilon(rho, delta=delta)
        assert largest(PURE, by(rule), hockey_stick(epsilon), DEPTH) <= Fraction(delta)


def test_the_cost_of_rho_is_needed_to_its_last_digits() -> None:
    """Many small responses use the budget up, so that a cost that is rounded down to two digits is found."""
    mechanism = response(Fraction(11, 10))
    [rho, _] = ZcdpFilter.of(RELATION, None, 1.0, 0.0, None).price(mechanism.cost)
    one = sum(moment(2)(p, q) for p, q in mechanism.outcomes)
    budget = Fraction(1, 4)
    for cost, within in ((rho, True), (Decimal("0.0022"), False)):
        count = int(budget / Fraction(cost))
        assert (one**count <= exponential(2 * budget, up=True)) == within, count


def test_no_program_exceeds_a_budget_of_rho_and_delta() -> None:
    rule = ZcdpFilter.of(RELATION, None, 0.2, 0.06, None)
    for delta in (0.07, 0.2):
        epsilon = zcdp_epsilon(0.2, delta=(delta - 0.06) / 0.94 * (1 - 1e-12))
        found = largest(APPROXIMATE, by(rule), hockey_stick(epsilon), DEPTH)
        assert Fraction(1, 20) <= found <= Fraction(delta)


@pytest.mark.parametrize("orders", [(3, 12), (2, 3, 5, 9, 17)])
def test_no_program_exceeds_a_budget_of_renyi_orders(orders: tuple[int, ...]) -> None:
    rule = RenyiFilter.of(RELATION, None, 2.0, 0.25, orders)
    assert largest(PURE, by(rule), hockey_stick(2.0), DEPTH) <= Fraction(1, 4)
    faults = 0
    for order, limit in zip(orders, rule.limits, strict=True):
        alone = RenyiFilter(RELATION, None, (str(limit),), "2.0", "0.25", (order,))
        bound = exponential((order - 1) * Fraction(limit), up=True)
        assert largest(PURE, by(alone), moment(order), DEPTH) <= bound
        faults += largest(PURE, by(alone, rounded_down(alone)), moment(order), DEPTH) > bound
    assert faults > 0


def test_the_constant_of_advanced_composition_is_needed() -> None:
    """Without ``rho``, or without ``ln(1/delta)``, the epsilon of a budget of rho is below the truth."""
    ratio, count, delta = Fraction(13, 10), 200, 1e-3
    rho = count * pure_zcdp_rho(logarithm(ratio))
    yes = ratio / (1 + ratio)
    weights = [math.comb(count, k) * yes**k * (1 - yes) ** (count - k) for k in range(count + 1)]

    def exact(epsilon: float) -> Fraction:
        growth = exponential(epsilon, up=False)
        return sum((max(weights[k] - growth * weights[count - k], Fraction(0)) for k in range(count + 1)), Fraction(0))

    spread = 2 * math.sqrt(rho * math.log(1 / delta))
    assert exact(zcdp_epsilon(rho, delta=delta)) <= Fraction(delta)
    assert exact(rho + spread) <= Fraction(delta)
    assert exact(spread) > Fraction(delta)
    assert exact(rho + 2 * math.sqrt(rho)) > Fraction(delta)


# --- what is no filter -------------------------------------------------------------------------------------------


def exact_delta(used: Sequence[Mechanism], growth: Fraction) -> Fraction:
    """Return the delta of mechanisms that are fixed beforehand, as an accountant without any error has it."""
    laws = [(Fraction(1), Fraction(1))]
    for mechanism in used:
        laws = [(first * p, second * q) for first, second in laws for p, q in mechanism.outcomes]
    return sum((max(first - growth * second, Fraction(0)) for first, second in laws), Fraction(0))


def test_the_total_of_an_accountant_is_no_filter() -> None:
    """Each list of mechanisms has a delta of 2/15 at ln 2, and a program of both has 14/75."""
    first, after_no, after_yes = response(Fraction(3, 2)), response(Fraction(2)), reveal(Fraction(2, 15))
    two, limit = Fraction(2), Fraction(2, 15)
    for second in (after_no, after_yes):
        assert exact_delta([first, second], two) == limit

    def total(used: tuple[Mechanism, ...]) -> bool:
        return exact_delta(used, two) <= limit

    def objective(one: Fraction, other: Fraction) -> Fraction:
        return max(one - two * other, Fraction(0))

    assert largest([first, after_no, after_yes], total, objective, 2) == Fraction(14, 75) > limit

    # No ledger with this budget grants the program.
    epsilon, delta = math.log(2), 2 / 15
    share = 0.01
    rules: list[Filter[Any]] = [
        SequentialFilter.of(RELATION, None, epsilon, delta),
        *(
            ZcdpFilter.of(RELATION, None, zcdp_rho(epsilon=epsilon, delta=delta - share), part, None)
            for part in (0.0, share)
        ),
        *(RenyiFilter.of(RELATION, None, epsilon, delta, orders) for orders in ([8], [8, 16, 32])),
    ]
    for rule in rules:
        granted = []
        for second in (after_no, after_yes):
            try:
                granted.append(by(rule)((first,)) and by(rule)((first, second)))
            except ParameterError:
                granted.append(False)
        assert granted != [True, True], rule


def test_a_ledger_takes_no_accountant(memory_path: Path) -> None:
    pytest.importorskip("dp_accounting", reason="the extra `accounting` is not installed")
    ledger = Ledger(memory_path / "ledger", epsilon=1.0, delta=1e-6)
    with pytest.raises(
        TypeError, match=r"got Accountant: its total bounds releases that are fixed beforehand, and is no"
    ):
        ledger.spend(Accountant())  # type: ignore[arg-type]


# --- the odometer ------------------------------------------------------------------------------------------------


def crossing(menu: Sequence[Mechanism], reading: Callable[[tuple[Mechanism, ...]], float], depth: int) -> Fraction:
    """Return the largest probability, of all programs, that the loss is ever above what an odometer shows then."""
    reading = cache(reading)

    @cache
    def best(first: Fraction, second: Fraction, used: tuple[Mechanism, ...]) -> Fraction:
        if used and first > exponential(reading(used), up=True) * second:
            return first
        if len(used) == depth:
            return Fraction(0)
        return max(
            sum((best(first * p, second * q, (*used, mechanism)) for p, q in mechanism.outcomes), Fraction(0))
            for mechanism in menu
        )

    return best(Fraction(1), Fraction(1), ())


@pytest.mark.parametrize("failure", [0.3, 0.05])
def test_the_odometer_holds_at_every_time_at_once(failure: float) -> None:
    menu = [response(Fraction(4)), response(Fraction(3, 2))]
    rules: list[Filter[Any]] = [
        SequentialFilter.of(RELATION, None, 9.0, failure),
        *(ZcdpFilter.of(RELATION, None, rho, 0.0, failure) for rho in (0.3, 3.0)),
        RenyiFilter.of(RELATION, None, 20.0, failure, [2, 3, 6]),
    ]
    for rule in rules:

        def reading(used: tuple[Mechanism, ...], rule: Filter[Any] = rule) -> float:
            totals = tuple(map(sum, zip(*(rule.price(mechanism.cost) for mechanism in used), strict=True)))
            shown = rule.odometer(totals)
            assert shown.delta == failure
            return shown.epsilon

        assert crossing(menu, reading, 5) <= Fraction(failure), rule


def test_an_odometer_that_is_right_at_each_time_alone_is_found() -> None:
    """The fault: an epsilon that the loss exceeds with at most this probability at each time, read at the best time."""
    ratio, failure = Fraction(3, 2), Fraction(3, 10)
    yes = ratio / (1 + ratio)

    def quantile(used: tuple[Mechanism, ...]) -> float:
        count = len(used)
        tail, losses = Fraction(0), count
        while tail + math.comb(count, losses) * yes**losses * (1 - yes) ** (count - losses) <= failure:
            tail += math.comb(count, losses) * yes**losses * (1 - yes) ** (count - losses)
            losses -= 1
        return max(0.0, (2 * losses - count) * logarithm(ratio))

    assert crossing([response(ratio)], quantile, 8) > failure


def test_an_odometer_is_chosen_beforehand(memory_path: Path) -> None:
    ledger = Ledger(memory_path / "ledger", rho=5.0, odometer_delta=1e-6)
    assert ledger.odometer == PrivacyCost(0.0, 1e-6, "add/remove")
    shown = []
    for _ in range(5):
        ledger.spend(ZcdpCost(1.0))
        shown.append(ledger.odometer.epsilon)
    assert shown == sorted(shown)
    assert (
        zcdp_epsilon(5.0, delta=1e-6, method="simple")
        < shown[-1]
        < 1.06 * zcdp_epsilon(5.0, delta=1e-6, method="simple")
    )
    assert (
        Ledger(memory_path / "ledger", rho=5.0).odometer == Ledger(memory_path / "ledger").odometer == ledger.odometer
    )
    with pytest.raises(LedgerError, match="is a ledger with odometer_delta=1e-06, not 1e-09"):
        Ledger(memory_path / "ledger", rho=5.0, odometer_delta=1e-9)
    without = Ledger(memory_path / "without", rho=5.0)
    with pytest.raises(ParameterError, match="odometer_delta must be given when a ledger of rho is made"):
        without.odometer  # noqa: B018
    assert Ledger(memory_path / "basic", epsilon=1.0, delta=1e-9).odometer == PrivacyCost(0.0, 1e-9, "add/remove")


@pytest.mark.parametrize(
    "rule",
    [ZcdpFilter.of("substitute", None, 0.5, 1e-30, 1e-6), RenyiFilter.of("substitute", None, 20.0, 1e-6, [2, 3, 16])],
)
def test_the_odometer_is_rounded_up_by_no_more_than_needed(rule: ZcdpFilter | RenyiFilter) -> None:
    zcdp = isinstance(rule, ZcdpFilter)
    delta = math.nextafter(1e-6, 1) if zcdp else 1e-6
    assert rule.odometer((Fraction(0),) * 3) == PrivacyCost(0.0, delta, "substitute")
    for hundredths in range(1, 17):
        total = Decimal(hundredths) / 100
        with localcontext(prec=60):
            if isinstance(rule, ZcdpFilter):
                totals, bounds = (total, total), [((1 + rate) * total, rate) for rate in map(Decimal, rule.rates)]
            else:
                totals = tuple(total * (order - 2) for order in rule.orders)
                bounds = [(one, Decimal(order - 1)) for one, order in zip(totals, rule.orders, strict=True)]
            exact = min(one + (len(bounds) / Decimal("1e-6")).ln() / rate for one, rate in bounds)
            assert (
                exact < Decimal(rule.odometer(tuple(map(Fraction, totals))).epsilon) < exact * (1 + Decimal(2) ** -50)
            )


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        (SequentialFilter.of(RELATION, None, 1.0, 1e-6), {"filter": "epsilon"}),
        (ZcdpFilter.of(RELATION, None, 1.0, 1e-6, None), {"filter": "zcdp", "odometer_delta": None, "rates": []}),
        (
            RenyiFilter.of(RELATION, None, 9.0, 0.1, [2]),
            {"filter": "renyi", "epsilon": "9.0", "delta": "0.1", "orders": [2]},
        ),
    ],
)
def test_files_of_ledgers_keep_their_terms_in_one_form(rule: Filter[Any], kept: dict[str, Any]) -> None:
    """Another form would make the files that exist unreadable."""
    assert json.loads(rule.terms) == {"relation": "add/remove", "person": None, "budget": list(rule.budget), **kept}
    assert filter_of(rule.terms) == rule


# --- costs -------------------------------------------------------------------------------------------------------

ZCDP: list[tuple[Any, Fraction | float]] = [
    (Gaussian(rho=0.3), 0.3),
    (DiscreteGaussian(rho=0.1, delta=1e-6), 0.1),
    (Laplace(epsilon=0.5), pure_zcdp_rho(0.5)),
    (DiscreteLaplace(epsilon=5.0), pure_zcdp_rho(5.0)),
    (Exponential(epsilon=0.1), Fraction(0.1) ** 2 / 8),
    (TopK(k=3, epsilon=0.3), Fraction(0.3) ** 2 / 24),
    (ReportNoisyMax(epsilon=0.5), pure_zcdp_rho(0.5)),
    (queries.Count(epsilon=0.5), pure_zcdp_rho(0.5)),
    (queries.Median(bounds=(0, 1), epsilon=0.5), Fraction(1, 32)),
    (sgd.NoisyGradient(clip_norm=1.0, noise_multiplier=3.0, expected_batch_size=10), Fraction(1, 18)),
    (ZcdpCost(0.1), 0.1),
    (PrivacyCost(0.5), pure_zcdp_rho(0.5)),
    (BoundedRangeLoss(0.5), Fraction(1, 32)),
    (DiscreteGaussianLoss(3.0, 1.0), Fraction(1, 18)),
    (DiscreteGaussianLoss(3.0, 1.0).sampled(0.5), Fraction(1, 18)),
    (DiscreteGaussianLoss(3.0, 1.0).repeated(3), Fraction(1, 6)),
]


@pytest.mark.parametrize(("cost", "rho"), ZCDP)
def test_costs_in_rho(cost: Any, rho: Fraction | float) -> None:
    [found, delta] = ZcdpFilter.of(RELATION, None, 100.0, 0.0, None).price(cost)
    exact = Fraction(repr(rho)) if isinstance(rho, float) else rho
    assert exact <= Fraction(found) <= exact * (1 + Fraction(1, 2**48))
    assert delta == 0
    orders = (2, 16)
    for order, divergence in zip(orders, RenyiFilter.of(RELATION, None, 50.0, 1e-6, orders).price(cost), strict=True):
        assert 0 < Fraction(divergence) <= order * exact * (1 + Fraction(1, 2**48))


def test_gaussian_noise_needs_no_delta_in_a_ledger_of_rho(memory_path: Path) -> None:
    """By its scale: the rho of noise that was calibrated to an epsilon and a delta is below that of any other."""
    ledger = Ledger(memory_path / "ledger", rho=1.0)
    mechanism = Gaussian(epsilon=0.5, delta=1e-6)
    ledger.release(mechanism, 3.0)
    scale = Fraction(mechanism.scale)
    assert 1 / (2 * scale**2) <= Fraction(ledger.spent.rho) <= 1 / (2 * scale**2) * (1 + Fraction(1, 10**9))
    assert ledger.spent.delta == 0
    for _ in range(9):
        ledger.release(Gaussian(rho=0.1), 3.0)
    with pytest.raises(
        BudgetExceeded, match=r"would cost rho=0\.1, delta=0\.0, and what remains of the budget is rho=0\.0"
    ):
        ledger.release(Gaussian(rho=0.1), 3.0)


RATE = DiscreteGaussianLoss(2.0, 1.0).sampled(0.01)


@pytest.mark.parametrize(
    ("budget", "cost", "message"),
    [
        (
            {"epsilon": 1.0},
            Gaussian(rho=0.1),
            r"delta must be given for a cost, got None: .* or spend it from a Ledger\(",
        ),
        ({"epsilon": 1.0}, ZcdpCost(0.1), "cost must have an epsilon for a ledger of epsilon, got ZcdpCost"),
        ({"epsilon": 1.0}, RenyiCost({2: 0.1}), "cost must have an epsilon for a ledger of epsilon, got RenyiCost"),
        (
            {"epsilon": 1.0},
            DiscreteGaussianLoss(3.0, 1.0),
            "cost must have an epsilon for a ledger of epsilon, got Disc",
        ),
        ({"rho": 1.0}, RenyiCost({2: 0.1}), "cost must have a rho for a ledger of rho, got RenyiCost"),
        ({"epsilon": 9.0, "delta": 0.1, "orders": [2, 8]}, RenyiCost({2: 0.1}), "cost must have the ledger's orders, "),
        ({"epsilon": 9.0, "delta": 0.1, "orders": [2]}, PrivacyCost(0.1, 1e-9), "cost must have a delta of 0 for a"),
        ({"epsilon": 9.0, "delta": 0.1, "orders": [2]}, ZcdpCost(0.1, 1e-9), "cost must have a delta of 0 for a"),
        (
            {"epsilon": 9.0, "delta": 0.1, "orders": [2, 8]},
            RenyiCost({2: 0.1, 8: 1e201}),
            r"cost must have Rényi divergences up",
        ),
        ({"rho": 1.0}, PrivacyCost(0.1, 0.0, "substitute"), 'cost must be for .*"add/remove", got "substitute"'),
        ({"rho": 1.0}, ZcdpCost(0.1, 0.0, "substitute"), 'cost must be for .*"add/remove", got "substitute"'),
        ({"rho": 1.0, "relation": "substitute"}, RATE, 'cost must be for .*"substitute", got "add/remove"'),
    ],
)
def test_costs_that_no_conversion_is_known_for(memory_path: Path, budget: Any, cost: Any, message: str) -> None:
    ledger: Ledger[Any] = Ledger(memory_path / "ledger", **budget)
    with pytest.raises(ParameterError, match=message):
        ledger.spend(cost)
    assert ledger.entries() == []


class Refund(PrivacyLoss):
    """The fault: a loss that gives budget back."""

    epsilon, delta = -1.0, -0.1
    rho = -3.0

    def divergence(self, order: float) -> float:
        return -order

    def pld(self, count: int) -> Any:
        raise NotImplementedError


class Inexact(Refund):
    """A loss whose divergence of 1/2 has an error."""

    epsilon, delta, rdp_slack = 1.0, 0.0, 0.25

    def divergence(self, order: float) -> float:
        return 0.5


def test_the_error_of_a_divergence_is_paid_for() -> None:
    rule = RenyiFilter.of(RELATION, None, 9.0, 0.1, [2, 8])
    for order, price in zip(rule.orders, rule.price(Inexact()), strict=True):
        exact = Fraction(1, 2) + Fraction(1, 4) * Fraction(2 * order - 1, order - 1)
        assert exact < Fraction(price) < exact * (1 + Fraction(1, 2**29))
    loss = Inexact()
    loss.rdp_slack = math.inf
    with pytest.raises(ParameterError, match="cost must have Rényi divergences up to"):
        rule.price(loss)


def test_renyi_orders_round_prices_up_and_their_budget_down() -> None:
    rule = RenyiFilter.of(RELATION, None, 0.5, 0.25, range(20, 84))
    with localcontext(prec=60):
        for order, limit, price in zip(rule.orders, rule.limits, rule.price(ZcdpCost(0.1 + 0.2)), strict=True):
            share = order * Decimal("0.25") / 64
            room = Decimal("0.5") + share.ln() / (order - 1) - (1 - 1 / Decimal(order)).ln()
            above = math.nextafter(float(limit), math.inf)
            assert Decimal(repr(above)) < room < Decimal(repr(math.nextafter(above, math.inf)))
            assert price == order * Fraction(repr(0.1 + 0.2))
    first, *others = rule.limits
    assert rule.grants((first, *(2 * limit for limit in others)))
    assert not rule.grants(tuple(limit + Fraction("1e-20") for limit in rule.limits))


@pytest.mark.parametrize("amount", [-1.0, math.nan, math.inf])
@pytest.mark.parametrize(
    "budget", [{"epsilon": 1.0, "delta": 0.1}, {"rho": 1.0}, {"epsilon": 9.0, "delta": 0.1, "orders": [8]}]
)
def test_no_cost_fills_a_budget_up(memory_path: Path, budget: Any, amount: float) -> None:
    ledger: Ledger[Any] = Ledger(memory_path / "ledger", **budget)
    refund, partial, changed = Refund(), Refund(), RenyiCost({8: 0.1})
    refund.epsilon = refund.rho = amount
    object.__setattr__(changed, "divergences", {8: amount})
    refund.divergence = lambda order: amount  # type: ignore[method-assign]
    partial.epsilon, partial.rho, partial.delta = 0.1, 0.1, amount
    for cost, message in ((refund, "cost must"), (partial, "cost must"), (changed, r"divergences\[8\] must")):
        with pytest.raises(ParameterError, match=message):
            ledger.spend(cost)
    assert ledger.entries() == []


def test_a_repeated_loss_keeps_its_delta() -> None:
    loss = ApproximateLoss(0.1, 0.01).repeated(3)
    assert Fraction(3, 100) <= Fraction(loss.delta) < Fraction(3, 100) * (1 + Fraction(1, 2**50))
    assert ApproximateLoss(0.1, 0.5).repeated(3).delta == 1.0
    assert ApproximateLoss(math.inf).repeated(3).rho == math.inf
    with pytest.raises(ParameterError, match="cost must have a delta of 0"):
        RenyiFilter.of(RELATION, None, 9.0, 0.1, [8]).price(loss)
    assert ZcdpFilter.of(RELATION, None, 9.0, 0.1, None).price(loss)[1] == Fraction(repr(loss.delta))


def test_reports_of_protocols_are_paid_for(memory_path: Path) -> None:
    protocol = local.RandomizedResponse(epsilon=0.5)
    ledger = Ledger(memory_path / "ledger", epsilon=1.0, relation="substitute")
    ledger.spend(protocol)
    assert (ledger.spent.epsilon, ledger.entries()[0].mechanism) == (protocol.cost.epsilon, repr(protocol))


def test_a_pure_budget_says_what_gaussian_noise_needs(memory_path: Path) -> None:
    ledger = Ledger(memory_path / "ledger", epsilon=1.0)
    with pytest.raises(
        BudgetExceeded, match=r"; what has a delta, .* needs a budget with one, or of rho; ask for less"
    ):
        ledger.spend(Gaussian(epsilon=0.5, delta=1e-6))


def test_samples_are_paid_for_by_renyi_orders(memory_path: Path) -> None:
    """Steps of DP-SGD: the orders that remain are those for which samples help."""
    ledger = Ledger(memory_path / "ledger", epsilon=1.0, delta=1e-5, orders=(16, 32, 64))
    spent = 0
    while ledger.remaining.divergences[16] > 0 and spent < 3:
        ledger.spend(RATE, "step")
        spent += 1
    assert ledger.spent.divergences[16] == pytest.approx(3 * RATE.divergence(16))
    assert ledger.entries()[0].mechanism == repr(RATE)


@pytest.mark.parametrize("budget", [{"rho": 0.3}, {"epsilon": 2.0, "delta": 1e-3, "orders": (8, 64)}])
def test_floats_add_up_as_they_are_written(memory_path: Path, budget: Any) -> None:
    ledger: Ledger[Any] = Ledger(memory_path / "ledger", **budget)
    for _ in range(3):
        ledger.spend(ZcdpCost(0.1) if "rho" in budget else RenyiCost({8: 0.1, 64: 0.2}))
    if "rho" in budget:
        assert (ledger.spent, ledger.remaining) == (ZcdpCost(0.3, 0.0, RELATION), ZcdpCost(0.0, 0.0, RELATION))
        with pytest.raises(BudgetExceeded):
            ledger.spend(ZcdpCost(5e-324))
        with pytest.raises(BudgetExceeded):
            ledger.spend(ZcdpCost(0.0, 5e-324))
        assert ledger.spent == ZcdpCost(0.3, 0.0, RELATION)
    else:
        assert ledger.spent.divergences == {8: 0.3, 64: 0.6}
        assert Ledger(memory_path / "ledger", **budget).budget == ledger.budget


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ZcdpCost(-0.1), ParameterError, "rho must be zero or more and finite, got -0.1"),
        (lambda: ZcdpCost(0.1, 1.0), ParameterError, "delta must be from 0 up to, but not including, 1, got 1.0"),
        (lambda: ZcdpCost(0.1, 0.0, "both"), ParameterError, "relation must be"),  # type: ignore[arg-type]
        (lambda: RenyiCost({}), TypeError, "divergences must be a mapping of orders to numbers, got {}"),
        (lambda: RenyiCost({2: 0.1}, "both"), ParameterError, "relation must be"),  # type: ignore[arg-type]
        (lambda: RenyiCost({1: 0.1}), ParameterError, "divergences: an order must be an integer from 2"),
        (
            lambda: RenyiCost({2: math.inf}),
            ParameterError,
            r"divergences\[2\] must be zero or more and finite, got inf",
        ),
    ],
)
def test_bad_costs(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
