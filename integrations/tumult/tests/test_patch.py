"""What `patched` and `install` replace in Tumult Core, that it is put back, and that the workers of Spark have it."""

from __future__ import annotations

import copy
import doctest
import importlib
import os
import pickle
import pkgutil
import shutil
import subprocess
import sys
from unittest import mock

import pytest
import tmlt.core
from host_tests.patches import holdings
from pyspark.sql import SparkSession
from tmlt.core.measurements.noise_mechanisms import AddGeometricNoise
from tmlt.core.measurements.pandas_measurements.series import AddNoiseToSeries

import dpnoise_tumult as tumult
from dpnoise_tumult import patched

MODULES = {
    found.name: importlib.import_module(found.name)
    for found in pkgutil.walk_packages(tmlt.core.__path__, "tmlt.core.")
    if found.name != "tmlt.core.utils.testing"  # for its own tests; imports more of Spark, which warns
}
# Spark 3, and what the host asks of it, are older than what they use.
pytestmark = pytest.mark.filterwarnings(
    "ignore:distutils Version classes are deprecated:DeprecationWarning",
    "ignore:In Python 3.6. and Spark 3.0.:UserWarning",
    "ignore:unclosed <socket:ResourceWarning",
)


def snapshot():
    return holdings(MODULES.values(), "tmlt.core")


@pytest.fixture(autouse=True)
def put_back():
    before = snapshot()
    yield
    assert snapshot() == before


def test_no_module_keeps_what_is_replaced():
    originals = [tumult._host_prng, tumult._host_laplace, tumult._host_sample_dgauss]
    held, _ = snapshot()
    assert all(any(original in names.values() for names in held.values()) for original in originals)
    with patched():
        held, _ = snapshot()
    assert not any(original in names.values() for original in originals for names in held.values())


def test_blocks_nest_and_an_exception_puts_everything_back():
    with patched():
        with pytest.raises(KeyError), patched():
            raise KeyError
        assert AddGeometricNoise.__call__ is tumult._call_geometric


def test_other_processes_have_the_patch_of_what_is_sent_to_them():
    code = (
        "import pickle, sys\n"
        "pickle.load(sys.stdin.buffer)\n"
        "import tmlt.core.random.rng\n"
        "print(tmlt.core.random.rng.prng.__module__, end='')"
    )
    measurement = AddNoiseToSeries(AddGeometricNoise(2))
    outside = pickle.dumps(measurement)
    with patched():
        inside = pickle.dumps(measurement)

    def module(sent):
        return subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True).stdout

    assert module(outside) == b"tmlt.core.random.rng"
    assert module(inside) == b"dpnoise_tumult"


def test_a_copy_is_the_same():
    measurement = AddNoiseToSeries(AddGeometricNoise(2))
    with patched():
        copied = copy.deepcopy(measurement)
    assert type(copied) is AddNoiseToSeries
    assert copied.noise_measurement.alpha == 2


class Counting(AddGeometricNoise):
    """Has its own way of being pickled, and holds itself."""

    def __init__(self):
        super().__init__(2)
        self.itself, self.lost = self, lambda: None

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "lost"}


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_class_says_how_it_is_pickled(protocol):
    with patched():
        made = pickle.loads(pickle.dumps(Counting(), protocol))  # noqa: S301
        copied = copy.copy(Counting())
    assert made.itself is made
    assert made.alpha == copied.alpha == 2
    assert not hasattr(made, "lost")


SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.python.worker.reuse": "false",  # or it would keep what a measurement installed there
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=f"{home}/bin" if home else None) is None:
        pytest.skip("Spark needs Java 17, and there is no java")
    builder = SparkSession.builder.master("local[1]")
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    with mock.patch.dict(os.environ, PYSPARK_PYTHON=sys.executable):
        running = builder.getOrCreate()
        running.sparkContext.setLogLevel("OFF")
        yield running
        running.stop()


def where_workers_draw(spark, measurement):
    def draws_from(_):
        import tmlt.core.random.rng

        return measurement and tmlt.core.random.rng.prng.__module__

    return set(spark.sparkContext.parallelize([0], 1).map(draws_from).collect())


def test_workers_have_the_patch(spark):
    measurement = AddNoiseToSeries(AddGeometricNoise(2))
    assert where_workers_draw(spark, measurement) == {"tmlt.core.random.rng"}
    with patched():
        assert where_workers_draw(spark, measurement) == {"dpnoise_tumult"}
    assert where_workers_draw(spark, measurement) == {"tmlt.core.random.rng"}


DOCUMENTED = {
    example.name.removeprefix("tmlt.core.measurements."): example
    for name, module in MODULES.items()
    if name.startswith("tmlt.core.measurements.")
    for example in doctest.DocTestFinder().find(module)
    if example.examples
}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_of_the_documentation_run(name, spark, monkeypatch):
    monkeypatch.setattr(doctest, "ELLIPSIS_MARKER", "...")  # which one of them changes
    with patched():
        result = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(DOCUMENTED[name])
    assert result.attempted
    assert not result.failed


def test_examples_on_spark_and_without_are_among_them():
    assert {"spark_measurements.AddNoiseToColumn", "derived.DerivedMeasurement"} <= DOCUMENTED.keys()
