"""Reports in Arrow data of every layout and library, and in Parquet files: counted as the same rows in NumPy are."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from refusals import refuses

pa = pytest.importorskip("pyarrow", reason="the extra `arrow` is not installed")

import pandas as pd
import polars as pl
import pyarrow.parquet as pq

from dpnoise import ParameterError, local
from dpnoise.hazmat import SeededRng
from dpnoise.local import _arrow

PROTOCOL = local.OptimizedUnaryEncoding(k=15, epsilon=1.0)
OTHER = local.OptimizedUnaryEncoding(k=15, epsilon=2.0)
OF_ANOTHER = f"reports must be of the same protocol, {PROTOCOL.to_json()}, got {OTHER.to_json()}"
RESPONSE = local.RandomizedResponse.coin_flips()
PROTOCOLS = [
    PROTOCOL,
    local.SymmetricUnaryEncoding(k=2, epsilon=2.0),
    local.OptimizedUnaryEncoding(k=1001, epsilon=3.0),
    local.GeneralizedRandomizedResponse(k=70_000, epsilon=3.0),
    local.LocalHashing(k=100, epsilon=2.0),
    local.ProjectiveGeometryResponse(k=100, epsilon=2.0),
    local.SubsetSelection(k=30, epsilon=1.0),
]
MALFORMED = [b"", None, b"\x01", b"\x01\x02\x03", None]
REASONS = {"missing report": 2, "wrong length": 3}


def reports_of(protocol: local.Protocol, n: int) -> np.ndarray:
    return protocol.perturb(np.arange(n) % protocol.k, rng=SeededRng(n))


def texts(reports: np.ndarray) -> list[bytes]:
    return [row.tobytes() for row in reports]


def counted(protocol: local.Protocol, reports: Any, **options: Any) -> local.Accumulator:
    accumulator = protocol.accumulator()
    accumulator.add(reports, **options)
    return accumulator


class OnlyCapsule:
    """A column or batch of a library that knows nothing but the PyCapsule interface."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.data.__arrow_c_array__(requested_schema)


class OnlyStream(OnlyCapsule):
    """The same for a stream, without the other way to ask."""

    __arrow_c_array__ = property()  # type: ignore[assignment] # hasattr says no

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.data.__arrow_c_stream__(requested_schema)


TYPES = {
    "fixed": lambda width: pa.binary(width),
    "binary": lambda width: pa.binary(),
    "large": lambda width: pa.large_binary(),
    "view": lambda width: pa.binary_view(),
}
CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "array": lambda column: column,
    "slice": lambda column: pa.concat_arrays([column[:5], column])[5:],
    "chunked": lambda column: pa.chunked_array([column[:7], column[7:7], column[7:]]),
    "batch": lambda column: pa.record_batch([column], names=["r"]),
    "table": lambda column: pa.table({"report": pa.chunked_array([column[:9], column[9:]]), "day": [3] * len(column)}),
    "reader": lambda column: pa.table({"report": pa.chunked_array([column[:9], column[9:]])}).to_reader(),
    "capsule": OnlyCapsule,
    "capsule of a batch": lambda column: OnlyCapsule(pa.record_batch([column], names=["r"])),
    "stream": lambda column: OnlyStream(pa.chunked_array([column[:9], column[9:]])),
    "stream of a table": lambda column: OnlyStream(pa.table({"r": column})),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_every_layout_counts_as_the_rows_do(protocol, kind, container):
    reports = reports_of(protocol, 300)
    column = pa.array(texts(reports), TYPES[kind](protocol.report_bytes))
    expected = counted(protocol, reports)
    assert counted(protocol, CONTAINERS[container](column)) == expected
    # Positive control: the comparison sees a single report that is missing.
    assert counted(protocol, CONTAINERS[container](column[1:])) != expected


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("kind", ["binary", "large", "view"])
@pytest.mark.filterwarnings("ignore::dpnoise.DoubtfulInputWarning")
def test_what_is_no_report_is_rejected_with_the_reason(kind, container):
    reports = reports_of(PROTOCOL, 100)
    good = texts(reports)
    column = pa.array([*MALFORMED[:2], *good[:50], *MALFORMED[2:4], *good[50:], MALFORMED[4]], TYPES[kind](2))
    accumulator = counted(PROTOCOL, CONTAINERS[container](column))
    assert (accumulator.n, accumulator.rejected, accumulator.rejected_reasons) == (100, 5, REASONS)
    assert np.array_equal(accumulator.estimate().counts, PROTOCOL.estimate(reports).counts)


