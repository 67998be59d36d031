"""The mechanisms whose noise is drawn from tables of probabilities."""

from __future__ import annotations

from typing import Final

from dpnoise import _native
from dpnoise._numbers import integer
from dpnoise._types import Integer, Number
from dpnoise.mechanisms._noise import IntegerNoise, checked_sensitivity

# How many parties may be named; the native mechanism knows how many there are.
_PARTIES: Final = range(2**32)


class Staircase(IntegerNoise):
    """The staircase mechanism for one integer: the noise with the least mean magnitude for its epsilon.

    Its probabilities fall by ``exp(-epsilon)`` once in ``sensitivity`` integers, exactly. For a large epsilon the error
    is far below that of `DiscreteLaplace`; for a small one they are alike. The release is epsilon-differentially
    private for neighbouring data sets whose values differ by at most ``sensitivity`` in one integer.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive, so large that some sensitivity is allowed, and at most 2**40.
    sensitivity : int, default 1
        The most that the integer changes between neighbours, from 1 to ``3969 * epsilon / (44 + epsilon)``. Several
        integers are released together only with a sensitivity of 1, where the noise is discrete Laplace.

    References
    ----------
    Geng and Viswanath (2014), "The optimal mechanism in differential privacy".

    Examples
    --------
    >>> from dpnoise import DiscreteLaplace, Staircase
    >>> [noise(epsilon=8.0, sensitivity=20).error(0.5) for noise in (Staircase, DiscreteLaplace)]
    [0.0, 2.0]
    """

    __slots__ = ()

    _parameters = ("epsilon", "sensitivity")

    def __init__(self, *, epsilon: Number, sensitivity: Integer = 1) -> None:
        self._native = _native.Additive("staircase", epsilon=epsilon, sensitivity=checked_sensitivity(sensitivity))


class SharedNoise(IntegerNoise):
    """A mechanism that adds to the integer of each party a share of the noise of their sum.

    Each party releases its own integer, and only the sum of all these is to be seen, as by secure aggregation. Releases
    wrap around at the ends of int64, and are to be added up like that, modulo 2**64: sums of int64 arrays are, and of a
    sum of ints take ``(total + 2**63) % 2**64 - 2**63``.
    """

    __slots__ = ("_parties",)

    _parties: int

    @property
    def parties(self) -> int:
        """The number of parties whose releases are added up."""
        return self._parties

    def error(self, level: Number = 0.95) -> float:
        """Bound the error of the sum of exactly `parties` releases by the smallest sufficient whole number.

        Parameters
        ----------
        level : float, default 0.95
            The probability with which the bound holds: between 0 and 1, both excluded.
        """
        return super().error(level)

    def delta_for(self, epsilon: Number, colluding: Integer = 0) -> float:
        """Return a delta for which the sum is (epsilon, delta)-differentially private towards some parties.

        Parameters
        ----------
        epsilon : float
            The privacy parameter: zero or more, and finite.
        colluding : int, default 0
            The number of parties that know each other's shares, or add none: from 0 to `parties` - 1.

        Returns
        -------
        float
            From 0 to 1: for one integer, and for a sensitivity of 1, the least such delta, rounded up. Several integers
            of a larger sensitivity are not covered.
        """
        return self._native.delta_for(epsilon, integer(colluding, "colluding", _PARTIES))

    def epsilon_for(self, delta: Number, colluding: Integer = 0) -> float:
        """Return the least epsilon for which `delta_for` is at most ``delta``.

        Parameters
        ----------
        delta : float
            The privacy parameter: above 0 and at most 1; also 0 for `NegativeBinomialShares` of which no party
            colludes.
        colluding : int, default 0
            The number of parties that know each other's shares, or add none: from 0 to `parties` - 1.
        """
        return self._native.epsilon_for(delta, integer(colluding, "colluding", _PARTIES))


