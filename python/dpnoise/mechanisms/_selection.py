"""Mechanisms that choose the best of many."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, Final, overload

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._arrays import doubles, reals_of
from dpnoise._columns import labels_of
from dpnoise._errors import ParameterError
from dpnoise._numbers import at_least
from dpnoise._types import Integer, Labels, Number, Real, Reals, Rng
from dpnoise.accounting import BoundedRangeLoss, PrivacyLoss, ZcdpCost
from dpnoise.mechanisms._mechanism import Mechanism

_VARIED: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class SelectionMechanism(Mechanism):
    """A mechanism that rounds scores to a grid and chooses among them."""

    __slots__ = ()

    _native: _native.Selection

    _parameters: ClassVar[tuple[str, ...]] = ("epsilon", "sensitivity", "monotonic")

    @property
    def sensitivity(self) -> float:
        """The most that a score changes between neighbours."""
        return self._native.sensitivity

    @property
    def monotonic(self) -> bool:
        """Whether all scores change in the same direction."""
        return self._native.monotonic

    @property
    def scale(self) -> float:
        """The scale, in the scores' unit: a score that is lower by the scale has a weight that is e times smaller."""
        return self._native.scale

    @property
    def granularity(self) -> float:
        """The step of the grid that scores are rounded to, a power of two near ``scale / 2**40``."""
        return self._native.granularity

    def error(self, count: Integer, level: Number = 0.95) -> float:  # type: ignore[override]
        """Bound how far a chosen score is below the best one.

        For `TopK` it is the distance to the best remaining score, for each choice. The bound is ``scale * ln(count / (1
        - level))``, and a step for the rounding.

        Parameters
        ----------
        count : int
            The number of candidates, from 1 to 2**64 - 1.
        level : float, default 0.95
            The probability with which the bound holds: between 0 and 1, both excluded.
        """
        return self._native.error(count, level)

    @abstractmethod
    def release(self, scores: Reals, *, candidates: Labels | None = None, rng: Rng = None) -> Any:
        """Choose by scores.

        Parameters
        ----------
        scores : array_like
            A finite real number for each candidate, of one dimension; higher is better. Integers up to 2**53 in
            magnitude. Scores more than 2**51 steps of the grid below the best one are clamped to that distance.
        candidates : list, array or column, optional
            The public candidates, in the order of their scores and as many; their indices by default. Do not take them
            from the data.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        object
            The choice, as the mechanism makes it.
        """

    def release_best(self, data: Any, candidates: Labels, utility: Callable[..., Real], *, rng: Rng = None) -> Any:
        """Choose among candidates by their utility for the data: `release` with the scores computed first.

        Parameters
        ----------
        data : object
            The private data, as ``utility`` takes them.
        candidates : list, array or column
            The public candidates: the possible outputs. Do not take them from the data.
        utility : callable
            The score function, of two parameters in any order: the one named ``data`` gets the data, the other one a
            candidate. Other parameters need defaults. The score is a finite real number that is higher for better
            candidates, and changes by at most ``sensitivity`` between neighbours. The function's running time and
            exceptions are outside the guarantee.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        object
            The chosen candidate, or by `TopK` the list of those that were chosen; items of arrays and columns as
            Python's own types.

        Examples
        --------
        >>> from dpnoise import Exponential
        >>> prices = Exponential(epsilon=1.0, sensitivity=5, monotonic=True)
        >>> offers = [1.2, 3.5, 4.1, 4.8] * 250
        >>> def revenue(data, price):
        ...     return price * sum(offer >= price for offer in data)
        >>> best = prices.release_best(offers, candidates=[1, 2, 3, 4, 5], utility=revenue)
        """
        score = _score(utility, data)
        if not (listed := labels_of(candidates, "candidates")):
            raise ParameterError("candidates must not be empty")
        return self.release([score(candidate) for candidate in listed], candidates=listed, rng=rng)

    def _chosen(self, scores: Any, candidates: Labels | None, rng: Rng) -> list[Any]:
        given = _scores(scores)
        named = range(len(given)) if candidates is None else labels_of(candidates, "candidates")
        if len(named) != len(given):
            raise ParameterError(
                f"candidates must have one item for each of the {len(given)} scores, got {len(named)} items"
            )
        return [named[place] for place in self._native.release(given, rng)]


class OneOfMany(SelectionMechanism):
    """A mechanism that chooses one candidate."""

    __slots__ = ()

    @overload
    def release(self, scores: Reals, *, candidates: None = None, rng: Rng = None) -> int: ...
    @overload
    def release(self, scores: Reals, *, candidates: Labels, rng: Rng = None) -> Any: ...
    def release(self, scores: Reals, *, candidates: Labels | None = None, rng: Rng = None) -> Any:
        """Choose a candidate.

        Parameters
        ----------
        scores : array_like
            A finite real number for each candidate, of one dimension; higher is better. Integers up to 2**53 in
            magnitude. Scores more than 2**51 steps of the grid below the best one are clamped to that distance.
        candidates : list, array or column, optional
            The public candidates, in the order of their scores and as many; their indices by default. Do not take them
            from the data.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        int or object
            The index of the chosen score, or the candidate if there are ``candidates``; items of arrays and columns as
            Python's own types.
        """
        return self._chosen(scores, candidates, rng)[0]


