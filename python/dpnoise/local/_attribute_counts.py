"""The state of a collector of several attributes."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterable
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise._errors import ParameterError
from dpnoise._interchange import Values
from dpnoise._native import COUNTER_LIMIT
from dpnoise.local._accumulator import OF_ATTRIBUTES, Accumulator, AnyAccumulator
from dpnoise.local._attribute_set import AttributeSet

REASONS: Final = ("unknown attribute", "padding set", "wrong length", "wrong header")
"""Why reports are rejected before any of the protocols sees them."""

_MAGIC: Final = OF_ATTRIBUTES[:4]
_KIND: Final = OF_ATTRIBUTES + b"\x01\x00\x00"  # version 1, no flags
_REJECTED: Final = f"<I{len(REASONS)}Q"
_HEADER_BYTES: Final = 12


class AttributesAccumulator(AnyAccumulator):
    """The collector's counters for several attributes: an `Accumulator` for each of them, with one state.

    As for `Accumulator`, memory does not grow with the number of reports, the result is bit-identical however reports
    are split over accumulators, and several threads may add to one.

    Parameters
    ----------
    protocol : Sampled or Split
        The attributes with their protocols.

    Raises
    ------
    TypeError
        When ``protocol`` is neither.

    Examples
    --------
    >>> from dpnoise import local
    >>> answers = {name: local.RandomizedResponse(epsilon=1.0) for name in ("smokes", "drinks")}
    >>> protocol = local.Sampled(attributes=answers)
    >>> total = protocol.accumulator()
    >>> total.add(protocol.perturb({"smokes": [True, False, True], "drinks": [False, False, True]}))
    >>> total.n, sum(total.n_by_attribute.values())
    (3, 3)
    """

    __slots__ = ("_counts", "_lock", "_protocol", "_rejected")

    _counts: dict[str, Accumulator]
    _rejected: Counter[str]

    def __init__(self, protocol: AttributeSet) -> None:
        if not isinstance(protocol, AttributeSet):
            raise TypeError(f"protocol must be Sampled or Split, got {type(protocol).__name__}")
        self._protocol = protocol
        self._counts = {name: one.accumulator() for name, one in protocol.attributes.items()}
        self._rejected = Counter()
        self._lock = Lock()

    @property
    def protocol(self) -> AttributeSet:
        """The attributes with their protocols."""
        return self._protocol

    @property
    def n(self) -> int:
        """The number of reports counted, for `Split` also those with malformed parts."""
        with self._lock:
            return self._protocol._n(self._counts)

    @property
    def n_by_attribute(self) -> dict[str, int]:
        """The number of reports counted about each attribute."""
        with self._lock:
            return {name: counted.n for name, counted in self._counts.items()}

    @property
    def rejected(self) -> int:
        """The number of malformed reports, for `Split` of malformed parts, which were not counted."""
        return sum(self.rejected_reasons.values())

    @property
    def rejected_reasons(self) -> dict[str, int]:
        """The number of malformed reports or parts by reason; reasons that did not occur are left out."""
        with self._lock:
            return dict(sum((Counter(one.rejected_reasons) for one in self._counts.values()), self._rejected))

    def add(self, reports: Values, *, threads: int | None = None, strict: bool = False) -> None:
        """Count reports.

        Malformed ones are counted as rejected: those that the protocol of their attribute rejects and, of `Sampled`,
        those with the number of no attribute, or with padding that is not zero. In a report of `Split` a malformed part
        costs that part alone: each attribute is estimated from the parts about it, so the others lose nothing.

        Parameters
        ----------
        reports : ndarray of uint8, shape (n, report_bytes)
            As ``perturb`` made them.
        threads : int, optional
            How many threads to use; all cores that the process may use when not given.
        strict : bool
            Whether a malformed report is an error.

        Raises
        ------
        ParameterError
            When the shape is wrong, or a report is malformed and ``strict`` is true. Nothing has been added then.
        TypeError
            When the dtype is wrong.
        """
        part = type(self)(self._protocol)
        part._count(self._protocol._rows(reports), threads)
        self._merge_part(part, strict)

    def add_messages(self, messages: Iterable[bytes], *, threads: int | None = None, strict: bool = False) -> None:
        """Count reports that come as separate messages, in the wire format of ``messages``.

        Parameters
        ----------
        messages : iterable of bytes
            Messages with a wrong header, such as that of other attributes, or of a wrong length are counted as
            rejected.
        threads, strict
            As for `add`.

        Raises
        ------
        ParameterError
            When a message is malformed and ``strict`` is true. Nothing has been added then.
        TypeError
            When a message is not bytes.
        """
        part, reports = type(self)(self._protocol), []
        header, length = self._protocol._message_header, _HEADER_BYTES + self._protocol.report_bytes
        for message in messages:
            if not isinstance(message, bytes):
                raise TypeError(f"messages must be bytes, got {type(message).__name__}")
            if not message.startswith(header):
                part._rejected["wrong header"] += 1
            elif len(message) != length:
                part._rejected["wrong length"] += 1
            else:
                reports.append(message[_HEADER_BYTES:])
        rows = np.frombuffer(b"".join(reports), np.uint8).reshape(len(reports), self._protocol.report_bytes)
        part._count(rows, threads)
        self._merge_part(part, strict)

    def merge(self, other: AttributesAccumulator) -> None:
        """Add the counts of another accumulator. Merging the same state twice counts its reports twice.

        Parameters
        ----------
        other : AttributesAccumulator
            Of the same attributes and protocols, with the same labels or without. It does not change.

        Raises
        ------
        ParameterError
            When ``other`` is of other attributes or protocols, or has other labels; the message names both.
        TypeError
            When ``other`` is not such an accumulator.
        """
        if not isinstance(other, AttributesAccumulator):
            raise TypeError(f"other must be an AttributesAccumulator, got {type(other).__name__}")
        if self._protocol._contradicts(other._protocol):
            raise ParameterError(f"other must be an accumulator of {self._protocol!r}, got one of {other._protocol!r}")
        # Never two locks at once: two threads may merge two accumulators into each other.
        state = other._at_one_moment()
        with self._lock:
            self._take(state)

    def to_bytes(self) -> bytes:
        """Give the state as bytes: specification, the states of all attributes and a checksum, for any platform.

        Returns
        -------
        bytes
        """
        with self._lock:
            rejected = [self._rejected[reason] for reason in REASONS]
            states = [counted.to_bytes() for counted in self._counts.values()]
        specification = self._protocol.to_json().encode()
        head = struct.pack("<I", len(specification)) + specification + bytes.fromhex(self._protocol.spec_id)
        body = b"".join([head, struct.pack(_REJECTED, len(REASONS), *rejected), *states])
        checked = _KIND + struct.pack("<Q", len(_KIND) + 8 + len(body) + 4) + body
        return checked + struct.pack("<I", zlib.crc32(checked))

    @classmethod
    def from_bytes(cls, state: bytes, *, limit: int | None = COUNTER_LIMIT) -> AttributesAccumulator:
        """Read the result of `to_bytes`.

        Parameters
        ----------
        state : bytes
            A whole state.
        limit : int, optional
            The most bytes that its counters may have: 128 MiB unless given. None is for states of your own.

        Returns
        -------
        AttributesAccumulator
            Its protocols have no labels, since a state does not contain them; `merge` it into one with labels.

        Raises
        ------
        ParameterError
            When the state is truncated, damaged (CRC-32), of a newer version, not such a state, or its counters have
            more than ``limit`` bytes; the message says which.
        TypeError
            When ``state`` is not bytes.
        """
        if not isinstance(state, bytes):
            raise TypeError(f"state must be bytes, got {type(state).__name__}")
        body = _checked_body(state)
        try:
            (length,) = struct.unpack_from("<I", body)
            protocol = AttributeSet.from_json(body[4 : 4 + length].decode(), limit=None)
            reasons, *rejected = struct.unpack_from(_REJECTED, body, 12 + length)
        except (struct.error, UnicodeDecodeError, ParameterError) as error:
            raise _damaged(str(error)) from None
        if body[4 + length : 12 + length].hex() != protocol.spec_id or reasons != len(REASONS):
            raise _damaged("its id is not that of its specification, or it has other reasons for rejection")
        protocol._check_limit(limit)
        accumulator = cls(protocol)
        accumulator._rejected.update(dict(zip(REASONS, rejected, strict=True)))
        rest = body[12 + length + struct.calcsize(_REJECTED) :]
        for name, one in protocol.attributes.items():
            size = int.from_bytes(rest[8:16], "little")
            accumulator._counts[name] = Accumulator.from_bytes(rest[:size], limit=None)
            if accumulator._counts[name].protocol != one:
                raise _damaged(f"the protocol of attribute {name!r} is not that of its specification")
            rest = rest[size:]
        if rest:
            raise _damaged("bytes follow the last attribute")
        return accumulator

    def __eq__(self, other: object) -> bool:
        """Compare protocols and counters."""
        if not isinstance(other, AttributesAccumulator):
            return False
        return self._protocol == other._protocol and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment] # it is mutable

    def __repr__(self) -> str:
        """Show the protocols and the size, not the counters."""
        return f"<AttributesAccumulator of {self.n} reports ({self.rejected} rejected) of {self._protocol!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the state as bytes, and the labels."""
        return _unpickled, (self._protocol, self.to_bytes())

    def _count(self, reports: NDArray[np.uint8], threads: int | None) -> None:
        parts, malformed = self._protocol._parts(reports)
        for name, part in parts.items():
            self._counts[name].add(part, threads=threads)
        self._rejected.update(malformed)

    def _merge_part(self, part: AttributesAccumulator, strict: bool) -> None:
        malformed = ", ".join(f"{reason}: {count}" for reason, count in part.rejected_reasons.items())
        if strict and malformed:
            raise ParameterError(f"reports must all be well-formed when strict is true, got malformed: {malformed}")
        with self._lock:
            self._take(part)

    def _at_one_moment(self) -> AttributesAccumulator:
        """Copy the state, which no thread is in the middle of changing."""
        copy = type(self)(self._protocol)
        with self._lock:
            copy._take(self)
        return copy

    def _take(self, other: AttributesAccumulator) -> None:
        """Add the counts of an accumulator of the same attributes, while no other thread uses either."""
        for name, counted in self._counts.items():
            counted.merge(other._counts[name])
        self._rejected += other._rejected


