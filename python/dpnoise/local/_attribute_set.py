"""Sets of attributes, each with a protocol: specifications, and reports from columns of values."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise._arrays import array_for
from dpnoise._domain import Labels, listing
from dpnoise._errors import ParameterError
from dpnoise._interchange import Values, is_arrow, library_of, require_pyarrow
from dpnoise._native import COUNTER_LIMIT
from dpnoise._parameters import ByName, integer
from dpnoise.local import _inputs
from dpnoise.local._accumulator import Accumulator
from dpnoise.local._longitudinal import LongitudinalProtocol
from dpnoise.local._protocol import Protocol, protocol_from_json
from dpnoise.local._rappor import Rappor

if TYPE_CHECKING:
    from typing_extensions import Self

_KINDS: Final[dict[str, type[AttributeSet]]] = {}
"""The class of each family, by its name in specifications."""

_FEWEST: Final = 2
_MOST: Final = 256  # whose numbers fit into a byte

Vectors = dict[str, NDArray[Any]]
"""The checked values of each attribute, which no other code holds."""

Parts = dict[str, NDArray[np.uint8]]
"""The reports of each attribute's own protocol."""


class AttributeSet(ByName):
    """Attributes with their protocols, without accumulators and estimates, which `AttributesProtocol` adds."""

    __slots__ = ("_attributes",)

    _attributes: dict[str, Protocol]
    _family: ClassVar[str]
    _code: ClassVar[int]  # in messages

    def __init_subclass__(cls) -> None:
        if "_family" in vars(cls):
            _KINDS[cls._family] = cls

    def __init__(self, *, attributes: Mapping[str, Protocol]) -> None:
        if not isinstance(attributes, Mapping):
            raise TypeError(f"attributes must be a mapping of names to protocols, got {type(attributes).__name__}")
        for name, protocol in attributes.items():
            _check(name, protocol)
        if not _FEWEST <= len(attributes) <= _MOST:
            alone = ": a single attribute needs only its protocol" if len(attributes) == 1 else ""
            raise ParameterError(f"attributes must be from {_FEWEST} to {_MOST}, got {len(attributes)}{alone}")
        self._attributes = dict(attributes)

    @property
    def attributes(self) -> Mapping[str, Protocol]:
        """The protocol of each attribute, in their order."""
        return MappingProxyType(self._attributes)

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """The epsilon of the guarantee."""

    @property
    @abstractmethod
    def report_bytes(self) -> int:
        """The size of a report in bytes."""

    @property
    def counter_bytes(self) -> int:
        """The size of the counters of an accumulator in bytes: the sum of those of the attributes."""
        return sum(protocol.counter_bytes for protocol in self._attributes.values())

    @property
    def spec_id(self) -> str:
        """The first 8 bytes of the SHA-256 of the specification, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    def to_json(self) -> str:
        """Give the canonical specification: JSON with sorted keys and without spaces.

        Returns
        -------
        str
            It has the specifications of the protocols as strings, so programs that read it keep their bytes.
        """
        pairs = [[name, protocol.to_json()] for name, protocol in self._attributes.items()]
        return json.dumps({"attributes": pairs, "protocol": self._family, "version": 1}, separators=(",", ":"))

    @classmethod
    def from_json(
        cls, text: str, *, domains: Mapping[str, Labels] | None = None, limit: int | None = COUNTER_LIMIT
    ) -> Self:
        """Read a specification and check that it does not contradict itself.

        Parameters
        ----------
        text : str
            As `to_json` gave it; white space around it does not matter.
        domains : mapping of str to sequences of labels, optional
            The labels of the values of attributes by their names, which a specification does not contain.
        limit : int, optional
            The most bytes that the counters of all attributes together may have: 128 MiB unless given, as a short
            specification may ask for much memory. None is for specifications of your own.

        Returns
        -------
        Sampled or Split
            Of the class that this is called on.

        Raises
        ------
        ParameterError
            When ``text`` is no such specification, was written again by another program, is of the other class, or has
            an attribute twice or with an invalid protocol; when its counters have more than ``limit`` bytes; or when
            labels do not fit, or are of no attribute. The message names the attribute.
        TypeError
            When ``text`` is not a str.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, got {type(text).__name__}")
        kind, pairs = _parsed(text)
        repeated = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
        if repeated:
            raise ParameterError(f"attributes must have different names, got more of {listing(repeated)}")
        labels = {} if domains is None else domains
        check_names(labels, dict(pairs), "domains", may_be_missing=True)
        made = kind(attributes={name: _read(name, inner, labels.get(name)) for name, inner in pairs})
        if made.to_json() != text.strip(" \t\r\n"):
            raise ParameterError("the specification must be as to_json gave it, got one that was written again")
        if not isinstance(made, cls):
            raise ParameterError(f"the specification must be of {cls.__name__}, got one of {kind.__name__}")
        made._check_limit(limit)
        return made

    def _check_limit(self, limit: int | None) -> None:
        """Refuse attributes whose counters together have more bytes."""
        if limit is not None and self.counter_bytes > integer(limit, "limit", range(2**64)):
            raise ParameterError(
                f"limit must be at least {self.counter_bytes}, the bytes of the counters of all attributes, got {limit}"
            )

    def perturb(
        self, columns: Any, *, out: NDArray[np.uint8] | None = None, threads: int | None = None
    ) -> NDArray[np.uint8]:
        """Randomise the attributes of people, as each person's device does, for any number of people at once.

        Each report is epsilon-locally differentially private for the achieved ``epsilon``, for a change of any or all
        attributes of a person, provided that each person sends one report. Time and memory addresses depend on values
        only as far as those of the attributes' protocols do.

        Parameters
        ----------
        columns : mapping of str to columns, or a data frame
            For each attribute, by its name and no others, what ``perturb`` of its protocol takes: a column with a value
            for each person. Data frames of pandas and polars and Arrow tables are such mappings. May be of no people.
        out : ndarray of uint8, shape (n, report_bytes), optional
            A writable C-contiguous array to fill.
        threads : int, optional
            How many threads to use; all cores that the process may use when not given.

        Returns
        -------
        ndarray of uint8, shape (n, report_bytes)
            A report for each person.

        Raises
        ------
        ParameterError
            When columns are missing, unknown or of different lengths, a value is none that its protocol takes (the
            message names the attribute, and does not say which value), or ``out`` does not fit; nothing has been drawn
            then.
        TypeError
            When ``columns`` is no mapping or data frame, a column is not of the kind that its protocol takes, or
            ``out`` is not an array of uint8.
        RandomnessError
            When the source of randomness fails; ``out`` has not changed then.
        """
        vectors = self._vectors(_columns_of(columns))
        (n,) = {len(vector) for vector in vectors.values()}
        reports = array_for((n, self.report_bytes), out, np.uint8)
        self._fill(reports, vectors, threads)
        return reports

    def messages(self, reports: Values) -> list[bytes]:
        """Give each report as a separate message, for devices that send one.

        Parameters
        ----------
        reports : ndarray of uint8, shape (n, report_bytes)
            As `perturb` made them.

        Returns
        -------
        list of bytes
            A header of 12 bytes, which identifies the attributes and their protocols, and the report.

        Raises
        ------
        ParameterError
            When the shape is wrong.
        TypeError
            When the dtype is wrong.
        """
        return [self._message_header + row.tobytes() for row in self._rows(reports)]

    @property
    def _message_header(self) -> bytes:
        return b"DP" + bytes([1, self._code]) + bytes.fromhex(self.spec_id)

    def _rows(self, reports: Values) -> NDArray[np.uint8]:
        return _inputs.matrix(reports, self.report_bytes, "reports")

    def _vectors(self, columns: Mapping[str, Any]) -> Vectors:
        """Copy columns as arrays that randomisers take; refuse whatever they would refuse, before anything is drawn."""
        check_names(columns, self._attributes, "columns")
        vectors = {name: _vector(name, protocol, columns[name]) for name, protocol in self._attributes.items()}
        lengths = {name: len(vector) for name, vector in vectors.items()}
        if len(set(lengths.values())) > 1:
            raise ParameterError(f"columns must have one value for each person, got lengths {lengths}")
        return vectors

    @abstractmethod
    def _fill(self, reports: NDArray[np.uint8], vectors: Vectors, threads: int | None) -> None:
        """Draw a report for each person; write none before all are drawn."""

    @abstractmethod
    def _parts(self, reports: NDArray[np.uint8]) -> tuple[Parts, dict[str, int]]:
        """Take reports apart, and count those that no client makes by reason; protocols judge their own parts."""

    @abstractmethod
    def _n(self, counts: Mapping[str, Accumulator]) -> int:
        """Give the number of reports that accumulators of the attributes have counted together."""

    def _contradicts(self, other: AttributeSet) -> bool:
        """Tell whether reports of the other attributes must not be counted as reports of these."""
        pairs = zip(self._attributes.values(), other._attributes.values(), strict=False)
        return self.to_json() != other.to_json() or any(one._contradicts(another) for one, another in pairs)

    def _identity(self) -> tuple[Any, ...]:
        return self._family, *self._attributes.items()

    def __eq__(self, other: object) -> bool:
        """Compare names, specifications and labels."""
        return isinstance(other, AttributeSet) and self._identity() == other._identity()

    def __hash__(self) -> int:
        """Hash names, specifications and labels."""
        return hash(self._identity())

    def __repr__(self) -> str:
        """Show the call that makes this object."""
        return f"{type(self).__name__}(attributes={self._attributes!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the specification and the labels."""
        domains = {name: protocol._domain for name, protocol in self._attributes.items()}
        return _unpickled, (self.to_json(), domains)


