"""Tables of any library, by Narwhals, and dicts of arrays: the names of their columns, and the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from os import PathLike
from typing import Any

from dpnoise._arrays import read_by
from dpnoise._domain import listing
from dpnoise._errors import ParameterError, require


class Frame:
    """A table that is read by columns. The names of the columns are public."""

    def __init__(self, frame: Any) -> None:
        self._native, self._frame, self._is_lazy = frame, frame, False
        if isinstance(frame, Mapping):
            self._names = list(frame)
        else:
            narwhals = require("narwhals", "tables")
            try:
                self._frame = narwhals.from_native(frame)
            except TypeError:
                hint = ": read it first" if isinstance(frame, str | PathLike) else ""
                raise TypeError(
                    "frame must be a table of pandas, Polars, Arrow, DuckDB or another library that Narwhals reads, or "
                    f"a dict of arrays, got {type(frame).__name__}{hint}"
                ) from None
            except narwhals.exceptions.DuplicateError:
                raise ParameterError("frame must have columns with different names") from None
            self._is_lazy = isinstance(self._frame, narwhals.LazyFrame)
            self._names = list(self._frame.collect_schema().names())
        if not self._names:
            raise ParameterError("frame must have columns")

    def check(self, column: Any, name: str) -> None:
        """Refuse what is not the name of one column."""
        if not isinstance(column, str | int) or isinstance(column, bool):
            hint = ": make one column of several beforehand" if isinstance(column, list | tuple) else ""
            raise TypeError(f"{name} must be the name of one column, got {type(column).__name__}{hint}")
        if column in self._names:
            return
        close = get_close_matches(str(column), map(str, self._names), 1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        if column in getattr(getattr(self._native, "index", None), "names", ()):
            hint = ": an index is no column, so reset_index() first"
        raise ParameterError(f"{name} must be a column of frame, {listing(self._names)}, got {column!r}{hint}")

    def read(self, names: Sequence[Any]) -> tuple[dict[Any, Any], int]:
        """Return columns, and the number of rows; a lazy table is computed once."""
        wanted = list(names) or self._names[:1]
        columns = read_by(partial(self._columns, wanted), self._frame, "frame", _not_computed)
        try:
            return columns, len(columns[wanted[0]])
        except TypeError:
            kind = type(columns[wanted[0]]).__name__
            raise TypeError(f"frame must have columns with a length, got {kind} for {wanted[0]!r}") from None

    def _columns(self, names: Sequence[Any], frame: Any) -> dict[Any, Any]:
        if isinstance(frame, Mapping):
            return {name: frame[name] for name in names}
        if self._is_lazy:
            frame = frame.select(*names).collect()
        return {name: frame.get_column(name).to_native() for name in names}


def _not_computed(frame: Any, name: str) -> Exception:
    return TypeError(f"{name} could not be computed: its own message might show rows, so collect it yourself to see it")
