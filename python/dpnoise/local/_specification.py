"""Specifications of protocols: all that accumulators, Arrow data and files need to know of a protocol."""

from __future__ import annotations

import json
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpnoise._errors import ParameterError
from dpnoise._interchange import Labels, Values
from dpnoise._native import COUNTER_LIMIT, LocalAttributes, LocalProtocol, local_families
from dpnoise._parameters import ByName, Domain, check_text, disagree
from dpnoise.local import _inputs

if TYPE_CHECKING:
    from typing_extensions import Self

    from dpnoise.accounting import PrivacyCost

AnyProtocol = TypeVar("AnyProtocol", bound="Specification")


ROWS = local_families()
"""The table of families, as the core gives it."""

_PARAMETERS = {name: [parameter[0] for parameter in parameters] for name, *_, parameters, _ in ROWS}

CLASSES: dict[str, type[Specification]] = {}
"""The class of each family, by its name in specifications; a class enters itself."""


class Announced(ByName):
    """The announcement of a collection: the protocol of one attribute, or several attributes with their protocols."""

    __slots__ = ("_native",)

    _native: LocalProtocol | LocalAttributes

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
        return isinstance(other, Announced) and self._identity() == other._identity()

    def __hash__(self) -> int:
        """Hash specification and labels."""
        return hash(self._identity())


class Specification(Announced):
    """A protocol without accumulators and estimates, which `Protocol` adds."""

    __slots__ = ("_domain",)

    _native: LocalProtocol
    _domain: Domain | None  # the labels; not part of the specification, which describes the randomiser only
    _family: ClassVar[str]
    _counts_values: ClassVar[bool] = False  # whether each report counts for some of k values

    def __init_subclass__(cls) -> None:
        if "_family" in vars(cls):
            CLASSES[cls._family] = cls

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Make a protocol without labels; its initialiser may set them."""
        if not hasattr(cls, "_family"):
            raise TypeError("make one of the protocols of dpnoise.local, for example OptimizedUnaryEncoding")
        protocol = super().__new__(cls)
        protocol._domain = None
        return protocol

    def _make(self, **arguments: float | str | None) -> None:
        self._native = LocalProtocol(self._family, **arguments)

    @property
    def requested_epsilon(self) -> float:
        """The requested epsilon."""
        return self._native.requested_epsilon

    def _specified(self) -> dict[str, Any]:
        """Return the fields of the specification."""
        fields: dict[str, Any] = json.loads(self.to_json())
        return fields

    @classmethod
    def _of(cls: type[AnyProtocol], native: LocalProtocol, domain: Domain | None = None) -> AnyProtocol:
        """Make an object of this class around a native protocol of its family."""
        if domain is not None and not cls._counts_values:
            raise ParameterError(f"domain must be None for {cls.__name__}, whose reports are not counted by value")
        if domain is not None and len(domain) != native.k:
            raise ParameterError(f"domain must have {native.k} values, as the specification says, got {len(domain)}")
        protocol = cls.__new__(cls)
        protocol._native, protocol._domain = native, domain
        return protocol

    @classmethod
    def from_json(
        cls: type[AnyProtocol], text: str, *, domain: Labels | None = None, limit: int | None = COUNTER_LIMIT
    ) -> AnyProtocol:
        """Read a specification and check that it does not contradict itself.

        Parameters
        ----------
        text : str
            The specification as ``to_json`` gave it; white space around it does not matter.
        domain : sequence of str, int or bool, optional
            The labels of the values, which a specification does not contain, in the order in which clients number them:
            all different and of one type. Only protocols that count values take them.
        limit : int or None, default 134217728
            The most bytes that the counters of the protocol may have: 128 MiB by default, since a short specification
            may ask for much memory. None, for specifications of your own, allows any size.

        Returns
        -------
        Protocol
            A protocol of the class that this is called on. `protocol_from_json` reads all kinds.

        Raises
        ------
        ParameterError
            When ``text`` is not a specification, is of a protocol of another class, was written again by another
            program, or its probabilities do not follow from its epsilon; when its counters have more than ``limit``
            bytes; or when the domain has another length, or is invalid.
        """
        check_text(text, "text")
        if text.lstrip().startswith('{"attributes":'):
            raise ParameterError(
                "text must be the specification of one protocol, got that of several attributes: use Sampled.from_json "
                "or Split.from_json"
            )
        return cls._around(LocalProtocol.from_json(text, limit), domain)

    @classmethod
    def _around(cls: type[AnyProtocol], native: LocalProtocol, domain: Labels | None) -> AnyProtocol:
        """Make the protocol of this class around a native one, with these labels."""
        protocol = wrap(native, None if domain is None else Domain(domain))
        if not isinstance(protocol, cls):
            wanted, found = cls.__name__, type(protocol).__name__
            raise ParameterError(f"the specification must be of {wanted}, got one of {found}: use protocol_from_json")
        return protocol

    def _contradicts(self, other: Specification) -> bool:
        """Tell whether reports of the other protocol must not be counted as reports of this one."""
        return self.to_json() != other.to_json() or disagree(self._domain, other._domain)

    def _identity(self) -> tuple[Any, ...]:
        return self.to_json(), self._domain, self._domain and self._domain.kind  # 1 == True, but as labels they differ

    def _arguments(self) -> dict[str, Any]:
        """Return the parameters that were requested."""
        requested = {name: f"requested_{name}" for name in _PARAMETERS[self._family]}
        return {name: getattr(self, other if hasattr(type(self), other) else name) for name, other in requested.items()}

    def __repr__(self) -> str:
        """Show the call that makes this protocol."""
        parameters = self._arguments()
        if self._domain is not None:
            parameters.pop("k", None)
            parameters = {"domain": self._domain, **parameters}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in parameters.items())})"


def wrap(native: LocalProtocol, domain: Domain | None = None) -> Specification:
    """Wrap a native protocol in its class, with the labels of its values."""
    return CLASSES[native.family]._of(native, domain)
