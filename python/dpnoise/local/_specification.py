"""Specifications of protocols: all that accumulators, Arrow data and files need to know of a protocol."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpnoise._domain import Domain
from dpnoise._native import LocalAttributes, LocalProtocol, local_families
from dpnoise._types import Values
from dpnoise.local import _inputs

if TYPE_CHECKING:
    from dpnoise.accounting import PrivacyCost

ROWS = local_families()
"""The table of families, as the core gives it."""

CLASSES: dict[str, Any] = {}
"""The class of each family, a `Protocol`, by its name in specifications; a class enters itself."""


class Specification:
    """What a collection announces: the protocol of one attribute, or several attributes with their protocols."""

    __slots__ = ("_native",)

    _native: LocalProtocol | LocalAttributes
    _domain: Domain | None  # the labels of one attribute; not part of the specification, which describes the randomiser
    _counts_values: ClassVar[bool] = False  # whether each report counts for some of k values

    @property
    def epsilon(self) -> float:
        """The epsilon of the guarantee, rounded up; of several attributes for all of a person together."""
        return self._native.epsilon

    @property
    def delta(self) -> float:
        """The delta of the guarantee, beside epsilon: 0 unless there is a `GaussianMean`."""
        return self._native.delta

    @property
    def cost(self) -> PrivacyCost:
        """The cost of the guarantee to a person whose values may be replaced by any others."""
        from dpnoise.accounting import PrivacyCost  # reports alone do not need it

        return PrivacyCost(self.epsilon, self.delta, "substitute")

    @property
    def report_bytes(self) -> int:
        """The size of a report in bytes."""
        return self._native.report_bytes

    @property
    def counter_bytes(self) -> int:
        """The size of the counters of an accumulator in bytes.

        A call of it takes up to three times as much more for a while, and with several threads about as much again as
        the reports that it counts.
        """
        return self._native.counter_bytes

    @property
    def spec_id(self) -> str:
        """The first 8 bytes of the SHA-256 of the specification, in hexadecimal."""
        return self._native.spec_id

    def to_json(self) -> str:
        """Return the canonical specification: JSON with sorted keys and without spaces.

        Returns
        -------
        str
            The specification. For several attributes it has the specifications of their protocols as strings, so that
            their bytes are kept.
        """
        return self._native.to_json()

    def messages(self, reports: Values) -> list[bytes]:
        """Return each report as a separate message, for devices that send one.

        Parameters
        ----------
        reports : ndarray of uint8, shape (n, report_bytes)
            Reports as ``perturb`` made them. For `RandomizedResponse` also booleans of shape (n,).

        Returns
        -------
        list of bytes
            For each report a header of 12 bytes, which identifies the specification, and the report itself.
        """
        header = self._native.message_header
        return [header + row.tobytes() for row in self._rows(reports)]

    def _rows(self, reports: Values) -> NDArray[np.uint8]:
        return _inputs.matrix(reports, self.report_bytes, "reports")

    @abstractmethod
    def _identity(self) -> tuple[Any, ...]:
        """Return what equal objects have in common: the specification and the labels."""

    def __eq__(self, other: object) -> bool:
        """Compare specifications and labels."""
        return isinstance(other, Specification) and self._identity() == other._identity()

    def __hash__(self) -> int:
        """Hash specification and labels."""
        return hash(self._identity())


def wrap(native: LocalProtocol, domain: Domain | None = None) -> Specification:
    """Wrap a native protocol in its class, with the labels of its values."""
    protocol: Specification = CLASSES[native.family]._of(native, domain)
    return protocol
