"""Sets of attributes, each with a protocol: specifications, and reports from columns of values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpnoise._columns import named_columns
from dpnoise._domain import listing
from dpnoise._draws import array_for
from dpnoise._errors import ParameterError
from dpnoise._native import LocalAttributes, LocalProtocol
from dpnoise.local._protocol import Protocol
from dpnoise.local._specification import CLASSES, Specification, shown, wrap


class AttributeSet(Specification):
    """Attributes with their protocols, without accumulators and estimates, which `AttributesProtocol` adds."""

    __slots__ = ("_attributes",)

    _attributes: dict[str, Protocol]
    _native: LocalAttributes
    _scheme: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if "_scheme" in vars(cls):
            CLASSES[cls._scheme] = cls

    def __init__(self, *, attributes: Mapping[str, Protocol]) -> None:
        if not isinstance(attributes, Mapping):
            raise TypeError(f"attributes must be a mapping of names to protocols, got {type(attributes).__name__}")
        for name, protocol in attributes.items():
            _check(name, protocol)
        native = LocalAttributes(self._scheme, [(name, one._native) for name, one in attributes.items()])
        self._attributes = dict(attributes)
        meaning = self._meaning()
        self._native = native if meaning is None else native.about(None, None, meaning)

    @property
    def attributes(self) -> Mapping[str, Protocol]:
        """The protocol of each attribute, in their order."""
        return MappingProxyType(self._attributes)

    @classmethod
    def _of(cls, native: LocalAttributes, domains: Mapping[str, Any] | None = None) -> Self:
        """Make the object of native attributes, with what their values stand for."""
        made = object.__new__(cls)
        made._native = native
        known = domains or {}
        made._attributes = {name: _labelled(name, one, known.get(name)) for name, one in native.attributes}
        return made

    def _meant(self, domains: Mapping[str, Any]) -> Self:
        check_names(domains, self._attributes, "domain", may_be_missing=True)
        made = self._of(self._native, domains)
        made._native = self._native.knowing(made._meaning() or {})
        return made

    def _with(self, native: LocalAttributes, domain: Any) -> Self:
        made = object.__new__(type(self))
        made._native, made._attributes = native, self._attributes
        return made

    def _known(self) -> dict[str, Any] | None:
        return {name: one._domain for name, one in self._attributes.items() if one._domain is not None} or None

    def perturb(
        self, columns: Any, *, out: NDArray[np.uint8] | None = None, threads: int | None = None
    ) -> NDArray[np.uint8]:
        """Randomise the attributes of people, as each person's device does, for any number of people at once.

        Each report is (epsilon, delta)-locally differentially private for the achieved ``epsilon`` and ``delta``, which
        is 0 unless there is a `GaussianMean`, for a change of any or all attributes of a person, provided that each
        person sends one report. Time and memory addresses depend on values only as far as those of the attributes'
        protocols do.

        Parameters
        ----------
        columns : mapping of str to columns, or a data frame
            For each attribute, by its name and no others, what ``perturb`` of its protocol takes: a column with a value
            for each person. Data frames of pandas and polars and Arrow tables are such mappings. May be of no people.
        out : ndarray of uint8, optional
            An array to fill and return in place of a new one: writable, C-contiguous, of the shape and dtype of the
            result.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result's distribution.

        Returns
        -------
        ndarray of uint8, shape (n, report_bytes)
            A report for each person.

        Raises
        ------
        ParameterError
            When columns are missing, unknown or of different lengths, or a value is none that its protocol takes. The
            message names the attribute, and does not say which value.
        """
        given = _columns_of(columns)
        check_names(given, self._attributes, "columns")
        vectors = [_vector(name, protocol, given[name]) for name, protocol in self._attributes.items()]
        reports = array_for((len(vectors[0]), self.report_bytes), out, np.uint8)
        self._native.perturb(vectors, reports, threads)
        return reports

    def _identity(self) -> tuple[Any, ...]:
        return self.to_json(), *self._attributes.items()

    def __repr__(self) -> str:
        """Show the call that makes this object."""
        about = {"question": self.question, "period": self.period}
        if self._native.labels is not None and self._known() is None:
            return f"{type(self).__name__}.from_json({self.to_json()!r})"
        return shown(type(self).__name__, {"attributes": self._attributes}, about)


def check_names(given: Any, attributes: Collection[str], what: str, *, may_be_missing: bool = False) -> None:
    """Refuse anything but a mapping from names of the attributes, from all names unless some may be missing."""
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
    if name != name.encode(errors="replace").decode():
        raise ParameterError(f"names of attributes must be texts that UTF-8 can hold, got {name!r}")
    if not isinstance(protocol, Protocol):
        raise TypeError(
            f"attributes[{name!r}] must be a protocol of dpnoise.local for one attribute, got {type(protocol).__name__}"
        )
    if (protocol.question, protocol.period) != (None, None):
        raise ParameterError(
            f"attributes[{name!r}] must have no question and no period, which all attributes together have: give them "
            f"with about() afterwards, got {protocol!r}"
        )
    if protocol._native.labels is not None and protocol._domain is None:
        raise ParameterError(
            f"attributes[{name!r}] must have the labels of its specification: read it with domain=, got {protocol!r}"
        )


def _labelled(name: str, native: LocalProtocol, domain: Any) -> Protocol:
    """Make the protocol of an attribute with what its values stand for."""
    made: Protocol = wrap(native)  # type: ignore[assignment] # of one attribute
    try:
        return made if domain is None else made._renewed(None, None, made._domain_of(domain))
    except (ParameterError, TypeError) as error:
        raise type(error)(f"attribute {name!r}: {error}") from None


def _columns_of(columns: Any) -> dict[str, Any]:
    """Return the columns of a mapping or a data frame by their names."""
    if isinstance(columns, Mapping):
        return dict(columns)
    named = named_columns(columns, "columns")
    if named is None:
        raise TypeError(f"columns must be a mapping of names to columns or a data frame, got {type(columns).__name__}")
    names, values = named
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ParameterError(f"columns must have different names, got more of {listing(repeated)}")
    return dict(zip(names, values, strict=True))


def _vector(name: str, protocol: Protocol, column: Any) -> NDArray[Any]:
    """Copy a column of values."""
    try:
        return protocol._vector(column)
    except (ParameterError, TypeError) as error:
        raise type(error)(f"columns[{name!r}]: {error}") from None
