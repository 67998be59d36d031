"""Streams of messages, and where each message ends. docs/reference/wire_format.md defines the two framings.

`Accumulator.add_messages` rejects messages with a wrong content; a stream that cannot be divided into messages is
refused. No error shows what is in a stream.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from io import TextIOBase
from typing import Final, Literal, Protocol, get_args

from dpnoise._errors import ParameterError
from dpnoise._json import read_json
from dpnoise._numbers import check_word
from dpnoise.local._specification import Specification

Framing = Literal["json-lines", "length-prefixed"]
"""How a stream divides into messages: lines of JSON, or messages after their lengths."""

_HEADER_BYTES: Final = 12
_LENGTH_BYTES: Final = 4
_OTHER_ENTRIES: Final = 1 << 16
"""The most bytes of a line of JSON besides its message: a bound, so that no line fills the memory."""
_SKIPPED: Final = 1 << 20


class Stream(Protocol):
    """A binary file or another object to read bytes from."""

    def read(self, size: int, /) -> bytes:
        """Read at most ``size`` bytes, fewer only at the end."""

    def readline(self, size: int, /) -> bytes:
        """Read a line, or the first ``size`` bytes of it."""


def read_messages(stream: Stream, framing: Framing, protocol: Specification) -> Iterator[bytes]:
    """Divide a stream into messages, for `Accumulator.add_messages`.

    Parameters
    ----------
    stream : binary file
        An object with ``read`` and ``readline``, which return bytes.
    framing : str
        How the stream divides into messages: ``"json-lines"`` or ``"length-prefixed"``, as the wire format defines it.
    protocol : Protocol or AttributesProtocol
        The protocol of the reports.

    Yields
    ------
    bytes
        A message. A message that is too long is cut short, but remains long enough to be rejected for its length.

    Raises
    ------
    ParameterError
        When the stream cannot be divided into messages; the error names the line or the offset.
    """
    check_word(framing, "framing", *get_args(Framing))
    if not isinstance(protocol, Specification):
        raise TypeError(f"protocol must be a protocol of dpnoise.local, got {type(protocol).__name__}")
    if isinstance(stream, TextIOBase) or not (hasattr(stream, "read") and hasattr(stream, "readline")):
        raise TypeError(f"stream must be a binary file to read from, got {type(stream).__name__}")
    size = _HEADER_BYTES + protocol.report_bytes
    return _json_lines(stream, size) if framing == "json-lines" else _length_prefixed(stream, size)


def _json_lines(stream: Stream, size: int) -> Iterator[bytes]:
    longest = 4 * (size + 3) // 3 + _OTHER_ENTRIES
    number = 0
    while line := stream.readline(longest + 1):
        number += 1
        if len(line) > longest:
            raise ParameterError(f"line {number} must have at most {longest} bytes, got a longer one")
        if line.isspace():
            continue
        try:
            entries = read_json(line)
        except ValueError:
            entries = None
        text = entries.get("message") if isinstance(entries, dict) else None
        if not isinstance(text, str):
            raise ParameterError(f'line {number} must be a JSON object with a text "message", got something else')
        try:
            yield base64.b64decode(text, validate=True)
        except ValueError:
            yield b""  # the sender's fault: rejected like any other message without a header


def _length_prefixed(stream: Stream, size: int) -> Iterator[bytes]:
    offset = 0
    while prefix := stream.read(_LENGTH_BYTES):
        length = int.from_bytes(prefix, "little")
        message = stream.read(min(length, size + 1))
        found = len(message)
        while found < length and (skipped := len(stream.read(min(length - found, _SKIPPED)))):
            found += skipped
        if len(prefix) < _LENGTH_BYTES or found < length:
            raise ParameterError(f"the message at offset {offset} must be whole, got one that was cut short")
        yield message
        offset += _LENGTH_BYTES + length