def test_null_rows_of_fixed_size():
    reports = reports_of(PROTOCOL, 100)
    column = pa.array([None, *texts(reports), None, b"\x00\x80"], pa.binary(2))
    for part in (column, column[:], pa.concat_arrays([column, column])[103:]):
        accumulator = counted(PROTOCOL, part)
        assert accumulator.n == 100
        assert accumulator.rejected_reasons == {"tail bits set": 1, "missing report": 2}


def test_a_column_of_another_width_is_rejected_whole():
    accumulator = counted(PROTOCOL, pa.array([b"abc", None, b"abd"], pa.binary(3)))
    assert (accumulator.n, accumulator.rejected_reasons) == (0, {"missing report": 1, "wrong length": 2})
    for nothing in (pa.nulls(4), pa.array([None] * 4, pa.binary(2)), pa.array([None] * 4, pa.binary())):
        assert counted(PROTOCOL, nothing).rejected_reasons == {"missing report": 4}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("kind", TYPES)
def test_no_rows(kind, container):
    assert counted(PROTOCOL, CONTAINERS[container](pa.array([], TYPES[kind](2)))) == PROTOCOL.accumulator()


@pytest.mark.filterwarnings("ignore::dpnoise.DoubtfulInputWarning")
def test_rejected_reports_are_merged_and_kept_in_the_state():
    total = counted(PROTOCOL, pa.array(MALFORMED, pa.binary()))
    total.merge(local.Accumulator.from_bytes(total.to_bytes()))
    assert total.rejected_reasons == {"missing report": 4, "wrong length": 6}
    assert total.estimate().rejected == 10


def test_libraries():
    reports = reports_of(PROTOCOL, 300)
    expected = counted(PROTOCOL, reports)
    expected.add(pa.array(MALFORMED, pa.binary()))
    rows = [*texts(reports), *MALFORMED]
    frame = pl.DataFrame({"report": rows, "day": range(305)})
    for column in (frame, frame["report"], pl.concat([frame[:100], frame[100:]], rechunk=False)["report"]):
        assert counted(PROTOCOL, column) == expected
    panda = pd.DataFrame({"report": rows, "day": range(305)})
    assert counted(PROTOCOL, panda) == expected
    assert counted(PROTOCOL, panda.astype({"report": pd.ArrowDtype(pa.binary())})) == expected


@pytest.mark.filterwarnings("ignore::dpnoise.DoubtfulInputWarning")
def test_boolean_answers():
    answers = np.arange(1000) % 3 == 0
    expected = counted(RESPONSE, answers)
    assert counted(RESPONSE, pa.array(answers)) == expected
    assert counted(RESPONSE, pl.Series(answers)) == expected
    holes = counted(RESPONSE, pa.array([None, *answers.tolist(), None]))
    assert (holes.n, holes.rejected_reasons) == (1000, {"missing report": 2})
    assert np.array_equal(holes.estimate().counts, expected.estimate().counts)
    refuses(TypeError, "got dtype bool", PROTOCOL.estimate, pa.array(answers))


def test_nothing_is_copied_where_the_layout_allows():
    column = pa.array([bytes([i % 256, i % 100]) for i in range(5000)], pa.binary(2))
    for data in (column, column[7:], column.cast(pa.binary())[7:], column.cast(pa.large_binary())[9:4000]):
        values = data.buffers()[-1]
        for block, rejected in _arrow.blocks(data, PROTOCOL):
            assert values.address <= block.ctypes.data < values.address + values.size
            assert not rejected
    # Positive control: a filtered column is a copy, and is seen to be one.
    holes = pa.array([None, b"ab"], pa.binary(2))
    [(block, _)] = _arrow.blocks(holes, PROTOCOL)
    assert block.ctypes.data not in range(holes.buffers()[1].address, holes.buffers()[1].address + 4)


