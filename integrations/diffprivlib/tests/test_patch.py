"""What `patched` and `install` replace, and that it is put back."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import warnings
from importlib import metadata

import diffprivlib
import numpy as np
import pytest
from diffprivlib import mechanisms, models, tools
from host_tests.patches import check_blocks, check_imports_meanwhile, check_install, holdings
from host_tests.silence import check_silent, columns

import dpnoise_diffprivlib as ours
from dpnoise.hazmat import SeededRng
from dpnoise_diffprivlib import _patch, install, patched

from .cases import ALL

ALL_MODULES = ["diffprivlib", *(found.name for found in pkgutil.walk_packages(diffprivlib.__path__, "diffprivlib."))]
X = np.random.default_rng(0).random((400, 3))
Y = (X.sum(axis=1) > 1.5).astype(int)
BOUNDS = {"epsilon": 5.0, "bounds": (0, 1)}

MODELS = {
    "GaussianNB": lambda x=X, **more: models.GaussianNB(**BOUNDS, **more).fit(x, Y[: len(x)]),
    "KMeans": lambda x=X, **more: models.KMeans(n_clusters=2, **BOUNDS, **more).fit(x),
    "LinearRegression": lambda x=X, **more: models.LinearRegression(
        epsilon=5.0, bounds_X=(0, 1), bounds_y=(0, 1), **more
    ).fit(x, Y[: len(x)]),
    "LogisticRegression": lambda **more: models.LogisticRegression(epsilon=5.0, data_norm=2.0, **more).fit(X, Y),
    "PCA": lambda x=X, **more: models.PCA(n_components=2, data_norm=2.0, **BOUNDS, **more).fit(
        x.copy()  # which it changes
    ),
    "RandomForestClassifier": lambda x=X, **more: models.RandomForestClassifier(
        n_estimators=3, classes=[0, 1], **BOUNDS, **more
    ).fit(x, Y[: len(x)]),
    "StandardScaler": lambda x=X, **more: models.StandardScaler(**BOUNDS, **more).fit(x),
}
TOOLS = {
    **{
        name: lambda x=X, name=name, **more: getattr(tools, name)(x, **BOUNDS, **more)
        for name in ("mean", "var", "std", "sum", "nanmean", "nanvar", "nanstd", "nansum", "median")
    },
    "quantile": lambda x=X, **more: tools.quantile(x, [0.25, 0.75], **BOUNDS, **more),
    "percentile": lambda x=X, **more: tools.percentile(x, 10, **BOUNDS, **more),
    "count_nonzero": lambda x=X, **more: tools.count_nonzero(x > 0.5, epsilon=1.0, **more),
    "histogram": lambda x=X, **more: tools.histogram(x[:, 0], epsilon=1.0, range=(0, 1), **more),
    "histogram2d": lambda x=X, **more: tools.histogram2d(*x[:, :2].T, epsilon=1.0, range=[(0, 1)] * 2, bins=3, **more),
    "histogramdd": lambda x=X, **more: tools.histogramdd(x, epsilon=1.0, range=[(0, 1)] * 3, bins=3, **more),
}
# Their noise stays the host's.
NOT_REPLACED = {"LogisticRegression"}


def snapshot():
    return holdings(map(importlib.import_module, ALL_MODULES), "diffprivlib")


@pytest.fixture(autouse=True)
def put_back():
    before = snapshot()
    yield
    assert snapshot() == before


def test_names_are_replaced_in_the_block_only():
    originals = {name: getattr(mechanisms, name) for name in ALL}
    with patched():
        for name, original in originals.items():
            assert getattr(mechanisms, name) is getattr(ours, name)
            left = [
                module
                for module in ALL_MODULES
                if original in vars(importlib.import_module(module)).values() and original.__module__ != module
            ]
            # Modules of mechanisms name those that they derive from.
            assert all(module.startswith("diffprivlib.mechanisms.") for module in left)
    assert originals == {name: getattr(mechanisms, name) for name in ALL}


@pytest.mark.parametrize("name", ALL)
def test_mechanisms_work_in_the_block(name):
    with patched():
        for changes in ({}, {"sensitivity": 0} if "sensitivity" in ALL[name].parameters else {}):
            getattr(mechanisms, name)(**{**ALL[name].parameters, **changes}).randomise(ALL[name].value)


def test_blocks():
    check_blocks(patched, snapshot)


def test_a_block_begins_while_modules_are_imported(monkeypatch):
    check_imports_meanwhile(patched, monkeypatch)


def test_install():
    check_install(install, patched, snapshot, _patch._PATCH.leave)


@pytest.mark.parametrize("name", MODELS | TOOLS)
def test_models_and_tools_work_without_a_seed(name, monkeypatch):
    drawn = []
    for kind in (getattr(ours, mechanism) for mechanism in ALL):
        if "randomise" in vars(kind):
            original = kind.randomise
            monkeypatch.setattr(
                kind, "randomise", lambda self, value=None, o=original: drawn.append(1) or o(self, value)
            )
    run = (MODELS | TOOLS)[name]
    with patched(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run()
    assert bool(drawn) == (name not in NOT_REPLACED)


@pytest.mark.parametrize("name", sorted({*MODELS, *TOOLS}))
@pytest.mark.parametrize("seed", [3, np.random.RandomState(3), SeededRng(3)], ids=["seed", "generator", "hazmat"])
def test_seeds_of_models_and_tools_are_refused(name, seed):
    run = (MODELS | TOOLS)[name]
    with patched(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=r"random_state.* must be"):
            run(random_state=seed)
        if name in TOOLS:
            run(random_state=np.random.mtrand._rand)


@pytest.mark.parametrize("name", sorted({*MODELS, *TOOLS} - NOT_REPLACED))
def test_no_warning_tells_of_a_row(name):
    rows = []
    for column in columns(40, [np.float64]):
        if not np.isnan(column).all():  # of whom a mean is NaN, and says so
            rows.append(X[:40].copy())
            rows[-1][:, 0] = column
    with patched():
        check_silent((MODELS | TOOLS)[name], rows)


@pytest.mark.parametrize(
    ("model", "labels", "shown"),
    [
        (models.LogisticRegression(epsilon=5.0, data_norm=2.0), np.full(len(X), 41), "only one class: 41"),
        (models.LinearRegression(bounds_X=(0, 1), bounds_y=(0, 1)), np.full(len(X), "Ann"), "'Ann'"),
    ],
    ids=["label", "text"],
)
def test_errors_that_show_a_value_are_those_that_the_page_names(model, labels, shown):
    with patched(), pytest.raises(ValueError, match=shown):
        model.fit(X, labels)


def test_warnings_of_the_host_are_found():
    with pytest.raises(AssertionError, match="overflow"):
        check_silent(MODELS["PCA"], [X, 1e300 * X])


def test_generators_of_hazmat_are_for_mechanisms_only():
    with patched():
        released = [
            mechanisms.Laplace(epsilon=1, sensitivity=1, random_state=SeededRng(3)).randomise(1.0) for _ in "ab"
        ]
        assert released[0] == released[1] != 1.0
        with pytest.raises(ValueError, match="got SeededRng; for tests, only a mechanism itself takes a generator of"):
            TOOLS["mean"](random_state=SeededRng(3))


def test_trees_of_a_forest_are_not_seeded():
    with patched():
        forest = MODELS["RandomForestClassifier"]()
    assert [tree.random_state for tree in forest.estimators_] == [None] * 3
    assert all(tree.random_state is not None for tree in MODELS["RandomForestClassifier"]().estimators_)


def test_the_global_generator_decides_nothing():
    def draw():
        np.random.seed(1)  # noqa: NPY002 - what a user may have done
        return tools.quantile(X[:, 0], 0.5, epsilon=1e6, bounds=(0, 1))

    assert draw() == draw()  # the host's choice is certain with that epsilon, and its place in the interval is seeded
    with patched():
        assert draw() != draw()


def test_other_processes_are_refused():
    three = np.arange(400) % 3
    with patched(), pytest.raises(Exception, match="pickle"):
        models.LogisticRegression(epsilon=5.0, data_norm=2.0, n_jobs=2).fit(X, three)


# The README comes with the installed package.
README = re.findall(
    r"^```python\n(.*?)^```$", metadata.metadata("diffprivlib")["Description"], re.MULTILINE | re.DOTALL
)
EXAMPLES = {"README": README} | {
    test.name: [example.source for example in test.examples]
    for module in ALL_MODULES
    for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(module), module)
    if test.examples
}
# One gives its model a seed; NumPy's own use of one is its own business.
SEEDED = "diffprivlib.models.forest.RandomForestClassifier"


def run_examples(name):
    namespace = {}
    with patched(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for source in EXAMPLES[name]:
            exec(compile(source, name, "exec"), namespace)  # noqa: S102
    return namespace


@pytest.mark.parametrize("name", sorted({*EXAMPLES} - {SEEDED}))
def test_examples_of_the_hosts_documentation_run_unmodified(name, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    assert run_examples(name)


def test_the_example_with_a_seed_is_refused():
    with pytest.raises(ValueError, match="random_state must be None"):
        run_examples(SEEDED)
    EXAMPLES["without its seed"] = [source.replace(", random_state=0)", ")") for source in EXAMPLES[SEEDED]]
    assert run_examples("without its seed")["clf"].random_state is None


def test_there_are_examples():
    assert len(README) == 5
    assert len(EXAMPLES) >= 6
