"""Partial constructors, and `patched`, which reaches all that OpenDP makes in Python."""

from __future__ import annotations

import doctest
import importlib
import inspect
import itertools
import pkgutil
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import opendp
import opendp.context
import opendp.measurements
import opendp.prelude as dp
import pytest
from host_tests.errors import error_of
from host_tests.patches import check_blocks, check_imports_meanwhile, check_install, check_many_threads, holdings
from opendp.extras.numpy._make_np_sum import make_private_np_sum

import dpnoise_opendp as ours
from dpnoise import ParameterError
from dpnoise_opendp import patched

NUMBER = dp.atom_domain(T=int), dp.absolute_distance(T=int)
REAL = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
REALS = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=3)
SCORES = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
BITS = dp.bitvector_domain(max_weight=4), dp.discrete_distance()
ROWS = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE, CONCENTRATED = dp.max_divergence(), dp.zero_concentrated_divergence()
OTHER_MEASURES = [
    dp.renyi_divergence(),
    dp.smoothed_max_divergence(),
    dp.approximate(PURE),
    dp.approximate(CONCENTRATED),
]
NOISE = 1 << 20


@pytest.fixture
def fixed(monkeypatch):
    """Let our noise be a number that a host's draw is not: only e**-1000 of them are so large."""

    def noise(scale, size=None, granularity=1):
        return NOISE if size is None else np.full(size, NOISE)

    samplers = dict.fromkeys(["laplace", "gaussian", "discrete_laplace", "discrete_gaussian"], noise)
    coins = {"bernoulli": lambda p, size=None: False if size is None else np.ones(size, bool)}
    monkeypatch.setattr(ours, "samplers", SimpleNamespace(**samplers, **coins))
    chosen = SimpleNamespace(granularity=1.0, release=lambda scores: 2)
    for kind in ("ReportNoisyMax", "Exponential"):
        monkeypatch.setattr(ours, kind, lambda **more: chosen)


# --- partial constructors ----------------------------------------------------------------------------------------

PARTIAL = {
    "then_laplace": (NUMBER, (2.0,)),
    "then_gaussian": (NUMBER, (2.0,)),
    "then_randomized_response_bitvec": (BITS, (0.5,)),
    "then_noisy_max": (SCORES, (PURE, 2.0, True)),
}


@pytest.mark.parametrize("name", PARTIAL)
def test_a_partial_constructor_is_as_the_hosts(name):
    space, arguments = PARTIAL[name]
    theirs, mine = getattr(dp.m, name), getattr(ours, name)
    assert [(one.name, one.default) for one in inspect.signature(mine).parameters.values()] == [
        (one.name, one.default) for one in inspect.signature(theirs).parameters.values()
    ]
    assert repr(space >> mine(*arguments)) == repr(space >> theirs(*arguments))
    assert (space >> mine(*arguments)).map(1) == (space >> theirs(*arguments)).map(1)
    for bad in (-1.0, "a", None):
        wrong = tuple(bad if type(one) is float else one for one in arguments)
        expected = error_of(lambda wrong=wrong: space >> theirs(*wrong))
        assert expected
        assert error_of(lambda wrong=wrong: space >> mine(*wrong)) == expected
    with pytest.raises(TypeError, match="Cannot chain"):
        3 >> mine(*arguments)
    with pytest.raises(Exception, match="does not handle"):
        dp.serialize(mine(*arguments))


@pytest.mark.usefixtures("fixed")
def test_a_partial_constructor_is_chained():
    count = ROWS >> dp.t.then_count()
    noise = ours.then_laplace(scale=0.5)
    for chained in (
        count >> noise >> (lambda released: released + 1),
        count >> (noise >> (lambda released: released + 1)),
    ):
        assert chained([1, 2, 3]) == NOISE + 4
        assert chained.map(1) == 2.0


# --- what the patch reaches --------------------------------------------------------------------------------------


def new_query(**loss):
    context = dp.Context.compositor(
        data=[1, 2, 3],
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(**(loss or {"epsilon": 1.0})),
        split_evenly_over=1,
    )
    return context.query().count()


def query(make, **loss):
    return getattr(new_query(**loss), make)().release()


