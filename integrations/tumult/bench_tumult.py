"""What users of Tumult Core get for changing one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession
from tmlt.core.domains.numpy_domains import NumpyFloatDomain
from tmlt.core.domains.spark_domains import SparkDataFrameDomain, SparkIntegerColumnDescriptor
from tmlt.core.measurements.noise_mechanisms import (
    AddDiscreteGaussianNoise,
    AddGaussianNoise,
    AddGeometricNoise,
    AddLaplaceNoise,
)
from tmlt.core.measurements.pandas_measurements.series import AddNoiseToSeries
from tmlt.core.measurements.spark_measurements import AddNoiseToColumn

from benches import moments
from benches.entrants import LONG, SHORT, calls, entrants
from benches.machine import OURS
from dpnoise_tumult import patched

HOST = f"tmlt.core {metadata.version('tmlt.core')}"
ROWS = 20_000

NOISE = {
    "AddLaplaceNoise": (AddLaplaceNoise(NumpyFloatDomain(), 10), 0.0, moments.laplace(10)),
    "AddGeometricNoise, alpha 2": (AddGeometricNoise(2), 0, moments.discrete_laplace(2)),
    "AddGeometricNoise, alpha 20": (AddGeometricNoise(20), 0, moments.discrete_laplace(20)),
    "AddDiscreteGaussianNoise": (AddDiscreteGaussianNoise(100), 0, moments.discrete_gaussian(10)),
    "AddGaussianNoise": (AddGaussianNoise(NumpyFloatDomain(), 100), 0.0, moments.normal(10)),
}


def within(context: Callable[[], AbstractContextManager[None]], work: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        with context():
            return work()

    return run


@pytest.mark.parametrize("column", ["scalar", "series"])
@pytest.mark.parametrize("name", NOISE)
def test_tumult(race: Any, name: str, column: str) -> None:
    measurement, zero, expected = NOISE[name]
    if column == "scalar":
        work, items = calls(measurement, zero)
        pairs = {OURS: (within(patched, work), items), "": (work, items)}
    else:
        add_noise = AddNoiseToSeries(measurement)
        # Under the patch, too, Tumult Core draws Gaussian noise one by one.
        sizes = SHORT if name == "AddGaussianNoise" else LONG, SHORT
        long, short = (pd.Series(np.full(size, zero)) for size in sizes)
        pairs = {
            OURS: (within(patched, lambda: add_noise(long).to_numpy()), long.size),
            "": (lambda: add_noise(short).to_numpy(), short.size),
        }
    race(f"Tumult Core {name}", column, "ns per sample", entrants(HOST, pairs, expected))


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "1")
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path))
    with mock.patch.dict(os.environ, PYSPARK_PYTHON=sys.executable):
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
def test_tumult_on_spark(race: Any, spark: SparkSession) -> None:
    rows = spark.createDataFrame(pd.DataFrame({"count": np.zeros(ROWS, np.int64)})).persist()
    measurement = AddNoiseToColumn(
        SparkDataFrameDomain({"count": SparkIntegerColumnDescriptor()}),
        AddNoiseToSeries(AddGeometricNoise(20)),
        "count",
    )

    def release(workers: str) -> Any:
        spark.sparkContext.environment["DPNOISE_WORKERS"] = workers  # two kinds of workers, that do not mix
        return measurement(rows).toPandas()["count"].to_numpy()

    pairs = {
        name: (within(context, lambda workers=workers: release(workers)), ROWS)
        for name, context, workers in ((OURS, patched, "ours"), ("", nullcontext, "theirs"))
    }
    expected = moments.discrete_laplace(20)
    race("Tumult Core AddNoiseToColumn", "20,000 rows", "ns per row", entrants(HOST, pairs, expected), rounds=3)