def _score(utility: Callable[..., Any], data: Any) -> Callable[[Any], Any]:
    """Return the score of a candidate, for data that go to the parameter of that name: the order is not guessed."""
    if not callable(utility):
        raise TypeError(f"utility must be a function of the data and a candidate, got {type(utility).__name__}")
    try:
        signature = inspect.signature(utility)
    except (TypeError, ValueError):  # a function of C
        signature = inspect.Signature()
    taken = {one.name: one for one in signature.parameters.values() if one.kind not in _VARIED}
    needed = [name for name, one in taken.items() if one.default is one.empty]
    others = [name for name in needed if name != "data"]
    if len(others) != 1 or "data" not in taken:
        raise TypeError(
            "utility must have a parameter named data and one other without a default, for the candidate, such as "
            f"lambda data, candidate: ..., got ({', '.join(needed)})"
        )

    def score(candidate: Any) -> Any:
        call = inspect.BoundArguments(signature, OrderedDict({"data": data, others[0]: candidate}))
        call.apply_defaults()  # those before data that has no name in calls
        return utility(*call.args, **call.kwargs)

    return score


def _scores(scores: Any) -> NDArray[np.float64]:
    """Take scores as a contiguous float64 array, exactly; no message may show a score."""
    given = reals_of(scores, "scores", tables=False)
    if given.ndim != 1:
        raise ParameterError(f"scores must have one dimension, got {given.ndim}")
    return doubles(given)


class Exponential(OneOfMany):
    r"""The exponential mechanism: a candidate with probability proportional to ``exp(score / scale)``, exactly.

    Scores are rounded to a grid first, and the sensitivity to whole steps of it; from there on no probability is
    approximated. The release is epsilon-differentially private for neighbouring data sets between which each score
    changes by at most ``sensitivity``.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive and finite.
    sensitivity : float, default 1.0
        The most that a score changes between neighbours, in the scores' unit: positive and finite, with ``sensitivity /
        epsilon`` below 2**900.
    monotonic : bool, default False
        Whether between neighbours all scores rise or all fall, as counts do when a person is added or removed. The
        scale is ``sensitivity / epsilon`` then, and ``2 * sensitivity / epsilon`` otherwise.

    Notes
    -----
    The granularity of the grid is a power of two near ``scale / 2**40``: rounding changes no probability by more than a
    factor ``1 + 2**-39``. Time and memory accesses depend on neither scores nor choice.

    The mechanism has bounded range. So its cost under zero-concentrated differential privacy, ``rho``, is smaller than
    the cost of other epsilon-differentially private mechanisms.

    References
    ----------
    McSherry and Talwar (2007), "Mechanism design via differential privacy"; Cesar and Rogers (2021), "Bounding,
    concentrating, and truncating: unifying privacy loss composition for data analytics", for the monotonic case and
    ``rho``.

    Examples
    --------
    >>> from dpnoise import Exponential
    >>> votes = [120, 80, 119]
    >>> winner = Exponential(epsilon=1.0, monotonic=True).release(votes, candidates=["tea", "coffee", "water"])
    """

    __slots__ = ()

    def __init__(self, *, epsilon: Number, sensitivity: Number = 1.0, monotonic: bool = False) -> None:
        self._native = _native.Selection.exponential(epsilon, sensitivity, monotonic)

    @property
    def rho(self) -> float:
        """The cost under zero-concentrated differential privacy, ``epsilon**2 / 8``, rounded up.

        For an epsilon above 8 it is the smaller rho of every mechanism with that epsilon.
        """
        return self._loss().rho

    def _loss(self) -> PrivacyLoss:
        return BoundedRangeLoss(self.epsilon)


