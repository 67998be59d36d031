"""The state of a collector."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from os import PathLike
from typing import Any, Self

from dpnoise import _native
from dpnoise._errors import ParameterError
from dpnoise._numbers import items_of
from dpnoise._types import Number, Values
from dpnoise.local import _arrow, _parquet
from dpnoise.local._doubt import of_malformed, warn
from dpnoise.local._estimate import Estimate, Post, with_intervals
from dpnoise.local._specification import Specification, wrap


class AnyAccumulator(ABC):
    """The base class of the accumulators of one protocol and of several attributes."""

    __slots__ = ("_protocol", "_state")

    _protocol: Any
    _state: _native.LocalAccumulator

    @property
    def protocol(self) -> Any:
        """The protocol of the reports."""
        return self._protocol

    @property
    def n(self) -> int:
        """The number of reports counted; for `Split` it includes reports with malformed parts."""
        return self._state.n

    @property
    def rejected(self) -> int:
        """The number of malformed reports, which were not counted; for `Split` the number of malformed parts."""
        return sum(self.rejected_reasons.values())

    @property
    def rejected_reasons(self) -> dict[str, int]:
        """The number of malformed reports or parts by reason; reasons that did not occur are left out."""
        return dict(self._state.rejected_reasons)

    def add_messages(self, messages: Iterable[bytes], *, threads: int | None = None, strict: bool = False) -> None:
        """Count reports that come as separate messages, in the wire format of `Protocol.messages`.

        Parameters
        ----------
        messages : iterable of bytes
            The messages. Those of a wrong length or with a wrong header, such as the header of another protocol, are
            malformed.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result.
        strict : bool, default False
            Whether a malformed report is an error, so that nothing is added; by default it is counted as rejected.

        Raises
        ------
        ParameterError
            When a report is malformed and ``strict`` is true.
        """
        received = items_of(messages, "messages", "bytes")
        for message in received:
            if not isinstance(message, bytes):
                raise TypeError(f"messages must be bytes, got {type(message).__name__}")
        part = _native.LocalAccumulator(self._protocol._native)
        part.add_messages(received, threads)
        self._merge_part(part, strict)

    def merge(self, other: Self) -> None:
        """Add the counts of another accumulator. Merging the same state twice counts its reports twice.

        Parameters
        ----------
        other : Accumulator or AttributesAccumulator
            Another accumulator of the same class and the same specification. It does not change.

        Raises
        ------
        ParameterError
            When the other one is this one, or of another specification: of another protocol, or about other labels,
            another question or another period.
        """
        if not isinstance(other, type(self)):
            raise TypeError(f"other must be an {type(self).__name__}, got {type(other).__name__}")
        self._state.merge(other._state)
        if self._protocol._known() is None:
            self._protocol = other._protocol  # of the same specification, and may know its labels

    def to_bytes(self) -> bytes:
        """Return the state as bytes: specification, counters and a checksum, independent of the platform."""
        return self._state.to_bytes()

    @classmethod
    def from_bytes(cls, state: bytes, *, domain: Any = None, limit: int | None = _native.COUNTER_LIMIT) -> Self:
        """Read the result of `to_bytes`.

        Parameters
        ----------
        state : bytes
            A whole state, as `to_bytes` gave it.
        domain : sequence of str, int or bool, or mapping of str to these, optional
            What the values stand for, of which a state has only a digest: labels, or the bounds of a mean; of several
            attributes by their names. By default estimates are by number.
        limit : int or None, default 134217728
            The most bytes that the counters of the state may have: 128 MiB by default. None, for states of your own,
            allows any size.

        Returns
        -------
        Accumulator or AttributesAccumulator
            An accumulator of the class that this is called on.

        Raises
        ------
        ParameterError
            When the state is truncated, damaged (CRC-32C), of a newer version, not a state of this class, or its
            counters have more than ``limit`` bytes; or when the domain is not that of the specification; the message
            says which.
        """
        if not isinstance(state, bytes):
            raise TypeError(f"state must be bytes, got {type(state).__name__}")
        counted = _native.LocalAccumulator.from_bytes(state, limit)
        protocol = cls._named(counted.protocol)
        return cls._around(counted, protocol if domain is None else protocol._meant(domain))

    @classmethod
    @abstractmethod
    def _named(cls, specification: _native.LocalProtocol | _native.LocalAttributes) -> Any:
        """Wrap the specification of a state, or refuse one of the other kind."""

    @classmethod
    def _around(cls, state: _native.LocalAccumulator, protocol: Any) -> Self:
        accumulator = cls.__new__(cls)
        accumulator._state, accumulator._protocol = state, protocol
        return accumulator

    def _merge_part(self, part: _native.LocalAccumulator, strict: bool) -> None:
        malformed = ", ".join(f"{reason}: {count}" for reason, count in part.rejected_reasons)
        if strict and malformed:
            raise ParameterError(f"reports must all be well-formed when strict is true, got malformed: {malformed}")
        self._state.merge(part)

    def __eq__(self, other: object) -> bool:
        """Compare protocols and counters."""
        if not isinstance(other, type(self)):
            return False
        return self._protocol == other._protocol and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment] # it is mutable

    def __repr__(self) -> str:
        """Show the protocol and the size, not the counters."""
        return f"<{type(self).__name__} of {self.n} reports ({self.rejected} rejected) of {self._protocol!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the state as bytes, and the protocol with its labels."""
        return _unpickled, (type(self), self._protocol, self.to_bytes())