def extension(measure):
    rows = dp.numpy.array2_domain(norm=1.0, p=1 if measure == PURE else 2, num_columns=1, nan=False, T=float)
    space = rows, dp.symmetric_distance()
    dp.enable_features("idealized-numerics")
    made = make_private_np_sum(*space, measure, 2.0)
    dp.disable_features("idealized-numerics")
    return made(np.full((3, 1), 0.5))[0]


# What makes a release, and the release with fixed noise.
REACHED = {
    "make_laplace": (lambda: dp.m.make_laplace(*NUMBER, 2.0)(3), NOISE + 3),
    "make_gaussian": (lambda: dp.m.make_gaussian(*REAL, 2.0)(3.0), NOISE + 3),
    "make_noise, pure": (lambda: dp.m.make_noise(*NUMBER, PURE, 2.0)(3), NOISE + 3),
    "make_noise, concentrated": (lambda: dp.m.make_noise(*REAL, CONCENTRATED, 2.0)(3.0), NOISE + 3),
    "make_geometric": (lambda: dp.m.make_geometric(*NUMBER, 2.0)(3), NOISE + 3),
    "make_noisy_max": (lambda: dp.m.make_noisy_max(*SCORES, PURE, 2.0)([900, 0, 0]), 2),
    "make_randomized_response_bitvec": (
        lambda: dp.m.make_randomized_response_bitvec(*BITS, 1e-12)(bytes(2)),
        b"\xff\xff",
    ),
    "make_randomized_response_bool": (lambda: dp.m.make_randomized_response_bool(1.0)(True), False),
    "then_laplace": (lambda: (NUMBER >> dp.m.then_laplace(2.0))(3), NOISE + 3),
    "then_gaussian": (lambda: (NUMBER >> dp.m.then_gaussian(2.0))(3), NOISE + 3),
    "then_noise": (lambda: (NUMBER >> dp.m.then_noise(PURE, 2.0))(3), NOISE + 3),
    "then_geometric": (lambda: (NUMBER >> dp.m.then_geometric(2.0))(3), NOISE + 3),
    "then_noisy_max": (lambda: (SCORES >> dp.m.then_noisy_max(PURE, 2.0))([900, 0, 0]), 2),
    "then_randomized_response_bitvec": (
        lambda: (BITS >> dp.m.then_randomized_response_bitvec(1e-12))(bytes(2)),
        b"\xff\xff",
    ),
    "query, laplace": (lambda: query("laplace"), NOISE + 3),
    "query, gaussian": (lambda: query("gaussian", rho=1.0), NOISE + 3),
    "query, geometric": (lambda: query("geometric"), NOISE + 3),
    "query of a person": (
        lambda: (
            dp.Context.compositor(
                data=True,
                privacy_unit=dp.unit_of(local=True),
                privacy_loss=dp.loss_of(epsilon=40.0),
                split_evenly_over=1,
                domain=dp.atom_domain(T=bool),
            )
            .query()
            .randomized_response_bool(prob=1 - 2.0**-53)
            .release()
        ),
        False,
    ),
    "extension, pure": (lambda: extension(PURE), NOISE + 1.5),
    "extension, concentrated": (lambda: extension(CONCENTRATED), NOISE + 1.5),
}


@pytest.mark.parametrize("what", REACHED)
@pytest.mark.usefixtures("fixed")
def test_the_patch_reaches(what):
    release, expected = REACHED[what]
    assert release() != expected  # the host's noise
    with patched():
        assert release() == expected
    assert release() != expected


@pytest.mark.parametrize("scale", [{}, {"scale": 1.0}], ids=["found", "given"])
@pytest.mark.usefixtures("fixed")
def test_a_query_has_the_noise_of_the_place_where_its_scale_is_known(scale):
    """The page and the documentation of `patched` say so."""
    with patched():
        inside = new_query().laplace(**scale)
    outside = new_query().laplace(**scale)
    assert (inside.release() == NOISE + 3) is bool(scale)
    with patched():
        assert (outside.release() == NOISE + 3) is not bool(scale)


