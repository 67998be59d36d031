"""Processes of one machine count like one process, also when they are killed."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines.faults import Received, kill_always, kill_once

from dpnoise import ParameterError, local
from dpnoise._processes import Worker
from dpnoise.engines import multiprocess


def write(path: Path, protocol: local.Protocol, reports: np.ndarray) -> Path:
    column = pa.array(map(bytes, reports), pa.binary(protocol.report_bytes))
    table = pa.table({"report": column}).replace_schema_metadata({"dpnoise.protocol": protocol.to_json()})
    pq.write_table(table, path, row_group_size=300)
    return path


def test_batches_are_counted_as_by_one_process(collection):
    total = multiprocess.collect(collection.protocol, iter(collection.parts(7)), processes=2)
    assert total.to_bytes() == collection.state


def test_files_are_counted_as_by_one_process(collection, tmp_path):
    parts = enumerate(collection.parts(5))
    paths = [write(tmp_path / f"{i}.parquet", collection.protocol, part) for i, part in parts]
    total = multiprocess.collect(collection.protocol, [str(paths[0]), *paths[1:]], processes=2)
    assert total.to_bytes() == collection.state


def test_no_parts_give_no_reports(unary):
    assert multiprocess.collect(unary.protocol, []) == unary.protocol.accumulator()


def test_a_killed_process_changes_nothing(unary, tmp_path):
    marker = tmp_path / "killed"
    parts = unary.parts(8)
    parts[4] = Received(kill_once, str(marker), parts[4])
    total = multiprocess.collect(unary.protocol, parts, processes=2)
    assert marker.exists()
    assert total.to_bytes() == unary.state


def test_a_process_killed_while_it_sends_its_state_changes_nothing():
    protocol = local.OptimizedUnaryEncoding(k=2**17, epsilon=1.0)  # a state of 1 MiB, more than a pipe holds
    reports = protocol.perturb([1, 2, 3])
    alone = protocol.accumulator()
    alone.add(reports)
    worker = Worker(partial(multiprocess._count, protocol))
    worker.give("part", reports)
    assert worker.connection.poll(60)
    os.kill(worker._process.pid, signal.SIGKILL)
    assert not worker.take()
    assert worker.take()
    assert worker.reply == alone.to_bytes()
    worker.stop()


def test_a_part_that_kills_every_process_is_named(unary):
    parts = unary.parts(4)
    parts[2] = Received(kill_always, parts[2])
    with pytest.raises(RuntimeError, match=r"^parts\[2\] was not counted: 3 processes died over it.* exit code -9$"):
        multiprocess.collect(unary.protocol, parts, processes=2)


def test_a_bad_batch_is_named(unary):
    with pytest.raises(ParameterError, match=r"^parts\[1\]: reports must have shape \(n, 2\), got \(3, 5\)$"):
        multiprocess.collect(unary.protocol, [unary.reports, np.zeros((3, 5), np.uint8)], processes=1)
    with pytest.raises(TypeError, match=r"^parts\[0\]: "):
        multiprocess.collect(unary.protocol, [unary.reports.astype(float)], processes=1)


def test_a_file_of_another_protocol_is_named(unary, tmp_path):
    other = local.OptimizedUnaryEncoding(k=15, epsilon=2.0)
    path = write(tmp_path / "other.parquet", other, unary.reports)
    with pytest.raises(ParameterError, match=r"other\.parquet': reports must be of the same protocol, .*:2\.0,"):
        multiprocess.collect(unary.protocol, [path], processes=1)


def test_a_file_of_other_things_is_named(unary, tmp_path):
    foreign, damaged = tmp_path / "foreign.parquet", tmp_path / "damaged.parquet"
    pq.write_table(pa.table({"x": [1]}), foreign)
    damaged.write_bytes(write(tmp_path / "whole.parquet", unary.protocol, unary.reports).read_bytes()[:-9])
    with pytest.raises(TypeError, match=r"^'[^']*foreign\.parquet': reports must be a column of type .*, got int64$"):
        multiprocess.collect(unary.protocol, [foreign], processes=1)
    with pytest.raises(ParameterError, match=r"^'[^']*damaged\.parquet' is not a Parquet file, or was cut short$"):
        multiprocess.collect(unary.protocol, [damaged], processes=1)
    with pytest.raises(FileNotFoundError, match=r"absent\.parquet"):
        multiprocess.collect(unary.protocol, [tmp_path / "absent.parquet"], processes=1)


def test_a_file_given_twice_is_refused(unary, tmp_path):
    path = write(tmp_path / "a.parquet", unary.protocol, unary.reports)
    link = tmp_path / "b.parquet"
    link.hardlink_to(path)
    with pytest.raises(ParameterError, match=r"^parts must have each file once, got .*b\.parquet' twice$"):
        multiprocess.collect(unary.protocol, [path, link], processes=2)


@pytest.mark.parametrize("parts", ["reports.parquet", Path("reports.parquet"), np.zeros((4, 2), np.uint8)])
def test_one_part_is_not_taken_for_several(unary, parts):
    with pytest.raises(TypeError, match="parts must be several files or batches"):
        multiprocess.collect(unary.protocol, parts)


def test_bad_arguments_are_refused_before_a_process_starts(unary):
    with pytest.raises(TypeError, match=r"protocol must be a protocol of dpnoise\.local for one attribute, got str"):
        multiprocess.collect("rappor", [])
    with pytest.raises(ParameterError, match="processes must be an integer of at least 1, got 0"):
        multiprocess.collect(unary.protocol, [], processes=0)
    with pytest.raises(TypeError):
        multiprocess.collect(unary.protocol, [], processes=1.5)


def test_no_process_is_left_behind(unary):
    worker = Worker(partial(multiprocess._count, unary.protocol))
    process = worker._process
    assert process.is_alive()
    worker.stop()
    assert not process.is_alive()
