"""What a ledger's release has checked is what it pays for and releases, also if the input can be read only once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="the extra `test` is not installed")

from dpnoise import local, mechanisms, queries, sgd, stability
from dpnoise.accounting import Ledger

VALUES = np.array([3.0] * 400 + [5.0] * 200)
LATER = VALUES * 1000
"""What there is when somebody looks again: such an answer is easily told from the right one."""


class Changing:
    """Data that are others at the second look."""

    def __init__(self, first: Any, second: Any = None) -> None:
        self.all = [first, second]

    def look(self) -> Any:
        found = self.all.pop(0)
        if found is None:
            raise ValueError("it can be read once")
        return found


class Stream(Changing):
    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return pa.chunked_array([self.look()]).__arrow_c_stream__(requested_schema)


class Column(Changing):
    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return pa.array(self.look()).__arrow_c_array__(requested_schema)


class Tensor(Changing):
    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **options: Any) -> Any:
        return self.look().__dlpack__()


class Array(Changing):
    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        return self.look()


class Interface(Changing):
    @property
    def __array_interface__(self) -> Any:
        self.kept = self.look()
        return self.kept.__array_interface__


class ToNumpy(Changing):
    def to_numpy(self) -> Any:
        return self.look()


class Sequence(Changing):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.length = len(given[0])

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, place: int) -> Any:
        if place == 0:
            self.now = self.look()
        return self.now[place]


class Listed(list[Any]):
    """A list that iterates over something else at the second time."""

    def __init__(self, first: Any, second: Any = None) -> None:
        super().__init__(first)
        self.source = Changing(first, second)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.source.look())


def reader(first: Any, second: Any = None) -> Any:
    batch = pa.record_batch({"a": first})
    return pa.RecordBatchReader.from_batches(batch.schema, [batch])


OF_NUMBERS: list[Any] = [Stream, Column, Tensor, Array, Interface, Sequence, Listed]
OF_COLUMNS: list[Any] = [Stream, Column, Tensor, ToNumpy, Listed]
RUN = sgd.CorrelatedGradient(
    strategy=sgd.BandedToeplitz([1.0, 0.5], steps=4),
    clip_norm=1.0,
    noise_multiplier=1e-5,
    expected_batch_size=1,
    participation=sgd.SingleEpoch(),
)
MANY: Any = {"epsilon": 1e6}
BOUNDS = (0.0, 10_000.0)
CASES: dict[str, tuple[Any, list[Any], Callable[[Any], Any], Any]] = {
    "Laplace": (mechanisms.Laplace(**MANY), OF_NUMBERS, lambda found: round(found[0]), 3),
    "Exponential": (mechanisms.Exponential(**MANY), OF_NUMBERS, lambda found: found >= 400, True),
    "AboveThreshold": (
        mechanisms.AboveThreshold(threshold=100.0, max_positives=9, **MANY),
        OF_NUMBERS,
        lambda found: bool(found.any()),
        False,
    ),
    "Count": (queries.Count(**MANY), OF_COLUMNS, int, 600),
    "Sum": (queries.Sum(bounds=BOUNDS, **MANY), OF_COLUMNS, round, 2200),
    "Mean": (queries.Mean(bounds=BOUNDS, **MANY), OF_COLUMNS, round, 4),
    "Variance": (queries.Variance(bounds=BOUNDS, **MANY), OF_COLUMNS, lambda found: found < 100, True),
    "Median": (queries.Median(bounds=BOUNDS, **MANY), OF_COLUMNS, round, 3),
    "Histogram of bins": (queries.Histogram(edges=[0, 10, 9999], **MANY), OF_COLUMNS, lambda found: found[0], 600),
    "Histogram of labels": (queries.Histogram(domain=[3, 5], **MANY), OF_COLUMNS, lambda found: found[3], 400),
    "StabilityHistogram": (queries.StabilityHistogram(delta=0.1, **MANY), OF_COLUMNS, dict, {3: 400, 5: 200}),
    "SampleAndThreshold": (
        local.SampleAndThreshold(epsilon=1.0, delta=0.01, threshold=20),
        OF_COLUMNS,
        lambda found: sorted(found.values),
        [3, 5],
    ),
    "StableMedian": (stability.StableMedian(epsilon=9.0, delta=1e-9), OF_COLUMNS, float, 3.0),
    "StableMode": (stability.StableMode(epsilon=9.0, delta=1e-9), OF_COLUMNS, int, 3),
    "StableScale": (stability.StableScale(epsilon=9.0, delta=1e-9), OF_COLUMNS, lambda found: found < 200, True),
    "SubsampleAndAggregate": (
        stability.SubsampleAndAggregate(f=np.max, blocks=20, aggregate="median", bounds=BOUNDS, epsilon=1e3),
        [Tensor, Listed],
        lambda found: found < 100,
        True,
    ),
}


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, case in CASES.items() for kind in case[1]])
def test_input_is_read_once(tmp_path: Path, name: str, kind: Any) -> None:
    mechanism, _, read, expected = CASES[name]
    ledger = Ledger(tmp_path / "ledger", epsilon=1e9, delta=0.5, relation=mechanism.relation)
    for given in (kind(VALUES), kind(VALUES, LATER)):
        assert read(ledger.release(mechanism, given)) == expected
    assert len(ledger.entries()) == 2


def test_a_number_is_read_once_and_released_as_a_number(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", epsilon=1e9)
    for kind in (Tensor, Array):
        found = ledger.release(mechanisms.Laplace(**MANY), kind(np.array(3.0), np.array(9.0)))
        assert (type(found), round(found)) == (float, 3)
    assert type(ledger.release(mechanisms.Laplace(**MANY), np.array(3.0))) is np.ndarray
    assert type(ledger.release(mechanisms.DiscreteLaplace(**MANY), np.int64(3))) is int


def test_batches_are_read_once() -> None:
    ones = np.ones((2, 3))
    for batches in ((ones for _ in range(3)), Listed([ones] * 3), [Tensor(ones), Array(ones), Stream(ones[:, 0])][:2]):
        mechanism = sgd.CorrelatedGradient(**{**RUN._values(), "delta": 1e-5})
        spender = Counted()
        assert Ledger.release(spender, mechanism, batches).shape[1] == 3  # type: ignore[arg-type]
        assert spender.spends == 1


class Counted:
    """A ledger without limits."""

    spends = 0

    def spend(self, *_: object) -> None:
        self.spends += 1


BAD: list[tuple[Any, Callable[[], Any]]] = [
    (RUN, lambda: (np.ones(3) for _ in range(3))),
    (RUN, lambda: iter([])),
    (RUN, lambda: 5),
    (queries.Sum(bounds=BOUNDS, **MANY), lambda: Stream(pa.array(["a"]))),
    (queries.Median(bounds=BOUNDS, **MANY), lambda: pa.table({"a": VALUES, "b": VALUES}).to_reader()),
    (queries.StabilityHistogram(delta=0.1, **MANY), lambda: Listed([[1]])),
    (local.SampleAndThreshold(epsilon=1.0, delta=0.01, threshold=20), lambda: Stream(pa.array([[1]]))),
    (mechanisms.Laplace(**MANY), lambda: Stream(pa.array([1.0, None]))),
    (mechanisms.Laplace(**MANY), lambda: reader(VALUES)),
    (mechanisms.DiscreteLaplace(**MANY), lambda: Tensor(VALUES)),
    (stability.StableValue(epsilon=1.0, delta=0.01), lambda: ("tea", Array(np.array([5])))),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_what_is_refused_costs_nothing(number: int) -> None:
    mechanism, make = BAD[number]
    spender = Counted()
    with pytest.raises((TypeError, ValueError)):
        Ledger.release(spender, mechanism, make())  # type: ignore[arg-type]
    assert spender.spends == 0


def test_arrays_and_columns_are_not_copied() -> None:
    series = pytest.importorskip("pandas").Series(VALUES)
    for mechanism in (queries.Sum(bounds=BOUNDS, **MANY), mechanisms.Laplace(**MANY)):
        for column in (VALUES, series, pa.array(VALUES)):
            assert mechanism._taken(column) is column or np.shares_memory(mechanism._taken(column), column)
