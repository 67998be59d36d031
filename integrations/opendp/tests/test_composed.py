"""What OpenDP makes of its measurements it makes of ours, too: compositions, casts, queryables, searches."""

from __future__ import annotations

import numpy as np
import opendp.prelude as dp
import pytest

import dpnoise_opendp as ours
from dpnoise import ParameterError


def number(T):
    return dp.atom_domain(T=T, nan=False) if T is float else dp.atom_domain(T=T)


# The constructor, its arguments, and a value, to which a release is near but for one in e**60.
MEASUREMENTS = {
    f"{name}, {T.__name__}, {shape}": (name, (*space, 1.0), T(7) if shape == "number" else [T(7)] * 3)
    for name, metric in (("make_laplace", dp.l1_distance), ("make_gaussian", dp.l2_distance))
    for T in (float, int)
    for shape, space in (
        ("number", (number(T), dp.absolute_distance(T=T))),
        ("vector", (dp.vector_domain(number(T)), metric(T=T))),
    )
} | {
    "choice": (
        "make_noisy_max",
        (dp.vector_domain(number(int)), dp.linf_distance(T=int), dp.max_divergence(), 1.0),
        [0, 1000, 0],
    ),
}


def measured(measurement, x):
    return measurement.map(1), measurement(x)


def queried(accountant, m, x):
    queryable = accountant(x)
    released = queryable(m), queryable(m)
    return queryable.privacy_loss(1), released


def odometer(m):
    return dp.c.make_fully_adaptive_composition(*m.input_space, m.output_measure)


def adaptive(m):
    return dp.c.make_adaptive_composition(*m.input_space, m.output_measure, d_in=1, d_mids=[2 * m.map(1)])


# Of a measurement, of the host's for comparison, and of a value.
WAYS = {
    "composition": lambda m, host, x: measured(dp.c.make_composition([m, host, m]), x),
    "composition of compositions": lambda m, host, x: measured(
        dp.c.make_composition((dp.c.make_composition([m]), dp.c.make_composition([host]))), x
    ),
    "adaptive composition": lambda m, host, x: (adaptive(m).map(1), adaptive(m)(x)(m)),
    "odometer": lambda m, host, x: queried(odometer(m), m, x),
    "filter": lambda m, host, x: queried(dp.c.make_privacy_filter(odometer(m), d_in=1, d_out=3 * m.map(1)), m, x),
    "transformation before": lambda m, host, x: measured(dp.t.make_identity(*m.input_space) >> m, x),
    "postprocessing": lambda m, host, x: measured(m >> (lambda released: [released]), x),
    "approximate": lambda m, host, x: measured(dp.c.make_approximate(m), x),
}
PURE = {
    "zCDP": lambda m, host, x: measured(dp.c.make_pureDP_to_zCDP(m), x),
    "fixed delta": lambda m, host, x: measured(
        dp.c.make_fix_delta(dp.c.make_fixed_approxDP_to_approxDP(dp.c.make_approximate(m)), 1e-6), x
    ),
    "candidates": lambda m, host, x: measured(
        dp.c.make_select_private_candidate(
            m >> dp.new_function(lambda released: (1.0, released), TO="(f64, ExtrinsicObject)"), 0.0, 0.5
        ),
        x,
    ),
}
CONCENTRATED = {
    "fixed delta": lambda m, host, x: measured(dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(m), 1e-6), x),
}


def flat(nested):
    return [leaf for item in nested for leaf in flat(item)] if isinstance(nested, list | tuple) else [nested]


@pytest.mark.parametrize("given", MEASUREMENTS)
def test_the_host_takes_ours_wherever_it_takes_its_own(given):
    name, arguments, x = MEASUREMENTS[given]
    host, mine = (getattr(library, name)(*arguments) for library in (dp.m, ours))
    ways = WAYS | (CONCENTRATED if "gaussian" in name else PURE)
    for way in ways.values():
        (expected, wanted), (found, released) = way(host, host, x), way(mine, host, x)
        assert flat(found) == pytest.approx(flat(expected), rel=1e-5)
        assert np.all(np.array(flat(found)) >= flat(expected))
        assert flat(released) == pytest.approx(flat(wanted), abs=120)
        assert list(map(type, flat(released))) == list(map(type, flat(wanted)))
    assert str(dp.RuntimeType.infer([mine, host])) == "Vec<AnyMeasurementPtr>"


def test_amplification_takes_ours():
    space = dp.vector_domain(dp.atom_domain(bounds=(0.0, 10.0)), size=10), dp.symmetric_distance()
    expected, found = (
        dp.c.make_population_amplification(space >> dp.t.then_mean() >> library.then_laplace(5.0), 100).map(2)
        for library in (dp.m, ours)
    )
    assert expected <= found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["make_laplace", "make_gaussian"])
@pytest.mark.parametrize("T", [float, int])
@pytest.mark.parametrize("bounds", [None, (0.0, 100.0)])
def test_the_host_finds_the_scale_of_ours(name, T, bounds):
    """Bounds from 0 are usual: the search asks for the measurement without noise."""
    space = number(T), dp.absolute_distance(T=T)
    expected, found = (
        dp.binary_search_param(lambda scale: getattr(library, name)(*space, scale), T(1), 0.3, bounds=bounds)  # noqa: B023
        for library in (dp.m, ours)
    )
    assert expected <= found == pytest.approx(expected, rel=1e-9)


def test_a_search_without_bounds_is_refused_where_it_asks_for_scales_out_of_reach():
    """The page says so, and from where: the host asks for 2**36, and then for 2**49."""

    def search(scale, **bounds):
        space = number(int), dp.absolute_distance(T=int)
        return dp.binary_search_param(lambda scale: ours.make_laplace(*space, scale), 1, 1 / scale, **bounds)

    assert search(2.0**35) == 2.0**35
    with pytest.raises(ParameterError, match=r"^scale must be .* got 562949953421312\.0$"):
        search(2.0**37)
    assert search(2.0**37, bounds=(0.0, 2.0**40)) == 2.0**37
