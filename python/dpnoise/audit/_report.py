"""What the reports of an audit have in common: they are read by people, by programs, and as a picture."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any

from dpnoise import plots


@dataclass(frozen=True)
class Report(ABC):
    """A frozen record; as text it is a paragraph that says what was found and what that means."""

    def to_json(self) -> str:
        """Write all that the report says as a JSON object; what is not finite becomes null.

        Returns
        -------
        str
            With an entry for each attribute, and ``report``, the name of the class.
        """
        return json.dumps(self._record(), indent=2, ensure_ascii=False, allow_nan=False)

    def plot(self, path: str | PathLike[str]) -> None:
        """Draw the report.

        Parameters
        ----------
        path : path-like
            Where the picture goes: ``.png``, ``.svg`` or ``.pdf``.

        Raises
        ------
        ParameterError
            When the suffix is another one.
        ImportError
            When matplotlib is not installed: ``pip install 'dpnoise[plot]'``.
        OSError
            When the file cannot be written; one that was there before is there still.
        """
        with plots.chart(path) as axes:
            self._draw(axes)

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
