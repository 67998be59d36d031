"""The rows of a CSV file, in blocks of whole rows.

Arrow's parser lets a quoted field cross the ends of lines, whatever it is told, so a row with an open quote would take
in the rows after it. Here lines are divided into rows before they are parsed, by the parser's own rule: a quote opens a
field in its first place only, two quotes within it stand for one, and elsewhere a quote is a character like any other.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from dpnoise.cli.console import InputError

_BLOCK: Final = 1 << 20  # bytes: a block to read, and the longest row

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_LF, _CR, _QUOTE, _COMMA = b'\n\r",'


def row_blocks(read: Callable[[int], bytes], path: Path, *, quoted_lines: bool) -> Iterator[memoryview]:
    """Yield the first row, which names the columns, and then the others in blocks of whole rows.

    Rows end with their lines; with `quoted_lines` not within quotes.
    """
    rest, at_start, named = b"", True, False
    while True:
        block = read(_BLOCK)
        if not block and not rest:
            return
        data = rest + (block or b"\n")
        if at_start:
            data, at_start = data.removeprefix(BYTE_ORDER_MARK), False
        if not named:
            data = data.lstrip(b"\r\n")
        first, last, is_open = _ends(data)
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


def _ends(data: bytes) -> tuple[int, int, bool]:
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
    in_first_place = (odd == 0) | (before == _COMMA) | (before == _LF) | (before == _CR)
    # A run in the first place of what could be a field opens or closes one; any other closes one or does nothing.
    numbers = np.arange(odd.size)
    is_open = np.append(False, (numbers - np.maximum.accumulate(np.where(in_first_place, -1, numbers))) & 1 == 1)
    within = is_open[np.searchsorted(odd, lines)]
    rows = lines[~within]
    first, last = (int(rows[0]) + 1, int(rows[-1]) + 1) if rows.size else (0, 0)
    return first, last, bool(within.any())
