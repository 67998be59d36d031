"""What is copied, and what is not: the same addresses in and out, with layouts that must be copied as a control."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="the extra `test` is not installed")

import nanoarrow
import pandas as pd
import polars as pl
from interchange.containers import (
    ARROW,
    NUMPY,
    PANDAS,
    TENSORS,
    OnlyArray,
    OnlyStream,
    OnlyTensor,
    Versioned,
)

from dpnoise import DiscreteLaplace, Laplace, ParameterError, local, samplers, sgd
from dpnoise._arrays import array_of
from dpnoise.hazmat import SeededRng

VALUES = np.arange(1000.0) / 8


def _in_arrow(x: Any) -> int:
    column = pa.chunked_array(x if hasattr(x, "__arrow_c_stream__") else [pa.array(x)]).chunk(0)
    return column.buffers()[1].address + column.offset * VALUES.itemsize


def _in_numpy(x: Any) -> int:
    return x.to_numpy().ctypes.data  # if that copied, the next copy would be elsewhere


ADDRESS: dict[str, Callable[[Any], int]] = {
    **dict.fromkeys(
        ["pyarrow", "pyarrow sliced", "pyarrow one chunk", "capsule", "polars", "polars sliced"], _in_arrow
    ),
    **dict.fromkeys(["nanoarrow", "nanoarrow C array"], _in_arrow),
    **dict.fromkeys(["pandas", "pandas index", "pandas array", "pandas nullable"], _in_numpy),
    **dict.fromkeys(["DLPack", "DLPack strided"], lambda x: x.data.ctypes.data),
    **dict.fromkeys(NUMPY, lambda x: x.ctypes.data),
    "pyarrow extension": lambda x: _in_arrow(x.storage),
}
"""Where a container that is not copied has its first value."""

CONTAINERS = {**NUMPY, **ARROW, **PANDAS, **TENSORS}

MUST_COPY = ("chunks", "dictionary", "runs", "stream", "categorical", "of Arrow")


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers(name):
    container = CONTAINERS[name](VALUES)
    found = array_of(container, "x")
    assert np.array_equal(found, VALUES)
    if name in ADDRESS:
        assert found.ctypes.data == ADDRESS[name](container)
    else:
        assert any(word in name for word in MUST_COPY)
        assert not any(np.may_share_memory(found, view) for view in buffers_of(container))


def buffers_of(container: Any) -> list[Any]:
    """Give all memory of a container that must be copied."""
    if isinstance(container, OnlyStream):
        container = container.data
    if isinstance(container, pd.Series):
        container = container.array.__arrow_array__() if "pyarrow" in str(container.dtype) else []
    if isinstance(container, pl.Series):
        container = pa.chunked_array(container)
    chunks = container.chunks if isinstance(container, pa.ChunkedArray) else [container]
    return [np.frombuffer(buffer, np.uint8) for chunk in chunks if chunk for buffer in chunk.buffers() if buffer]


def peak_of(call: Callable[[], Any]) -> int:
    """Give the most memory that NumPy and pandas took while a call ran, in bytes."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


GRADIENTS = np.linspace(-1, 1, 2**18).reshape(2**10, 2**8)  # 2 MiB


def test_gradients_of_another_library_are_read_in_place():
    def step(gradients: Any) -> int:
        return peak_of(lambda: sgd.clip_and_sum(gradients, clip_norm=1.0, threads=1))

    assert step(GRADIENTS) < GRADIENTS.nbytes / 10
    assert step(OnlyTensor(GRADIENTS)) < GRADIENTS.nbytes / 10
    assert step(OnlyTensor(np.asfortranarray(GRADIENTS))) >= GRADIENTS.nbytes  # by columns
    assert step(pl.DataFrame(GRADIENTS)) >= GRADIENTS.nbytes


@pytest.mark.parametrize("name", ["pyarrow", "polars", "pandas", "pandas nullable", "DLPack", "capsule"])
def test_a_release_holds_its_result_and_no_other_copy(name):
    values = np.linspace(-1, 1, 2**18)
    column = CONTAINERS[name](values)
    assert peak_of(lambda: Laplace(epsilon=1.0).release(column, threads=1)) < 1.2 * values.nbytes


