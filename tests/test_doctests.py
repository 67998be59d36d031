"""What the docstrings show runs as shown."""

import doctest
import importlib
import pkgutil

import pytest

import dpnoise

MODULES = [
    module.name
    for module in pkgutil.walk_packages(dpnoise.__path__, "dpnoise.")
    if module.name
    not in ("dpnoise.__main__", "dpnoise.engines.dask", "dpnoise.engines.spark")  # these need Dask and Spark
]

EXAMPLES = {
    test.name: test
    for name in MODULES
    for test in doctest.DocTestFinder().find(importlib.import_module(name))
    if test.examples
}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_example_of_the_docstring_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert doctest.DocTestRunner(verbose=False).run(EXAMPLES[name]).failed == 0


def test_a_wrong_example_is_noticed():
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    assert doctest.DocTestRunner(verbose=False).run(wrong, out=lambda text: None).failed == 1


def test_there_are_examples():
    assert {"dpnoise.stability._scale.StableScale", "dpnoise.mechanisms._laplace.Laplace"} <= EXAMPLES.keys()
