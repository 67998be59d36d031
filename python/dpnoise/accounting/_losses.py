"""Upper bounds on the privacy loss of one release, and the interface of mechanisms, for the accountant.

Every class but `Mechanism` stands for a pair of distributions that dominates the mechanism for all neighbours: no test
distinguishes the releases of two neighbouring data sets better than these two distributions.
`docs/proofs/accounting.md` has the proofs. dp-accounting represents the privacy-loss distributions on a grid, with
pessimistic rounding.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from fractions import Fraction
from threading import get_ident
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dpnoise._errors import ParameterError, require
from dpnoise._numbers import integer, real_down, real_up
from dpnoise._types import Integer, Number
from dpnoise.accounting._amplification import amplify_by_poisson_sampling
from dpnoise.accounting._concentrated import pure_zcdp_rho
from dpnoise.accounting._cost import (
    QUICK,
    Cost,
    PrivacyCost,
    RenyiCost,
    ZcdpCost,
    above,
    exact_of,
    precise,
    rounded_cost,
    upward,
)
from dpnoise.sensitivity import Relation

Floats = NDArray[np.float64]

_INTERVAL: Final = 1e-4  # the step of the grid of privacy losses, dp-accounting's own
_ENUMERABLE: Final = 1000  # the number of steps up to which noise is enumerated
_SMOOTHING: Final = 3.0  # the variance, in squared steps, of the rounding that makes Gaussian noise discrete
SMALLEST_RATE: Final = 2.0**-1022  # below it, dp-accounting's logarithms overflow
_LONGEST: Final = 2**40  # values in an array, more than any memory holds
_ROUNDED_ROOT: Final = 1 + 2**-50  # the float nearest to sqrt(3) has a square a little below 3
LARGEST_DIVERGENCE: Final = 500.0  # of order 2; the distribution of larger losses has too many points
WIDEST: Final = 200.0  # the loss of a release
_TRUNCATED: Final = 1e-30  # the most that dp-accounting truncates of a discrete Gaussian
_ROUNDED_AWAY: Final = 1e-9  # the logarithm that dp-accounting computes, below which it has few right digits
_LEAST, _MOST = 1e-20, 1e5  # losses, times the order, beyond which a simpler bound is nearly the same


class PrivacyLoss(ABC):
    """An upper bound on the privacy loss of one release, which `Accountant.compose` takes: the abstract base class.

    A class of yours must keep all of its promises, and its objects must not change, and differ if their losses do: a
    ledger of epsilon charges ``epsilon``, one of rho ``rho``, one of Rényi orders `divergence`, an accountant `pld` or
    `divergence`.

    Attributes
    ----------
    epsilon : float
        The loss is at most this except with probability ``delta``; infinity when it has no bound.
    delta : float
        The probability of a failure, which the other members exclude.

    Examples
    --------
    >>> from dpnoise.accounting import Accountant, DiscreteGaussianLoss
    >>> other = DiscreteGaussianLoss(sigma=4.0, sensitivity=1.0)  # a mechanism of another library
    >>> round(Accountant().compose(other, 10).epsilon(1e-6), 2)
    3.75
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        """Check that all numbers are positive and finite, and round them to be on the safe side."""
        for one in fields(self):  # type: ignore[arg-type] # of a data class
            value = getattr(self, one.name)
            if one.type == "int":
                value = integer(value, one.name, range(1, 2**63))
            elif one.type == "float":
                value = (real_down if one.name == "sigma" else real_up)(value, one.name)
                if one.name == "sample_rate" and not SMALLEST_RATE <= value <= 1:
                    raise ParameterError(f"sample_rate must be from 2**-1022 to 1, got {value!r}")
                if not 0 < value < math.inf:
                    raise ParameterError(f"{one.name} must be positive and finite, got {value!r}")
            object.__setattr__(self, one.name, value)

    @property
    def relation(self) -> Relation | None:
        """The neighbouring relation of the bound: "add/remove" of a `sampled` loss, otherwise None, for any."""
        return "add/remove" if getattr(self, "sample_rate", 1.0) < 1 else None

    @property
    def person(self) -> str | None:
        """None: a loss is that of rows, or of a sensitivity that the caller has stated."""
        return None

    @property
    def span(self) -> float:
        """The range of losses that a privacy-loss distribution has to cover."""
        return self.epsilon

    @property
    def rho(self) -> float:
        """The parameter of zero-concentrated differential privacy, rounded up; infinity when there is none."""
        return pure_zcdp_rho(self.epsilon) if self.epsilon < math.inf else math.inf

    @property
    def rdp_slack(self) -> float:
        """The error of `divergence`: a factor of at most exp(slack) in every probability."""
        return 0.0

    @property
    def pld_slack(self) -> float:
        """The error of `pld`: a factor of at most exp(slack) in every probability."""
        return 0.0

    def sampled(self, sample_rate: Number) -> PrivacyLoss:
        """Bound the loss of a release from a Poisson subsample, for neighbours by addition or removal.

        Parameters
        ----------
        sample_rate : float
            The probability of each person to be in the sample, from 2**-1022 to 1.

        Raises
        ------
        ParameterError
            When `repeated` made this loss: a run accounts for its sampling already.
        """
        cost = amplify_by_poisson_sampling(PrivacyCost(self.epsilon, self.delta), sample_rate=sample_rate)
        return ApproximateLoss(cost.epsilon, cost.delta, real_up(sample_rate, "sample_rate"), self.person)

    def repeated(self, count: Integer) -> PrivacyLoss:
        """Bound the loss of a run of releases, as one release.

        Parameters
        ----------
        count : int
            The number of releases, at least 1.
        """
        return RepeatedLoss(self, integer(count, "count", range(1, 2**63)))

    def divergence(self, order: Number) -> float:
        """Bound the Rényi divergence of an order, rounded up.

        Without a failure, every mechanism of this ``epsilon`` has at most the divergence of randomised response,
        ``ln(cosh((order - 1/2) * epsilon) / cosh(epsilon / 2)) / (order - 1)``. A loss of a kind of noise has less.

        Parameters
        ----------
        order : float
            The order of the divergence, above 1 and finite.
        """
        order, most = order_of(order), upward(Fraction(self.epsilon))
        if not _LEAST < order * self.epsilon < _MOST:
            return min(upward(Fraction(order) * Fraction(pure_zcdp_rho(self.epsilon))), most)
        with precise(QUICK):
            alpha, half = Decimal(order), Decimal(self.epsilon) / 2
            first, second = ((2 * alpha - 1) * half).exp(), half.exp()
            ratio = (first + 1 / first) / (second + 1 / second)
            return min(above(ratio.ln() / (alpha - 1)), most)

    @abstractmethod
    def pld(self, count: Integer) -> Any:
        """Bound the distribution of the loss of several releases.

        Parameters
        ----------
        count : int
            The number of releases, at least 1.

        Returns
        -------
        dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution

        Raises
        ------
        ParameterError
            When a release may reveal a loss above 200, or all of them together have a divergence of order 2 above
            `Accountant.LARGEST_DIVERGENCE`.
        """

    def _checked(self, count: Integer) -> int:
        """Refuse releases whose distribution would have so many points that dp-accounting does not return."""
        times = integer(count, "count", range(1, 2**63))
        if self.span > WIDEST or times * self.divergence(2.0) > LARGEST_DIVERGENCE:
            raise ParameterError(f"count must be smaller, or the loss {self!r} have more noise, got {times}")
        return times


