"""Output to people, other programs and the file system, for all commands."""

import json
import math
import os
import stat
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpnoise._display import escaped, is_silent
from dpnoise._errors import Error
from dpnoise._files import NotWritten


class InputError(Error):
    """The user's input cannot be used. The message is one line and holds no private value."""


class Interrupted(Error):
    """A signal has stopped the program. The message is one line and says what was saved."""


FORMAT: Final = 1
"""The format of JSON documents: it counts the changes after which an entry is missing or means something else."""

in_json: Final = ContextVar("in_json", default=False)
"""Whether the lines on stderr are JSON documents, too."""


def complain(message: str, **more: int) -> None:
    """Print an error to stderr, if stderr is still open; with --json as a document in one line, which says `more`."""
    line = to_json({"message": message, **more}, indent=None) if in_json.get() else f"dpnoise: {escaped(message)}"
    if sys.stderr is not None:  # print would take stdout instead
        with suppress(OSError):
            print(line, file=sys.stderr, flush=True)


def note(message: str) -> None:
    """Print an informational message to stderr, unless --quiet is given."""
    if not is_silent.get():
        complain(message)


def say(line: str) -> None:
    """Print a line to stdout. Names and labels in it may be anybody's."""
    print(escaped(line))


def message_of(error: Exception) -> str:
    """Return the message of an error, in one line; an error of the system names its file."""
    if isinstance(error, NotWritten):
        return f"{error.filename!r} could not be written: {error.strerror}"
    if isinstance(error, OSError) and error.strerror is not None:
        # Of a file that is not found only the current directory has no name.
        name = error.filename or ("the current directory" if isinstance(error, FileNotFoundError) else "")
        return f"{name}: {error.strerror}" if name else error.strerror
    return " ".join(str(error).split())


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table whose first column is text and whose others are numbers; on a narrow terminal, cells are folded."""
    cells = [list(map(escaped, row)) for row in (columns, *rows)]
    # A pipe has no width of its own; a generous one keeps every row on one line.
    console = Console(width=None if sys.stdout.isatty() else 132)
    room = console.width - 3 * len(columns)
    whole = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    words = [max(map(cell_len, " ".join(column).split())) for column in zip(*cells, strict=True)]
    widths: list[int | None] = [None] * len(columns)
    if sum(words) <= room < sum(whole):  # then numbers and dates stay whole, and the first column has the rest
        widths = [room - sum(words[1:]), *words[1:]]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, (column, width) in enumerate(zip(cells[0], widths, strict=True)):
        table.add_column(Text(column), justify="right" if i else "left", overflow="fold", width=width)
    for row in cells[1:]:
        table.add_row(*map(Text, row))  # Text: a "[" in a value is not markup
    console.print(Text(escaped(title), style="bold"), table)


def quantity(n: int, noun: str) -> str:
    """Return a number with its noun: ``1 file``, ``2 files``."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def guarantee(epsilon: float, delta: float) -> str:
    """Return a guarantee in words: a delta of 0 is omitted."""
    return f"epsilon {epsilon:g}" + (f", delta {delta:g}" if delta else "")


def to_json(record: dict[str, Any], indent: int | None = 2) -> str:
    """Return `record` as a JSON document with its format; a number that is not finite becomes null."""
    document = json.dumps({"format": FORMAT, **_finite(record)}, indent=indent, ensure_ascii=False, allow_nan=False)
    lines = (line if line.isprintable() else "".join(map(_in_json, line)) for line in document.split("\n"))
    return "\n".join(lines)


def _in_json(character: str) -> str:
    """Return a character of a JSON document, escaped if it is not printable, which is so only in texts."""
    return character if character.isprintable() else json.dumps(character)[1:-1]


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def suffix_of(path: Path, allowed: Sequence[str], what: str) -> str:
    """Return which of the suffixes `allowed` the path has; otherwise raise, naming `what` the file is."""
    for suffix in allowed:
        if path.name.lower().endswith(suffix):
            return suffix
    raise InputError(f"{what} must end in {' or '.join(allowed)}, got {str(path)!r}")


def check_target(path: Path, sources: Sequence[Path] = ()) -> None:
    """Refuse, before any work is done, a target that cannot be written or that would replace a source."""
    if not path.parent.is_dir():
        raise InputError(f"{str(path)!r} cannot be written: the directory {str(path.parent)!r} does not exist")
    with suppress(FileNotFoundError):  # a loop of symbolic links is the system's error to name
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"{str(path)!r} cannot be written: it is {'a directory' if path.is_dir() else 'no file'}")
    beside = Path(os.path.realpath(path)).parent  # a file is written beside the one that it replaces
    if not os.access(beside, os.W_OK | os.X_OK):
        raise InputError(f"{str(path)!r} cannot be written: nothing can be written to {str(beside)!r}")
    for source in sources:
        both = path.exists() and source.exists()
        same = path.samefile(source) if both else os.path.realpath(path) == os.path.realpath(source)
        if same:
            raise InputError(f"{str(path)!r} is also an input, or another output, and would be overwritten")


def is_occupied(path: Path) -> bool:
    """Return whether the file has content that could be lost."""
    return path.exists() and path.stat().st_size > 0