def _unpickled(kind: type[AnyAccumulator], protocol: Any, state: bytes) -> AnyAccumulator:
    return kind._around(_native.LocalAccumulator.from_bytes(state, None), protocol)


class Accumulator(AnyAccumulator):
    """The collector's counters for one protocol: how many reports count for each value.

    There is a counter of 8 bytes for each of k values or, where reports are not counted by value, as many as the
    protocol defines. Memory does not grow with the number of reports. Counters are integers, so the result is
    bit-identical however the reports are split over accumulators, machines and threads. Reports are already private,
    and so is everything computed from them. Several threads may add to one accumulator. It needs the
    protocol's ``counter_bytes`` of memory.

    Parameters
    ----------
    protocol : Protocol
        The protocol of the reports.

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.SymmetricUnaryEncoding(k=3, epsilon=2.0)
    >>> total = protocol.accumulator()
    >>> for part in ([0, 1], [2, 2, 1]):
    ...     one = protocol.accumulator()
    ...     one.add(protocol.perturb(part))
    ...     total.merge(local.Accumulator.from_bytes(one.to_bytes()))
    >>> total.n
    5
    """

    __slots__ = ()

    def __init__(self, protocol: Specification) -> None:
        if not (isinstance(protocol, Specification) and isinstance(protocol._native, _native.LocalProtocol)):
            raise TypeError(
                f"protocol must be a protocol of dpnoise.local for one attribute, got {type(protocol).__name__}"
            )
        self._protocol = protocol
        self._state = _native.LocalAccumulator(protocol._native)

    @classmethod
    def _named(cls, specification: _native.LocalProtocol | _native.LocalAttributes) -> Specification:
        if isinstance(specification, _native.LocalProtocol):
            return wrap(specification)
        raise ParameterError(
            "state must be of one protocol, got that of several attributes: use AttributesAccumulator.from_bytes"
        )

    def add(self, reports: Values, *, threads: int | None = None, strict: bool = False) -> None:
        """Count reports.

        Malformed reports are counted as rejected: reports with bits set that the protocol does not use or with a value
        that is not below k and, in Arrow data, missing reports (null) and reports of a wrong length.

        Parameters
        ----------
        reports : ndarray of uint8, shape (n, report_bytes), or Arrow data
            Reports as ``perturb`` made them, or a list of single ones, also as bytes. For `RandomizedResponse` also
            booleans of shape (n,).

            Arrow data are columns, record batches, tables and streams of them, of pyarrow, Polars, pandas or any other
            library with ``__arrow_c_array__`` or ``__arrow_c_stream__``: a column of type fixed_size_binary or binary
            of any kind, or a table with such a column that is called "report" or is the only one. A stream of batches
            is read piece by piece. They need pyarrow, and are not copied unless reports are missing or of a wrong
            length, or the type is binary_view.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result.
        strict : bool, default False
            Whether a malformed report is an error, so that nothing is added; by default it is counted as rejected.

        Raises
        ------
        ParameterError
            When the metadata of Arrow data name another specification (the entry "dpnoise.protocol"), or a report is
            malformed and ``strict`` is true.

        Notes
        -----
        After an error nothing has been added, even if the error is in the middle of a stream.
        """
        self._add_blocks(_arrow.in_blocks(reports, self._protocol), threads, strict)

    def add_parquet(self, path: str | PathLike[str], *, threads: int | None = None, strict: bool = False) -> None:
        """Count the reports of a Parquet file, which may come from anybody.

        Memory does not grow with the file: a page of it is read at a time.

        Parameters
        ----------
        path : path-like
            A file with a binary column of reports that is called "report" or is the only one.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result.
        strict : bool, default False
            Whether a malformed report is an error, so that nothing is added; by default it is counted as rejected.

        Raises
        ------
        ParameterError
            When the file is not a Parquet file, is damaged or truncated, or has pages that become more than 64 MiB and
            more than 8 times what they take in the file, have more than 2**24 values, or are encoded otherwise than
            plainly or with a dictionary; when its metadata name another specification; or when a report is malformed
            and ``strict`` is true. Nothing has been added then.
        """
        file = _parquet.open_reports(path)
        _arrow.check_same(file.protocol, self._protocol)
        batches = file.batches(_arrow.rows_per_block(self._protocol.report_bytes))
        blocks = (block for batch in batches for block in _arrow.blocks(batch, self._protocol))
        self._add_blocks(blocks, threads, strict)

    def _add_blocks(self, blocks: Iterable[_arrow.Block], threads: int | None, strict: bool) -> None:
        part = _native.LocalAccumulator(self._protocol._native)
        for reports, rejected in blocks:
            part.add(self._protocol._rows(reports), self._protocol.report_bytes, threads)
            for reason, count in rejected.items():
                part.reject(reason, count)
        self._merge_part(part, strict)

    def _doubts(self) -> list[str]:
        """Say why the well-formed reports, if any, are not all of this protocol."""
        return [*self._protocol._doubts(self._state)] if self.n else []

    def _for_estimate(self) -> _native.LocalAccumulator:
        """Return the state, after a warning if its reports are doubtful."""
        warn(self._protocol, [*of_malformed(self._state.rejected_reasons, self.n, "reports"), *self._doubts()])
        return self._state

    def estimate(self, *, level: Number = 0.95, simultaneous: bool = False, post: Post | None = None) -> Estimate:
        """Estimate how many people have each value.

        Parameters
        ----------
        level : float, default 0.95
            The probability with which an interval holds: between 0 and 1, both excluded.
        simultaneous : bool, default False
            Whether all intervals hold together at ``level`` (Bonferroni), or each by itself.
        post : str, optional
            How to make the counts consistent; by default they are unbiased. It does not change standard errors and
            intervals, which are about the unbiased counts.

            - ``"base-cut"``: counts that are not significant become 0; with probability ``level`` all counts of absent
              values do. For finding frequent values.
            - ``"norm"``: all counts are shifted by the same amount to sum to n; they stay unbiased.
            - ``"norm-mul"``: negative counts become 0, and all are scaled to sum to n.
            - ``"norm-sub"`` or ``"simplex"``: the nearest counts (least squares) that are not negative and sum to n.
            - ``"norm-cut"``: negative counts become 0, then the smallest ones until the sum is at most n.

            Counts do not sum to n where `perturb_encoded` got rows without a bit: use the first or the last one there.

        Returns
        -------
        Estimate
            The counts of all values with their intervals; zeros when no report was counted.

        Raises
        ------
        TypeError
            When reports of the protocol are not counted by value: use the method ``estimate`` of the protocol.

        References
        ----------
        Wang, Lopuhaä-Zwakenberg, Li, Skoric and Li (2020), "Locally differentially private frequency estimation with
        consistency", section 4.
        """
        if not self._protocol._counts_values:
            kind = type(self._protocol).__name__
            raise TypeError(f"reports of {kind} are not counted by value: use {kind}.estimate(accumulator)")
        protocol, (found, senders) = self._protocol, self._for_estimate().estimate()
        return with_intervals(protocol._native, found, level, simultaneous, post, protocol._domain, senders)
