"""Every public function gives for every container what it gives for a NumPy array of the same values: the same bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="the extra `test` is not installed")

from interchange.calls import MATRICES, OF_TEXTS, VECTORS, Call
from interchange.containers import COLUMNS, TEXTS, Make
from interchange.containers import MATRICES as TABLES

ARROW_TABLES = ("pandas", "pandas nullable", "polars", "pyarrow table", "pyarrow batch", "stream")


def same(found: Any, expected: Any) -> bool:
    if isinstance(found, Exception):
        return False
    if isinstance(expected, tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, np.ndarray):
        return found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()
    return type(found) is type(expected) and bool(found == expected)


def others(call: Call, containers: Mapping[str, Make]) -> dict[str, Any]:
    """Give what comes out for containers for which it is not what it is for NumPy."""
    function, values = call
    expected = function(values)
    found = {}
    for name, make in containers.items():
        try:
            result = function(make(values))
        except (TypeError, ValueError, ImportError) as error:
            result = error
        if not same(result, expected):
            found[name] = result
    return found


@pytest.mark.parametrize("name", VECTORS)
def test_columns(name):
    few = ["polars chunks", "pyarrow dictionary chunks", "pandas nullable", "DLPack"]  # it takes a tenth of a second
    assert others(VECTORS[name], {key: COLUMNS[key] for key in few} if name == "stable_bootstrap" else COLUMNS) == {}


@pytest.mark.parametrize("name", OF_TEXTS)
def test_columns_of_texts(name):
    assert others(OF_TEXTS[name], TEXTS) == {}


@pytest.mark.parametrize("name", MATRICES)
def test_tables(name):
    # Reports in a table are one column of bytes, not many of numbers.
    left_out = ARROW_TABLES if name == "aggregate" else ("JAX", "polars") if name == "stable_bootstrap" else ()
    assert others(MATRICES[name], {key: TABLES[key] for key in TABLES.keys() - left_out}) == {}


def test_another_value_is_told_apart():
    function, values = VECTORS["Laplace"]
    changed = values.copy()
    changed[-1] += 2.0**-10
    assert list(others((function, values), {"changed": lambda _: changed})) == ["changed"]
