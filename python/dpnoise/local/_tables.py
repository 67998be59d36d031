"""Results as tables of other libraries, which are imported only when they are asked for."""

from __future__ import annotations

from abc import abstractmethod
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Tabular:
    """A result that can be given as a table."""

    __slots__ = ()

    def to_arrow(self) -> Any:
        """Give a pyarrow.Table with one row for each value.

        Returns
        -------
        pyarrow.Table
            With the columns that the class names.

        Raises
        ------
        ImportError
            When pyarrow is not installed.
        """
        return _require("pyarrow").table(self._columns())

    def to_pandas(self) -> Any:
        """Give a pandas.DataFrame with one row for each value.

        Returns
        -------
        pandas.DataFrame
            With the columns that the class names.

        Raises
        ------
        ImportError
            When pandas is not installed.
        """
        return _require("pandas").DataFrame(self._columns())

    def to_polars(self) -> Any:
        """Give a polars.DataFrame with one row for each value.

        Returns
        -------
        polars.DataFrame
            With the columns that the class names.

        Raises
        ------
        ImportError
            When polars is not installed.
        """
        return _require("polars").DataFrame(self._columns())

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Offer the table of `to_arrow` to any library that speaks Arrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    @abstractmethod
    def _columns(self) -> dict[str, NDArray[np.generic]]:
        """Give the columns, as arrays that the table may keep."""


def _require(package: str) -> Any:
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise ImportError(f"this needs {package}: pip install {package}") from error
