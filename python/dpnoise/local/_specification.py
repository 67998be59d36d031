"""Specifications of protocols: all that accumulators, Arrow data and files need to know of a protocol."""

from __future__ import annotations

import json
import unicodedata
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from dpnoise._arrays import require_pyarrow
from dpnoise._domain import Domain
from dpnoise._errors import ParameterError
from dpnoise._native import COUNTER_LIMIT, LocalAttributes, LocalProtocol, LocalSpecification, local_families
from dpnoise._numbers import check_text
from dpnoise._types import Values
from dpnoise.local import _inputs

if TYPE_CHECKING:
    from dpnoise.accounting import PrivacyCost

ROWS = local_families()
"""The table of families, as the core gives it."""

CLASSES: dict[str, Any] = {}
"""The class of each family and of each scheme, by its name in specifications; a class enters itself."""


PROTOCOL_KEY: Final = b"dpnoise.protocol"
"""The entry of a schema's metadata that holds the specification."""

DOMAIN_KEY: Final = b"dpnoise.domain"
"""The entry of a schema's metadata that says what values stand for, in the JSON of a document."""

REPORT: Final = "report"
"""The column of a table that holds the reports."""


class Specification:
    """What a collection announces: a protocol of one attribute, or of several, and what its reports are about."""

    __slots__ = ("_native",)

    _native: LocalProtocol | LocalAttributes
    _domain: Any  # labels or bounds, if they are known: the specification has a digest of them
    _counts_values: ClassVar[bool] = False  # whether each report counts for some of k values

    @property
    def question(self) -> str | None:
        """What is asked, of whom and by whom; None if the specification does not say it."""
        return self._native.question

    @property
    def period(self) -> str | None:
        """The time in which each person sends one report; None if the specification does not say it."""
        return self._native.period

    @property
    def bare_digest(self) -> bytes:
        """The SHA-256 of the specification without labels, question and period: of how reports are made.

        Whoever was asked with another one gives new permanent answers, and spends epsilon again.
        """
        return self._native.bare_digest

    def about(self, *, question: str | None = None, period: str | None = None) -> Self:
        """Make the same randomiser for another collection, whose reports are never counted as those of this one.

        All of it is public, and part of the specification.

        Parameters
        ----------
        question : str, optional
            What is asked, of whom and by whom: from 1 to 255 bytes of UTF-8, in Unicode's normal form NFC. It stays the
            same as long as people may be asked again. By default that of this object.
        period : str, optional
            The time in which each person sends one report, from 1 to 63 bytes: by custom a week as ``"2026-W48"`` or a
            month as ``"2026-11"``. By default that of this object.

        Returns
        -------
        Specification
            An object of the same class.

        Raises
        ------
        ParameterError
            When a text has another length, a space at either end, characters that are not seen, or is not in NFC.
        """
        return self._renewed(question, period)

    def _renewed(self, question: str | None, period: str | None, domain: Any = None) -> Self:
        """Make an object about something else, in what is not None."""
        for name, text in (("question", question), ("period", period)):
            if text is not None:
                check_normal(text, name)
        native = self._native.about(question, period, in_native(domain))
        return self._with(native, domain)

    @abstractmethod
    def _with(self, native: Any, domain: Any) -> Self:
        """Make an object of this class around a native one."""

    @abstractmethod
    def _meant(self, domain: Any) -> Self:
        """Return the same specification with what its values stand for, or refuse what it does not say."""

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

    @classmethod
    def from_json(cls, text: str, *, domain: Any = None, limit: int | None = COUNTER_LIMIT) -> Self:
        """Read a specification and check that it does not contradict itself.

        Parameters
        ----------
        text : str
            The specification as ``to_json`` gave it, or a document as ``to_document`` gave it; white space around it
            does not matter.
        domain : sequence of str, int or bool, or mapping of str to these, optional
            What the values stand for, where ``text`` is a specification, which has only a digest of it: the labels in
            their order, or the two bounds of a mean; of several attributes a mapping of their names to these.
        limit : int or None, default 134217728
            The most bytes that the counters may have: 128 MiB by default, since a short specification may ask for much
            memory. None, for specifications of your own, allows any size.

        Returns
        -------
        Specification
            An object of the class that this is called on: of any kind from ``Specification``, of one attribute from
            ``Protocol``.

        Raises
        ------
        ParameterError
            When ``text`` is neither, is of another class, was written again by another program, or its probabilities do
            not follow from its epsilon; when its counters have more than ``limit`` bytes; or when the domain is not
            that of the specification. For an attribute the message has its name.
        """
        check_text(text, "text")
        native, listed = LocalSpecification.from_json(text, limit)
        made: Any = wrap(native)
        given = listed if domain is None else domain
        if given is not None:
            made = made._meant(given)
        if not isinstance(made, cls):
            raise ParameterError(f"the specification must be of {cls.__name__}, got one of {type(made).__name__}")
        return made

    def to_document(self) -> str:
        """Return the specification and what its values stand for, as `from_json` and clients of all languages read it.

        Returns
        -------
        str
            JSON, which other programs may write again in any form: an object with the specification as the text
            "dpnoise.protocol", and as "dpnoise.domain" the list of labels, or of the two bounds of a mean; of several
            attributes an object of such lists. The specification alone if values are numbers.
        """
        meaning = self._meaning()
        if meaning is None:
            return self.to_json()
        return json.dumps({"dpnoise.domain": meaning, "dpnoise.protocol": self.to_json()}, ensure_ascii=False)

    @abstractmethod
    def _known(self) -> Any:
        """Return what values stand for, if it is known: labels, bounds, or those of attributes by their names."""

    def _meaning(self) -> Any:
        """Return the same as the core takes it."""
        return in_native(self._known())

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

    def to_arrow(self, reports: Values) -> Any:
        """Return reports as Arrow data whose metadata name the protocol, without copying them.

        Parameters
        ----------
        reports : ndarray of uint8, shape (n, report_bytes)
            Reports as ``perturb`` made them. Do not change them afterwards, since the result is a view of them. For
            `RandomizedResponse` also booleans of shape (n,).

        Returns
        -------
        pyarrow.RecordBatch
            With the column "report" of type fixed_size_binary. The specification, and the labels if there are any, are
            in the metadata, where `Accumulator.add` looks for them. Other libraries read it through
            ``__arrow_c_array__`` or ``__arrow_c_stream__``.
        """
        pa = require_pyarrow()
        rows = self._rows(reports)
        kind, meaning = pa.binary(rows.shape[1]), self._meaning()
        column = pa.FixedSizeBinaryArray.from_buffers(kind, len(rows), [None, pa.py_buffer(rows)])
        labels = {} if meaning is None else {DOMAIN_KEY: json.dumps(meaning, ensure_ascii=False)}
        schema = pa.schema([pa.field(REPORT, kind, nullable=False)], {PROTOCOL_KEY: self.to_json(), **labels})
        return pa.record_batch([column], schema=schema)

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

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the specification and the labels."""
        return _unpickled, (self.to_json(), self._known())


def _unpickled(text: str, domain: Any) -> Specification:
    return Specification.from_json(text, domain=domain, limit=None)


def wrap(native: LocalProtocol | LocalAttributes, domain: Any = None) -> Specification:
    """Wrap what is native in its class, with what its values stand for."""
    made: Specification = CLASSES[native.name]._of(native, domain)
    return made


def in_native(domain: Domain | tuple[float, float] | None) -> Any:
    """Return what values stand for as the core takes it."""
    if isinstance(domain, Mapping):
        return {name: in_native(one) for name, one in domain.items()}
    return domain.names if isinstance(domain, Domain) else domain


def shown(name: str, parameters: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    """Return the calls that make an object about something."""
    given = {one: value for one, value in about.items() if value is not None}
    calls = [(name, parameters), *([("about", given)] if given else [])]
    return ".".join(
        f"{called}({', '.join(f'{one}={value!r}' for one, value in arguments.items())})" for called, arguments in calls
    )


def check_normal(text: str, name: str) -> None:
    """Refuse all spellings of a text but one: each is a question of its own.

    No spelling is converted, so that the result does not depend on a device's version of Unicode.
    """
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str, got {type(text).__name__}")
    if text != text.encode(errors="replace").decode():
        raise ParameterError(f"{name} must be Unicode text, without lone surrogates, got {text!a}")
    if not unicodedata.is_normalized("NFC", text):
        allowed = "Unicode text in the normal form that unicodedata.normalize('NFC', text) gives"
        raise ParameterError(f"{name} must be {allowed}, got {text!a}")
