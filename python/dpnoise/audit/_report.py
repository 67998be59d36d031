"""The base of audit reports: text for people, JSON for programs, and a picture."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from os import PathLike
from typing import TYPE_CHECKING, Any

from dpnoise import plots
from dpnoise._display import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Report(Record, ABC):
    """A frozen record; its text is a paragraph with the result and its meaning."""

    def to_json(self) -> str:
        """Return the whole report as a JSON object; numbers that are not finite become null.

        It has an entry for each attribute, and ``report``, the name of the class.
        """
        return json.dumps(self._record(), indent=2, ensure_ascii=False, allow_nan=False)

    def plot(self, path: str | PathLike[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw the report, on a new figure or on ``ax``.

        Parameters
        ----------
        path : str or os.PathLike, optional
            The file of the picture: ``.png``, ``.svg`` or ``.pdf``. Without it a notebook shows the picture.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on instead of a new figure. It is given without ``path``.
        """
        with plots.chart(path, ax=ax) as axes:
            self._draw(axes)
        return axes

    @abstractmethod
    def _draw(self, axes: Any) -> None:
        """Draw the report."""

    def _record(self) -> dict[str, Any]:
        own = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        return {"report": type(self).__name__, **own}


def _plain(value: Any) -> Any:
    if isinstance(value, Report):
        return value._record()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
