"""Measurements of OpenDP with noise of dpnoise: the host's checks, errors and types, and maps never narrower."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import opendp.core
import opendp.prelude as dp
import pytest
from host_tests.errors import error_of

import dpnoise_opendp as ours
from dpnoise import Exponential, ParameterError, ReportNoisyMax
from dpnoise_opendp._arithmetic import add_integer, add_integers, add_real, add_reals, below_best

CONSTRUCTORS = [name for name in ours.__all__ if name.startswith("make_")]
VECTOR_METRICS = {"make_laplace": dp.l1_distance, "make_gaussian": dp.l2_distance, "make_noisy_max": dp.linf_distance}
BITS = dp.bitvector_domain(max_weight=4), dp.discrete_distance()


def numbers(number):
    return dp.atom_domain(T=number, nan=False) if number in (float, "f32") else dp.atom_domain(T=number)


def scalar(name, number):
    return numbers(number), dp.absolute_distance(T=number)


def vector(name, number, size=None):
    return dp.vector_domain(numbers(number), size=size), VECTOR_METRICS[name](T=number)


def both(name, *arguments, **more):
    return getattr(dp.m, name)(*arguments, **more), getattr(ours, name)(*arguments, **more)


SPACES = [
    *((name, scalar, number) for name in ("make_laplace", "make_gaussian") for number in (float, "f32", int, "i64")),
    *((name, vector, number) for name in ("make_laplace", "make_gaussian") for number in (float, "f32", int, "u32")),
]


@pytest.mark.parametrize(("name", "space", "number"), SPACES, ids=lambda value: getattr(value, "__name__", str(value)))
@pytest.mark.parametrize("scale", [0.5, 3.0, 1e6])
def test_the_map_is_the_hosts_or_a_little_wider(name, space, number, scale):
    theirs, mine = both(name, *space(name, number), scale)
    real = number in (float, "f32")
    for d_in in (0.0, 1e-3, 0.7, 1.0, 5.0) if real else (0, 1, 7):
        expected, found = theirs.map(d_in), mine.map(d_in)
        assert found >= expected
        if not real:
            assert found == expected
        # A step is at most 2**-39 of the scale, and counts for up to 2**20 values.
        assert found <= expected + 2.0**-17 * (1 + d_in / scale) ** 2


@pytest.mark.parametrize("name", ["make_laplace", "make_gaussian"])
@pytest.mark.parametrize("k", [-30, -3, 2])
def test_the_map_for_a_granularity_is_the_hosts(name, k):
    for space in (scalar(name, float), vector(name, float, size=100)):
        theirs, mine = both(name, *space, 3.0, k=k)
        assert [mine.map(d_in) for d_in in (0.0, 0.5, 1.0)] == [theirs.map(d_in) for d_in in (0.0, 0.5, 1.0)]
        value = 100.3 if space[1] == dp.absolute_distance(T=float) else [100.3] * 100
        assert np.all(np.mod(mine(value), 2.0**k) == 0)


@pytest.mark.parametrize("name", ["make_laplace", "make_gaussian"])
@pytest.mark.parametrize("distance", ["f32", "f64", "i32", "u32"])
def test_the_map_counts_the_grid_for_distances_of_any_type(name, distance):
    metric = VECTOR_METRICS[name](T=distance)
    unsized = getattr(ours, name)(dp.vector_domain(numbers(float)), metric, 1.0)
    sized = dp.vector_domain(numbers(float), size=2**20), metric
    expected = getattr(dp.m, name)(*sized, 1.0, k=-40)
    for d_in in (1, 64, 1024):
        d_in = float(d_in) if distance[0] == "f" else d_in
        steps = 2**20 if name == "make_laplace" else 2**10
        exact = d_in + Fraction(steps, 2**40)
        assert unsized.map(d_in) == expected.map(d_in) >= (exact if name == "make_laplace" else exact**2 / 2)


@pytest.mark.parametrize("measure", [dp.max_divergence(), dp.zero_concentrated_divergence()], ids=str)
def test_a_scale_of_few_digits_is_no_reason_for_less_noise(measure, monkeypatch):
    made = []
    for kind in (ReportNoisyMax, Exponential):
        monkeypatch.setattr(ours, kind.__name__, lambda kind=kind, **more: made.append(kind(**more)) or made[-1])
    for scale in (np.float16(3), np.float32(3), np.float32(0.1), 3, 2.0**40):
        ours.make_noisy_max(*vector("make_noisy_max", float), measure, scale)
        assert made[-1].scale >= float(scale)


@pytest.mark.parametrize("measure", [dp.max_divergence(), dp.zero_concentrated_divergence()], ids=str)
@pytest.mark.parametrize("number", [float, int])
def test_the_map_of_a_choice(measure, number):
    theirs, mine = both("make_noisy_max", *vector("make_noisy_max", number), measure, 2.0)
    for d_in in (number(0), number(1), number(4)):
        assert theirs.map(d_in) <= mine.map(d_in) <= theirs.map(d_in) + 1e-10
        if number is int or not d_in:
            assert mine.map(d_in) == theirs.map(d_in)
    monotonic = vector("make_noisy_max", number)[0], dp.linf_distance(T=number, monotonic=True)
    theirs, mine = both("make_noisy_max", *monotonic, measure, 2.0)
    assert theirs.map(number(1)) <= mine.map(number(1)) <= theirs.map(number(1)) + 1e-10


# --- the spaces that the host takes --------------------------------------------------------------------------------

INTEGERS = {"i32": np.int32, "i64": np.int64, "u32": np.uint32, "u64": np.uint64, "usize": np.uintp}
ATOMS = ["bool", "i8", "i16", "i128", "u8", "u16", "u128", "String", *INTEGERS, "f32", "f64"]
MEASURES = [dp.max_divergence(), dp.zero_concentrated_divergence(), dp.renyi_divergence()]


def spaces(atom):
    """Make each pair of a domain of the type, or of bits, and a metric that the host can make."""
    single = dp.atom_domain(T=atom, nan=False) if atom[0] == "f" else dp.atom_domain(T=atom)
    domains, metrics = [single, BITS[0], dp.bitvector_domain()], [dp.discrete_distance()]
    for size in (None, 4):
        if error_of(lambda size=size: domains.append(dp.vector_domain(single, size=size))):
            assert atom in ATOMS[:7]
    kinds = (dp.absolute_distance, dp.l1_distance, dp.l2_distance, dp.linf_distance)
    for kind, distance in itertools.product(kinds, ATOMS):
        error_of(lambda kind=kind, distance=distance: metrics.append(kind(T=distance)))
    assert len(metrics) >= 1 + 4 * 7
    return itertools.product(domains, metrics)


@pytest.mark.parametrize("name", CONSTRUCTORS)
@pytest.mark.parametrize("atom", ATOMS)
def test_every_space_of_the_host_is_taken(name, atom):
    choice, bits = name == "make_noisy_max", "bitvec" in name
    taken = set()
    for (domain, metric), measure in itertools.product(spaces(atom), [None] if bits else MEASURES):
        more = [0.5] if bits else [measure, 2.0**-12] if choice else [2.0**-12, None, str(measure)]
        arguments = (domain, metric, *more)
        if expected := error_of(lambda arguments=arguments: getattr(dp.m, name)(*arguments)):
            assert error_of(lambda arguments=arguments: getattr(ours, name)(*arguments)) == expected
            continue
        theirs, mine = both(name, *arguments)
        assert (repr(mine), mine.output_measure) == (repr(theirs), theirs.output_measure)
        taken.add(str(domain.carrier_type))
        if atom in INTEGERS and not bits:
            assert mine.map(1) == theirs.map(1)
            limits = np.iinfo(INTEGERS[atom])
            ends = [limits.max, limits.min, limits.max - 1, limits.max // 3]
            if "Vec" in str(domain.carrier_type):
                assert mine(ends) == theirs(ends) == mine(np.array(ends, INTEGERS[atom]))
            else:
                assert [mine(end) for end in ends] == [theirs(end) for end in ends] == ends
    allowed = {"BitVector"} if bits else {f"Vec<{atom}>"} if choice else {atom, f"Vec<{atom}>"}
    assert taken == (allowed if bits or atom in ours._TYPES else set())


@pytest.mark.parametrize("name", ["make_laplace", "make_gaussian"])
@pytest.mark.parametrize("atom", INTEGERS)
def test_what_leaves_the_range_is_its_end_as_by_the_host(name, atom):
    limits = np.iinfo(INTEGERS[atom])
    for measurement in both(name, dp.vector_domain(dp.atom_domain(T=atom)), VECTOR_METRICS[name](T="f64"), 2.0**40):
        for end in (limits.min, limits.max):
            released = measurement([end] * 100)
            assert all(limits.min <= value <= limits.max for value in released)
            assert end in released  # every second one would be beyond it
            assert len(set(released)) > 1


def test_the_map_of_bits_is_the_hosts():
    theirs, mine = both("make_randomized_response_bitvec", *BITS, 0.3)
    assert [mine.map(d_in) for d_in in (0, 1)] == [theirs.map(d_in) for d_in in (0, 1)]


@pytest.mark.parametrize(("name", "space", "number"), SPACES, ids=lambda value: getattr(value, "__name__", str(value)))
def test_what_is_released_has_the_hosts_type(name, space, number):
    theirs, mine = both(name, *space(name, number), 3.0)
    value = 7.0 if number in (float, "f32") else 7
    given = value if space is scalar else [value] * 5
    released, expected = mine(given), theirs(given)
    assert type(released) is type(expected)
    assert repr(mine) == repr(theirs)
    if space is vector:
        assert len(released) == 5
        assert {type(item) for item in released} == {type(item) for item in expected}
        assert mine([]) == []


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *itertools.product(
            ["make_laplace", "make_gaussian"],
            [(*scalar("", float), bad) for bad in (-1.0, math.nan, math.inf, "1", None)]
            + [
                (dp.atom_domain(T=float), dp.absolute_distance(T=float), 1.0),  # with NaN
                (dp.atom_domain(T=int), dp.absolute_distance(T=float), 1.0, 3),
                (dp.atom_domain(T=bool), dp.discrete_distance(), 1.0),
                (dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance(), 1.0),
                (dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float), 1.0),
                (*scalar("", float), 1.0, "a"),
                (*scalar("", float), 1.0, None, "Renyi"),
            ],
        ),
        *itertools.product(["make_randomized_response_bitvec"], [(*BITS, bad) for bad in (0.0, 1.1, -1.0, "a")]),
        ("make_randomized_response_bitvec", (dp.atom_domain(T=int), dp.discrete_distance(), 0.5)),
        *itertools.product(
            ["make_noisy_max"],
            [
                (*vector("make_noisy_max", float), dp.max_divergence(), -1.0),
                (*vector("make_noisy_max", float), dp.max_divergence(), math.nan),
                (*vector("make_noisy_max", float), dp.renyi_divergence(), 1.0),
                (*vector("make_laplace", float), dp.max_divergence(), 1.0),
            ],
        ),
    ],
    ids=str,
)
def test_bad_arguments_get_the_hosts_errors(name, arguments):
    expected = error_of(lambda: getattr(dp.m, name)(*arguments))
    assert expected is not None
    assert error_of(lambda: getattr(ours, name)(*arguments)) == expected


@pytest.mark.parametrize("bad", ["a", None, [1.0], 1], ids=repr)
def test_bad_values_get_the_hosts_errors(bad):
    theirs, mine = both("make_laplace", *scalar("", float), 1.0)
    expected, found = error_of(lambda: theirs(bad)), error_of(lambda: mine(bad))
    assert (found and found[0]) == (expected and expected[0])


def test_bad_distances_get_the_hosts_errors():
    for name in ("make_laplace", "make_gaussian"):
        theirs, mine = both(name, *vector(name, float), 1.0)
        for bad in (-1.0, math.nan, "a"):
            assert error_of(lambda bad=bad, m=mine: m.map(bad))[0] is error_of(lambda bad=bad, m=theirs: m.map(bad))[0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ours.make_laplace(*scalar("", float), 1.0, k=-41), "k must be at least -40"),
        (lambda: ours.make_gaussian(*scalar("", float), 3.0, k=-1074), "k must be at least -38"),
        (lambda: ours.make_laplace(*scalar("", float), 1.0, k=1024), r"2\*\*k must be"),
        (lambda: ours.make_laplace(*scalar("", float), 1e300), r"2\*\*k must be"),
        (lambda: ours.make_laplace(*scalar("", int), 2.0**41), "scale must be"),
        *(
            (lambda scale=scale: ours.make_gaussian(*scalar("", int), scale), "scale must be")
            for scale in (2.0**-21, 2.0**41)
        ),
        (lambda: ours.make_noisy_max(*vector("make_noisy_max", int), dp.max_divergence(), 2.0**41), "scale must be"),
    ],
)
def test_what_cannot_be_honoured_is_refused(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


@pytest.mark.parametrize("number", [float, int, "usize"])
def test_with_a_scale_of_zero_nothing_is_drawn_as_by_the_host(number):
    one, many = numbers(number), vector("make_noisy_max", number)
    for name, space, given in (
        ("make_laplace", (one, dp.absolute_distance(T=float)), 3),
        ("make_gaussian", (one, dp.absolute_distance(T=float)), 3),
        ("make_noisy_max", (*many, dp.max_divergence()), [1, 3, 2]),
    ):
        theirs, mine = both(name, *space, 0.0)
        assert mine(given) == theirs(given)
        assert [mine.map(d_in) for d_in in (0, 1)] == [0.0, math.inf]


def test_long_vectors_need_a_size():
    space = vector("make_laplace", float)
    values = np.zeros(2**20 + 1)
    with pytest.raises(dp.OpenDPException, match="at most 1048576 values"):
        ours.make_laplace(*space, 1.0)(values)
    sized = ours.make_laplace(*vector("make_laplace", float, size=values.size), 1.0)
    assert len(sized(values)) == values.size


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_features_are_the_callers_to_enable(name):
    arguments = {
        "make_randomized_response_bitvec": (*BITS, 0.5),
        "make_noisy_max": (*vector("make_noisy_max", float), dp.max_divergence(), 1.0),
    }.get(name, (*scalar(name, float), 1.0))
    for missing in ("contrib", "honest-but-curious"):
        dp.disable_features(missing)
        with pytest.raises(dp.OpenDPException, match=f"{missing}.*not enabled"):
            getattr(ours, name)(*arguments)
        dp.enable_features(missing)


def test_importing_enables_nothing():
    program = "import dpnoise_opendp, opendp.mod; assert not opendp.mod.GLOBAL_FEATURES, opendp.mod.GLOBAL_FEATURES"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_measurements_are_chained():
    count = (dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()) >> dp.t.then_count()
    chained = count >> ours.make_laplace(*scalar("", int), 1e-3) >> (lambda released: released + 0.5)
    assert chained([1, 2, 3]) == 3.5
    assert chained.map(1) == 1000.0
    assert chained.check(1, 1000.0)
    assert not chained.check(1, 999.0)


def test_choices():
    scores = [1.0, 3.0, 2.0]
    for measure, negate in itertools.product((dp.max_divergence(), dp.zero_concentrated_divergence()), (False, True)):
        for number in (float, int):
            theirs, mine = both("make_noisy_max", *vector("make_noisy_max", number), measure, 1e-3, negate)
            given = [number(score) for score in scores]
            assert mine(given) == theirs(given) == (0 if negate else 1)
            assert type(mine(given)) is type(theirs(given))


def test_bits():
    theirs, mine = both("make_randomized_response_bitvec", *BITS, 1e-12)
    assert mine(b"dpnoise") == theirs(b"dpnoise") == b"dpnoise"
    assert ours.make_randomized_response_bitvec(*BITS, 1.0)(bytes(64)) != bytes(64)


@pytest.mark.parametrize("measure", [dp.max_divergence(), dp.zero_concentrated_divergence()], ids=str)
def test_no_score_of_the_domain_is_refused(measure):
    """An error would tell which scores there are."""
    for number, scores in ((float, [-math.inf, 1e308, 3.0, math.inf]), ("f32", [-math.inf, 1.0, math.inf])):
        for negate, best in ((False, len(scores) - 1), (True, 0)):
            theirs, mine = both("make_noisy_max", *vector("make_noisy_max", number), measure, 1e-3, negate)
            assert mine(scores) == theirs(scores) == best
    for scores in ([0, -(2**63), 2**63 - 1], [2**63 - 1, -(2**63), 2**60], [2**60, 2**60 - 1], [-5]):
        for negate in (False, True):
            theirs, mine = both("make_noisy_max", *vector("make_noisy_max", "i64"), measure, 1e-3, negate)
            assert mine(scores) == theirs(scores)


def test_distances_to_the_best_score():
    for scores in itertools.product([-(2**63), -3, 0, 2, 2**60, 2**63 - 1], repeat=3):
        for negate, best in ((False, max), (True, min)):
            expected = [-min(abs(best(scores) - score), 2**53) for score in scores]
            assert below_best(np.array(scores, np.int64), negate).tolist() == expected
    assert below_best(np.array([0, 2**32 - 1], np.uint32), False).tolist() == [-(2**32 - 1), 0]
    assert below_best(np.array([2**64 - 1, 0, 2**64 - 4], np.uint64), False).tolist() == [0, -(2**53), -3]
    assert below_best(np.array([2**64 - 1, 5, 2**63], np.uint64), True).tolist() == [-(2**53), 0, -(2**53)]


def test_what_is_no_number_is_zero_as_by_the_host():
    for name in ("make_laplace", "make_gaussian"):
        theirs, mine = both(name, *vector(name, float), 1e-6)
        for measurement in (theirs, mine):
            assert measurement([math.nan, math.inf, -math.inf]) == pytest.approx(
                [0.0, 1.7e308, -1.7e308], rel=0.1, abs=1e-3
            )


# --- what is added up ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("granularity", [2.0**-10, 1.0, 8.0])
def test_rounding_brings_values_at_most_a_step_further_apart(granularity):
    values = np.array([0.0, 0.49, 0.5, 0.51, 1.5, 2.5, 1e15 + 0.5, 2.0**53 - 1, 2.0**53, 2.0**60, 1e300])
    values = np.concatenate(
        [-values, values, values * granularity, np.nextafter(values, 0), np.nextafter(values, 1e308)]
    )
    on_grid = add_reals(values, np.zeros(values.size), granularity, np.float64)
    assert np.array_equal(np.mod(on_grid, granularity), np.zeros(values.size))
    assert (np.abs(on_grid - values) <= granularity / 2).all()
    # The host's map counts on halves that all go up.
    halves = (np.arange(-9, 10) + 0.5) * granularity
    assert np.array_equal(add_reals(halves, np.zeros(19), granularity, np.float64), halves + granularity / 2)


def test_sums_saturate():
    most = 2**63 - 1
    noise = np.array([1, most, -1, -most, 5])
    values = np.array([most, most, -(2**63), -(2**63), 7])
    assert add_integers(values, noise, np.int64).tolist() == [most, most, -(2**63), -(2**63), 12]
    assert add_integers(np.array([7, 7]), np.array([-8, 2**40]), np.uint32).tolist() == [0, 2**32 - 1]
    for value, added in itertools.product([0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1], [-(2**63), -1, 0, 1, most]):
        expected = min(max(value + added, 0), 2**64 - 1)
        assert add_integers(np.array([value], np.uint64), np.array([added]), np.uint64).tolist() == [expected]
    huge = np.array([1e308, -np.inf, np.inf])
    released = add_reals(huge, np.array([1e308, 1.0, 1.0]), 1.0, np.float64)
    largest = np.finfo(float).max
    assert released.tolist() == [largest, -largest, largest]


@pytest.mark.parametrize("number", [np.float64, np.float32])
@pytest.mark.parametrize("granularity", [2.0**-60, 0.25, 8.0, 2.0**900])
def test_noise_is_added_to_a_real_number_as_to_a_vector(number, granularity):
    ends = [0.0, 5e-324, 0.1, 0.125, 0.375, 1.0, 4.0, 12.0, 2.0**53 * 0.25, 1e18 + 127, 3.4e38, 3.5e38, 1e300, math.inf]
    values = [math.nan, *ends, *(-value for value in ends)]
    noises = [0.0, granularity, -3 * granularity, 2.0**40 * granularity, -(2.0**53) * granularity]
    with np.errstate(over="ignore"):
        for value, noise in itertools.product(values, noises):
            (expected,) = add_reals(np.array([value], number), np.array([noise]), granularity, number).tolist()
            found = add_real(value, noise, granularity, number)
            assert (type(found), found) == (float, expected)


@pytest.mark.parametrize("number", INTEGERS.values())
def test_noise_is_added_to_an_integer_as_to_a_vector(number):
    least, most = int(np.iinfo(number).min), int(np.iinfo(number).max)
    noises = [0, 1, -1, 12345, 2**40, -(2**40), 2**62, -(2**62)]
    for value, noise in itertools.product([least, least + 1, 0, 7, most - 1, most], noises):
        (expected,) = add_integers(np.array([value], number), np.array([noise]), number).tolist()
        found = add_integer(value, noise, number)
        assert (type(found), found) == (int, expected)


@pytest.mark.parametrize("number", ["i32", "i64", "u32", "u64", "f32", float])
@pytest.mark.parametrize("name", ["make_laplace", "make_gaussian"])
def test_a_number_of_the_type_does_not_pass_through_the_host(name, number, monkeypatch):
    theirs, mine = both(name, *scalar(name, number), 2.0**-12)
    through = []
    invoke = opendp.core.measurement_invoke
    monkeypatch.setattr(opendp.core, "measurement_invoke", lambda *given: through.append(given[1]) or invoke(*given))
    chained = mine >> (lambda x: x)
    if number not in INTEGERS:
        direct, others, refused = [0.0, -7.5, 3.25], [2, 10**40], [True, "7", None, [1.0]]
    else:
        limits = np.iinfo(INTEGERS[number])
        direct = [0, 7, int(limits.min), int(limits.max)]
        others, refused = [], [True, 7.0, "7", int(limits.max) + 1, int(limits.min) - 1]
    for call in (mine, mine.invoke):
        assert [call(value) for value in direct] == pytest.approx(direct, abs=1)
        assert through == []
    for value in others:
        # The host narrows what is too large for f32.
        assert mine(value) == pytest.approx(theirs(value), abs=1)
    assert through == [value for value in others for _ in range(2)]
    for value in refused:
        expected = error_of(lambda value=value: theirs(value))
        assert expected
        assert error_of(lambda value=value: mine(value)) == expected
    through.clear()
    assert chained(direct[1]) == pytest.approx(direct[1], abs=1)
    assert through == [direct[1]]