class Skellam(SharedNoise):
    """The Skellam mechanism, of one integer or of the sum of several parties' integers.

    Adds the difference of two Poisson variables of mean ``mu / parties``, exactly; the sum over all parties has mean
    ``mu``. That sum is (epsilon, delta)-differentially private for neighbouring data sets whose values differ by at
    most ``sensitivity`` in one integer, where no party colludes or drops out.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive and finite, and so large that a ``mu`` of at most 90,000 suffices.
    delta : float
        The privacy parameter: between 0 and 1, both excluded. Choose it much smaller than one over the number of
        people.
    sensitivity : int, default 1
        The most that one integer of the sum changes between neighbours, from 1 to 4096. Several integers are released
        together only with a sensitivity of 1.
    parties : int, default 1
        The number of parties whose releases are added up, from 1 to 2**32.

    Notes
    -----
    ``mu`` is the least one that suffices, from ``2**-40 * parties`` to 90,000, and at most 2**-11 too large,
    relatively.

    Making the mechanism takes up to some seconds for the largest ``mu`` and sensitivity. The scale is the mean of a
    party's two variables.

    Parties that drop out, and those that collude and subtract their own shares, leave less noise: see
    `NegativeBinomialShares`.

    References
    ----------
    Agarwal, Kairouz and Liu (2021), "The Skellam mechanism for differentially private federated learning".

    Examples
    --------
    >>> from dpnoise import Skellam
    >>> mechanism = Skellam(epsilon=1.0, delta=1e-6, parties=10)
    >>> total = sum(mechanism.release(1) for party in range(10))
    >>> low, high = mechanism.confidence_interval(total)
    """

    __slots__ = ()

    _parameters = ("epsilon", "delta", "sensitivity", "parties")

    def __init__(self, *, epsilon: Number, delta: Number, sensitivity: Integer = 1, parties: Integer = 1) -> None:
        self._native = _native.Additive(
            "skellam", epsilon=epsilon, delta=delta, sensitivity=checked_sensitivity(sensitivity), parties=parties
        )
        self._parties = int(parties)

    @property
    def delta(self) -> float:
        """The privacy parameter delta of the sum."""
        return float(self._native.delta or 0.0)

    @property
    def mu(self) -> float:
        """The mean of each of the two Poisson variables of the sum, half of its variance."""
        return self.scale * self.parties


class NegativeBinomialShares(SharedNoise):
    """Discrete Laplace noise that several parties add in shares.

    Adds the difference of two negative binomial variables of shape ``1 / parties``, exactly, so that the sum over all
    parties has exactly the noise of `DiscreteLaplace`. That sum is epsilon-differentially private for neighbouring data
    sets whose values differ by at most ``sensitivity`` in the L1 norm.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive and finite.
    parties : int
        The number of parties whose releases are added up, from 1 to 2**32.
    sensitivity : int, default 1
        The L1 sensitivity of the sum: positive, with ``sensitivity / epsilon`` from 2**-40 to 88.

    Notes
    -----
    Parties that drop out, and those that collude and subtract their own shares, leave less noise than that: `delta_for`
    tells what it protects, for a sensitivity of up to 100 (which takes up to ten seconds). With ``parties`` the number
    of those that are sure to report and not to collude, the sum is epsilon-differentially private towards the others;
    their shares only make it noisier than the bounds of the error say.

    References
    ----------
    Goryczka and Xiong (2017), "A comprehensive comparison of multiparty secure additions with differential privacy".

    Examples
    --------
    >>> from dpnoise import NegativeBinomialShares
    >>> mechanism = NegativeBinomialShares(epsilon=1.0, parties=100)
    >>> total = sum(mechanism.release(1) for party in range(100))
    >>> f"{mechanism.delta_for(1.0, colluding=10):.4f}"
    '0.0568'
    """

    __slots__ = ()

    _parameters = ("epsilon", "sensitivity", "parties")

    def __init__(self, *, epsilon: Number, parties: Integer, sensitivity: Integer = 1) -> None:
        self._native = _native.Additive(
            "negative_binomial_shares",
            epsilon=epsilon,
            sensitivity=checked_sensitivity(sensitivity),
            parties=parties,
        )
        self._parties = int(parties)