@pytest.mark.usefixtures("fixed")
def test_the_deprecated_choice_is_ours():
    with patched(), pytest.warns(DeprecationWarning, match="make_noisy_max"):
        made = dp.m.make_report_noisy_max_gumbel(*SCORES, 2.0, "min")
    assert made([900, 0, 0]) == 2


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *(("make_noise", (*space, PURE, 2.0, k)) for space in (NUMBER, REAL) for k in (None, 0)),
        ("make_noise", (*REAL, CONCENTRATED, 2.0)),
        ("make_noise", (REALS, dp.l2_distance(T=float), CONCENTRATED, 2.0)),
        ("make_geometric", (*NUMBER, 2.0)),
        ("make_geometric", (*NUMBER, 0.0)),
        ("make_randomized_response_bool", (0.75,)),
    ],
    ids=str,
)
def test_what_the_patch_alone_replaces_is_as_the_hosts(name, arguments):
    theirs = getattr(dp.m, name)(*arguments)
    with patched():
        mine = getattr(dp.m, name)(*arguments)
    assert repr(mine) == repr(theirs)
    assert theirs.map(1) <= mine.map(1) == pytest.approx(theirs.map(1), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *(("make_noise", (*NUMBER, measure, 2.0)) for measure in OTHER_MEASURES),
        ("make_noise", (*NUMBER, PURE, -2.0)),
        ("make_geometric", (*REAL, 2.0)),
        ("make_randomized_response_bool", (0.4,)),
        ("make_randomized_response_bool", ("a",)),
    ],
    ids=str,
)
def test_what_the_host_refuses_the_patch_refuses(name, arguments):
    expected = error_of(lambda: getattr(dp.m, name)(*arguments))
    assert expected
    with patched():
        assert error_of(lambda: getattr(dp.m, name)(*arguments)) == expected


def test_an_answer_is_kept_when_the_coin_says_so(monkeypatch):
    with patched():
        made = dp.m.make_randomized_response_bool(0.75)
    for coin, answer in itertools.product((False, True), repeat=2):
        monkeypatch.setattr(ours, "samplers", SimpleNamespace(bernoulli={0.75: coin}.__getitem__))
        assert made(answer) is (answer == coin)


def test_bounds_are_refused():
    with patched(), pytest.raises(ParameterError, match=r"bounds must be None.*got \(0, 5\)"):
        dp.m.make_geometric(*NUMBER, 2.0, bounds=(0, 5))


def test_the_page_names_what_stays_the_hosts():
    page = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    listed = {
        name for item in page.split("\n- **") if item.startswith("Not repl") for name in re.findall(r"make_\w+", item)
    }
    draws = {name for name in dp.m.__all__ if name.startswith("make_")} - {"make_user_measurement"}
    assert listed == (draws - ours._OURS.keys()) | {"make_select_private_candidate", "make_ordered_random"}


# --- blocks --------------------------------------------------------------------------------------------------------

MODULES = [importlib.import_module(found.name) for found in pkgutil.walk_packages(opendp.__path__, "opendp.")]


def snapshot():
    return holdings(MODULES, "opendp"), dict(opendp.context.constructors)


def test_blocks_put_everything_back():
    check_blocks(patched, snapshot)


def test_a_block_begins_while_modules_are_imported(monkeypatch):
    check_imports_meanwhile(patched, monkeypatch)


def test_install():
    check_install(ours.install, patched, snapshot, ours._PATCH.leave)


def test_many_threads():
    check_many_threads(patched, lambda: dp.m.make_laplace is ours.make_laplace, snapshot)


def test_no_module_keeps_what_is_replaced():
    originals = [ours._HOST[name] for name in ours._OURS]
    with patched():
        (held, _), constructors = snapshot()
    kept = [(module, name) for module, names in held.items() for name, value in names.items() if value in originals]
    assert kept == []
    assert not any(constructor in originals for constructor, _ in constructors.values())


def test_what_is_registered_within_a_block_stays(monkeypatch):
    monkeypatch.setattr(opendp.context, "constructors", dict(opendp.context.constructors))
    with patched():
        dp.register(lambda input_domain, input_metric: None, "nothing")
    assert "nothing" in opendp.context.constructors


# --- the host's documentation --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in ours.__all__ if name.startswith("make_")])
def test_examples_of_the_hosts_documentation_run_unmodified(name):
    (example,) = doctest.DocTestFinder(recurse=False).find(ours._HOST[name], name, globs={"dp": dp, "np": np})
    assert len(example.examples) >= 4
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    with patched():
        runner.run(example, out=(shown := []).append)
    # The bits that the host shows for a random release are an example of what may come.
    allowed = int(name == "make_randomized_response_bitvec")
    assert runner.failures <= allowed, "".join(shown)
