"""What notebooks and terminals show: tables, as HTML and as aligned text, and the progress of long work."""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import copy
from dataclasses import fields
from decimal import ROUND_FLOOR, Decimal
from html import escape
from importlib import import_module
from numbers import Number, Rational, Real
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias, cast

if TYPE_CHECKING:
    from numpy.typing import NDArray

Column: TypeAlias = "Sequence[Any] | NDArray[Any]"

_MOST_ROWS: Final = 60  # longer tables show only their ends, as in pandas
_END_ROWS: Final = 5
_MOST_CHARACTERS: Final = 50
_DIGITS: Final = 5  # of a column's largest number, which sets the decimals of all
_MOST_DECIMALS: Final = 8
_SHORT: Final = 10  # characters up to which a single number is not rounded

is_silent: Final = ContextVar("is_silent", default=False)
"""Whether the caller wants no bars."""


class Record:
    """A dataclass that notebooks show as a table of its attributes, arrays and tuples excepted."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        shown = dict(_scalars(self, nested=True))
        return html_table(type(self).__name__, {"attribute": list(shown), "value": list(map(_alone, shown.values()))})


class Tabular(Record):
    """A result that is a table: printed and shown in notebooks as one, and converted to tables of other libraries."""

    __slots__ = ()

    def to_arrow(self) -> Any:
        """Return a pyarrow.Table with one row for each value, and the columns that the class names."""
        return _require("pyarrow").table(self._copied())

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame with the rows and columns of `to_arrow`."""
        return _require("pandas").DataFrame(self._copied())

    def to_polars(self) -> Any:
        """Return a polars.DataFrame with the rows and columns of `to_arrow`."""
        return _require("polars").DataFrame(self._copied())

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Offer the table of `to_arrow` to any library with Arrow's PyCapsule interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    @abstractmethod
    def _columns(self) -> dict[str, Column]:
        """Return the columns."""

    def _errors(self) -> dict[str, Column]:
        """Return the errors of those columns whose numbers are shown with the digits that their errors need."""
        return {}

    def _copied(self) -> dict[str, Column]:
        """Return columns that the table may keep and change: columns of an estimate are read-only, and stay so."""
        return {name: copy(column) for name, column in self._columns().items()}

    def __repr__(self) -> str:
        """Show the table; of more than 60 rows the first and the last five."""
        return text_table(caption_of(self), self._columns(), self._errors())

    def _repr_html_(self) -> str:
        return html_table(caption_of(self), self._columns(), self._errors())


def _require(package: str) -> Any:
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise ImportError(f"this needs {package}: pip install {package}") from error


def caption_of(record: Any) -> str:
    """Name the class of a dataclass and its attributes that are not arrays."""
    return f"{type(record).__name__}({', '.join(f'{name}={value!r}' for name, value in _scalars(record))})"


def html_table(caption: str, columns: Mapping[str, Column], errors: Mapping[str, Column] | None = None) -> str:
    """Return a table whose first column names the rows; all texts are escaped."""
    cells, numeric, size = _cells(columns, errors or {})
    head = "".join(_element("th", one_line(name), "col", right) for name, right in zip(columns, numeric, strict=True))
    body = "".join(
        f"<tr>{_element('th', row[0], 'row', numeric[0])}"
        f"{''.join(_element('td', cell, '', right) for cell, right in zip(row[1:], numeric[1:], strict=True))}</tr>\n"
        for row in zip(*cells, strict=True)
    )
    return (
        f'<table>\n<caption style="text-align: left; white-space: nowrap">{escape(caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>{f'<p>{_total(size)}</p>' * _is_cut(size)}"
    )


def text_table(caption: str, columns: Mapping[str, Column], errors: Mapping[str, Column] | None = None) -> str:
    cells, numeric, size = _cells(columns, errors or {})
    aligned = []
    for name, column, right in zip(map(one_line, columns), cells, numeric, strict=True):
        width = max(map(len, [name, *column]))
        aligned.append([cell.rjust(width) if right else cell.ljust(width) for cell in (name, *column)])
    lines = ["  ".join(row).rstrip() for row in zip(*aligned, strict=True)]
    return "\n".join([caption, *lines, *[_total(size)] * _is_cut(size)])


def one_line(value: Any) -> str:
    """Return a value as a short text."""
    text = str(value)
    return escaped(text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}...")


