"""What all protocols have in common."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._arrays import output
from dpnoise._errors import ParameterError
from dpnoise._interchange import Values
from dpnoise._native import ScriptedRng, SeededRng
from dpnoise._parameters import ByName
from dpnoise.local import _inputs
from dpnoise.local._memo import ClientMemo

if TYPE_CHECKING:
    from dpnoise.local._accumulator import Accumulator

Rng = SeededRng | ScriptedRng | None

AnyProtocol = TypeVar("AnyProtocol", bound="Protocol")

_CLASSES: dict[str, type[Protocol]] = {}
"""The class of each family, by its name in specifications."""


class Protocol(ByName):
    """What all local protocols have in common. Make one of the others.

    Protocols are immutable, hashable, and equal when their specifications are.
    """

    __slots__ = ("_native",)

    _native: _native.LocalProtocol
    _family: ClassVar[str]
    _parameters: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        if "_family" in vars(cls):
            _CLASSES[cls._family] = cls

    def __init__(self) -> None:
        raise TypeError("make one of the protocols of dpnoise.local, for example OptimizedUnaryEncoding")

    @property
    def epsilon(self) -> float:
        """The epsilon of the guarantee, exact and rounded up; at least 0.999 of the requested one, and never above."""
        return self._native.epsilon

    @property
    def requested_epsilon(self) -> float:
        """The epsilon that was asked for."""
        return self._native.requested_epsilon

    @property
    def report_bytes(self) -> int:
        """The size of a report in bytes."""
        return self._native.report_bytes

    @property
    def spec_id(self) -> str:
        """The first 8 bytes of the SHA-256 of the specification, in hexadecimal."""
        return self._native.spec_id

    def to_json(self) -> str:
        """Give the canonical specification: JSON with sorted keys and without spaces.

        Returns
        -------
        str
        """
        return self._native.to_json()

    def _specified(self) -> dict[str, Any]:
        """Give the fields of the specification."""
        fields: dict[str, Any] = json.loads(self.to_json())
        return fields

    @classmethod
    def from_json(cls: type[AnyProtocol], text: str) -> AnyProtocol:
        """Read a specification and check that it does not contradict itself.

        Parameters
        ----------
        text : str
            As `to_json` gave it; spaces and order do not matter.

        Returns
        -------
        Protocol
            Of the class that this is called on. `protocol_from_json` reads all kinds.

        Raises
        ------
        ParameterError
            When it is not a specification, of another protocol, or its probabilities are not those of its epsilon.
        """
        protocol = protocol_from_json(text)
        if not isinstance(protocol, cls):
            wanted, found = cls.__name__, type(protocol).__name__
            raise ParameterError(f"the specification must be of {wanted}, got one of {found}: use protocol_from_json")
        return protocol

    def accumulator(self) -> Accumulator:
        """Make an empty accumulator for reports of this protocol.

        Returns
        -------
        Accumulator
        """
        from dpnoise.local._accumulator import Accumulator  # it imports this module

        return Accumulator(self)

    def _collected(self, collected: Accumulator | Values) -> Accumulator:
        """Give what was collected with this protocol: an accumulator as it is, reports in a new one."""
        from dpnoise.local._accumulator import Accumulator  # it imports this module

        if not isinstance(collected, Accumulator):
            accumulator = self.accumulator()
            accumulator.add(collected)
            return accumulator
        if collected.protocol != self:
            raise ParameterError(f"collected must be of {self!r}, got an accumulator of {collected.protocol!r}")
        return collected

    def messages(self, reports: Values) -> list[bytes]:
        """Give each report as a message of its own, for devices that send one.

        Parameters
        ----------
        reports : ndarray of uint8, shape (n, report_bytes)
            As ``perturb`` made them. For `RandomizedResponse` booleans of shape (n,), too.

        Returns
        -------
        list of bytes
            A header of 12 bytes, which says what the report is of, and the report.

        Raises
        ------
        ParameterError
            When the shape is another.
        TypeError
            When the dtype is another.
        """
        header = self._native.message_header
        return [header + row.tobytes() for row in self._rows(reports)]

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
            With the column "report" of type fixed_size_binary. The specification is in the metadata, where
            `Accumulator.add` looks for it. Other libraries take it by ``__arrow_c_array__`` or ``__arrow_c_stream__``.

        Raises
        ------
        ParameterError
            When the shape is another.
        TypeError
            When the dtype is another.
        ImportError
            When pyarrow is not installed.
        """
        from dpnoise.local import _arrow  # it imports this module

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

    def _rows(self, reports: Values) -> NDArray[np.uint8]:
        return _inputs.matrix(reports, self.report_bytes, "reports")

    def __eq__(self, other: object) -> bool:
        """Compare specifications."""
        return isinstance(other, Protocol) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash(self.to_json())

    def __repr__(self) -> str:
        """Show the call that makes this protocol."""
        parameters = {name.removeprefix("requested_"): getattr(self, name) for name in self._parameters}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in parameters.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the specification."""
        return protocol_from_json, (self.to_json(),)


def wrap_as(cls: type[AnyProtocol], native: _native.LocalProtocol) -> AnyProtocol:
    """Make an object of class ``cls`` around a native protocol of its family."""
    protocol = cls.__new__(cls)
    protocol._native = native
    return protocol


def wrap(native: _native.LocalProtocol) -> Protocol:
    """Give a native protocol its class."""
    return wrap_as(_CLASSES[native.family], native)


def protocol_from_json(text: str) -> Protocol:
    """Read the specification of a protocol of any kind.

    Parameters
    ----------
    text : str
        As ``to_json`` gave it; spaces and order do not matter.

    Returns
    -------
    Protocol

    Raises
    ------
    ParameterError
        When it is not a specification, or its probabilities are not those of its epsilon.
    """
    return wrap(_native.LocalProtocol.from_json(text))
