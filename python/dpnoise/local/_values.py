"""Protocols for values 0, 1, ..., k - 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpnoise._interchange import Values
from dpnoise.local import _inputs
from dpnoise.local._frequencies import FrequencyProtocol
from dpnoise.local._protocol import Protocol, Rng


class OfValues(Protocol):
    """A protocol for one of k values, numbered from 0, whose reports are rows of bytes."""

    __slots__ = ()

    @property
    def k(self) -> int:
        """The number of values that an answer may have."""
        return self._native.k

    def perturb(
        self,
        values: Values,
        *,
        out: NDArray[np.uint8] | None = None,
        threads: int | None = None,
        rng: Rng = None,
    ) -> NDArray[np.uint8]:
        """Randomise values: what each person's device does, for any number of people at once.

        Each report is epsilon-locally differentially private for the achieved ``epsilon``, provided that each person
        sends one. Time and memory addresses do not depend on values or reports.

        Parameters
        ----------
        values : array of integers in [0, k), shape (n,)
            Any integer dtype, a list of ints, or a column or tensor of another library: pandas, polars, Arrow data,
            DLPack. Where there is a domain, labels instead, also as columns of categories: looking them up does not
            take constant time. Empty is legal.
        out : ndarray of uint8, shape (n, report_bytes), optional
            A writable C-contiguous array to fill.
        threads : int, optional
            How many threads to use; all cores that the process may use when not given.
        rng : dpnoise.hazmat generator, optional
            For tests only. Its words are used in order on one thread, whatever ``threads`` says.

        Returns
        -------
        ndarray of uint8, shape (n, report_bytes)
            For unary encodings bits packed least significant first, for the others a number in little-endian bytes, as
            the protocol defines it; unused bits are zero.

        Raises
        ------
        ParameterError
            When a value is outside of [0, k), or is no label (it is not said which), or ``out`` does not fit; nothing
            has been drawn then.
        TypeError
            When the values are not integers, or not of the kind of the labels, or ``out`` is not an array of uint8.
        RandomnessError
            When the source of randomness fails; ``out`` is zero then.
        """
        return self._reports(_inputs.codes(values, self._domain), out, threads, rng)


class ValueProtocol(OfValues, FrequencyProtocol):
    """A protocol for one of k values whose reports count for some of them."""

    __slots__ = ()