def _unpickled(protocol: AttributeSet, state: bytes) -> AttributesAccumulator:
    accumulator = AttributesAccumulator(protocol)  # which may have labels
    accumulator.merge(AttributesAccumulator.from_bytes(state, limit=None))
    return accumulator


def _checked_body(state: bytes) -> bytes:
    """Give what is between the length of a state and its checksum, once both are found right."""
    if not state.startswith(_MAGIC):
        raise ParameterError("state must be the state of an accumulator: it does not begin with DPNA")
    if state[4:5] == b"\x01":
        raise ParameterError(
            "state must be of several attributes, got that of one protocol: use Accumulator.from_bytes"
        )
    if state[5:6] > _KIND[5:6]:
        raise ParameterError(f"the state has version {state[5]}; this release reads up to {_KIND[5]}: upgrade dpnoise")
    length = int.from_bytes(state[8:16], "little")
    if len(state) < max(length, 20):
        raise ParameterError(f"the state is truncated: {len(state)} of {length} bytes")
    if not state.startswith(_KIND) or len(state) > length:
        raise _damaged(f"unknown kind or flags, or {len(state)} bytes instead of {length}")
    if zlib.crc32(state[:-4]) != int.from_bytes(state[-4:], "little"):
        raise _damaged("the checksum is wrong")
    return state[16:-4]


def _damaged(problem: str) -> ParameterError:
    return ParameterError(f"the state is damaged: {problem}")