@dataclass(frozen=True)
class ApproximateLoss(PrivacyLoss):
    """Any (epsilon, delta)-differentially private mechanism: at worst, randomised response that may fail."""

    epsilon: float
    delta: float = 0.0
    sample_rate: float = 1.0  # epsilon and delta account for it already
    person: str | None = None

    def __post_init__(self) -> None:
        """Skip the check: the numbers of a cost have been checked, and may be zero."""

    def pld(self, count: Integer) -> Any:
        # Two losses are put on the points of the grid around them.
        times = self._checked(count)
        end = self.epsilon / _INTERVAL
        points = np.unique([math.floor(-end), math.ceil(-end), math.floor(end), math.ceil(end)])
        between = -np.expm1(points * _INTERVAL - self.epsilon) / (1 + math.exp(-self.epsilon))
        return _connected(points, np.maximum(between, -np.expm1(points * _INTERVAL)), times)


@dataclass(frozen=True)
class BoundedRangeLoss(PrivacyLoss):
    """A mechanism of bounded range: all losses for two data sets lie in an interval of length epsilon.

    Parameters
    ----------
    epsilon : float
        The length of the interval: positive and finite.

    References
    ----------
    Dong, Durfee and Rogers (2020), "Optimal differential privacy composition for exponential mechanisms".
    """

    epsilon: float

    @property
    def rho(self) -> float:
        """``epsilon**2 / 8`` (Cesar and Rogers 2021), or the rho of every such epsilon if that is less."""
        return min(upward(Fraction(self.epsilon) ** 2 / 8), pure_zcdp_rho(self.epsilon))

    def divergence(self, order: Number) -> float:
        # The divergence of randomised response, or order * rho if that is less.
        order = order_of(order)
        return min(upward(Fraction(order) * Fraction(self.rho)), super().divergence(order))

    def pld(self, count: Integer) -> Any:
        # The envelope of all pairs of two outcomes whose losses are epsilon apart.
        times = self._checked(count)
        end = math.ceil(self.epsilon / _INTERVAL)
        points = np.arange(-end, end + 1)
        half = np.minimum(0.0, (points * _INTERVAL - self.epsilon) / 2)
        between = np.expm1(half) ** 2 / -math.expm1(-self.epsilon)
        inside = points * _INTERVAL > -self.epsilon
        return _connected(points, np.where(inside, between, -np.expm1(points * _INTERVAL)), times)