class ReportNoisyMax(OneOfMany):
    """The candidate of the largest noisy score, with one-sided geometric noise: permute-and-flip, exactly.

    Scores are rounded to a grid, each gets noise n = 0, 1, 2, ... steps with probability proportional to ``exp(-n *
    granularity / scale)``, and the largest sum wins, ties being broken evenly. On a grid this equals permute-and-flip:
    visit candidates in random order, and choose the first one whose coin shows heads, with probability
    ``exp((score - best) / scale)``. The release is epsilon-differentially private for neighbouring data sets between
    which each score changes by at most ``sensitivity``.

    Its expected score is never below the expected score of `Exponential` at the same epsilon.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive and finite.
    sensitivity : float, default 1.0
        The most that a score changes between neighbours, in the scores' unit: positive and finite, with ``sensitivity /
        epsilon`` below 2**900.
    monotonic : bool, default False
        Whether between neighbours all scores rise or all fall, as counts do when a person is added or removed. The
        scale is ``sensitivity / epsilon`` then, and ``2 * sensitivity / epsilon`` otherwise.

    Notes
    -----
    It does not have bounded range: its cost under zero-concentrated differential privacy is that of every
    epsilon-differentially private mechanism (`accounting.pure_zcdp_rho`), and not the ``epsilon**2 / 8`` of
    `Exponential`.

    Time and memory accesses depend on neither scores nor choice.

    References
    ----------
    McKenna and Sheldon (2020), "Permute-and-flip: a new mechanism for differentially private selection"; Ding, Kifer,
    Sayed Mohammad, Steinke, Wang, Xiao and Zhang (2021), "The permute-and-flip mechanism is identical to
    report-noisy-max with exponential noise".

    Examples
    --------
    >>> from dpnoise import ReportNoisyMax
    >>> votes = [120, 80, 119]
    >>> winner = ReportNoisyMax(epsilon=1.0, monotonic=True).release(votes)
    """

    __slots__ = ()

    def __init__(self, *, epsilon: Number, sensitivity: Number = 1.0, monotonic: bool = False) -> None:
        self._native = _native.Selection.report_noisy_max(epsilon, sensitivity, monotonic)


PermuteAndFlip = ReportNoisyMax
"""Another name of `ReportNoisyMax`: the two have the same distribution."""


class TopK(SelectionMechanism):
    """The ``k`` best candidates, by peeling: the exponential mechanism ``k`` times, without replacement.

    Each of the ``k`` rounds spends ``epsilon / k``. The ordered release has the same distribution as the ``k`` largest
    scores after Gumbel noise is added to each. It is epsilon-differentially private for neighbouring data sets
    between which each score changes by at most ``sensitivity``.

    Parameters
    ----------
    k : int
        The number of candidates to choose, from 1 to 2**32 - 1.
    epsilon : float
        The privacy parameter of all rounds together: positive and finite.
    sensitivity : float, default 1.0
        The most that a score changes between neighbours, in the scores' unit: positive and finite, with ``k *
        sensitivity / epsilon`` below 2**900.
    monotonic : bool, default False
        Whether between neighbours all scores rise or all fall, as counts do when a person is added or removed. The
        scale is ``k * sensitivity / epsilon`` then, and ``2 * k * sensitivity / epsilon`` otherwise.

    Notes
    -----
    Time and memory accesses depend on neither scores nor choices.

    References
    ----------
    Durfee and Rogers (2019), "Practical differentially private top-k selection with pay-what-you-get composition".

    Examples
    --------
    >>> from dpnoise import TopK
    >>> first, second = TopK(k=2, epsilon=1.0, monotonic=True).release([120, 80, 119])
    """

    __slots__ = ()

    _parameters = ("k", "epsilon", "sensitivity", "monotonic")

    def __init__(self, *, k: Integer, epsilon: Number, sensitivity: Number = 1.0, monotonic: bool = False) -> None:
        self._native = _native.Selection.top_k(k, epsilon, sensitivity, monotonic)

    @property
    def k(self) -> int:
        """How many candidates are chosen."""
        return self._native.k

    @property
    def rho(self) -> float:
        """The cost under zero-concentrated differential privacy, ``epsilon**2 / (8 * k)``, rounded up.

        For an epsilon above ``8 * k`` it is the smaller rho of k mechanisms with ``epsilon / k`` each.
        """
        return self._zcdp().rho

    def _zcdp(self) -> ZcdpCost:
        return ZcdpCost(BoundedRangeLoss(at_least(Fraction(self.epsilon) / self.k)).repeated(self.k).rho)

    @overload
    def release(self, scores: Reals, *, candidates: None = None, rng: Rng = None) -> NDArray[np.int64]: ...
    @overload
    def release(self, scores: Reals, *, candidates: Labels, rng: Rng = None) -> list[Any]: ...
    def release(self, scores: Reals, *, candidates: Labels | None = None, rng: Rng = None) -> Any:
        """Choose candidates.

        Parameters
        ----------
        scores : array_like
            A finite real number for each candidate, of one dimension, at least ``k`` of them; higher is better.
            Integers up to 2**53 in magnitude. Scores more than 2**51 steps of the grid below the best one are clamped
            to that distance.
        candidates : list, array or column, optional
            The public candidates, in the order of their scores and as many; their indices by default. Do not take them
            from the data.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        ndarray of int64, shape (k,), or list of length k
            The indices of the chosen scores, all different, in the order in which they were chosen; or the candidates
            in this order.
        """
        chosen = self._chosen(scores, candidates, rng)
        return np.array(chosen, np.int64) if candidates is None else chosen
