"""The privacy loss of the best of a random number of runs; `docs/proofs/private_selection.md` has the theorems."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, repeat
from operator import mul
from typing import Any, Final, Literal

import numpy as np

from dpnoise._errors import ParameterError
from dpnoise._numbers import at_least, check_word, checked_delta, integer, real
from dpnoise._types import Integer, Number
from dpnoise.accounting._accountant import Accountant
from dpnoise.accounting._concentrated import pure_zcdp_rho, zcdp_delta, zcdp_epsilon
from dpnoise.accounting._cost import QUICK, PrivacyCost, RenyiCost, ZcdpCost, above, in_floats, precise, upward
from dpnoise.accounting._losses import (
    ApproximateLoss,
    Mechanism,
    PrivacyLoss,
    charged,
    loss_of,
    order_of,
)
from dpnoise.sensitivity import Relation

_MOST: Final = 2000
_STEP: Final = 1000  # parameters are multiples of 1/1000, so that the law is one of integers
_NEAR: Final = 1 + 1e-12  # above the rounding errors of a mean in floating point
_ORDERS: Final = (*range(2, 16), *(round(16 * 1.25**step) for step in range(19)))
_HALVINGS: Final = 32


@dataclass(frozen=True)
class RandomStoppingLoss(PrivacyLoss):
    """The best of K independent runs of a mechanism, where K is drawn from a public law before the first run.

    `mechanisms.PrivateSelection` makes such releases. The loss is that of the best score and its output alone: K, and
    all that tells K, must stay secret.

    Parameters
    ----------
    run_cost : PrivacyCost, ZcdpCost, RenyiCost, PrivacyLoss or mechanism
        The cost of one run: of its output and of its score together.
    mean : float, default 10
        The mean of K: from 1 up to a limit that depends on ``stopping`` and ``most``. The parameter of the law is
        rounded up to a multiple of 1/1000, and `expected_runs` is the mean that it has.
    stopping : {"logarithmic", "geometric", "poisson"}, default "logarithmic"
        The law of K, given that K is from 1 to ``most``: P(K = k) is proportional to ``(1 - gamma)**k / k``, to ``(1 -
        gamma)**k``, or to ``mu**k / k!``.
    most : int, optional
        The largest K, from 1 to 2000; by default 100 times the mean, rounded up, or 2000 if that is less. With a
        smaller one the same mean costs more: about 1% if it is 10 times the mean.

    Attributes
    ----------
    epsilon : float
        The loss is at most this except with probability ``delta``; infinity if a run has a rho or Rényi divergences.
    delta : float
        `expected_runs` times the delta of a run.

    Raises
    ------
    ParameterError
        When the law cannot have this mean, or so many runs have a delta of 1.

    References
    ----------
    Liu and Talwar (2019), "Private selection from private candidates"; Papernot and Steinke (2022), "Hyperparameter
    tuning with Rényi differential privacy"; Koskela, Redberg and Wang (2024), "Privacy profiles for private selection".
    The proof page "Private selection" has the bounds, some of which are lower than theirs.

    Examples
    --------
    >>> from dpnoise.accounting import RandomStoppingLoss, ZcdpCost
    >>> loss = RandomStoppingLoss(ZcdpCost(0.05), mean=10)
    >>> round(loss.rho, 2), round(loss.epsilon_at(1e-5), 2)
    (1.26, 2.0)
    """

    run_cost: PrivacyCost | ZcdpCost | RenyiCost | PrivacyLoss | Mechanism
    mean: Number = 10
    stopping: Literal["logarithmic", "geometric", "poisson"] = "logarithmic"
    most: Integer | None = None

    def __post_init__(self) -> None:
        """Check the parameters, and find the law."""
        object.__setattr__(self, "run_cost", charged(self.run_cost, "run_cost"))
        mean = real(self.mean, "mean")
        check_word(self.stopping, "stopping", "logarithmic", "geometric", "poisson")
        if not 1 <= mean <= _MOST:
            raise ParameterError(f"mean must be from 1 to {_MOST}, got {self.mean!r}")
        most = (
            min(100 * math.ceil(mean), _MOST) if self.most is None else integer(self.most, "most", range(1, _MOST + 1))
        )
        object.__setattr__(self, "most", most)
        if (limit := self._approximate_mean(10 * most * _STEP)) * _NEAR < mean:
            raise ParameterError(
                f'mean must be from 1 to {math.floor(100 * limit) / 100} for "{self.stopping}" and most={most}, got '
                f"{self.mean!r}"
            )
        if self.delta >= 1:
            raise ParameterError(
                f"run_cost must have a smaller delta for {self.expected_runs:g} expected runs, got {self.run_cost!r}"
            )

    @cached_property
    def parameter(self) -> Fraction:
        """The number ``1 / gamma`` of the logarithmic or the geometric law, or ``mu`` of the Poisson law."""
        first = 0 if self.stopping == "poisson" else _STEP
        steps = range(first, 10 * self._most * _STEP + 1)
        return Fraction(steps[bisect_left(steps, float(self.mean) / _NEAR, key=self._approximate_mean)], _STEP)

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """The integers that the probabilities of K = 1, 2, ... are proportional to."""
        ratio, most = self._ratio(self.parameter), self._most
        shared: Iterator[int] = repeat(1, most)
        if self.stopping == "logarithmic":
            product = math.lcm(*range(1, most + 1))
            shared = (product // k for k in range(1, most + 1))
        elif self.stopping == "poisson":
            shared = reversed(list(accumulate(range(most, 1, -1), mul, initial=1)))
        ups = accumulate(repeat(ratio.numerator, most - 1), mul, initial=1)
        downs = list(accumulate(repeat(ratio.denominator, most - 1), mul, initial=1))
        return tuple(up * down * factor for up, down, factor in zip(ups, reversed(downs), shared, strict=True))

    @cached_property
    def law(self) -> tuple[Fraction, ...]:
        """The probabilities of K = 1, 2, ..., ``most``, exactly."""
        total = sum(self.weights)
        return tuple(Fraction(weight, total) for weight in self.weights)

    @cached_property
    def expected_runs(self) -> float:
        """The mean of K, rounded up."""
        return at_least(Fraction(sum(k * weight for k, weight in enumerate(self.weights, 1)), sum(self.weights)))

    @property
    def relation(self) -> Relation | None:
        """The neighbouring relation of a run."""
        return self.run_cost.relation

    @property
    def person(self) -> str | None:
        """The column that says whose a row is, of a run."""
        return self.run_cost.person

    @cached_property
    def epsilon(self) -> float:  # type: ignore[override]
        return _sum(self._epsilon, self._ratio_bound)

    @cached_property
    def delta(self) -> float:  # type: ignore[override]
        return upward(Fraction(self.expected_runs) * Fraction(getattr(self._run, "delta", 0.0)))

    @cached_property
    def rho(self) -> float:
        """The rho of a run, ``2 * sqrt(rho * ln(mean))``, and the logarithm of the ratio, or that of epsilon."""
        found = pure_zcdp_rho(self.epsilon) if self.epsilon < math.inf else math.inf
        if (rho := self._rho) < math.inf:
            with precise(QUICK):
                spread = above((Decimal(rho) * Decimal(self.expected_runs).ln()).sqrt())
            found = min(found, upward(Fraction(rho) + 2 * Fraction(spread) + Fraction(self._ratio_bound)))
        return found

    def sampled(self, sample_rate: Number) -> PrivacyLoss:
        if self.relation == "substitute" or self.epsilon == math.inf:
            raise ParameterError(
                f'sample_rate must be 1 for runs under "substitute" and for runs without an epsilon, got '
                f"{sample_rate!r} for {self!r}"
            )
        return super().sampled(sample_rate)

    def divergence(self, order: Number) -> float:
        # A divergence is at most that of any larger order.
        order = order_of(order)
        found = super().divergence(order) if self.epsilon < math.inf else math.inf
        runs = [(one, self._divergence(one)) for one in (order, *self._orders) if one >= order]
        if 0 < self._rho < math.inf:
            best = max(order, 1 + math.sqrt(math.log(self.expected_runs)) / math.sqrt(self._rho))
            runs.append((best, upward(Fraction(best) * Fraction(self._rho))))
        for one, divergence in runs:
            with precise(QUICK):
                spread = above(Decimal(self.expected_runs).ln() / (Decimal(one) - 1))
            found = min(found, _sum(divergence, _sum(self._ratio_bound, spread)))
        return found

    def pld(self, count: Integer) -> Any:
        return ApproximateLoss(self.epsilon).pld(count)

    def epsilon_at(self, delta: Number) -> float:
        """Return an epsilon for a delta, rounded up, or infinity.

        For a run whose loss is a `PrivacyLoss` without an epsilon, such as Gaussian noise, it needs dp-accounting,
        which the extra ``accounting`` brings.

        Parameters
        ----------
        delta : float
            The privacy parameter: between 0 and 1, both excluded.
        """
        target, failure, runs = Fraction(checked_delta(delta)), Fraction(self.delta), Fraction(self.expected_runs)
        if target < failure:
            return math.inf
        found = [self.epsilon]
        if share := _down((target - failure) / (1 - failure) / runs):
            found.append(_sum(self._epsilon_of_run(share), self._ratio_bound))
        if isinstance(self._run, PrivacyLoss) and self._epsilon == math.inf:
            with suppress(ParameterError):  # the losses of the run may be too large, or delta too small
                accountant = Accountant(relation=self.relation or "add/remove").compose(self._run)
                found.append(_sum(accountant.epsilon(_down(target / runs)), self._bound_of_ratio(accountant.delta)))
        return min(found)

    @cached_property
    def _run(self) -> PrivacyLoss | ZcdpCost | RenyiCost:
        found: PrivacyLoss | ZcdpCost | RenyiCost = loss_of(self.run_cost)
        return found if isinstance(found, PrivacyLoss) else in_floats(found)

    @property
    def _most(self) -> int:
        return int(self.most)  # type: ignore[arg-type] # it has been checked

    @property
    def _epsilon(self) -> float:
        return getattr(self._run, "epsilon", math.inf)

    @property
    def _rho(self) -> float:
        return getattr(self._run, "rho", math.inf)

    @property
    def _orders(self) -> tuple[int, ...]:
        if isinstance(self._run, ZcdpCost):
            return ()  # the best orders are those that `rho` gives
        return tuple(self._run.divergences) if isinstance(self._run, RenyiCost) else _ORDERS

    def _ratio(self, parameter: Fraction) -> Fraction:
        return parameter if self.stopping == "poisson" else 1 - 1 / parameter

    def _approximate_mean(self, step: int) -> float:
        """Return the mean of K for a parameter of so many steps, in floating point."""
        ratio = self._ratio(Fraction(step, _STEP))
        if not ratio:
            return 1.0
        k = np.arange(1.0, self._most + 1)
        logs = (k - 1) * math.log(ratio)
        if self.stopping != "geometric":
            logs -= np.log(k) if self.stopping == "logarithmic" else np.cumsum(np.log(k))
        weights = np.exp(logs - logs.max())
        return float(k @ weights / weights.sum())

    def _divergence(self, order: float) -> float:
        return _divergence_of(self._run, order)

    def _delta_of_run(self, epsilon: float) -> float:
        """Bound the delta of a run that does not fail, for any epsilon of zero or more."""
        if (pure := self._epsilon) < math.inf:
            with precise():  # which tells exp(epsilon) from 1, however small it is; nor may it overflow
                loss = Decimal(pure)
                return above(max((1 - (Decimal(epsilon) - loss).exp()) / (1 + (-loss).exp()), Decimal(0)))
        with precise(QUICK):
            x = Decimal(epsilon)
            # By Pinsker's inequality, since the divergence of Kullback and Leibler is at most these.
            least = min(self._rho, *map(self._divergence, self._orders[:1]), 2.0)
            found = [above((Decimal(least) / 2).sqrt())]
            for order in self._orders:
                if (divergence := self._divergence(order)) < math.inf:
                    rate = Decimal(order - 1)
                    exponent = rate * (Decimal(divergence) - x) - rate.ln() + order * (rate / order).ln()
                    found.append(above(exponent.exp()) if exponent < 0 else 1.0)
        if self._rho < math.inf:
            found.append(zcdp_delta(self._rho, epsilon=epsilon))
        return min(found)

    def _epsilon_of_run(self, delta: float) -> float:
        """Bound the epsilon of a run that does not fail, for a delta."""
        if not self._rho:
            return 0.0
        found = [math.inf if self._rho == math.inf else zcdp_epsilon(self._rho, delta=delta)]
        with precise(QUICK):
            for order in self._orders:
                if (divergence := self._divergence(order)) < math.inf:
                    rate = Decimal(order - 1)
                    bound = Decimal(divergence) - (order * Decimal(delta)).ln() / rate + (rate / order).ln()
                    found.append(above(max(bound, Decimal(0))))
        return min(found)

    @cached_property
    def _ratio_bound(self) -> float:
        return self._bound_of_ratio(self._delta_of_run)

    def _bound_of_ratio(self, delta: Callable[[float], float]) -> float:
        """Bound the logarithm of the ratio by which the choice of the best changes a density (theorem 2 of the page).

        ``delta`` gives the delta of a run for an epsilon, rounded up.
        """
        if not (shift := delta(0.0)):
            return 0.0
        if self.stopping == "poisson":
            return upward(self.parameter * Fraction(shift))
        with precise(QUICK):
            inverse = Decimal(self.parameter.numerator) / self.parameter.denominator
            low, high = 0.0, above(inverse.ln())
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                if (inverse - 1) * Decimal(delta(middle)) <= Decimal(middle).exp() - 1:
                    high = middle
                else:
                    low = middle
        return 2 * high if self.stopping == "geometric" else high


@lru_cache(maxsize=4096)
def _divergence_of(run: PrivacyLoss | ZcdpCost | RenyiCost, order: float) -> float:
    """Bound a Rényi divergence of a run that does not fail: that of the next larger order which is known."""
    if isinstance(run, RenyiCost):
        return min((value for known, value in run.divergences.items() if known >= order), default=math.inf)
    if isinstance(run, ZcdpCost):
        return upward(Fraction(order) * Fraction(run.rho))
    divergence, slack = run.divergence(order), run.rdp_slack
    if not slack or math.inf in (divergence, slack):
        return divergence + slack
    return upward(Fraction(divergence) + Fraction(slack) * (2 * Fraction(order) - 1) / (Fraction(order) - 1))


def _sum(first: float, second: float) -> float:
    return math.inf if math.inf in (first, second) else upward(Fraction(first) + Fraction(second))


def _down(exact: Fraction) -> float:
    return -at_least(-exact)
