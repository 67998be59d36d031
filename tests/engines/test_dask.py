"""Dask counts like one process, on every kind of collection, also when workers are killed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines.faults import kill_always, kill_once

dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'dpnoise[dask]'")
import dask.array
import dask.bag
import dask.dataframe
import distributed

from dpnoise import ParameterError
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
    total = engine.aggregate(collection.protocol, delayed(collection.parts(20)))  # more than one level of the tree
    assert total.to_bytes() == collection.state


COLLECTIONS = {
    "array": lambda reports: dask.array.from_array(reports, chunks=(700, -1)),
    "bag of batches": lambda reports: dask.bag.from_sequence(np.array_split(reports, 9), npartitions=4),
}


@pytest.mark.parametrize("make", COLLECTIONS.values(), ids=COLLECTIONS)
def test_collections_of_every_kind_are_counted(cluster, unary, make):
    assert engine.aggregate(unary.protocol, make(unary.reports)).to_bytes() == unary.state


COLUMNS = {
    "bag of reports": lambda column: dask.bag.from_sequence(column.to_pylist(), npartitions=4),
    "batches of Arrow": lambda column: delayed([column[:99], column[99:]]),
    "series of bytes": lambda column: delayed([pd.Series(column.to_pylist(), dtype=object)]),
}


@pytest.mark.parametrize("make", COLUMNS.values(), ids=COLUMNS)
def test_missing_and_wrong_reports_are_counted(cluster, unary, make):
    assert engine.aggregate(unary.protocol, make(unary.column)).to_bytes() == unary.column_state


@pytest.mark.parametrize("fixed", [True, False], ids=["fixed size", "variable size"])
def test_a_column_of_a_file_is_counted(cluster, collection, tmp_path, fixed):
    column, state = collection.column, collection.column_state
    if fixed:
        column, state = column[:-4].cast(pa.binary(collection.protocol.report_bytes)), collection.state
    pq.write_table(pa.table({"report": column}), tmp_path / "reports.parquet", row_group_size=900)
    frame = dask.dataframe.read_parquet(tmp_path / "reports.parquet", split_row_groups=True)
    assert frame.npartitions == 6
    assert engine.aggregate(collection.protocol, frame["report"]).to_bytes() == state


def test_it_runs_without_a_cluster(unary):
    with dask.config.set(scheduler="synchronous"):
        assert engine.aggregate(unary.protocol, delayed(unary.parts(3))).to_bytes() == unary.state


def test_no_partitions_give_no_reports(unary):
    assert engine.aggregate(unary.protocol, []) == unary.protocol.accumulator()


def test_a_killed_worker_changes_nothing(cluster, unary, tmp_path):
    marker = tmp_path / "killed"
    parts = delayed(unary.parts(20))
    parts[11] = dask.delayed(kill_once)(str(marker), parts[11])
    total = engine.aggregate(unary.protocol, parts)
    assert marker.exists()
    assert total.to_bytes() == unary.state


def test_a_part_that_kills_every_worker_is_an_error(cluster, unary):
    parts = delayed(unary.parts(3))
    parts[1] = dask.delayed(kill_always)(parts[1])
    with pytest.raises(distributed.KilledWorker, match="died while running it"):
        engine.aggregate(unary.protocol, parts)


def test_bad_reports_and_collections_are_refused(unary):
    with dask.config.set(scheduler="synchronous"):
        with pytest.raises(ParameterError, match=r"reports must have shape \(n, 2\), got \(3, 5\)"):
            engine.aggregate(unary.protocol, delayed([np.zeros((3, 5), np.uint8)]))
        with pytest.raises(TypeError, match="reports must be a Dask collection or a list of Delayed, got ndarray"):
            engine.aggregate(unary.protocol, unary.reports)
    with pytest.raises(TypeError, match=r"protocol must be a protocol of dpnoise\.local, got str"):
        engine.aggregate("rappor", [])
