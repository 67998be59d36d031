"""Randomised response: one randomised bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._arrays import output
from dpnoise._domain import Labels
from dpnoise._errors import ParameterError
from dpnoise._interchange import Values
from dpnoise.local import _inputs
from dpnoise.local._frequencies import FrequencyProtocol
from dpnoise.local._protocol import Rng


class RandomizedResponse(FrequencyProtocol):
    """Randomised response: a yes or no, told truly with probability ``p = exp(epsilon) / (exp(epsilon) + 1)``.

    The variance per person of the count is ``exp(epsilon) / (exp(epsilon) - 1)**2``. In an estimate index 0 stands for
    no, and 1 for yes.

    Parameters
    ----------
    domain : sequence of str, int or bool, optional
        The two labels of the answers, no first and yes second; False and True when not given.
    epsilon : float
        The privacy parameter, from 2**-20 to 32. A report is epsilon-locally differentially private.

    Raises
    ------
    ParameterError
        When ``epsilon`` is out of range, or the domain cannot be used.

    References
    ----------
    Warner (1965), "Randomized response: a survey technique for eliminating evasive answer bias".

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.RandomizedResponse.coin_flips()
    >>> protocol.p, round(protocol.epsilon, 6)
    (0.75, 1.098612)
    """

    __slots__ = ()
    _family = "randomized_response"
    _parameters = ("requested_epsilon",)

    def __init__(self, *, domain: Labels | None = None, epsilon: float) -> None:
        if domain is not None and self._sized(None, domain) != 2:
            raise ParameterError(f"domain must have 2 values, for no and yes, got {len(self._domain or ())}")
        self._native = _native.LocalProtocol.randomized_response(epsilon)

    @classmethod
    def coin_flips(cls) -> RandomizedResponse:
        """Make the two-coin form: heads, answer truly; tails, answer as a second coin says.

        Returns
        -------
        RandomizedResponse
            With ``p = 3/4``, ``q = 1/4`` and ``epsilon = ln 3``.
        """
        return cls._of(_native.LocalProtocol.coin_flips())

    def perturb(
        self,
        values: Values,
        *,
        out: NDArray[np.bool_] | None = None,
        threads: int | None = None,
        rng: Rng = None,
    ) -> NDArray[np.bool_]:
        """Randomise answers: what each person's device does, for any number of people at once.

        Each report is epsilon-locally differentially private for the achieved ``epsilon``, provided that each person
        sends one. Time and memory addresses do not depend on answers or reports.

        Parameters
        ----------
        values : array of bool, shape (n,)
            The true answers, or a list of bools. Where there is a domain, labels instead: looking them up does not take
            constant time. Empty is legal.
        out : ndarray of bool, shape (n,), optional
            A writable C-contiguous array to fill.
        threads : int, optional
            How many threads to use; all cores that the process may use when not given.
        rng : dpnoise.hazmat generator, optional
            For tests only. Its words are used in order on one thread, whatever ``threads`` says.

        Returns
        -------
        ndarray of bool, shape (n,)

        Raises
        ------
        ParameterError
            When a value is no label (it is not said which), or ``out`` does not fit; nothing has been drawn then.
        TypeError
            When the values are not booleans, or not of the kind of the labels, or ``out`` is not an array of bool.
        RandomnessError
            When the source of randomness fails; ``out`` is all False then.
        """
        domain = self._domain
        vector = _inputs.booleans(values) if domain is None else _inputs.codes(values, domain).astype(np.uint8)
        reports = output(len(vector), out, np.bool_)
        self._native.perturb(vector, reports.view(np.uint8), threads, rng)
        return reports

    def _draw_counters(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        return super()._draw_counters(counts, generator)[1:]  # the one bit says yes

    def _rows(self, reports: Values) -> NDArray[np.uint8]:
        return _inputs.answers(reports)
