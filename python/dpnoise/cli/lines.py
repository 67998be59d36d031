"""The first line of a text file, and the rows of a CSV file, in blocks of whole rows.

Arrow's parser lets a quoted field cross the ends of lines, whatever it is told, so a row with an open quote would take
in the rows after it. Here lines are divided into rows before they are parsed, by the parser's own rule: a quote opens a
field in its first place only, two quotes within it stand for one, and elsewhere a quote is a character like any other.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from dpnoise.cli.console import InputError

_BLOCK: Final = 1 << 20  # bytes: a block to read, and the longest row

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_LF, _CR, _QUOTE = b'\n\r"'

# How files begin that are no UTF-8 text, and what they are; encodings by the names that iconv takes.
_BEGINNINGS: Final = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"PAR1\x15": "a Parquet file: name it .parquet, which stdin cannot be",
    b"PK\x03\x04": "a spreadsheet or another archive: save it as CSV in UTF-8",
    b"\x1f\x8b": "compressed by gzip: name it .csv.gz, or decompress it by `gzip -d`",
}


def check_text(start: bytes, path: Path) -> None:
    """Refuse a file that begins with these bytes, which are public, if it is no UTF-8 text, and say what to do."""
    found = next((found for beginning, found in _BEGINNINGS.items() if start.startswith(beginning)), None)
    if found is None and (nul := start.find(b"\0")) >= 0:  # UTF-16 without a byte order mark
        found = "UTF-16LE" if nul % 2 else "UTF-16BE"
    if found is not None:
        raise not_utf8(path, found) if found.startswith("UTF") else InputError(f"{str(path)!r} is {found}")
    try:
        start.decode()
    except UnicodeDecodeError:
        raise not_utf8(path) from None


def not_utf8(path: Path, encoding: str | None = None) -> InputError:
    """Return the error for a file in another encoding; only its beginning, and no value, may tell which."""
    got = "got another encoding: if it is from Windows in Western Europe, convert it by"
    return InputError(
        f"{str(path)!r} must be UTF-8 text, {f'got {encoding}: convert it by' if encoding else got} "
        f"`iconv -f {encoding or 'WINDOWS-1252'} -t UTF-8 IN > OUT`"
    )


def opened(read: Callable[[int], bytes]) -> tuple[bytes, Callable[[int], bytes]]:
    """Return the first line that is not empty, without its end, and what reads the file from there on.

    The first that it reads is this line alone, so that the names of columns do not depend on rows.
    """
    block = read(_BLOCK)
    data = block.removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n")
    while block and not (end := re.search(rb"[\r\n]", data)) and len(data) <= _BLOCK:
        block = read(_BLOCK)
        data = (data + block).lstrip(b"\r\n")
    line = cut = len(data)
    if block and end:
        line = end.start()
        cut = end.end() + (end[0] == b"\r")  # the next byte says whether a line feed belongs to the end
    kept = list(filter(None, (data[cut:], data[:cut])))  # an empty one would be the end of the file
    return data[:line], lambda size: kept.pop() if kept else read(size)


def row_blocks(read: Callable[[int], bytes], path: Path, *, delimiter: str, quoted_lines: bool) -> Iterator[memoryview]:
    """Yield the first row, which names the columns, and then the others in blocks of whole rows.

    Rows end with their lines; with `quoted_lines` not within quotes. The first byte is one of the first row.
    """
    rest, named = b"", False
    while True:
        block = read(_BLOCK)
        if not block and not rest:
            return
        data = rest + (block or b"\n")
        first, last, is_open = _ends(data, ord(delimiter))
        if is_open and not quoted_lines:
            raise InputError(
                f"{str(path)!r} has a quoted field that its line does not close; where is private. Let fields cross "
                f"lines by --quoted-lines, if they are meant to"
            )
        if (first or len(data)) > _BLOCK:
            raise InputError(f"{str(path)!r} has a row of more than 1 MiB; where is private")
        if last and not named:
            yield memoryview(data)[:first]
            named = True
        else:
            first = 0
        if last > first:
            yield memoryview(data)[first:last]
        rest = data[last:]
        if not block:
            if rest:
                raise InputError(f"{str(path)!r} has a quoted field that is never closed; where is private")
            return


def _ends(data: bytes, delimiter: int) -> tuple[int, int, bool]:
    """Return where the first row ends, and the last complete one; and whether a line ends within quotes.

    A carriage return ends a line, but not before a line feed, which may be the next byte to be read.
    """
    if b'"' not in data and b"\r" not in data:
        return data.find(b"\n") + 1, data.rfind(b"\n") + 1, False
    array = np.frombuffer(data, np.uint8)
    ends = array == _LF
    if b"\r" in data:
        ends[:-1] |= (array[:-1] == _CR) & ~ends[1:]
    lines = np.flatnonzero(ends)
    quotes = np.flatnonzero(array == _QUOTE)
    runs = np.flatnonzero(np.diff(quotes, prepend=-2) > 1)
    # Only runs of an odd number of quotes open or close a field.
    odd = quotes[runs[np.diff(runs, append=quotes.size) & 1 == 1]]
    before = array[odd - 1]
    in_first_place = (odd == 0) | (before == delimiter) | (before == _LF) | (before == _CR)
    # A run in the first place of what could be a field opens or closes one; any other closes one or does nothing.
    numbers = np.arange(odd.size)
    is_open = np.append(False, (numbers - np.maximum.accumulate(np.where(in_first_place, -1, numbers))) & 1 == 1)
    within = is_open[np.searchsorted(odd, lines)]
    rows = lines[~within]
    first, last = (int(rows[0]) + 1, int(rows[-1]) + 1) if rows.size else (0, 0)
    return first, last, bool(within.any())