@pytest.mark.filterwarnings("ignore::dpnoise.DoubtfulInputWarning")
def test_blocks_are_bounded(monkeypatch):
    monkeypatch.setattr(_arrow, "rows_per_block", lambda _bytes: 7)
    reports = reports_of(PROTOCOL, 100)
    column = pa.array([*texts(reports), *MALFORMED], pa.binary())
    assert max(len(block) for block, _ in _arrow.blocks(column, PROTOCOL)) == 7
    assert counted(PROTOCOL, column).rejected_reasons == REASONS
    assert np.array_equal(counted(PROTOCOL, column).estimate().counts, PROTOCOL.estimate(reports).counts)


def test_a_stream_is_read_piece_by_piece():
    most = 0
    reports = pa.array(texts(reports_of(PROTOCOL, 1 << 12)), pa.binary(2))
    before = pa.total_allocated_bytes()
    schema = pa.schema([("report", pa.binary(2))])

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal most
        for _ in range(50):
            most = max(most, pa.total_allocated_bytes() - before)
            yield pa.record_batch([pa.concat_arrays([reports, reports])], schema=schema)

    accumulator = counted(PROTOCOL, pa.RecordBatchReader.from_batches(schema, batches()))
    assert accumulator.n == 50 << 13
    assert 0 < most <= 4 * (2 << 13)