@dataclass(frozen=True)
class LaplaceLoss(PrivacyLoss):
    """Discrete Laplace noise of scale sensitivity/epsilon, with a sensitivity of ``sensitivity`` grid steps or more.

    Continuous Laplace noise for two more steps of sensitivity dominates it.

    Parameters
    ----------
    epsilon : float
        The ratio of the sensitivity to the scale of the noise: positive and finite.
    sensitivity : int
        The sensitivity in the L1 norm, in steps of the grid; at least 1.
    sample_rate : float, default 1.0
        The probability of each person to be in the sample that is released from, from 2**-1022 to 1.
    """

    epsilon: float
    sensitivity: int
    sample_rate: float = 1.0

    def sampled(self, sample_rate: Number) -> PrivacyLoss:
        return replace(self, sample_rate=real_up(sample_rate, "sample_rate"))  # dp-accounting samples the distribution

    def divergence(self, order: Number) -> float:
        # The Rényi divergence of Laplace noise (Mironov 2017, proposition 6).
        order = order_of(order)
        if self.sample_rate < 1:
            return super().sampled(self.sample_rate).divergence(order)
        if not _LEAST < order * self.epsilon < _MOST:
            return super().divergence(order)
        with precise(QUICK):
            alpha, loss = Decimal(order), Decimal(self.epsilon) * (1 + 2 / Decimal(self.sensitivity))
            mean = (alpha * ((alpha - 1) * loss).exp() + (alpha - 1) * (-alpha * loss).exp()) / (2 * alpha - 1)
            return above(mean.ln() / (alpha - 1))

    def pld(self, count: Integer) -> Any:
        times = self._checked(count)
        return _repeated(_distribution("laplace", 1.0, self.sample_rate, sensitivity=self._widened), times)

    @property
    def _widened(self) -> float:
        return self.epsilon * (1 + 2 / self.sensitivity)


@dataclass(frozen=True)
class DiscreteLaplaceLoss(LaplaceLoss):
    """Discrete Laplace noise of scale sensitivity/epsilon, with a sensitivity of exactly ``sensitivity`` grid steps.

    Parameters
    ----------
    epsilon : float
        The ratio of the sensitivity to the scale of the noise: positive and finite.
    sensitivity : int
        The sensitivity in the L1 norm, in steps of the grid; at least 1.
    sample_rate : float, default 1.0
        The probability of each person to be in the sample that is released from, from 2**-1022 to 1.
    """

    def divergence(self, order: Number) -> float:
        # The sum of three geometric series.
        order = order_of(order)
        if self.sample_rate < 1 or not _LEAST * self.sensitivity < order * self.epsilon < _MOST:
            return super().divergence(order)
        with precise(QUICK):
            alpha, loss = Decimal(order), Decimal(self.epsilon)
            step = loss / self.sensitivity
            first, last = ((1 - 2 * alpha) * step).exp(), ((1 - 2 * alpha) * loss).exp()
            middle = (1 - (-step).exp()) / (1 - first) * (first - last)
            mean = (1 + last + middle) / (1 + (-step).exp())
            return above(loss + mean.ln() / (alpha - 1))

    def pld(self, count: Integer) -> Any:
        # The noise is enumerated, unless it has too many steps.
        if self.sensitivity > _ENUMERABLE:
            return super().pld(count)
        times = self._checked(count)
        step, exact = self.epsilon / self.sensitivity, {"sensitivity": self.sensitivity, "use_connect_dots": True}
        return _repeated(_distribution("discrete_laplace", step, self.sample_rate, **exact), times)


