"""What the specification of a protocol says: all that an accumulator, Arrow data and files need to know of one."""

from __future__ import annotations

import json
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpnoise._errors import ParameterError
from dpnoise._interchange import Values
from dpnoise._native import LocalProtocol
from dpnoise._parameters import ByName
from dpnoise.local import _inputs

AnyProtocol = TypeVar("AnyProtocol", bound="Specification")

_CLASSES: dict[str, type[Specification]] = {}
"""The class of each family, by its name in specifications."""


class Specification(ByName):
    """A protocol, without what is collected with it: that is what `Protocol` adds."""

    __slots__ = ("_native",)

    _native: LocalProtocol
    _family: ClassVar[str]
    _parameters: ClassVar[tuple[str, ...]]
    _counts_values: ClassVar[bool] = False  # whether each report counts for some of k values

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
    def _of(cls: type[AnyProtocol], native: LocalProtocol) -> AnyProtocol:
        """Make an object of this class around a native protocol of its family."""
        protocol = cls.__new__(cls)
        protocol._native = native
        return protocol

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
        protocol = wrap(LocalProtocol.from_json(text))
        if not isinstance(protocol, cls):
            wanted, found = cls.__name__, type(protocol).__name__
            raise ParameterError(f"the specification must be of {wanted}, got one of {found}: use protocol_from_json")
        return protocol

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

    def _rows(self, reports: Values) -> NDArray[np.uint8]:
        return _inputs.matrix(reports, self.report_bytes, "reports")

    def __eq__(self, other: object) -> bool:
        """Compare specifications."""
        return isinstance(other, Specification) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash(self.to_json())

    def __repr__(self) -> str:
        """Show the call that makes this protocol."""
        parameters = {name.removeprefix("requested_"): getattr(self, name) for name in self._parameters}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in parameters.items())})"


def wrap(native: LocalProtocol) -> Specification:
    """Give a native protocol its class."""
    return _CLASSES[native.family]._of(native)
