"""The accountant: pairs that dominate, checked by enumeration, and sums against exact ones and dp-accounting's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pytest.importorskip("dp_accounting", reason="the extra `accounting` is not installed")

import dp_accounting
from dp_accounting.pld import privacy_loss_distribution
from numpy.typing import NDArray
from scipy import special, stats

from dpnoise import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, ParameterError, PrivacyCost
from dpnoise.accounting import (
    Accountant,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    LaplaceLoss,
    PrivacyLoss,
    compose_advanced,
    compose_sequential,
    zcdp_epsilon,
)
from dpnoise.accounting._losses import ApproximateLoss

Floats = NDArray[np.float64]
METHODS: list[Any] = ["pld", "rdp"]


def accountant(method: Any, loss: PrivacyLoss, count: int = 1, **sampling: float) -> Accountant:
    return Accountant(method=method).compose(loss, count, **sampling)


def profile(first: Floats, second: Floats, epsilon: float) -> float:
    """The smallest delta for two laws."""
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


def both(first: Floats, second: Floats, epsilon: float) -> float:
    return max(profile(first, second, epsilon), profile(second, first, epsilon))


def repeated(law: Floats, count: int) -> Floats:
    """The law of independent draws."""
    result = law
    for _ in range(count - 1):
        result = np.multiply.outer(result, law)
    return result


# --- laws to enumerate -------------------------------------------------------------------------------------------


def laplace_law(scale: float, shift: int, reach: int) -> Floats:
    x = np.arange(-reach, reach + 1)
    return np.asarray(np.exp(-np.abs(x - shift) / scale) * math.tanh(0.5 / scale))


def gaussian_law(sigma: float, shift: int, reach: int) -> Floats:
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-((x - shift) ** 2) / (2 * sigma**2))
    return np.asarray(weights / np.exp(-(np.arange(-40 * reach, 40 * reach + 1) ** 2) / (2 * sigma**2)).sum())


def exponential_mechanism(epsilon: float, scores: list[float]) -> Floats:
    weights = np.exp(epsilon / 2 * np.array(scores))
    return np.asarray(weights / weights.sum())


def cases() -> list[tuple[PrivacyLoss, Floats, Floats]]:
    """Losses, and two laws of a mechanism that they must dominate."""
    response = np.array([1.0, math.exp(-0.8)]) / (1 + math.exp(-0.8))
    failing = np.array([0.01, 0.0, *(0.99 * response)])
    off = np.array([1.0, math.exp(-0.80003)]) / (1 + math.exp(-0.80003))  # between two points of the grid of losses
    found = [
        (ApproximateLoss(0.8), response, response[::-1]),
        (ApproximateLoss(0.8, 0.01), failing, failing[[1, 0, 3, 2]]),
        (ApproximateLoss(0.80003), off, off[::-1]),
        (ApproximateLoss(1.0), laplace_law(3.0, 0, 100), laplace_law(3.0, 3, 100)),
        (DiscreteLaplaceLoss(0.8, 1), laplace_law(1.25, 0, 60), laplace_law(1.25, 1, 60)),
        (DiscreteLaplaceLoss(1.5, 6), laplace_law(4.0, 0, 150), laplace_law(4.0, 6, 150)),
        (LaplaceLoss(1.5, 6), laplace_law(4.0, 0, 150), laplace_law(4.0, 6, 150)),
        (LaplaceLoss(1.5, 6), laplace_law(6.0, 0, 200), laplace_law(6.0, 9, 200)),  # as for an array
        (DiscreteGaussianLoss(0.7, 1.0), gaussian_law(0.7, 0, 12), gaussian_law(0.7, 1, 12)),
        (DiscreteGaussianLoss(3.0, 1.0), gaussian_law(3.0, 0, 40), gaussian_law(3.0, 1, 40)),
        (DiscreteGaussianLoss(3.0, 2.0), gaussian_law(3.0, 0, 40), gaussian_law(3.0, 2, 40)),
        (DiscreteGaussianLoss(1.8, 2.0), gaussian_law(1.8, 0, 30), gaussian_law(1.8, 2, 30)),
        (DiscreteGaussianLoss(150.0, 1.0), gaussian_law(150.0, 0, 1500), gaussian_law(150.0, 1, 1500)),
    ]
    for scores, others in (([0, 0], [1, -1]), ([0, 0.3, 1], [1, 1.3, 0]), ([0] * 9 + [1], [1] * 9 + [0])):
        exponential = [exponential_mechanism(1.4, list(each)) for each in (scores, others)]
        found.append((BoundedRangeLoss(1.4), *exponential))
    return found


CASES = cases()
NAMES = [f"{number}-{type(loss).__name__}" for number, (loss, *_) in enumerate(CASES)]
EPSILONS = [0.0, 1e-3, 0.05, 0.2, 0.35, 0.5, 0.75, 0.8, 1.0, 1.3, 2.0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("loss", "first", "second"), CASES, ids=NAMES)
def test_each_loss_dominates_its_mechanism(method: Any, loss: PrivacyLoss, first: Floats, second: Floats) -> None:
    for count in (1, 2) if first.size < 1000 else (1,):
        account = accountant(method, loss, count)
        laws = repeated(first, count), repeated(second, count)
        for epsilon in EPSILONS:
            found = account.delta(epsilon)
            assert found >= both(*laws, epsilon) * (1 - 1e-12) - 1e-14
            if epsilon == 0.35 and found > 1e-9:  # and back
                assert account.epsilon(found) <= epsilon * (1 + 1e-6) + 1e-6 + 4 * account._slack


@pytest.mark.parametrize(("loss", "first", "second"), CASES, ids=NAMES)
def test_sampled_losses_dominate_sampled_mechanisms(loss: PrivacyLoss, first: Floats, second: Floats) -> None:
    """A person who is in the sample or not: `second` is the law without the person."""
    share = 0.3
    mixed = share * first + (1 - share) * second
    for method in METHODS:
        account = accountant(method, loss, sample_rate=share)
        for epsilon in EPSILONS:
            assert account.delta(epsilon) >= both(mixed, second, epsilon) * (1 - 1e-12) - 1e-14


@pytest.mark.parametrize(("loss", "first", "second"), CASES, ids=NAMES)
def test_losses_are_tight_and_less_would_be_found(loss: PrivacyLoss, first: Floats, second: Floats) -> None:
    """Positive control: the same laws against nine tenths of epsilon, or a quarter more of noise, are not dominated."""
    less: dict[type, Any] = {
        ApproximateLoss: lambda: ApproximateLoss(0.9 * loss.epsilon, loss.delta),
        LaplaceLoss: lambda: LaplaceLoss(0.6 * loss.epsilon, loss.sensitivity),  # type: ignore[attr-defined]
        BoundedRangeLoss: lambda: BoundedRangeLoss(0.6 * loss.epsilon),
        DiscreteLaplaceLoss: lambda: DiscreteLaplaceLoss(0.9 * loss.epsilon, loss.sensitivity),  # type: ignore[attr-defined]
        DiscreteGaussianLoss: lambda: DiscreteGaussianLoss(1.6 * loss.sigma, loss.sensitivity),  # type: ignore[attr-defined]
    }
    account = accountant("pld", less[type(loss)]())
    assert any(account.delta(epsilon) < both(first, second, epsilon) - 1e-12 for epsilon in EPSILONS)


def test_the_losses_of_laplace_noise_are_those_of_dp_accounting() -> None:
    """Continuous noise for two steps more; and noise of one step is randomised response, whatever the order."""
    widened = LaplaceLoss(1.5, 6)
    library = dp_accounting.rdp.RdpAccountant().compose(dp_accounting.LaplaceDpEvent(1 / 2.0))
    assert np.allclose(divergences(widened, library.orders), library.rdp, rtol=1e-12)
    continuous = privacy_loss_distribution.from_laplace_mechanism(1.0, sensitivity=2.0)
    for epsilon in EPSILONS:
        assert widened.pld(1).get_delta_for_epsilon(epsilon) == continuous.get_delta_for_epsilon(epsilon)
    for epsilon in (1e-3, 0.80003):
        discrete, response = DiscreteLaplaceLoss(epsilon, 1), ApproximateLoss(epsilon)
        assert np.allclose(divergences(discrete, library.orders), divergences(response, library.orders), rtol=1e-12)
        exact = math.tanh(epsilon / 2)
        assert discrete.pld(1).get_delta_for_epsilon(0.0) == pytest.approx(exact, rel=1e-9)
    for loss, order in ((1e-30, 2.0), (200.0, 1e4)):  # too small or too large for the formula
        assert LaplaceLoss(loss, 1).divergence(order) == ApproximateLoss(loss).divergence(order)


@pytest.mark.parametrize("order", [2.0, 32.0])
def test_tiny_losses_have_divergences(order: float) -> None:
    """To the second order they are that of Gaussian noise, times the square of the sampling rate."""
    for loss in (ApproximateLoss(1e-15), LaplaceLoss(1e-15, 2**50), DiscreteLaplaceLoss(1e-15, 9)):
        assert loss.divergence(order) == pytest.approx(order * 1e-30 / 2, rel=1e-6, abs=0)
    sampled = DiscreteGaussianLoss(1e9, 1.0).sampled(1e-6)
    assert sampled.divergence(order) == pytest.approx(order * 1e-30 / 2, rel=1e-6, abs=0)
    assert DiscreteGaussianLoss(4.0, 4.0).sampled(1e-60).divergence(order) > 0


# --- vectors -----------------------------------------------------------------------------------------------------


def laplace_masses(steps: int, q: Fraction) -> dict[int, tuple[Fraction, Fraction]]:
    """Both laws of discrete Laplace noise that moves by so many steps, by loss in steps."""
    r = (1 - q) / (1 + q)
    masses = {}
    for n in range(steps + 1):
        ends = 1 / (1 - q) if n in (0, steps) else 1
        masses[steps - 2 * n] = (r * q**n * ends, r * q ** (steps - n) * ends)
    return masses if steps else {0: (Fraction(1), Fraction(1))}


def combined(*parts: dict[int, tuple[Fraction, Fraction]]) -> dict[int, tuple[Fraction, Fraction]]:
    result = {0: (Fraction(1), Fraction(1))}
    for part in parts:
        added: dict[int, tuple[Fraction, Fraction]] = {}
        for (i, (p, q)), (j, (s, t)) in itertools.product(result.items(), part.items()):
            before = added.get(i + j, (Fraction(0), Fraction(0)))
            added[i + j] = before[0] + p * s, before[1] + q * t
        result = added
    return result


def exact_profile(masses: dict[int, tuple[Fraction, Fraction]], threshold: Fraction) -> Fraction:
    return sum((max(p - threshold * q, Fraction(0)) for p, q in masses.values()), Fraction(0))


def partitions(total: int, largest: int) -> Any:
    if total == 0:
        yield ()
    for part in range(min(total, largest), 0, -1):
        yield from ((part, *rest) for rest in partitions(total - part, part))


@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(9, 10), Fraction(1, 50)])
def test_a_vector_of_laplace_noise_is_no_worse_than_one_value(q: Fraction) -> None:
    """The lemma of docs/proofs/accounting.md, as fractions, for every way to split up to eight steps."""
    for steps in range(1, 9):
        scalar = laplace_masses(steps, q)
        assert sum(p for p, _ in scalar.values()) == sum(p for _, p in scalar.values()) == 1
        thresholds = [
            q ** Fraction(-loss) * factor for loss in range(-steps - 1, steps + 2) for factor in (1, Fraction(4, 3))
        ]
        for parts in partitions(steps, steps):
            vector = combined(*(laplace_masses(part, q) for part in parts))
            assert all(exact_profile(vector, t) <= exact_profile(scalar, t) for t in thresholds)
        # At its losses it is that of continuous noise, and never more than it for two more steps.
        for i in range(steps + 1):
            assert exact_profile(scalar, q ** -(steps - 2 * i)) == 1 - q**i
        # Positive control: a vector that moves by one step more.
        longer = combined(laplace_masses(1, q), scalar)
        assert any(exact_profile(longer, t) > exact_profile(scalar, t) for t in thresholds)


@pytest.mark.parametrize(("sigma", "moves"), [(2.0, (1, 1)), (1.0, (1, 1, 1)), (3.0, (2, 1)), (4.0, (2, 2))])
@pytest.mark.parametrize("method", METHODS)
def test_vectors_of_gaussian_noise_are_dominated(method: Any, sigma: float, moves: tuple[int, ...]) -> None:
    reach = math.ceil(9 * sigma) + 2
    first, second = np.ones(()), np.ones(())
    for move in moves:
        first = np.multiply.outer(first, gaussian_law(sigma, 0, reach))
        second = np.multiply.outer(second, gaussian_law(sigma, move, reach))
    loss = DiscreteGaussianLoss(sigma, math.sqrt(sum(move**2 for move in moves)))
    account = accountant(method, loss)
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0):
        assert account.delta(epsilon) >= both(first, second, epsilon) - 1e-13


@pytest.mark.parametrize("sigma", [0.5, 0.8, 1.0, 1.7, 2.4, 5.0])
def test_discrete_gaussian_noise_is_rounded_continuous_noise_but_for_the_slack(sigma: float) -> None:
    """The law of rounding, integrated; its distance from discrete noise is below the slack, and above a thousandth."""
    loss = DiscreteGaussianLoss(sigma, math.sqrt(2))
    tau, s = loss._smooth_multiplier * loss.sensitivity, math.sqrt(loss._smoothing)
    assert tau**2 + s**2 == pytest.approx(sigma**2)
    y = np.arange(-12 * sigma, 12 * sigma, 1 / 64)
    z = np.arange(-60, 61)
    weights = np.exp(-((z[:, None] - y) ** 2) / (2 * s**2))
    rounding = weights / np.exp(-((np.arange(-70, 71)[:, None] - y) ** 2) / (2 * s**2)).sum(0)
    law = (rounding * stats.norm.pdf(y, scale=tau)).sum(1) / 64
    near = np.abs(z) < 6 * sigma
    ratio = np.abs(np.log(law[near] / gaussian_law(sigma, 0, 60)[near])).max()
    each = loss.pld_slack / 2
    assert ratio <= each + 1e-12
    assert ratio >= each / 1000 - 1e-12


def test_the_slack_counts_every_value_that_moves() -> None:
    one = DiscreteGaussianLoss(0.8, 1.0)._smoothing_slack
    for count in range(1, 1000):
        assert DiscreteGaussianLoss(0.8, math.sqrt(count))._smoothing_slack == count * one
    assert DiscreteGaussianLoss(0.8, 1.0, rounded=True)._smoothing_slack == 2**40 * one, "of any array"
    assert DiscreteGaussianLoss(0.8, 1.4).pld_slack == 2e-30, "one value moves, by one step"
    assert DiscreteGaussianLoss(0.8, 1.5).pld_slack == 2 * one


# --- the divergences ---------------------------------------------------------------------------------------------


def divergences(loss: PrivacyLoss, orders: Iterable[float]) -> Floats:
    return np.array([loss.divergence(order) for order in orders])


@pytest.mark.parametrize(
    ("loss", "first", "second"),
    [case for case in CASES if case[0].delta == 0],
    ids=[name for name, case in zip(NAMES, CASES, strict=True) if case[0].delta == 0],
)
def test_divergences_are_not_too_small(loss: PrivacyLoss, first: Floats, second: Floats) -> None:
    orders = np.array([1.1, 1.5, 2.0, 4.0, 16.0, 64.0])
    present = (first > 1e-290) & (second > 1e-290)
    p, q = np.log(first[present]), np.log(second[present])
    exact = np.array([special.logsumexp(a * p + (1 - a) * q) / (a - 1) for a in orders])
    assert np.all(divergences(loss, orders) >= exact * (1 - 1e-9))
    if type(loss) in (DiscreteLaplaceLoss,):
        assert np.allclose(divergences(loss, orders), exact, rtol=1e-9)
    assert np.all(orders * loss.rho >= exact * (1 - 1e-9))


def test_divergences_agree_with_dp_accounting() -> None:
    library = dp_accounting.rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    orders = library.orders
    for epsilon in (1e-3, 0.5, 3.0, 40.0):
        noise = 2 / (1 + math.exp(epsilon))
        event = dp_accounting.RandomizedResponseDpEvent(noise, 2)
        other = dp_accounting.rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
        assert np.allclose(divergences(ApproximateLoss(epsilon), orders), other.compose(event).rdp, rtol=1e-9)
        other = dp_accounting.rdp.RdpAccountant().compose(dp_accounting.LaplaceDpEvent(1 / epsilon))
        assert np.allclose(divergences(LaplaceLoss(epsilon, 2**50), orders), other.rdp, rtol=1e-9)
        assert np.allclose(divergences(DiscreteLaplaceLoss(epsilon, 10**7), orders), other.rdp, rtol=1e-5)
        other = dp_accounting.rdp.RdpAccountant().compose(dp_accounting.GaussianDpEvent(1 / epsilon))
        assert np.allclose(divergences(DiscreteGaussianLoss(2.0**40, epsilon * 2**40), orders), other.rdp)
    for rate, multiplier in ((0.01, 1.1), (0.5, 0.7), (1e-6, 3.0)):
        other = dp_accounting.rdp.RdpAccountant()
        event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(multiplier))
        expected = other.compose(event).rdp
        whole = DiscreteGaussianLoss(multiplier * 2.0**40, 2.0**40)
        known = np.minimum(
            expected, divergences(whole, orders)
        )  # infinite where the library's series does not converge
        assert np.allclose(divergences(whole.sampled(rate), orders), known, rtol=1e-6)
    assert np.all(divergences(ApproximateLoss(0.0), orders) == 0)
    assert np.all(divergences(BoundedRangeLoss(1e-9), orders) > 0)


# --- compositions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 1), (0.1, 100), (0.5, 30), (0.01, 2345)])
@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_randomised_response_is_composed_as_the_theorem_says(epsilon: float, count: int, delta: float) -> None:
    cost = PrivacyCost(epsilon, delta)
    account = Accountant().compose(cost, count)
    for target in (1e-3, 1e-4 if delta else 1e-10):
        exact = compose_advanced(cost, count, delta=target)
        stricter = compose_advanced(cost, count, delta=target - 3e-13)
        assert exact.epsilon <= account.epsilon(target) <= stricter.epsilon * (1 + 1e-6) + 1e-9
        found = account.delta(exact.epsilon)
        back = compose_advanced(cost, count, epsilon=exact.epsilon).delta
        assert back <= found <= back * (1 + 1e-6) + 3e-13
        assert Accountant(method="rdp").compose(cost, count).epsilon(target) >= exact.epsilon


def test_gaussian_noise_agrees_with_the_closed_form() -> None:
    """Balle and Wang (2018), theorem 8; many releases are one of a smaller multiplier."""
    for multiplier, count in ((1.0, 1), (5.0, 20), (50.0, 1000)):
        account = accountant("pld", DiscreteGaussianLoss(multiplier * 2.0**40, 2.0**40), count)
        together = multiplier / math.sqrt(count)
        for epsilon in (0.1, 1.0, 3.0):
            a, b = 0.5 / together, epsilon * together
            exact = stats.norm.cdf(a - b) - math.exp(epsilon) * stats.norm.cdf(-a - b)
            assert account.delta(epsilon) == pytest.approx(exact, rel=1e-4, abs=2e-12)
            assert account.delta(epsilon) >= exact
        assert account.epsilon(1e-6) <= zcdp_epsilon(count / (2 * multiplier**2), delta=1e-6)


def test_mixtures_agree_with_dp_accounting() -> None:
    account = Accountant().compose(DiscreteLaplace(epsilon=0.2, sensitivity=2), 30).compose(PrivacyCost(0.3), 3)
    account.compose(DiscreteGaussianLoss(8.0, 1.0), 10)
    from_discrete_laplace = privacy_loss_distribution.from_discrete_laplace_mechanism
    library = from_discrete_laplace(0.1, sensitivity=2, use_connect_dots=True).self_compose(30)
    response = privacy_loss_distribution.from_randomized_response(
        2 / (1 + math.exp(0.3)), 2, neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE
    )
    gaussian = privacy_loss_distribution.from_discrete_gaussian_mechanism(8.0, use_connect_dots=True)
    library = library.compose(response.self_compose(3)).compose(gaussian.self_compose(10))
    # It rounds the epsilon of randomised response up to a multiple of 1e-4.
    assert account.epsilon(1e-6) == pytest.approx(library.get_epsilon_for_delta(1e-6), abs=4e-4)
    assert account.delta(1.0) == pytest.approx(library.get_delta_for_epsilon(1.0), rel=2e-3)


def test_the_order_of_composition_does_not_matter_and_parts_add_up() -> None:
    parts: list[Any] = [Laplace(epsilon=0.1), DiscreteLaplace(epsilon=0.2), PrivacyCost(0.05, 1e-9)]
    once = Accountant()
    for part in parts:
        once.compose(part, 3)
    bit_by_bit = Accountant()
    for _ in range(3):
        for part in reversed(parts):
            bit_by_bit.compose(part)
            bit_by_bit.delta(0.3)  # what has been computed so far is not kept
    assert once.epsilon(1e-6) == pytest.approx(bit_by_bit.epsilon(1e-6), rel=1e-9)
    assert repr(once) == repr(bit_by_bit) == "<Accountant by 'pld' of 9 releases, neighbours by 'add/remove'>"


@pytest.mark.parametrize("method", METHODS)
def test_it_is_never_worse_than_adding_up(method: Any) -> None:
    mechanisms: list[Any] = [
        Laplace(epsilon=0.1, granularity=4.0),
        DiscreteLaplace(epsilon=0.4),
        PrivacyCost(0.3, 1e-7),
    ]
    account = Accountant(method=method)
    assert account.epsilon(0.0) == account.delta(0.0) == 0.0
    costs = []
    for mechanism in mechanisms:
        account.compose(mechanism, 20)
        costs += 20 * [mechanism if isinstance(mechanism, PrivacyCost) else mechanism.cost]
    total = compose_sequential(costs)
    assert account.epsilon(total.delta) == total.epsilon
    assert account.epsilon(1e-3) < total.epsilon
    assert account.delta(total.epsilon) == pytest.approx(total.delta, rel=1e-6)
    assert account.epsilon(1e-8) == math.inf, "twenty failures of 1e-7 do not fit"


def test_published_figures_of_stochastic_gradients() -> None:
    """Abadi et al. (2016), "Deep learning with differential privacy", section 3.2: q = 0.01, sigma = 4, 10^4 steps and
    delta = 1e-5 cost epsilon 1.26 by the moments accountant, where strong composition gives 9.34. Later conversions are
    tighter; the exact figure is above 0.8 of it."""
    loss = DiscreteGaussianLoss(4 * 2.0**40, 2.0**40)
    by_divergences = accountant("rdp", loss, 10**4, sample_rate=0.01).epsilon(1e-5)
    by_distributions = accountant("pld", loss, 10**4, sample_rate=0.01).epsilon(1e-5)
    assert 0.8 * 1.26 < by_divergences < 1.26
    assert 0.7 * 1.26 < by_distributions < by_divergences


# --- our mechanisms ----------------------------------------------------------------------------------------------


def test_what_mechanisms_say_of_their_loss() -> None:
    assert Laplace(epsilon=0.5, sensitivity=3.0, granularity=2.0)._loss() == LaplaceLoss(0.5, 2)
    assert Laplace(epsilon=0.5)._loss() == LaplaceLoss(0.5, 2**39)
    assert DiscreteLaplace(epsilon=0.5, sensitivity=3)._loss() == DiscreteLaplaceLoss(0.5, 3)
    wide = DiscreteLaplace(epsilon=0.5, sensitivity=5000)
    assert Accountant().compose(wide, 10).epsilon(1e-6) == pytest.approx(
        Accountant().compose(Laplace(epsilon=0.5), 10).epsilon(1e-6), rel=1e-3
    )


def test_slack_counts_where_epsilon_is_less_than_it() -> None:
    account = accountant("rdp", DiscreteGaussianLoss(1.0, 1.0), 100, sample_rate=1e-6)
    assert 0.01 < -math.expm1(-2 * account._slack) <= account.delta(0.0) < 0.1


class Inexact(DiscreteGaussianLoss):
    """A loss whose distribution and divergences have an error."""

    rdp_slack = pld_slack = 0.25


@pytest.mark.parametrize("method", METHODS)
def test_slack_and_failures_are_paid_for_by_as_much_as_needed(method: Any) -> None:
    exact, inexact = accountant(method, DiscreteGaussianLoss(4.0, 1.0)), accountant(method, Inexact(4.0, 1.0))
    assert inexact.epsilon(1e-3) == pytest.approx(exact.epsilon(1e-3 * math.exp(-0.25)) + 0.5)
    assert inexact.delta(1.0) == pytest.approx(exact.delta(0.5) * math.exp(0.25))
    assert accountant(method, Inexact(0.5, 1.0), 4).delta(0.0) == 1.0
    failing = accountant(method, DiscreteGaussianLoss(4.0, 1.0)).compose(PrivacyCost(0.0, 0.01))
    assert failing.epsilon(0.02) == pytest.approx(exact.epsilon(0.01 / 0.99))
    assert failing.delta(0.5) == pytest.approx(0.01 + 0.99 * exact.delta(0.5), rel=1e-9)
    for account in (failing, Accountant(method=method).compose(PrivacyCost(0.1, 0.01))):
        assert account.epsilon(0.009) == math.inf


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 0.003, 0.1, 0.3])
def test_the_probability_of_a_failure_is_rounded_up(delta: float) -> None:
    for count in range(1, 20):
        failure = 1 - (1 - Fraction(repr(delta))) ** count
        found = Accountant().compose(PrivacyCost(0.1, delta), count).delta(100.0)
        assert failure <= Fraction(repr(found)) <= failure * (1 + Fraction(1, 2**51))


@pytest.mark.parametrize("method", METHODS)
def test_sampling_costs_less(method: Any) -> None:
    losses = [loss for loss, *_ in CASES]
    for loss in losses:
        if loss.span < 10:
            whole = accountant(method, loss).delta(0.0)
            assert accountant(method, loss, sample_rate=0.01).delta(0.0) < whole
            assert accountant(method, loss, sample_rate=1.0).delta(0.0) == whole


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Accountant(method="best"), ParameterError, 'method must be "pld" or "rdp", got \'best\'$'),  # type: ignore[arg-type]
        (lambda: Accountant(method="moments"), ParameterError, "got 'moments', use \"rdp\"$"),  # type: ignore[arg-type]
        (
            lambda: Accountant().get_privacy_spent,
            AttributeError,
            r"^Accountant has no get_privacy_spent, use epsilon\(delta\)$",
        ),  # type: ignore[attr-defined]
        (lambda: Accountant().spent, AttributeError, "^Accountant has no spent$"),  # type: ignore[attr-defined]
        (
            lambda: Accountant().compose(0.1),
            TypeError,
            "mechanism must be a mechanism of dpnoise, a PrivacyCost or a PrivacyLoss, got float",
        ),  # type: ignore[arg-type]
        (lambda: LaplaceLoss(math.inf, 1), ParameterError, "epsilon must be positive and finite, got inf"),
        (lambda: DiscreteGaussianLoss(0.0, 1.0), ParameterError, "sigma must be positive and finite, got 0.0"),
        (lambda: Accountant().compose(PrivacyCost(0.1), 0), ParameterError, "count must be an integer from 1 to"),
        (lambda: Accountant().compose(PrivacyCost(0.1), 1.0), TypeError, "count must be an int, got float"),  # type: ignore[arg-type]
        (lambda: Accountant().compose(PrivacyCost(0.1), 2**53), ParameterError, "count must be .* to 9007199254740991"),
        (lambda: Accountant().compose(PrivacyCost(0.1), sample_rate=1.5), ParameterError, "sample_rate must be from 2"),
        (lambda: Accountant().compose(PrivacyCost(0.1), sample_rate="1"), TypeError, "^sample_rate must be a number"),  # type: ignore[arg-type]
        (lambda: Accountant().epsilon("1"), TypeError, "^delta must be a number, got str"),  # type: ignore[arg-type]
        (lambda: Accountant().delta("1"), TypeError, "^epsilon must be a number, got str"),  # type: ignore[arg-type]
        (
            lambda: Accountant().compose(PrivacyCost(0.1), sample_rate=0.0),
            ParameterError,
            r"sample_rate must be from 2\*\*-1022 to 1, got 0.0",
        ),
        (
            lambda: Accountant().compose(PrivacyCost(0.1), sample_rate=5e-324),
            ParameterError,
            r"sample_rate must be from 2\*\*-1022 to 1, got 5e-324",
        ),
        (
            lambda: Accountant(relation="substitute").compose(Laplace(epsilon=0.1), sample_rate=0.5),
            ParameterError,
            r'sample_rate must be 1 for relation "substitute", got 0\.5',
        ),
        (
            lambda: Accountant().compose(Laplace(epsilon=300.0)),
            ParameterError,
            r"mechanism must have a loss of at most 200 for 'pld', got Laplace\(epsilon=300\.0",
        ),
        (
            lambda: accountant("pld", DiscreteGaussianLoss(7.0, 80.0)),
            ParameterError,
            "mechanism must have a loss of at most 200 for 'pld', got Disc",
        ),
        (
            lambda: Accountant().compose(PrivacyCost(1.0)).compose(PrivacyCost(0.01), 10**9),
            ParameterError,
            "count must be smaller for 'pld', or mechanism have more noise, got 1000000000",
        ),
        (
            lambda: accountant("pld", DiscreteGaussianLoss(0.3, 2.0)),
            ParameterError,
            "mechanism must have more noise for 'pld', got",
        ),
        (
            lambda: Accountant().epsilon(1.5),
            ParameterError,
            "delta must be from 0 to 1, got 1.5",
        ),
        (lambda: Accountant().delta(-1.0), ParameterError, "epsilon must be zero or more, got -1.0"),
        (
            lambda: accountant("pld", DiscreteGaussianLoss(40.0, 1.0)).epsilon(1e-14),
            ParameterError,
            "delta must be larger for 'pld', where rounding decides, got 1e-14",
        ),
    ],
)
def test_bad_parameters(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_the_limits_of_loss_distributions() -> None:
    """Noise with a loss of 195 and a divergence of order 2 of 123.5: of four such releases it is 494."""
    nearly = Accountant().compose(DiscreteGaussianLoss(7.2, 80.0), 4)
    with pytest.raises(ParameterError, match="count must be smaller for 'pld'"):
        nearly.compose(PrivacyCost(10.0))
    quiet = accountant("pld", DiscreteGaussianLoss(40.0, 1.0))
    assert quiet.epsilon(2.1e-13) < math.inf
    with pytest.raises(ParameterError, match=r"where rounding decides, got 1\.9e-13"):
        quiet.epsilon(1.9e-13)


def test_without_dp_accounting_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ImportError, match=r'^this needs dp_accounting: pip install "dp-accounting>=0\.6,<0\.7"$'):
        Accountant()


def test_what_gaussian_noise_has_no_epsilon_for() -> None:
    assert accountant("pld", DiscreteGaussianLoss(40.0, 1.0)).epsilon(0.0) == math.inf
    assert accountant("rdp", DiscreteGaussianLoss(40.0, 1.0)).epsilon(0.0) == math.inf
    assert accountant("rdp", DiscreteGaussianLoss(40.0, 1.0)).epsilon(1e-300) < 1.0
    assert DiscreteGaussianLoss(3.0, 1.0).epsilon == math.inf
    assert type("Unbounded", (DiscreteGaussianLoss,), {"rho": PrivacyLoss.rho})(3.0, 1.0).rho == math.inf


@pytest.mark.parametrize("kind", [Gaussian, DiscreteGaussian])
def test_the_accountant_knows_gaussian_mechanisms(kind: Any) -> None:
    mechanism = kind(epsilon=1.0, delta=1e-6)
    # One release costs what it says, and a hundred much less than a hundred times that.
    assert 1.0 - 1e-9 < Accountant(method="pld").compose(mechanism).epsilon(1e-6) < 1.0 + 1e-6
    assert Accountant(method="pld").compose(mechanism, 100).epsilon(1e-6) < 14
    rho = kind(rho=0.1)
    assert Accountant(method="pld").compose(rho).epsilon(1e-6) == pytest.approx(rho.epsilon_for(1e-6), rel=1e-6)
    # On a coarse grid arrays move by more steps than one value does: none may be less private than the accountant says.
    coarse = kind(epsilon=1.0, delta=1e-6, granularity=1.0) if kind is Gaussian else kind(rho=0.1, sensitivity=3)
    for count in (1, 3, 1000):
        epsilon = Accountant(method="rdp").compose(coarse).epsilon(1e-6)
        assert coarse.delta_for(epsilon, count) <= 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_arrays_on_a_coarse_grid_cost_what_the_accountant_says(method: Any) -> None:
    """A million values that all cross the edge between two steps, for next to no distance: they move by a thousand."""
    mechanism = Gaussian(epsilon=10.0, delta=1e-6, granularity=1.0)
    sigma = mechanism.release(np.zeros(10**6)).std()
    shift = 1000 / sigma
    assert shift > mechanism.sensitivity / mechanism.scale, "an array has less noise for what it moves"
    account = Accountant(method=method).compose(mechanism)
    for epsilon in (7.0, 8.0, 9.0, 9.5):
        first, second = stats.norm.sf([epsilon / shift - shift / 2, epsilon / shift + shift / 2])
        assert 1.0 >= account.delta(epsilon) >= first - math.exp(epsilon) * second


def test_the_largest_loss_of_a_bounded_range_has_its_delta() -> None:
    for below in (0.5e-4, 1.5e-4, 1e-3, 1.5):
        exact = math.expm1(-below / 2) ** 2 / -math.expm1(-1.0)
        assert exact <= BoundedRangeLoss(1.0).pld(1).get_delta_for_epsilon(1.0 - below) + 1e-13 < exact + 1e-7


def test_losses_round_against_privacy() -> None:
    loss = DiscreteGaussianLoss(sigma=Fraction(1, 3), sensitivity=Fraction(2, 3))
    assert Fraction(loss.sigma) < Fraction(1, 3) < 2 * Fraction(1, 3) < Fraction(loss.sensitivity)


def test_losses_check_their_numbers():
    for make, message in [
        (lambda: DiscreteGaussianLoss(sigma=np.float64(-4.0), sensitivity=1.0), "sigma must be positive and finite"),
        (lambda: DiscreteGaussianLoss(sigma=4.0, sensitivity=math.nan), "sensitivity must be positive and finite"),
        (lambda: LaplaceLoss(epsilon=Fraction(-1), sensitivity=1), "epsilon must be positive and finite"),
        (
            lambda: LaplaceLoss(epsilon=1.0, sensitivity=0),
            r"sensitivity must be .* from 1 to 9223372036854775807",
        ),
        (lambda: LaplaceLoss(epsilon=1.0, sensitivity=1).sampled(2), "sample_rate must be from 2"),
    ]:
        with pytest.raises(ParameterError, match=message):
            make()
    for make, message in [
        (lambda: DiscreteGaussianLoss(sigma="x", sensitivity=1.0), "sigma must be a number, got str"),
        (lambda: LaplaceLoss(epsilon=1.0, sensitivity=0.5), "sensitivity must be an int, got float"),
    ]:
        with pytest.raises(TypeError, match=message):
            make()


@pytest.mark.parametrize(
    "loss",
    [DiscreteGaussianLoss(sigma=4.0, sensitivity=1.0), LaplaceLoss(epsilon=1.0, sensitivity=9), BoundedRangeLoss(1.0)],
)
def test_sampled_losses_are_for_addition_and_removal(loss):
    sampled = loss.sampled(0.01)
    for other in (sampled, sampled.repeated(3)):
        assert other.relation == "add/remove"
        with pytest.raises(ParameterError, match="add/remove"):
            Accountant(relation="substitute").compose(other)
        assert Accountant().compose(other).epsilon(1e-6) < Accountant().compose(loss, 3).epsilon(1e-6)
    assert loss.relation is None


@pytest.mark.parametrize(
    ("sigma", "count", "delta", "taken"),
    [
        (0.05, 1, 1e-5, False),  # a loss above 200
        (0.05, 1, 1e-5, True),
        (0.3, 10**5, 1e-5, False),  # too large a divergence
        (0.3, 10**5, 1e-5, True),
        (0.3, 1, 1e-13, False),  # rounding decides
        (0.3, 1, 1e-16, True),
    ],
)
def test_a_refusal_names_the_other_method_where_that_answers(
    sigma: float, count: int, delta: float, taken: bool
) -> None:
    """With a sample, so little noise has no known divergence."""

    def epsilon(method: Any) -> float:
        loss = DiscreteGaussianLoss(sigma, 1.0)
        return Accountant(method=method).compose(loss, count, sample_rate=1.0 if taken else 0.5).epsilon(delta)

    with pytest.raises(ParameterError, match="for 'pld'") as caught:
        epsilon("pld")
    assert str(caught.value).endswith(": Accountant(method='rdp') takes it") == taken
    if taken:
        assert epsilon("rdp") < math.inf
    else:
        with pytest.raises(ParameterError, match="for 'rdp'"):
            epsilon("rdp")
