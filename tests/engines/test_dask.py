"""Dask counts like one process, on every kind of collection, also when workers are killed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines.faults import kill_always, kill_once

pytest.importorskip("dask", reason="the extra `dask` is not installed")
import dask.array
import dask.bag
import dask.dataframe
import distributed

from dpnoise import ParameterError, local
from dpnoise.engines import dask as engine


@pytest.fixture(scope="module")
def cluster():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
        client.wait_for_workers(2)  # a worker that is still starting would outlive the cluster, complaining


def delayed(parts):
    return [dask.delayed(part) for part in parts]


def test_batches_are_counted_as_by_one_process(cluster, collection):
    total = engine.collect(collection.protocol, delayed(collection.parts(20)))  # more than one level of the tree
    assert total.to_bytes() == collection.state


COLLECTIONS = {
    "array": lambda reports: dask.array.from_array(reports, chunks=(700, -1)),
    "bag of batches": lambda reports: dask.bag.from_sequence(np.array_split(reports, 9), npartitions=4),
}


@pytest.mark.parametrize("make", COLLECTIONS.values(), ids=COLLECTIONS)
def test_collections_of_every_kind_are_counted(cluster, unary, make):
    assert engine.collect(unary.protocol, make(unary.reports)).to_bytes() == unary.state


COLUMNS = {
    "bag of reports": lambda column: dask.bag.from_sequence(column.to_pylist(), npartitions=4),
    "batches of Arrow": lambda column: delayed([column[:99], column[99:]]),
    "series of bytes": lambda column: delayed([pd.Series(column.to_pylist(), dtype=object)]),
}


@pytest.mark.parametrize("make", COLUMNS.values(), ids=COLUMNS)
def test_missing_and_wrong_reports_are_counted(cluster, unary, make):
    assert engine.collect(unary.protocol, make(unary.column)).to_bytes() == unary.column_state


@pytest.mark.parametrize("fixed", [True, False], ids=["fixed size", "variable size"])
def test_a_column_of_a_file_is_counted(cluster, collection, tmp_path, fixed):
    column, state = collection.column, collection.column_state
    if fixed:
        column, state = column[:-4].cast(pa.binary(collection.protocol.report_bytes)), collection.state
    pq.write_table(pa.table({"report": column}), tmp_path / "reports.parquet", row_group_size=900)
    frame = dask.dataframe.read_parquet(tmp_path / "reports.parquet", split_row_groups=True)
    assert frame.npartitions == 6
    assert engine.collect(collection.protocol, frame["report"]).to_bytes() == state


def test_it_runs_without_a_cluster(unary):
    with dask.config.set(scheduler="synchronous"):
        assert engine.collect(unary.protocol, delayed(unary.parts(3))).to_bytes() == unary.state


def test_no_partitions_give_no_reports(unary):
    assert engine.collect(unary.protocol, []) == unary.protocol.accumulator()


def test_a_killed_worker_changes_nothing(cluster, unary, tmp_path):
    marker = tmp_path / "killed"
    parts = delayed(unary.parts(20))
    parts[11] = dask.delayed(kill_once)(str(marker), parts[11])
    total = engine.collect(unary.protocol, parts)
    assert marker.exists()
    assert total.to_bytes() == unary.state


def test_a_part_that_kills_every_worker_is_an_error(cluster, unary):
    parts = delayed(unary.parts(3))
    parts[1] = dask.delayed(kill_always)(parts[1])
    with pytest.raises(distributed.KilledWorker, match="died while running it"):
        engine.collect(unary.protocol, parts)


def values_of(protocol: local.Protocol) -> np.ndarray:
    """Values of which every report, at the largest epsilon, is true, but for a chance of below 1e-9."""
    return np.arange(3_000) % 2 == 0 if isinstance(protocol, local.RandomizedResponse) else np.arange(3_000) % 15


@pytest.mark.parametrize(
    "protocol",
    [local.GeneralizedRandomizedResponse(k=15, epsilon=32.0), local.RandomizedResponse(epsilon=32.0)],
    ids=lambda protocol: type(protocol).__name__,
)
def test_every_value_is_randomised_in_its_place(cluster, protocol, tmp_path):
    values = values_of(protocol)
    series = dask.dataframe.from_pandas(pd.Series(values, name="answer"), npartitions=4)
    engine.perturb(protocol, series).to_frame().to_parquet(tmp_path / "reports", write_index=False)
    written = pq.read_table(tmp_path / "reports")
    assert written.schema == pa.schema({"report": pa.binary(1)})
    reports = np.frombuffer(b"".join(written["report"].to_pylist()), np.uint8)
    np.testing.assert_array_equal(reports, values.astype(np.uint8))


def test_every_partition_draws_its_own_randomness(cluster, unary):
    zeros = dask.dataframe.from_pandas(pd.Series(np.zeros(4_000, int)), npartitions=2)
    reports = engine.perturb(unary.protocol, zeros).compute().to_list()
    assert sum(a != b for a, b in zip(reports[:2_000], reports[2_000:], strict=True)) > 1_000


def test_values_that_cannot_be_randomised_are_refused(unary):
    with dask.config.set(scheduler="synchronous"):
        missing = dask.dataframe.from_pandas(pd.Series([1.0, np.nan]), npartitions=1)
        with pytest.raises(TypeError, match="values must be integers, got dtype float64: fill or drop missing values"):
            engine.perturb(unary.protocol, missing).compute()
    with pytest.raises(TypeError, match=r"values must be a dask\.dataframe\.Series, got list"):
        engine.perturb(unary.protocol, [1, 2])


def test_bad_reports_and_collections_are_refused(unary):
    with dask.config.set(scheduler="synchronous"):
        with pytest.raises(ParameterError, match=r"reports must have shape \(n, 2\), got \(3, 5\)"):
            engine.collect(unary.protocol, delayed([np.zeros((3, 5), np.uint8)]))
        with pytest.raises(TypeError, match="reports must be a Dask collection or a list of Delayed, got ndarray"):
            engine.collect(unary.protocol, unary.reports)
    with pytest.raises(TypeError, match=r"protocol must be a protocol of dpnoise\.local for one attribute, got str"):
        engine.collect("rappor", [])
    with pytest.raises(TypeError, match="protocol must be one without a memo, which clients keep, got DBitFlip"):
        engine.perturb(local.DBitFlip(k=9, d=3, epsilon=1.0), [])
