"""What the protocols have in common for people who are asked again and again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpnoise._interchange import Values
from dpnoise.local import _inputs
from dpnoise.local._frequencies import FrequencyProtocol
from dpnoise.local._memo import ClientMemo
from dpnoise.local._protocol import Rng


class LongitudinalProtocol(FrequencyProtocol):
    """A protocol for one of k values, numbered from 0, whose clients keep a memo."""

    __slots__ = ()

    def perturb(
        self,
        values: Values,
        memo: ClientMemo,
        *,
        question: str,
        out: NDArray[np.uint8] | None = None,
        threads: int | None = None,
        rng: Rng = None,
    ) -> NDArray[np.uint8]:
        """Randomise values: what each person's device does each time it is asked, for any number of people at once.

        All reports that a person ever makes of one value, with the same memo, are together epsilon-locally
        differentially private for the achieved ``epsilon``. Time and memory addresses do not depend on values, secrets
        or reports.

        Parameters
        ----------
        values : array of integers in [0, k), shape (n,)
            Any integer dtype, or a list of ints. Where there is a domain, labels instead, also as columns of
            categories: looking them up does not take constant time. Empty is legal.
        memo : ClientMemo
            Of n people: ``values[i]`` is that of person i of the memo.
        question : str
            The name of what is asked, always the same when it is asked again, and another for any other question. What
            is permanent in the answers to two questions is independent then, even if both have the same k and epsilon.
            With one name for both, reports would tell whether the answers are the same.
        out : ndarray of uint8, shape (n, report_bytes), optional
            A writable C-contiguous array to fill.
        threads : int, optional
            How many threads to use; all cores that the process may use when not given.
        rng : dpnoise.hazmat generator, optional
            For tests only. Its words are used in order on one thread, whatever ``threads`` says. What is permanent
            comes from the memo all the same.

        Returns
        -------
        ndarray of uint8, shape (n, report_bytes)
            Bits packed least significant first, or a number in little-endian bytes, as the protocol defines it; unused
            bits are zero.

        Raises
        ------
        ParameterError
            When a value is outside of [0, k), or is no label (it is not said which), the memo is of another number of
            people, or ``out`` does not fit; nothing has been drawn then.
        TypeError
            When the values are not integers, or not of the kind of the labels, ``memo`` is not a `ClientMemo`, or
            ``out`` is not an array of uint8.
        RandomnessError
            When the source of randomness fails; ``out`` is zero then.
        """
        return self._reports_of(memo, question, _inputs.codes(values, self._domain), out, threads, rng)


class TwoRoundProtocol(LongitudinalProtocol):
    """A protocol with a permanent round of randomisation, and an instantaneous one for each report."""

    __slots__ = ()

    @property
    def epsilon(self) -> float:
        """The epsilon of all reports on one value together, exact and rounded up; at least 0.999 of the requested."""
        return self._native.epsilon

    @property
    def epsilon_first(self) -> float:
        """The epsilon of a single report, exact and rounded up; at least 0.999 of the requested, and never above."""
        return self._native.epsilon_first

    @property
    def requested_epsilon_permanent(self) -> float:
        """The epsilon that was asked for of all reports on one value together."""
        return self._native.requested_epsilon

    @property
    def requested_epsilon_first(self) -> float:
        """The epsilon that was asked for of a single report."""
        return self._native.requested_epsilon_first