def test_threads_may_share_an_accumulator():
    column = pa.array(texts(reports_of(PROTOCOL, 20_000)), pa.binary())
    shared = PROTOCOL.accumulator()
    threads = [threading.Thread(target=shared.add, args=(column.slice(i * 5000, 5000),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared == counted(PROTOCOL, column)


# --- Refusals: nothing is added ------------------------------------------------------------------------------------


def test_strict():
    accumulator = PROTOCOL.accumulator()
    good = pa.array(texts(reports_of(PROTOCOL, 10)), pa.binary())
    message = "reports must all be well-formed when strict is true, got malformed: missing report: 2, wrong length: 3"
    mixed = pa.chunked_array([good, pa.array(MALFORMED, pa.binary())])
    refuses(ParameterError, message, accumulator.add, mixed, strict=True)
    bits = np.array([[0, 0], [0, 0x80]], np.uint8)
    refuses(ParameterError, "got malformed: tail bits set: 1", accumulator.add, bits, strict=True)
    assert accumulator == PROTOCOL.accumulator()
    accumulator.add(good, strict=True)
    assert accumulator.n == 10


def test_a_specification_in_the_metadata():
    reports = reports_of(PROTOCOL, 10)
    schema = pa.schema([pa.field("report", pa.binary(2))])
    table = pa.table([pa.array(texts(reports), pa.binary(2))], schema=schema)
    accumulator = PROTOCOL.accumulator()
    own = table.replace_schema_metadata({"dpnoise.protocol": PROTOCOL.to_json()})
    others = table.replace_schema_metadata({"dpnoise.protocol": OTHER.to_json()})
    for data in (others, others.to_batches()[0], others.to_reader()):
        refuses(ParameterError, OF_ANOTHER, accumulator.add, data)
    for damaged in (b"{", b"\xff"):
        refuses(ParameterError, "not a protocol specification", accumulator.add,
                table.replace_schema_metadata({"dpnoise.protocol": damaged}))  # fmt: skip
    again = json.dumps(json.loads(PROTOCOL.to_json()))
    refuses(ParameterError, "these were written in another form", accumulator.add,
            table.replace_schema_metadata({"dpnoise.protocol": again}))  # fmt: skip
    assert accumulator == PROTOCOL.accumulator()
    accumulator.add(own)
    assert accumulator == counted(PROTOCOL, reports)


def test_data_that_cannot_be_counted():
    accumulator = PROTOCOL.accumulator()
    message = "reports must be a column of type fixed_size_binary[2] or binary, got "
    refuses(TypeError, message + "int64", accumulator.add, pa.array([1, 2]))
    refuses(TypeError, message + "string", accumulator.add, pa.array(["ab"]))
    refuses(TypeError, message + "large_string", accumulator.add, pl.Series(["ab"]).to_arrow().cast(pa.large_string()))
    refuses(TypeError, message + "list<item: int64>", accumulator.add, pa.table({"report": [[1, 2]]}))
    two = pa.table({"a": [b"ab"], "b": [b"ab"]})
    message = "reports must be one column, or a table with one column 'report', got 2 columns"
    for data in (two, two.to_batches()[0], pl.DataFrame(two), pa.Table.from_arrays([two["a"]] * 2, ["report"] * 2)):
        refuses(ParameterError, message, accumulator.add, data)
    refuses(ParameterError, "threads must be", accumulator.add, pa.array([b"ab"]), threads=0)
    assert accumulator == PROTOCOL.accumulator()


def test_an_error_in_the_middle_of_a_stream():
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array([b"ab"])], names=["report"])
        raise ValueError("the cable was cut")

    accumulator = PROTOCOL.accumulator()
    reader = pa.RecordBatchReader.from_batches(pa.schema([("report", pa.binary())]), batches())
    refuses(ValueError, "the cable was cut", accumulator.add, reader)
    assert accumulator == PROTOCOL.accumulator()


def test_without_pyarrow(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = 'Arrow data and Parquet files need pyarrow: pip install "pyarrow>=18"'
    refuses(ImportError, message, PROTOCOL.estimate, pa.array([b"ab"]))
    refuses(ImportError, message, PROTOCOL.accumulator().add_parquet, tmp_path / "reports.parquet")


# --- Parquet -------------------------------------------------------------------------------------------------------


@pytest.fixture
def reports() -> np.ndarray:
    return reports_of(PROTOCOL, 10_000)


@pytest.fixture
def table(reports: np.ndarray) -> Any:
    table = pa.table({"report": pa.array(texts(reports), pa.binary(2)), "day": np.arange(10_000)})
    return table.replace_schema_metadata({"dpnoise.protocol": PROTOCOL.to_json()})


@pytest.mark.parametrize("options", [{}, {"row_group_size": 777}, {"use_dictionary": False, "compression": "none"}])
@pytest.mark.parametrize("kind", [pa.binary(2), pa.binary(), pa.large_binary()])
def test_a_parquet_file(reports, table, tmp_path, options, kind):
    path = tmp_path / "reports.parquet"
    pq.write_table(table.set_column(0, "report", table["report"].cast(kind)), path, **options)
    for argument in (path, str(path)):
        accumulator = PROTOCOL.accumulator()
        accumulator.add_parquet(argument, threads=2, strict=True)
        assert accumulator == counted(PROTOCOL, reports)


def test_malformed_reports_in_a_parquet_file(table, tmp_path):
    path = tmp_path / "reports.parquet"
    mixed = pa.chunked_array([table["report"].combine_chunks().cast(pa.binary()), pa.array(MALFORMED, pa.binary())])
    pq.write_table(pa.table({"report": mixed}), path)
    accumulator = PROTOCOL.accumulator()
    refuses(ParameterError, "got malformed: missing report: 2", accumulator.add_parquet, path, strict=True)
    assert accumulator == PROTOCOL.accumulator()
    accumulator.add_parquet(path)
    assert (accumulator.n, accumulator.rejected_reasons) == (10_000, REASONS)


def test_memory_does_not_grow_with_the_file(tmp_path):
    column = pa.array([b"\x05\x00"] * (1 << 18), pa.binary(2))
    path = tmp_path / "large.parquet"
    with pq.ParquetWriter(path, pa.schema({"report": column.type}), use_dictionary=False, compression="none") as writer:
        for _ in range(40):
            writer.write_batch(pa.record_batch([column], names=["report"]))
    assert path.stat().st_size > 20 << 20
    before = pa.total_allocated_bytes()
    peak = 0

    class Watched(local.OptimizedUnaryEncoding):
        __slots__ = ()

        def _rows(self, reports: Any) -> Any:
            nonlocal peak
            peak = max(peak, pa.total_allocated_bytes() - before)
            return super()._rows(reports)

    accumulator = local.Accumulator(Watched(k=15, epsilon=1.0))
    accumulator.add_parquet(path)
    assert accumulator.n == 40 << 18
    assert 0 < peak < 8 << 20


def test_files_that_cannot_be_counted(table, tmp_path):
    path, accumulator = tmp_path / "reports.parquet", PROTOCOL.accumulator()
    with pytest.raises(FileNotFoundError):
        accumulator.add_parquet(path)
    pq.write_table(table.replace_schema_metadata({"dpnoise.protocol": OTHER.to_json()}), path)
    refuses(ParameterError, OF_ANOTHER, accumulator.add_parquet, path)
    pq.write_table(table[:0].replace_schema_metadata({"dpnoise.protocol": OTHER.to_json()}), path)
    refuses(ParameterError, OF_ANOTHER, accumulator.add_parquet, path)
    pq.write_table(table.rename_columns(["a", "b"]), path)
    refuses(ParameterError, f"{str(path)!r} cannot be used: reports must be one column", accumulator.add_parquet, path)
    pq.write_table(table.select(["day"]), path)
    refuses(TypeError, "got int64", accumulator.add_parquet, path)
    pq.write_table(table.replace_schema_metadata({"dpnoise.protocol": "{"}), path)
    refuses(ParameterError, "cannot be used: not a protocol specification", accumulator.add_parquet, path)
    assert accumulator == PROTOCOL.accumulator()


def test_no_flipped_bit_is_counted_in_silence(tmp_path):
    path = tmp_path / "reports.parquet"
    rows = pa.table(PROTOCOL.to_arrow(PROTOCOL.perturb(np.arange(100) % PROTOCOL.k)))
    pq.write_table(rows, path, row_group_size=60, compression="none", use_dictionary=False, write_page_checksum=True)
    whole, expected = path.read_bytes(), PROTOCOL.accumulator()
    expected.add_parquet(path)
    reports = whole.index(rows.column(0).chunk(0).buffers()[1].to_pybytes()[:60])
    refused = {}
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for position in (*range(footer), *range(footer, len(whole), 5)):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << position % 8
        path.write_bytes(flipped)
        accumulator = PROTOCOL.accumulator()
        try:
            accumulator.add_parquet(path)
        except ParameterError as error:
            refused[position] = str(error)
        else:
            assert accumulator == expected
    assert all(str(path) in message or "their metadata say" in message for message in refused.values())
    assert set(range(reports, reports + 60 * PROTOCOL.report_bytes)) <= set(refused)


def test_a_file_cut_short_anywhere(table, tmp_path):
    path, accumulator = tmp_path / "reports.parquet", PROTOCOL.accumulator()
    pq.write_table(table, path, row_group_size=1000)
    whole = path.read_bytes()
    for length in [0, 1, 4, 8, 1000, len(whole) // 2, len(whole) - 8, len(whole) - 1]:
        path.write_bytes(whole[:length])
        refuses(ParameterError, f"{str(path)!r} is not a Parquet file, or was cut", accumulator.add_parquet, path)
    # A hole in the middle leaves the footer whole, so some row groups read well before the damage is met.
    path.write_bytes(whole[: len(whole) // 2 - 2000] + bytes(4000) + whole[len(whole) // 2 + 2000 :])
    refuses(ParameterError, f"{str(path)!r} is damaged", accumulator.add_parquet, path)
    assert accumulator == PROTOCOL.accumulator()
    path.write_bytes(whole)
    accumulator.add_parquet(path)
    assert accumulator.n == 10_000
