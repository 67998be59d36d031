"""No warning and no kind of error depends on a row: every public function with every odd number, one at a time.

Warnings are errors here, and so is whatever the floating point unit notes, as it is for a careful user.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from interchange.calls import BOUNDS, MATRICES, REALS, VECTORS, Call, N

from dpnoise import ParameterError, Table, queries, stability


def double(bits: int) -> np.ndarray:
    return np.array([bits], np.uint64).view(np.float64)


NAN: dict[str, np.ndarray] = {
    "nan": double(0x7FF8000000000000),
    "-nan": double(0xFFF8000000000000),
    "nan with a payload": double(0x7FF80000DEADBEEF),
    "nan of ones": double(0x7FFFFFFFFFFFFFFF),
    "signalling nan": double(0x7FF0000000000001),
    "-signalling nan": double(0xFFF0000000000001),
    "R's NA": double(0x7FF00000000007A2),
    "signalling nan of ones": double(0x7FF7FFFFFFFFFFFF),
}
INFINITE: dict[str, np.ndarray] = {"inf": double(0x7FF0000000000000), "-inf": double(0xFFF0000000000000)}
NUMBERS: dict[str, np.ndarray] = {
    "-0.0": double(1 << 63),
    "subnormal": double(1),
    "-subnormal": double(1 << 63 | 1),
    "largest subnormal": double((1 << 52) - 1),
    "smallest normal": double(1 << 52),
    "root of the smallest": np.array([2.0**-511]),
    "largest": np.array([1.7976931348623157e308]),
    "-largest": np.array([-1.7976931348623157e308]),
    "2**53 + 2": np.array([2.0**53 + 2]),
    "root of the largest": np.array([2.0**512]),
}
ODD = {**NAN, **INFINITE, **NUMBERS}

SINGLE: dict[str, np.ndarray] = {
    "signalling nan": np.array([0x7F800001], np.uint32).view(np.float32),
    "nan": np.array([0x7FC00000], np.uint32).view(np.float32),
    "subnormal": np.array([1], np.uint32).view(np.float32),
    "-inf": np.array([-np.inf], np.float32),
    "largest": np.array([np.finfo(np.float32).max]),
}

QUESTIONS: dict[str, Callable[[Table], object]] = {
    "mean": lambda table: table.mean("x", bounds=BOUNDS, epsilon=1.0),
    "variance": lambda table: table.variance("x", bounds=BOUNDS, epsilon=1.0),
    "quantiles": lambda table: table.quantiles("x", q=[0.1, 0.5], bounds=BOUNDS, epsilon=1.0),
    "histogram": lambda table: table.histogram("x", edges=[-5, 0, 5], epsilon=1.0),
    "keys": lambda table: table.keys("x", epsilon=1.0, delta=0.01),
}


def asked(ask: Callable[[Table], object]) -> Call:
    return lambda values: ask(Table({"user": [*range(N)], "x": values}, person="user", rows=1)), REALS


CALLS = {
    **VECTORS,
    **{f"{name} of a matrix": call for name, call in MATRICES.items()},
    **{f"Table.{name}": asked(ask) for name, ask in QUESTIONS.items()},
}


def outcome(call: Callable[[Any], Any], values: Any) -> str:
    """What a caller sees: that there is a result, or the error; warnings are errors."""
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "delta=", UserWarning)  # of public numbers
        try:
            call(values)
        except (ParameterError, TypeError) as error:
            return f"{type(error).__name__}: {error}"
    return "a result"


def columns(values: np.ndarray, odd: np.ndarray, negated: int = 0) -> list[Any]:
    """The values as floats with an odd one in each of three rows, and in all, as an array, a strided one and a list.

    Every other number may be negated.
    """
    found: list[Any] = []
    bits = np.dtype(np.uint64 if odd.dtype == np.float64 else np.uint32)
    for rows in (0, len(values) // 2, len(values) - 1, slice(None)):
        column = values.astype(odd.dtype)
        places = column.reshape(len(column), -1).view(bits)[:, 0]
        places[rows] = odd.view(bits)[0]
        places[::2] ^= bits.type(negated << 8 * bits.itemsize - 1)
        spread = np.empty((2 * len(column), *column.shape[1:]), column.dtype)
        spread[::2] = column
        found += [column, spread[::2], column.tolist()]
    return found


def outcomes(name: str, odd: np.ndarray, negated: int = 0) -> set[tuple[str, str]]:
    """The kind of container, which is public, and what a caller sees."""
    call, values = CALLS[name]
    return {(type(column).__name__, outcome(call, column)) for column in columns(values, odd, negated)}


@pytest.mark.parametrize("name", CALLS)
def test_no_odd_number_is_warned_of(name: str) -> None:
    for kinds in (NAN, INFINITE):
        seen = {text for odd in kinds.values() for text in outcomes(name, odd)}
        assert len(seen) == 2, f"whichever it is and wherever it stands: {seen}"
    for odd in NUMBERS.values():
        assert len(outcomes(name, odd)) == 2
        outcomes(name, odd, negated=1)
    for odd in SINGLE.values():
        outcomes(name, odd)


def test_how_many_there_are() -> None:
    print(f"{len(CALLS)} functions x {len(ODD)} doubles and {len(SINGLE)} singles x 12 columns")
    assert len(CALLS) >= 45
    assert len(ODD) == 20


def test_a_signalling_nan_that_is_warned_of_is_found() -> None:
    """The control: NumPy's own subtraction tells of it."""
    _, values = CALLS["Mean"]
    assert outcome(lambda column: column - 0.5, columns(values, NAN["nan"])[0]) == "a result"
    with pytest.raises(FloatingPointError, match="invalid value"):
        outcome(lambda column: column - 0.5, columns(values, NAN["R's NA"])[0])


def test_no_row_is_told_by_the_type_of_a_release() -> None:
    """Negative zero, and whole numbers that are floats, look like others."""
    for value in (0.0, -0.0, 0):
        found = stability.StableMode(epsilon=9.0, delta=0.01, relation="substitute").release([value] * 50)
        assert struct.pack("d", found) == struct.pack("d", 0.0)
        assert type(found) is int


class Telling(int):
    """A number that tells who looks at it."""

    def __int__(self) -> int:
        raise ValueError("a row of alice")


@pytest.mark.parametrize("kind", [queries.Sum, queries.Mean, queries.Variance, queries.Median])
def test_no_class_of_the_users_tells_of_a_row(kind: Any) -> None:
    with pytest.raises(TypeError, match=r"^column must be of texts and numbers that can be read, got Telling$"):
        kind(bounds=(0, 9), epsilon=1.0).release([1.0, Telling(3)])


def test_a_signalling_nan_in_a_list_is_refused_as_any_other() -> None:
    for odd in SINGLE.values():
        seen = outcome(CALLS["Laplace"][0], [1.0, 2.0, odd[0]])
        assert seen in ("a result", "ParameterError: x must be finite: no NaN and no infinity")