def _unpickled(text: str, domains: dict[str, Labels]) -> AttributeSet:
    return AttributeSet.from_json(text, domains=domains, limit=None)


def check_names(given: Any, attributes: Collection[str], what: str, *, may_be_missing: bool = False) -> None:
    """Refuse what is no mapping, or not of the names of the attributes, and of all unless some may be missing."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} must be a mapping by the names of attributes, got {type(given).__name__}")
    unknown = [name for name in given if name not in attributes]
    missing = [] if may_be_missing else [name for name in attributes if name not in given]
    problems = [f"{word} {listing(names)}" for word, names in (("unknown", unknown), ("missing", missing)) if names]
    if problems:
        raise ParameterError(f"{what} must be given by the names of attributes, got {', '.join(problems)}")


def _check(name: Any, protocol: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"names of attributes must be str, got {type(name).__name__}")
    if not name or name != name.encode(errors="replace").decode():
        raise ParameterError(
            f"names of attributes must be texts that are not empty and that UTF-8 can hold, got {name!r}"
        )
    if not isinstance(protocol, Protocol):
        raise TypeError(
            f"attributes[{name!r}] must be a protocol of dpnoise.local for one attribute, got {type(protocol).__name__}"
        )
    if isinstance(protocol, LongitudinalProtocol | Rappor):
        found = type(protocol).__name__
        raise TypeError(f"attributes[{name!r}] must be a protocol without a memo, which clients keep, got {found}")


def _parsed(text: str) -> tuple[type[AttributeSet], list[tuple[str, str]]]:
    """Give the class of a specification, and the names and specifications in it."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or fields.get("protocol") not in list(_KINDS):
        kinds = " or ".join(map(repr, _KINDS))
        raise ParameterError(f'text must be a specification whose "protocol" is {kinds}, got something else')
    if fields.get("version") != 1:
        raise ParameterError(f"the specification must have version 1, got {fields.get('version')!r}: upgrade dpnoise")
    pairs = fields.get("attributes")
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(item, str) for item in pair) for pair in pairs
    ):
        raise ParameterError('the specification must list pairs of texts as its "attributes", got something else')
    return _KINDS[fields["protocol"]], [(name, inner) for name, inner in pairs]


