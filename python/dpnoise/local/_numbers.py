"""Protocols for real numbers of a range that is known beforehand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpnoise._arrays import output
from dpnoise._interchange import Values
from dpnoise.local import _inputs
from dpnoise.local._protocol import Protocol, Rng


class NumberProtocol(Protocol):
    """A protocol for one real number, whose reports are whole numbers as rows of bytes."""

    __slots__ = ()

    def perturb(
        self,
        values: Values,
        *,
        out: NDArray[np.uint8] | None = None,
        threads: int | None = None,
        rng: Rng = None,
    ) -> NDArray[np.uint8]:
        """Randomise numbers: what each person's device does, for any number of people at once.

        Each report is epsilon-locally differentially private for the achieved ``epsilon``, provided that each person
        sends one. Time and memory addresses do not depend on numbers or reports.

        Parameters
        ----------
        values : array of numbers in the range of the protocol, shape (n,)
            Any floating-point or integer dtype, converted to float64, a list of numbers, or a column or tensor of
            another library: pandas, polars, Arrow data, DLPack. Empty is legal. The range is [0, 1] for `SquareWave`
            and [-1, 1] for the others, both ends included.
        out : ndarray of uint8, shape (n, report_bytes), optional
            A writable C-contiguous array to fill.
        threads : int, optional
            How many threads to use; all cores that the process may use when not given.
        rng : dpnoise.hazmat generator, optional
            For tests only. Its words are used in order on one thread, whatever ``threads`` says.

        Returns
        -------
        ndarray of uint8, shape (n, report_bytes)
            Whole numbers in little-endian bytes; unused bits are zero.

        Raises
        ------
        ParameterError
            When a number is outside of the range, infinite or NaN (it is not said which) or ``out`` does not fit;
            nothing has been drawn then.
        TypeError
            When the values are not numbers, or ``out`` is not an array of uint8.
        RandomnessError
            When the source of randomness fails; ``out`` is zero then.
        """
        vector = _inputs.numbers(values)
        reports = output((len(vector), self.report_bytes), out, np.uint8)
        self._native.perturb(vector, reports, threads, rng)
        return reports
