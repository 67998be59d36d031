"""What all protocols have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnoise._arrays import output
from dpnoise._domain import Domain, Labels
from dpnoise._errors import ParameterError
from dpnoise._interchange import Values
from dpnoise._native import ScriptedRng, SeededRng
from dpnoise.local import _arrow
from dpnoise.local._accumulator import Accumulator
from dpnoise.local._memo import ClientMemo
from dpnoise.local._specification import Specification

Rng = SeededRng | ScriptedRng | None


class Protocol(Specification):
    """What all local protocols have in common. Make one of the others.

    Protocols are immutable, hashable, and equal when their specifications and labels are.
    """

    __slots__ = ()

    def accumulator(self) -> Accumulator:
        """Make an empty accumulator for reports of this protocol.

        Returns
        -------
        Accumulator
        """
        return Accumulator(self)

    def _collected(self, collected: Accumulator | Values, threads: int | None) -> Accumulator:
        """Give what was collected with this protocol: an accumulator as it is, reports in a new one."""
        if isinstance(collected, Accumulator) and collected.protocol == self:
            return collected
        accumulator = self.accumulator()
        if not isinstance(collected, Accumulator):
            accumulator.add(collected, threads=threads)
        elif self._contradicts(collected.protocol):
            raise ParameterError(f"collected must be of {self!r}, got an accumulator of {collected.protocol!r}")
        else:
            accumulator.merge(collected)  # it has no labels, or this protocol has none
        return accumulator

    def to_arrow(self, reports: Values) -> Any:
        """Give reports as Arrow data that say which protocol they are of, without copying them.

        Parameters
        ----------
        reports : ndarray of uint8, shape (n, report_bytes)
            As ``perturb`` made them; not to be changed afterwards, since the result is a view of them. For
            `RandomizedResponse` booleans of shape (n,), too.

        Returns
        -------
        pyarrow.RecordBatch
            With the column "report" of type fixed_size_binary. The specification, and the labels if there are any, are
            in the metadata, where `Accumulator.add` looks for them. Other libraries take it by ``__arrow_c_array__`` or
            ``__arrow_c_stream__``.

        Raises
        ------
        ParameterError
            When the shape is another.
        TypeError
            When the dtype is another.
        ImportError
            When pyarrow is not installed.
        """
        return _arrow.batch_of(self._rows(reports), self)

    def _reports(
        self, values: NDArray[np.int64], out: NDArray[np.uint8] | None, threads: int | None, rng: Rng
    ) -> NDArray[np.uint8]:
        """Give a report for each value, an array that no other code has seen."""
        reports = output((len(values), self.report_bytes), out, np.uint8)
        self._native.perturb(values, reports, threads, rng)
        return reports

    def _reports_of(
        self,
        memo: ClientMemo,
        question: str,
        values: NDArray[np.int64],
        out: NDArray[np.uint8] | None,
        threads: int | None,
        rng: Rng,
    ) -> NDArray[np.uint8]:
        """Give a report for the value of each person of the memo, an array that no other code has seen."""
        if not isinstance(memo, ClientMemo):
            raise TypeError(f"memo must be a ClientMemo, got {type(memo).__name__}")
        if not isinstance(question, str):
            raise TypeError(f"question must be a str, got {type(question).__name__}")
        reports = output((len(values), self.report_bytes), out, np.uint8)
        self._native.perturb_remembering(values, memo._secrets, question, reports, threads, rng)
        return reports

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the specification and the labels."""
        return _unpickled, (self.to_json(), self._domain)


def _unpickled(text: str, domain: Domain | None) -> Protocol:
    return protocol_from_json(text, domain=domain)


def protocol_from_json(text: str, *, domain: Labels | None = None) -> Protocol:
    """Read the specification of a protocol of any kind.

    Parameters
    ----------
    text : str
        As ``to_json`` gave it; spaces and order do not matter.
    domain : sequence of str, int or bool, optional
        The labels of the values, which a specification does not have; in the order in which clients number them.

    Returns
    -------
    Protocol

    Raises
    ------
    ParameterError
        When it is not a specification, or its probabilities are not those of its epsilon; or when the domain is of
        another length, or cannot be used.
    """
    return Protocol.from_json(text, domain=domain)