def _read(name: str, specification: str, domain: Labels | None) -> Protocol:
    try:
        return protocol_from_json(specification, domain=domain, limit=None)
    except (ParameterError, TypeError) as error:
        raise type(error)(f"attribute {name!r}: {error}") from None


def _columns_of(columns: Any) -> dict[str, Any]:
    """Give the columns of a mapping or a data frame by their names."""
    if isinstance(columns, Mapping):
        return dict(columns)
    if library_of(type(columns)) in ("pandas", "polars") and hasattr(columns, "columns"):
        names = list(columns.columns)
        values = [columns[name] for name in dict.fromkeys(names)]
    elif is_arrow(columns):
        table = require_pyarrow().table(columns)
        names, values = table.column_names, table.columns
    else:
        raise TypeError(f"columns must be a mapping of names to columns or a data frame, got {type(columns).__name__}")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ParameterError(f"columns must have different names, got more of {listing(repeated)}")
    return dict(zip(names, values, strict=True))


def _vector(name: str, protocol: Protocol, column: Any) -> NDArray[Any]:
    """Copy a column of values, all of which the protocol takes."""
    try:
        vector = protocol._vector(column)
    except (ParameterError, TypeError) as error:
        raise type(error)(f"columns[{name!r}]: {error}") from None
    lowest, highest = protocol._limits()
    if not np.all((vector >= lowest) & (vector <= highest)):  # NaN is neither
        raise ParameterError(
            f"columns[{name!r}] must be from {lowest} to {highest}; which value is not, and where, is private and not "
            "shown"
        )
    return vector