def test_a_release_of_categories_holds_another_copy():
    values = np.linspace(-1, 1, 2**18)
    column = CONTAINERS["pandas categorical"](values)
    assert peak_of(lambda: Laplace(epsilon=1.0).release(column, threads=1)) > 1.8 * values.nbytes


PROTOCOL = local.OptimizedUnaryEncoding(k=15, epsilon=1.0)
REPORTS = PROTOCOL.perturb(np.arange(1000) % 15, rng=SeededRng(3))


def test_reports_out_are_a_view_that_names_the_protocol():
    batch = PROTOCOL.to_arrow(REPORTS)
    assert batch.schema.names == ["report"]
    assert batch.column(0).type == pa.binary(2)
    assert batch.column(0).buffers()[1].address == REPORTS.ctypes.data
    assert batch.column(0)[7].as_py() == REPORTS[7].tobytes()
    strided = np.repeat(REPORTS, 2, axis=0)[::2]
    assert PROTOCOL.to_arrow(strided).equals(batch)  # copied
    for give in (lambda data: data, OnlyArray, OnlyStream, nanoarrow.ArrayStream, lambda data: pa.table(data)):
        assert PROTOCOL.estimate(give(batch)).counts.tolist() == PROTOCOL.estimate(REPORTS).counts.tolist()
        with pytest.raises(ParameterError, match=r"^reports must be of the same protocol"):
            local.OptimizedUnaryEncoding(k=15, epsilon=2.0).estimate(give(batch))


def test_answers_out_can_be_read_back():
    protocol = local.RandomizedResponse(epsilon=1.0)
    answers = protocol.perturb(np.arange(100) % 3 == 0, rng=SeededRng(3))
    batch = protocol.to_arrow(answers)
    assert batch.column(0).buffers()[1].address == answers.ctypes.data
    assert protocol.estimate(batch).counts.tolist() == protocol.estimate(answers).counts.tolist()


def test_reports_of_another_shape_do_not_become_arrow():
    with pytest.raises(ParameterError, match=r"reports must have shape \(n, 2\)"):
        PROTOCOL.to_arrow(REPORTS[:, :1])
    with pytest.raises(TypeError, match="reports must be a NumPy array of dtype uint8"):
        PROTOCOL.to_arrow(REPORTS.astype(np.int64))


def test_estimates_are_arrow_streams():
    estimate = PROTOCOL.estimate(REPORTS)
    table = pa.table(estimate)
    assert table.equals(estimate.to_arrow())
    assert pl.DataFrame(estimate).equals(estimate.to_polars())
    assert nanoarrow.ArrayStream(estimate).read_all().to_pylist() == table.to_pylist()


def test_releases_are_given_on_without_copies():
    for released in (Laplace(epsilon=1.0).release(VALUES), DiscreteLaplace(epsilon=1.0).release(np.arange(100))):
        assert np.from_dlpack(released).ctypes.data == released.ctypes.data
        assert pa.array(released).buffers()[1].address == released.ctypes.data
        assert pd.Series(released, copy=False).to_numpy().ctypes.data == released.ctypes.data


def test_noise_is_drawn_into_the_memory_of_a_tensor():
    tensor = Versioned(np.zeros(100))
    shared = np.from_dlpack(tensor)
    if not shared.flags.writeable:
        pytest.skip("this NumPy takes all tensors for read-only")
    samplers.laplace(1.0, out=shared, rng=SeededRng(2))
    assert np.array_equal(tensor.data, samplers.laplace(1.0, size=100, rng=SeededRng(2)))
    wanted = "pass what shares its memory, np.from_dlpack"
    for other in (tensor, pa.array(VALUES), pl.Series(VALUES)):
        with pytest.raises(TypeError, match=wanted):
            samplers.laplace(1.0, out=other)


def test_memory_that_must_not_be_written_is_not():
    constant = np.from_dlpack(OnlyTensor(np.zeros(100)))
    constant.flags.writeable = False
    with pytest.raises(ParameterError, match="out must be writable, got a read-only array"):
        samplers.laplace(1.0, out=constant)
