"""No exception of a caller's class that meets private data is passed on, nor shown, nor kept as the context of another.

Every public function with items, containers and single numbers whose methods raise, one method at a time.
"""

from __future__ import annotations

import numbers
import traceback
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from interchange.calls import MATRICES, OF_TEXTS, VECTORS

import dpnoise
from dpnoise import local, queries, sgd, stability
from dpnoise.mechanisms import AboveThreshold, DiscreteLaplace, Laplace, NoiseBuffer, TruncatedGeometric

SECRET = "a row of alice"


class Real:
    """A number of a class of the caller's."""

    def __init__(self, value: float = 3) -> None:
        self.value = value

    def __float__(self) -> float:
        return float(self.value)


class Whole(Real):
    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        return int(self.value)


numbers.Real.register(Real)
numbers.Integral.register(Whole)

ITEMS: dict[type, list[str]] = {
    int: ["__eq__", "__hash__", "__int__", "__float__", "__abs__", "__array__", "__array_interface__"],
    float: ["__eq__", "__ne__", "__lt__", "__float__", "is_integer", "as_integer_ratio", "__array_struct__"],
    str: ["__eq__", "__hash__", "__str__", "__len__", "encode", "__lt__"],
    bytes: ["__eq__", "__hash__", "__len__", "__iter__"],
    np.float64: ["item", "is_integer", "__float__", "__array__"],
    Fraction: ["numerator", "__float__", "__eq__", "__hash__"],
    Decimal: ["__hash__", "__eq__", "__float__", "__array_interface__"],
    Real: ["__float__", "__eq__", "__gt__"],
    Whole: ["__int__", "__index__", "__float__", "__abs__"],
    object: ["__eq__", "__hash__", "__str__", "__repr__", "__iter__", "__array__", "__float__", "__index__"],
    list: ["__iter__", "__len__", "__getitem__"],
}
CONTAINERS: dict[type, list[str]] = {
    list: ["__iter__", "__len__", "__getitem__", "__array__", "__array_interface__", "__contains__"],
    np.ndarray: ["__array__", "__len__", "__iter__", "__getitem__", "dtype", "shape", "astype", "__array_function__"],
    object: ["__array__", "__len__", "__arrow_c_array__", "__arrow_c_stream__", "__dlpack_device__", "to_numpy"],
}
PROPERTIES = {"numerator", "dtype", "shape", "__array_interface__", "__array_struct__"}


def fail(*_: object, **__: object) -> Any:
    raise ArithmeticError(SECRET)


def odd(base: type, method: str) -> Any:
    members: dict[str, Any] = {method: property(fail) if method in PROPERTIES else fail}
    if method == "__eq__":
        members["__hash__"] = base.__hash__
    if method == "__len__" and base is object:
        members["__getitem__"] = fail
    if method == "__dlpack_device__":
        members["__dlpack__"] = fail
    return type("Odd", (base,), members)


def item_of(base: type, method: str) -> Any:
    given = {str: "tea", bytes: b"tea", list: [1], object: None, float: 2.5}.get(base, 3)
    return odd(base, method)() if given is None else odd(base, method)(given)


def data() -> list[Any]:
    """Columns with such items in the first and the last row, these items, and such containers."""
    found: list[Any] = []
    for base, methods in ITEMS.items():
        for method in methods:
            item = item_of(base, method)
            plain = {str: "tea", bytes: b"tea", int: 3}.get(base, 2.5)
            column = [item, *[plain] * 34, item]
            objects = np.empty(36, object)
            for place, each in enumerate(column):
                objects[place] = each
            found += [column, objects, item]
    for base, methods in CONTAINERS.items():
        for method in methods:
            kind = odd(base, method)
            found.append(np.zeros(36).view(kind) if base is np.ndarray else kind([1] * 36) if base is list else kind())
    return found


def run() -> Any:
    return sgd.CorrelatedGradient(
        strategy=sgd.BandedToeplitz([1.0, 0.5], steps=40),
        clip_norm=1.0,
        noise_multiplier=1.0,
        expected_batch_size=1,
        participation=sgd.SingleEpoch(),
    )


def blocks(aggregate: Any, **options: Any) -> Callable[[Any], Any]:
    return stability.SubsampleAndAggregate(
        f=lambda rows: rows[0], blocks=2, aggregate=aggregate, epsilon=9.0, **options
    ).release


