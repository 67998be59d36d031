"""Completions of command lines, which shells ask for."""

import os
import re
import shlex
from pathlib import Path
from typing import Final

# Names that no shell takes for more than a text: files come from others, and zsh evaluates what completes a word.
_HARMLESS: Final = re.compile(r"[\w .-]+")


def words() -> list[str]:
    """Return the words after the program's name that a shell asks to complete, if it asks."""
    if "_DPNOISE_COMPLETE" not in os.environ:
        return []
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    try:
        return shlex.split(line)[1:]
    except ValueError:  # a quote is still open
        return line.split()[1:]


def columns(incomplete: str) -> list[str]:
    """Return the columns that a name may be completed to: the columns of the Parquet file on the line.

    Columns of a CSV file are not offered: if it has no line of names, its first line is a person's row.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from dpnoise._parquet import native_file

    for path in map(Path, words()):
        if path.suffix.lower() == ".parquet" and path.is_file():
            try:
                names = pq.read_schema(native_file(path)).names
                return [name for name in names if name.startswith(incomplete) and _HARMLESS.fullmatch(name)]
            except (pa.ArrowException, OSError, UnicodeDecodeError):
                return []
    return []
