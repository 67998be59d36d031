"""Tight composition, on the dp-accounting package."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NoReturn

import numpy as np

from dpnoise._errors import ParameterError
from dpnoise._numbers import check_word, integer, real_down, real_up
from dpnoise._types import Integer, Number
from dpnoise.accounting._cost import (
    PrivacyCost,
    check_neighbours,
    decimal_of,
    exact_of,
    exact_sum,
    precise,
    unit_of,
    up,
)
from dpnoise.accounting._losses import (
    LARGEST_DIVERGENCE,
    SMALLEST_RATE,
    WIDEST,
    Mechanism,
    PrivacyLoss,
    charged,
    dp_accounting,
    loss_of,
)
from dpnoise.sensitivity import Relation, check_person, check_relation

_ROUNDING: Final = 1e-13  # the error of a Fourier transform of dp-accounting


class Accountant:
    """The joint cost of many releases from the same data, tighter than the sum of their costs.

    Parameters
    ----------
    method : {"pld", "rdp"}, default "pld"
        Privacy-loss distributions, which are tighter, or Rényi divergences, which are faster: the moments accountant.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one row is added or removed, and the number of rows is private;
        `"substitute"`: one row is replaced, and the number of rows is public. A row is a person, without ``person``.
        All composed costs must have this relation.
    person : str, optional
        The name of the column that says whose a row is: neighbours then differ by all rows of one person, who is added
        or removed. By default each row is a person of its own. All composed costs must be for the same persons.

    Attributes
    ----------
    LARGEST_DIVERGENCE : float
        The most, for "pld", that the Rényi divergence of order 2 of all releases may be: larger distributions would not
        fit in memory.

    Notes
    -----
    The accountant needs dp-accounting, which the extra ``accounting`` brings.

    The input of a release may depend on earlier releases; the choice of mechanisms must not. If you state a mechanism's
    sensitivity, it must hold for the accountant's relation.

    The accountant uses the noise distribution and the grid of each mechanism of dpnoise. The bounds on their losses are
    proved; dp-accounting then computes in floating point. For "pld" it rounds losses up, and 1e-13 is added to every
    delta for its Fourier transforms, and once more for each kind of release. That is four times the largest error in
    comparisons with exact sums, and not proved. For "rdp" nothing is added: only the 15th digit is rounded.
    No epsilon is above the sum of all epsilons, if all releases have one.

    References
    ----------
    Doroshenko, Ghazi, Kamath, Kumar and Manurangsi (2022), "Connect the dots: tighter discrete approximations of
    privacy loss distributions"; Mironov (2017), "Rényi differential privacy"; Zhu, Dong and Wang (2022), "Optimal
    accounting of differential privacy via characteristic function", for dominating pairs.

    Examples
    --------
    >>> from dpnoise import Laplace
    >>> from dpnoise.accounting import Accountant
    >>> accountant = Accountant().compose(Laplace(epsilon=0.1), 100)
    >>> round(accountant.epsilon(1e-6), 2)
    4.69
    """

    __slots__ = ("_composed", "_counts", "_method", "_person", "_relation")

    LARGEST_DIVERGENCE: ClassVar[float] = LARGEST_DIVERGENCE

    def __init__(
        self,
        *,
        method: Literal["pld", "rdp"] = "pld",
        relation: Relation = "add/remove",
        person: str | None = None,
    ) -> None:
        check_relation(relation)
        check_person(person, relation)
        check_word(method, "method", "pld", "rdp")
        dp_accounting()
        self._method: Literal["pld", "rdp"] = method
        self._relation = relation
        self._person = person
        self._counts: Counter[PrivacyLoss] = Counter()
        self._composed: Any = None

    @property
    def relation(self) -> Relation:
        """The neighbouring relation."""
        return self._relation

    @property
    def person(self) -> str | None:
        """The name of the column that says whose a row is; None if each row is a person of its own."""
        return self._person

    def compose(
        self, mechanism: Mechanism | PrivacyCost | PrivacyLoss, count: Integer = 1, *, sample_rate: Number = 1.0
    ) -> Accountant:
        """Add releases.

        Parameters
        ----------
        mechanism : mechanism, PrivacyCost or PrivacyLoss
            A mechanism of dpnoise, or the cost or the privacy loss of a mechanism of another library.
        count : int, default 1
            The number of releases, at least 1.
        sample_rate : float, default 1.0
            The probability of each person to be in the sample, if each release is from its own secret Poisson
            subsample; from 2**-1022 to 1. Neighbours then differ by one person who is added or removed, and the
            sensitivity must hold for these. All rows of a person are in the sample, or none.

        Raises
        ------
        ParameterError
            For "pld", when a release may reveal a loss above 200, or all releases together have a divergence of order 2
            above `LARGEST_DIVERGENCE`; or when the noise has so few steps and so large a sensitivity that no bound on
            its distribution is known; or when the mechanism is for another neighbouring relation or other persons, or
            is to be sampled under "substitute".
        """
        times = integer(count, "count", range(1, 2**53))
        rate = real_up(sample_rate, "sample_rate")
        if not SMALLEST_RATE <= rate <= 1:
            raise ParameterError(f"sample_rate must be from 2**-1022 to 1, got {rate!r}")
        found = _charged(mechanism)
        loss: PrivacyLoss = loss_of(found)
        check_neighbours("mechanism", found, self._relation, self._person, "accountant")
        if rate < 1:
            if self._relation == "substitute":
                raise ParameterError(
                    f'sample_rate must be 1 for relation "substitute", got {rate!r}: such samples are for "add/remove"'
                )
            loss = loss.sampled(rate)
        if self._method == "pld" and loss.span > WIDEST:
            raise ParameterError(
                f"mechanism must have a loss of at most {WIDEST:g} for 'pld', got {mechanism!r}{self._other(loss)}"
            )
        if math.isinf(self._slack_of(loss)):
            raise ParameterError(
                f"mechanism must have more noise for {self._method!r}, got {mechanism!r}{self._other(loss)}"
            )
        if self._method == "pld" and self._divergence(loss, times) > self.LARGEST_DIVERGENCE:
            raise ParameterError(
                f"count must be smaller for 'pld', or mechanism have more noise, got {times}{self._other(loss)}"
            )
        self._counts[loss] += times
        self._composed = None
        return self

    def epsilon(self, delta: Number) -> float:
        """Return the smallest epsilon that is known to hold for all releases together, or infinity.

        Parameters
        ----------
        delta : float
            The delta of all releases together, from 0 to 1. A delta of 1 gives an epsilon of 0.

        Raises
        ------
        ParameterError
            For "pld", when delta is so small that rounding decides.
        """
        target = real_down(delta, "delta")
        if not 0 <= target <= 1:
            raise ParameterError(f"delta must be from 0 to 1, got {target!r}")
        if target == 1:
            return 0.0
        sequential, failure, slack = self._sequential, self._failure, self._slack
        if target < failure:
            return math.inf
        spare = (target - failure) / (1 - failure)
        room = spare * math.exp(-slack) - self._rounding
        if room > 0:
            return min(sequential, self._tight_epsilon(room) + 2 * slack)
        if spare and math.isinf(sequential):
            raise ParameterError(
                f"delta must be larger for {self._method!r}, where rounding decides, got {target!r}{self._other()}"
            )
        return sequential

    def delta(self, epsilon: Number) -> float:
        """Return the smallest delta that is known to hold for all releases together, at most 1.

        Parameters
        ----------
        epsilon : float
            The epsilon of all releases together, zero or more. Infinity gives the delta that remains however large
            epsilon is.
        """
        target = real_down(epsilon, "epsilon")
        if not target >= 0:
            raise ParameterError(f"epsilon must be zero or more, got {target!r}")
        failure, slack = self._failure, self._slack
        if target >= self._sequential:
            return failure
        if slack > self.LARGEST_DIVERGENCE:
            return 1.0  # there is no bound, and the factor might overflow
        tight = math.exp(slack) * self._tight_delta(target - 2 * slack) + self._rounding
        # Below the sum of all epsilons delta is not 0, even where the library rounds it to 0.
        return min(max(failure + (1 - failure) * tight, math.ulp(0.0)), 1.0)

    def _other(self, *more: PrivacyLoss) -> str:
        """Name the method that takes what this one refuses, if it does."""
        known = all(loss.rdp_slack < math.inf for loss in (*self._counts, *more))
        return ": Accountant(method='rdp') takes it" if self._method == "pld" and known else ""

    def _divergence(self, loss: PrivacyLoss, count: int) -> float:
        """Return the Rényi divergence of order 2 of the composed releases and ``count`` more."""
        return sum(times * other.divergence(2.0) for other, times in (*self._counts.items(), (loss, count)))

    @property
    def _sequential(self) -> float:
        if any(math.isinf(loss.epsilon) for loss in self._counts):
            return math.inf
        return up(exact_sum(count * exact_of(loss.epsilon) for loss, count in self._counts.items()))

    @property
    def _failure(self) -> float:
        with precise():
            successes = ((1 - decimal_of(loss.delta)) ** count for loss, count in self._counts.items())
            return up(1 - math.prod(successes, start=Decimal(1)))

    @property
    def _slack(self) -> float:
        return sum(count * self._slack_of(loss) for loss, count in self._counts.items())

    def _slack_of(self, loss: PrivacyLoss) -> float:
        return loss.pld_slack if self._method == "pld" else loss.rdp_slack

    @property
    def _rounding(self) -> float:
        return _ROUNDING * (1 + len(self._counts)) if self._method == "pld" else 0.0

    def _tight_epsilon(self, delta: float) -> float:
        if self._method == "pld":
            return float(self._distribution().get_epsilon_for_delta(delta))
        return float(_rdp().compute_epsilon(*self._divergences(), delta)[0])

    def _tight_delta(self, epsilon: float) -> float:
        if self._method == "pld":
            return float(self._distribution().get_delta_for_epsilon(epsilon))
        # dp-accounting takes no epsilon below 0, where delta is larger by at most 1 - exp(epsilon).
        return float(_rdp().compute_delta(*self._divergences(), max(epsilon, 0.0))[0]) - math.expm1(min(epsilon, 0.0))

    def _distribution(self) -> Any:
        """Compose equal releases by one power of a Fourier transform; the result is kept until more are added."""
        if self._composed is None:
            composed = dp_accounting().pld.privacy_loss_distribution.identity()
            for loss, count in self._counts.items():
                composed = composed.compose(loss.pld(count))
            self._composed = composed
        return self._composed

    def _divergences(self) -> Any:
        """Add up the divergences of dp-accounting's orders; the sums are kept until more releases are added."""
        if self._composed is None:
            orders = np.array(_rdp().DEFAULT_RDP_ORDERS, np.float64)
            sums = [sum(count * loss.divergence(order) for loss, count in self._counts.items()) for order in orders]
            self._composed = orders, np.array(sums, np.float64)
        return self._composed

    if not TYPE_CHECKING:  # checkers would take every name

        def __getattr__(self, name: str) -> NoReturn:
            """Say what a name of other libraries is here."""
            hint = ", use epsilon(delta)" if name in ("get_epsilon", "get_privacy_spent") else ""
            raise AttributeError(f"{type(self).__name__} has no {name}{hint}")

    def __copy__(self) -> Accountant:
        """Return an accountant of the same releases, to which others can be added than to this one."""
        made = type(self)(method=self._method, relation=self._relation, person=self._person)
        made._counts, made._composed = self._counts.copy(), self._composed
        return made

    def __repr__(self) -> str:
        persons = "" if self._person is None else f" of {unit_of(self._person)}"
        releases = f"{self._counts.total()} releases, neighbours by {self._relation!r}{persons}"
        return f"<Accountant by {self._method!r} of {releases}>"


def _rdp() -> Any:
    return dp_accounting().rdp.rdp_privacy_accountant


def _charged(mechanism: Any) -> Any:
    known = isinstance(mechanism, PrivacyCost | PrivacyLoss) or hasattr(mechanism, "_loss")
    if not known or isinstance(mechanism, type):
        raise TypeError(
            f"mechanism must be a mechanism of dpnoise, a PrivacyCost or a PrivacyLoss, got {type(mechanism).__name__}"
        )
    return charged(mechanism, "mechanism")