SAMPLED = local.SampleAndThreshold(epsilon=1.0, delta=0.01, threshold=5)
STEP = sgd.NoisyGradient(clip_norm=1.0, noise_multiplier=1.0, expected_batch_size=1)
OTHERS: dict[str, Callable[[Any], Any]] = {
    "sample": SAMPLED.sample,
    "SampleAndThreshold": SAMPLED.release,
    "ThresholdAccumulator": lambda x: SAMPLED.accumulator().add(x),
    "Histogram of booleans": queries.Histogram(domain=[False, True], epsilon=1.0).release,
    "texts": local.OptimizedUnaryEncoding(domain=["tea", "coffee"], epsilon=1.0).perturb,
    "labels": local.OptimizedUnaryEncoding(domain=[1, 2], epsilon=1.0).perturb,
    "blocks, mode": blocks("mode", delta=0.1),
    "blocks, mean": blocks("mean", bounds=(0, 1)),
    "proposal": stability.ProposeTestRelease(
        propose=float, distance=lambda x, bound: 5, answer=lambda x, bound, epsilon: 1.0, epsilon=1.0, delta=0.01
    ).release,
    "StableValue": lambda x: stability.StableValue(epsilon=1.0, delta=0.01).release(("tea", x)),
    "is_above": lambda x: AboveThreshold(epsilon=1.0, threshold=1.0).start().is_above(x),
    "NoiseBuffer": NoiseBuffer(Laplace(epsilon=1.0)).add_noise,
    "should_keep": TruncatedGeometric(epsilon=1.0, delta=0.01).should_keep,
    "CorrelatedGradient": lambda x: run().release(x),
    "add_noise": STEP.add_noise,
    "clipped_sum": STEP.clipped_sum,
    "release_best": lambda x: dpnoise.Exponential(epsilon=1.0).release_best(x, [1, 2], lambda data, y: data),
}
CALLS = {
    **{name: call for name, (call, _) in VECTORS.items() if "Bootstrap" not in name},
    **{f"{name} of texts": call for name, (call, _) in OF_TEXTS.items()},
    **{f"{name} of a matrix": call for name, (call, _) in MATRICES.items() if name != "aggregate"},  # of what is public
    **OTHERS,
}


def chain(error: BaseException | None) -> str:
    return "" if error is None else f"{error}{chain(error.__cause__)}{chain(error.__context__)}"


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_nobody_sees_what_a_class_of_the_callers_says(name: str) -> None:
    for values in data():
        try:
            CALLS[name](values)
        except (dpnoise.Error, TypeError) as error:
            text = chain(error) + "".join(traceback.format_exception(error))
            assert SECRET not in text, type(values)


def test_what_stops_a_program_is_passed_on() -> None:
    for kind in (KeyboardInterrupt, MemoryError):

        class Stops(float):
            def __eq__(self, other: object, kind: type[BaseException] = kind) -> bool:
                raise kind

            __hash__ = float.__hash__

            def is_integer(self) -> bool:
                return self == 0

        with pytest.raises(kind):
            queries.StabilityHistogram(epsilon=1.0, delta=0.1).release([Stops(1.5)] * 3)


def test_classes_of_the_callers_are_read_as_what_they_are() -> None:
    """An honest class: its values are those of the built-in one, whatever it thinks is equal."""

    class Text(str):
        def __eq__(self, other: object) -> bool:
            return True

        __slots__ = ()
        __hash__ = str.__hash__

    class Number(Fraction):
        __slots__ = ()

    column: list[Any] = [Text("a")] * 400 + [Text("b")] * 300
    found = queries.StabilityHistogram(epsilon=9.0, delta=0.1).release(column)
    assert set(map(type, found)) == {str}
    assert list(found) == ["a", "b"]
    numbers_of: list[Any] = [Number(1, 3), Whole(2), Real(0.5), 1]
    total = queries.Sum(bounds=(0, 9), epsilon=1e6).release(numbers_of)
    assert abs(total - (1 / 3 + 3.5)) < 0.001
    whole: Any = Whole(7)
    assert DiscreteLaplace(epsilon=1e6).release(whole) == 7