def escaped(text: str) -> str:
    """Return a text in which every character that is not printable is escaped, as `repr` does it.

    Such a character might be a new line, a command of the terminal, or change the order of what stands around it.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _scalars(record: Any, *, nested: bool = False) -> list[tuple[str, Any]]:
    found = []
    for field in filter(lambda field: field.repr, fields(record)):
        value = getattr(record, field.name)
        if isinstance(value, bool | int | float | str):
            found.append((field.name, value))
        elif nested and isinstance(value, Record):
            found += [(f"{field.name}.{name}", inner) for name, inner in _scalars(value, nested=True)]
    return found


def _is_cut(size: int) -> bool:
    return size > _MOST_ROWS


def _total(size: int) -> str:
    return f"{size:,} rows"


def _cells(columns: Mapping[str, Column], errors: Mapping[str, Column]) -> tuple[list[list[str]], list[bool], int]:
    """Return the columns as texts, cut in the middle, whether each holds numbers, and the number of rows."""
    size = len(next(iter(columns.values())))
    cells, numeric = [], []
    for name, column in columns.items():
        shown = _ends(column, size)
        with_errors = name in errors
        texts = _formatted(shown, _ends(errors[name], size) if with_errors else None)
        cells.append([*texts[:_END_ROWS], "...", *texts[_END_ROWS:]] if _is_cut(size) else texts)
        numeric.append(size > 0 and all(_is_number(value) or (with_errors and value is None) for value in shown))
    return cells, numeric, size


def _ends(column: Column, size: int) -> list[Any]:
    return [*column[:_END_ROWS], *column[-_END_ROWS:]] if _is_cut(size) else list(column)


def _formatted(values: Sequence[Any], errors: Sequence[float | None] | None = None) -> list[str]:
    """Return the texts of a column: numbers with errors as `rounded` has them, and other floats with the same decimals.

    Beside errors a missing value is an empty text.
    """
    pairs = list(zip(values, [None] * len(values) if errors is None else errors, strict=True))
    alone = (abs(value) for value, error in pairs if _is_float(value) and not _sets_decimals(error))
    largest = max(filter(math.isfinite, alone), default=0.0)
    decimals = max(0, _DIGITS - 1 - math.floor(math.log10(largest))) if largest else 1
    pattern = f",.{decimals}f" if decimals <= _MOST_DECIMALS else f".{_DIGITS}g"

    def text(value: Any, error: float | None) -> str:
        if value is None and errors is not None:
            return ""
        return rounded(value, error, pattern) if error is not None or _is_float(value) else one_line(value)

    return [text(value, error) for value, error in pairs]


def rounded(number: float | str, error: float | None, otherwise: str = ",.10g") -> str:
    """Return a number with the decimals that two digits of its error need; without an error, in the format `otherwise`.

    Whole numbers keep all their digits: an error of 10 or more needs no decimals, nor does one that is whole. A date is
    a text and stays as it is.
    """
    if isinstance(number, str):
        return number
    if isinstance(number, int):
        return f"{number:,}"
    if error is None or not _sets_decimals(error):
        return format(number, otherwise)
    exponent = int(f"{error:.1e}".partition("e")[2])  # that of the rounded error: 9.96 is 10
    decimals = 0 if error == round(error) else max(0, 1 - exponent)
    return f"{number:,.{decimals}f}" if decimals <= _MOST_DECIMALS else f"{number:,.10g}"


def _sets_decimals(error: float | None) -> bool:
    return error is not None and 0 < error < math.inf


def _alone(value: Any) -> str:
    exact = str(value)
    return exact if isinstance(value, float) and len(exact) <= _SHORT else _formatted([value])[0]


def _is_number(value: Any) -> bool:
    return isinstance(value, Number) and not isinstance(value, bool)


def _is_float(value: Any) -> bool:
    """Say whether a value is to be rounded; decimals and integers are exact."""
    return isinstance(value, Real) and not isinstance(value, Rational)


def _element(tag: str, text: str, scope: str, right: bool) -> str:
    attributes = (f' scope="{scope}"' if scope else "") + f' style="text-align: {"right" if right else "left"}"'
    return f"<{tag}{attributes}>{escape(text)}</{tag}>"


class _Terminal:
    """Standard error that ignores its own failures: a closed terminal must not stop the work."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def silent() -> Iterator[None]:
    """Show no bars in the block."""
    token = is_silent.set(True)
    try:
        yield
    finally:
        is_silent.reset(token)


@contextmanager
def progress(task: str, total: int | None, unit: str = "rows") -> Iterator[Callable[[float], None]]:
    """Show a bar on stderr, if that is a terminal; yields a function that advances it by a number of units.

    Without rich, which the extra ``cli`` brings, there is no bar, and none within `silent`.
    """
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        shown = not is_silent.get() and sys.stderr is not None and sys.stderr.isatty()
    except ImportError:
        shown = False
    if not shown:
        yield lambda units: None
        return
    amount = [DownloadColumn()] if unit == "bytes" else [MofNCompleteColumn(), TextColumn(unit)]
    columns = (TextColumn(task), BarColumn(), *amount, TimeElapsedColumn())
    console = Console(file=cast(IO[str], _Terminal(sys.stderr)))
    # Transient: a bar that stays on the screen would reveal which part of the data has an error.
    try:
        with Progress(*columns, console=console, transient=True) as bar:
            identifier = bar.add_task(task, total=total)
            yield lambda units: bar.advance(identifier, units)
    finally:
        console.show_cursor()  # an interrupt can come between hiding the cursor and the block


def floored(bound: float, decimals: int = 4) -> str:
    """Write a lower bound with a few decimals, rounded down: what is above it was not shown."""
    return f"{Decimal(bound).quantize(Decimal(1).scaleb(-decimals), ROUND_FLOOR)}"