@dataclass(frozen=True)
class DiscreteGaussianLoss(PrivacyLoss):
    """Discrete Gaussian noise in each value, for a sensitivity in the L2 norm; both in grid steps.

    For a sensitivity below sqrt(2) steps just one value differs, by one step. Otherwise the noise is treated as
    continuous Gaussian noise of variance ``sigma**2 - 3`` that is rounded at random; `pld_slack` has the difference.

    Parameters
    ----------
    sigma : float
        The parameter of the noise in each value, nearly its standard deviation, in steps of the grid: positive and
        finite.
    sensitivity : float
        The sensitivity in the L2 norm, in steps of the grid: positive and finite.
    sample_rate : float, default 1.0
        The probability of each person to be in the sample that is released from, from 2**-1022 to 1.
    rounded : bool, default False
        Whether rounding adds steps to the sensitivity of arrays, whose noise then grows by the same factor or more.
    """

    sigma: float
    sensitivity: float
    sample_rate: float = 1.0
    rounded: bool = False
    epsilon = math.inf

    @property
    def span(self) -> float:
        """The loss where the noise is twelve standard deviations."""
        multiplier = self.sigma / self.sensitivity
        return 12 / multiplier + 0.5 / multiplier**2

    @property
    def rdp_slack(self) -> float:
        """Zero without sampling; with sampling, the slack of continuous noise."""
        return self._smoothing_slack if self.sample_rate < 1 else 0.0

    @property
    def pld_slack(self) -> float:
        """The slack of the truncated tails, or of continuous noise."""
        return 2 * _TRUNCATED if self._enumerable else self._smoothing_slack

    def sampled(self, sample_rate: Number) -> PrivacyLoss:
        return replace(self, sample_rate=real_up(sample_rate, "sample_rate"))  # dp-accounting samples the distribution

    @property
    def rho(self) -> float:
        """``(sensitivity / sigma)**2 / 2`` (Canonne, Kamath and Steinke 2020, theorem 14), also of a sample."""
        return upward((Fraction(self.sensitivity) / Fraction(self.sigma)) ** 2 / 2)

    def divergence(self, order: Number) -> float:
        # For a sample it is the divergence of Mironov, Talwar and Zhang (2019), section 3.3: a finite sum for whole
        # orders; for others, and those above 2**10, dp-accounting computes it, unless its rounding errors, above 1e-15,
        # matter: a divergence is at most that of a larger order.
        order, variance = order_of(order), Fraction(self.sigma) ** 2
        all_data = upward(Fraction(order) * Fraction(self.sensitivity) ** 2 / variance / 2)
        if self.sample_rate == 1:
            return all_data
        if order % 1 or order > 2**10:
            library = dp_accounting()
            event = library.PoissonSampledDpEvent(self.sample_rate, library.GaussianDpEvent(self._smooth_multiplier))
            with _unlogged():  # infinity where its series does not converge, and 0 or a little less for tiny rates
                found = float(library.rdp.RdpAccountant([order]).compose(event).rdp[0])
            if order < 2**10 and (order - 1) * found < _ROUNDED_AWAY:
                found = self.divergence(math.ceil(order))
            return min(max(found, 0.0), all_data)
        exponent = Fraction(self.sensitivity) ** 2 / (variance - Fraction(self._smoothing))
        if not _LEAST < exponent < _MOST or self.sample_rate < _LEAST:
            return all_data
        with precise(QUICK):
            rate, growth = Decimal(self.sample_rate), (Decimal(exponent.numerator) / exponent.denominator).exp()
            term = total = (1 - rate) ** int(order)
            factor = rate / (1 - rate)
            for taken in range(int(order)):
                term *= factor * (int(order) - taken) / (taken + 1)
                factor *= growth
                total += term
            return above(total.ln() / (Decimal(order) - 1))

    def pld(self, count: Integer) -> Any:
        # The noise of a single value is enumerated; otherwise it is taken as continuous.
        times = self._checked(count)
        if self._enumerable:
            scalar = _distribution("discrete_gaussian", self.sigma, self.sample_rate, use_connect_dots=True)
            return _repeated(scalar, times)
        together = times if self.sample_rate == 1 else 1  # without sampling, one release with less noise
        scale = self._smooth_multiplier / math.sqrt(together)
        return _repeated(_distribution("gaussian", scale, self.sample_rate), times // together)

    @property
    def _enumerable(self) -> bool:
        return not self.rounded and self.sensitivity**2 * _ROUNDED_ROOT < 2 and self.sigma <= _ENUMERABLE / 10

    @property
    def _smoothing(self) -> float:
        return min(_SMOOTHING, self.sigma**2 / 2)

    @property
    def _smooth_multiplier(self) -> float:
        return math.sqrt(self.sigma**2 - self._smoothing) / self.sensitivity

    @property
    def _smoothing_slack(self) -> float:
        wave = math.exp(-2 * math.pi**2 * self._smoothing)
        ripple = 2 * wave / (1 - wave)
        each = math.log1p(ripple) - math.log1p(-ripple) if ripple < 1 else math.inf
        moving = math.floor(self.sensitivity**2 * _ROUNDED_ROOT)
        return each * (_LONGEST if self.rounded else min(moving, _LONGEST))


@dataclass(frozen=True)
class RepeatedLoss(PrivacyLoss):
    """Several releases of one loss as a single release: a whole run, which cannot be sampled again."""

    loss: PrivacyLoss
    times: int
    epsilon = math.inf

    @property
    def relation(self) -> Relation | None:
        return self.loss.relation

    @property
    def person(self) -> str | None:
        return self.loss.person

    @property
    def span(self) -> float:
        return self.loss.span

    @property
    def rdp_slack(self) -> float:
        return self.times * self.loss.rdp_slack

    @property
    def pld_slack(self) -> float:
        return self.times * self.loss.pld_slack

    def sampled(self, sample_rate: Number) -> PrivacyLoss:
        """Refuse to sample: the run accounts for its sampling already."""
        raise ParameterError(f"sample_rate must be 1 for a whole run, got {sample_rate!r}")

    @property
    def delta(self) -> float:  # type: ignore[override]
        return min(self._all(self.loss.delta), 1.0)

    @property
    def rho(self) -> float:
        return self._all(self.loss.rho)

    def divergence(self, order: Number) -> float:
        return self._all(self.loss.divergence(order))

    def pld(self, count: Integer) -> Any:
        return self.loss.pld(integer(count, "count", range(1, 2**63)) * self.times)

    def _all(self, amount: float) -> float:
        return upward(self.times * exact_of(amount)) if amount < math.inf else math.inf


def order_of(order: Number) -> float:
    number = real_up(order, "order")
    if not 1 < number < math.inf:
        raise ParameterError(f"order must be above 1 and finite, got {number!r}")
    return number


def dp_accounting() -> Any:
    return require("dp_accounting", "accounting")


@contextmanager
def _unlogged() -> Iterator[None]:
    """Drop what dp-accounting logs in this thread meanwhile: its warnings concern bounds that are not used."""
    thread, logger = get_ident(), logging.getLogger("absl")

    def of_others(_: logging.LogRecord) -> bool:
        return get_ident() != thread  # a record need not say it

    logger.addFilter(of_others)
    try:
        yield
    finally:
        logger.removeFilter(of_others)


def _distribution(noise: str, scale: float, sample_rate: float, **options: Any) -> Any:
    """Make the loss distribution of a kind of noise by dp-accounting, which names the scale differently."""
    make = getattr(dp_accounting().pld.privacy_loss_distribution, f"from_{noise}_mechanism")
    return make(scale, value_discretization_interval=_INTERVAL, sampling_prob=sample_rate, **options)


def _connected(points: NDArray[np.int64], deltas: Floats, count: int) -> Any:
    """Make a distribution of losses from the smallest deltas at some points of the grid, the last of which has none."""
    library = dp_accounting().pld
    deltas = np.maximum(deltas, 0.0)  # they may be rounded to less
    deltas[-1] = 0.0
    pmf = library.pld_pmf.create_pmf_pessimistic_connect_dots(_INTERVAL, points, np.minimum.accumulate(deltas))
    return _repeated(library.privacy_loss_distribution.PrivacyLossDistribution(pmf), count)


def _repeated(distribution: Any, count: int) -> Any:
    """Compose by thousands: dp-accounting finds the tails of a long sum only if its parts are long."""
    thousands, rest = divmod(count, 1000)
    if not thousands:
        return distribution.self_compose(rest) if rest > 1 else distribution
    many = _repeated(distribution.self_compose(1000, tail_mass_truncation=1e-15 / thousands), thousands)
    return many.compose(_repeated(distribution, rest)) if rest else many


class Mechanism(Protocol):
    """The interface that a ledger and an accountant need."""

    @property
    def relation(self) -> Relation | None:
        """The neighbouring relation; None for the relation of the given sensitivity."""

    @property
    def person(self) -> str | None:
        """The column that says whose a row is; None if each row is a person of its own."""

    @property
    def cost(self) -> PrivacyCost:
        """The cost of a release."""

    def release(self, x: Any, /) -> Any:
        """Release a value."""

    def _taken(self, x: Any, /) -> Any:
        """Read input once, and refuse it if it is invalid."""

    def _loss(self) -> PrivacyLoss | PrivacyCost:
        """Return a bound on the privacy loss of a release."""

    def _zcdp(self) -> ZcdpCost | None:
        """Return the cost in zero-concentrated differential privacy, if it does not follow from the loss."""


def charged(given: Any, name: str) -> Any:
    """Return a cost, a privacy loss or a mechanism for `loss_of`, and of what has just a cost that; refuse all else.

    Ledgers and accountants charge what this returns, and nothing else.
    """
    if isinstance(given, PrivacyCost | ZcdpCost | RenyiCost):
        return given.plain()
    if isinstance(given, PrivacyLoss):
        found, delta = given.epsilon, given.delta
        if not (found >= 0 and 0 <= delta <= 1):  # of a class of the caller's
            raise ParameterError(f"{name} must be zero or more, got epsilon={found!r}, delta={delta!r}")
        return given
    if hasattr(given, "_loss") and not isinstance(given, type):
        loss, cost = loss_of(given), None
        if getattr(loss, "epsilon", math.inf) < math.inf:  # otherwise the two cannot be compared
            cost = rounded_cost(given.cost, "cost")
        if cost is not None and (loss.epsilon, loss.delta) != (cost.epsilon, cost.delta):
            raise ParameterError(
                f"{name} must be a mechanism of one cost, got {type(given).__name__} with {cost.amounts()} by its cost "
                f"and epsilon={loss.epsilon!r}, delta={loss.delta!r} by its privacy loss"
            )
        stated = (None, None) if cost is None else (cost.relation, cost.person)
        if stated not in ((None, None), (given.relation, given.person)):
            raise ParameterError(
                f"{name} must be a mechanism of one relation and person, got {type(given).__name__} with "
                f"relation={given.relation!r}, person={given.person!r} and the cost {cost!r}"
            )
        return given
    if not isinstance(cost := getattr(given, "cost", None), PrivacyCost):
        raise TypeError(f"{name} must be a PrivacyCost or a mechanism, got {type(given).__name__}")
    return cost.plain()


def loss_of(charged: Any) -> Any:
    """Return the loss of one release of what `charged` gave: a PrivacyLoss, a ZcdpCost or a RenyiCost."""
    found = charged if isinstance(charged, Cost | PrivacyLoss) else charged._loss()
    if isinstance(found, PrivacyCost):
        found = rounded_cost(found, "cost")
        return ApproximateLoss(found.epsilon, found.delta)
    if not isinstance(found, PrivacyLoss | ZcdpCost | RenyiCost):
        raise TypeError(
            f"the privacy loss of {type(charged).__name__} must be a PrivacyLoss, got {type(found).__name__}"
        )
    return found
