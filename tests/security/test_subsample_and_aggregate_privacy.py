"""What one row can do: enumerated on small data, and audited."""

from __future__ import annotations

import itertools
import os
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from dpnoise import audit
from dpnoise.hazmat import SeededRng
from dpnoise.mechanisms import ReportNoisyMax
from dpnoise.queries import Histogram, Median
from dpnoise.stability import SubsampleAndAggregate, _aggregates
from dpnoise.stability._aggregates import aggregate_of

# Releases of an audit; what is wrong by a factor of two is found in the fewest, and in more it is found more easily.
ENOUGH = 3_000
N = min(max(ENOUGH, int(os.environ.get("DPNOISE_TEST_SAMPLES", 0)) // 250), 100_000)

# Answers of blocks, in whole numbers from 0.
HIGHEST = 3


def neighbours(answers):
    for place, other in itertools.product(range(len(answers)), range(HIGHEST + 1)):
        yield (*answers[:place], other, *answers[place + 1 :])


def claimed(aggregate, blocks, cut):
    """The sensitivity that the documentation states."""
    whole = Fraction(HIGHEST)
    if aggregate == "trimmed_mean":
        return whole / (blocks - 2 * cut)
    if aggregate == "winsorized_mean" and blocks > 2 * cut + 1:
        return whole * (cut + 1) / blocks
    return whole if aggregate == "winsorized_mean" else whole / blocks


def exact(aggregate, answers, cut):
    """The average by its definition, in fractions, without what the library does."""
    ordered = sorted(answers)
    kept = ordered[cut : len(ordered) - cut]
    if aggregate == "winsorized_mean":
        kept = [kept[0]] * cut + kept + [kept[-1]] * cut
    return Fraction(sum(kept), len(kept))


AVERAGES = [("mean", blocks, 0) for blocks in range(1, 7)] + [
    (aggregate, blocks, cut)
    for aggregate in ("trimmed_mean", "winsorized_mean")
    for blocks in range(3, 7)
    for cut in range(1, (blocks + 1) // 2)
]


def aggregate_for(aggregate, blocks, cut, epsilon):
    """The library's own, which trims just so many."""
    options = {"epsilon": epsilon, "bounds": (0.0, float(HIGHEST))}
    options |= {"alpha": (cut + 0.25) / blocks} if cut else {}
    made = aggregate_of(aggregate, blocks=blocks, default=None, options=options)
    assert made._cut == cut
    return made


@pytest.mark.parametrize(("aggregate", "blocks", "cut"), AVERAGES)
def test_sensitivities_are_those_stated_and_are_reached(aggregate, blocks, cut):
    data = list(itertools.product(range(HIGHEST + 1), repeat=blocks))
    averages = {answers: exact(aggregate, answers, cut) for answers in data}
    moved = max(abs(averages[x] - averages[y]) for x in data for y in neighbours(x))
    assert moved == claimed(aggregate, blocks, cut)


def noise_is_enough(made, aggregate, blocks, cut):
    """Whether an average has noise for its sensitivity, by the exact numbers that the sum of what is left has."""
    (query,) = made._queries
    kept = made._average.trim(np.arange(blocks, dtype=float), cut)
    scale = Fraction(query._native.scale) / len(kept)
    least = claimed(aggregate, blocks, cut) / Fraction(made.epsilon)
    assert scale <= least * (1 + Fraction(1, 10**9)), "nor is it more"
    return scale * (1 + Fraction(1, 2**51)) >= least  # the scale is a double, rounded to nearest


@pytest.mark.parametrize(("aggregate", "blocks", "cut"), AVERAGES)
def test_the_noise_is_that_of_the_sensitivity(aggregate, blocks, cut):
    assert noise_is_enough(aggregate_for(aggregate, blocks, cut, 0.7), aggregate, blocks, cut)


def test_noise_for_one_moved_answer_is_not_enough_for_several():
    """The control: the answers that winsorizing moves count as often as there are, plus one."""
    made = aggregate_for("winsorized_mean", 6, 2, 0.7)
    forgetful = aggregate_for("winsorized_mean", 6, 2, 1.4)
    forgetful.epsilon = made.epsilon
    assert not noise_is_enough(forgetful, "winsorized_mean", 6, 2)


@pytest.mark.parametrize(("aggregate", "cut"), [("mean", 0), ("trimmed_mean", 1), ("winsorized_mean", 1)])
def test_releases_with_the_same_noise_move_by_the_sensitivity(aggregate, cut):
    """The library's own averages, sums on the grid included."""
    made = aggregate_for(aggregate, 4, cut, 1e9)
    data = list(itertools.combinations_with_replacement(range(HIGHEST + 1), 4))
    averages = {x: made.release(list(map(float, x)), SeededRng(0)).value for x in data}
    moved = max(abs(averages[x] - averages[tuple(sorted(y))]) for x in data for y in neighbours(x))
    assert moved == pytest.approx(float(claimed(aggregate, 4, cut)), abs=1e-5)


@pytest.mark.parametrize("blocks", [1, 2, 3, 4])
def test_votes_move_by_what_their_mechanism_is_made_for(blocks):
    candidates = np.arange(HIGHEST + 1.0)
    votes = aggregate_of(
        "noisy_max", blocks=blocks, default=None, options={"epsilon": 1.0, "candidates": list(candidates)}
    )
    assert not votes._choice.monotonic
    counted = 0.0
    for x in itertools.product(range(HIGHEST + 1), repeat=blocks):
        for y in neighbours(x):
            counts = [np.bincount(answers, minlength=HIGHEST + 1) for answers in (x, y)]
            counted = max(counted, np.abs(counts[0] - counts[1]).max())
    assert counted == votes._choice.sensitivity == 1


def test_medians_are_of_answers_one_of_which_is_replaced():
    """What their scores move by is enumerated in test_quantile_privacy.py."""
    bounds = (0.0, float(HIGHEST))
    median = aggregate_of("median", blocks=3, default=None, options={"epsilon": 1.0, "bounds": bounds})
    assert median._queries == [Median(bounds=bounds, epsilon=1.0, relation="substitute")]


# Equal ones, some without an answer, and some of several types.
OUTCOMES = ["b", 1, True, frozenset({"x", "y"}), None]


def released_and_distance(answers, monkeypatch):
    """What the mode of some answers hands to the test of stability."""
    seen = []
    released = _aggregates.released
    monkeypatch.setattr(_aggregates, "released", lambda *given: seen.append(given) or released(*given))
    made = aggregate_of("mode", blocks=len(answers), default=None, options={"epsilon": 1.0, "delta": 0.1})
    made.release(answers, None)
    ((value, distance, test, *_),) = seen
    assert (test.epsilon, test.delta) == (1.0, 0.1)
    monkeypatch.undo()
    return repr(value), distance


@pytest.mark.parametrize("blocks", [1, 2, 3, 4])
def test_the_distance_of_the_mode_is_of_sensitivity_one_and_zero_where_it_changes(blocks, monkeypatch):
    found = {x: released_and_distance(x, monkeypatch) for x in itertools.product(OUTCOMES, repeat=blocks)}
    for x, (value, distance) in found.items():
        for place, other in itertools.product(range(blocks), OUTCOMES):
            neighbour = found[(*x[:place], other, *x[place + 1 :])]
            assert abs(distance - neighbour[1]) <= 1
            assert value == neighbour[0] or distance == neighbour[1] == 0


def answers_of(data, f, blocks, seed):
    """What each block answers, in a partition that hangs on the seed."""
    found = []
    SubsampleAndAggregate(
        f=lambda block: found.append(f(block)) or 0.0, blocks=blocks, aggregate="mean", bounds=(0, 1), epsilon=1.0
    ).release(data, rng=SeededRng(seed))
    return found


def drawn(block, generator):
    """What an estimator draws after some rounds, whose number depends on the rows."""
    return generator.random_sample(1 + int(max(block)))[-1]


def drawn_by_its_own(block):
    return drawn(block, np.random.RandomState(0))


def drawn_by_the_global_one(block):
    """As scikit-learn with random_state=None."""
    return drawn(block, np.random.mtrand._rand)


CALLED = [tuple, len, sum, min, np.median, drawn_by_its_own]


@pytest.mark.parametrize("f", CALLED, ids=lambda f: f.__name__)
def test_a_row_changes_the_answer_of_one_block_at_most(f):
    for blocks, seed in itertools.product([1, 2, 3, 5], range(10)):
        data = [10, 20, 30, 40, 50]
        before = answers_of(data, f, blocks, seed)
        for place, other in itertools.product(range(5), [0, 25, 60]):
            after = answers_of([*data[:place], other, *data[place + 1 :]], f, blocks, seed)
            assert sum(x != y for x, y in zip(before, after, strict=True)) <= 1


def test_a_row_changes_several_answers_through_a_global_generator():
    """A control of the one above, with one seed for both."""
    found = []
    for data in ([10, 20, 30, 40, 50], [10, 20, 30, 40, 60]):
        np.random.seed(0)  # noqa: NPY002 - it is the fault
        found.append(answers_of(data, drawn_by_the_global_one, 5, 1))
    assert sum(x != y for x, y in zip(*found, strict=True)) == 3, "that of its block, and of the two after it"


def test_a_row_changes_several_answers_where_the_partition_hangs_on_it():
    """Another one: sorted data are dealt otherwise when one row changes."""

    def blocks_of(data):
        return np.array_split(sorted(data), 3)

    before, after = blocks_of([1, 2, 3, 4, 5, 6]), blocks_of([7, 2, 3, 4, 5, 6])
    assert sum(list(x) != list(y) for x, y in zip(before, after, strict=True)) > 1


# --- audits --------------------------------------------------------------------------------------------------------

# Neighbours on which the aggregates lose as much as on any, with a row for each block.
WORST = {
    "mean": ([0.0] * 3, [0.0, 0.0, 1.0], {"bounds": (0.0, 1.0)}),
    "noisy_max": (["a", "b"], ["a", "a"], {"candidates": ["a", "b"]}),
}

FAULTS = {
    # The distance of the bounds counts, not half of it.
    "mean": ("share_of", lambda epsilon, parts: 2 * epsilon / parts),
    # A vote that is changed is one less and one more.
    "noisy_max": ("ReportNoisyMax", partial(ReportNoisyMax, monotonic=True)),
}


def shown(aggregate, n, level):
    """The epsilon that an audit finds at least of a release that claims 1."""
    x, x_prime, options = WORST[aggregate]

    mechanism = SubsampleAndAggregate(
        f=lambda block: block[0], blocks=len(x), aggregate=aggregate, epsilon=1.0, **options
    )
    return audit.epsilon_lower_bound(mechanism, x, x_prime, n=n, level=level).epsilon


@pytest.mark.parametrize("aggregate", WORST)
def test_an_audit_finds_what_is_claimed_at_most(aggregate):
    found = shown(aggregate, N // 3, level=1 - 1e-9)
    print(f"{aggregate}: {found:.3f} of 1")
    assert found <= 1.0


@pytest.mark.parametrize("aggregate", FAULTS)
def test_a_forgotten_factor_of_two_is_found(aggregate, monkeypatch):
    monkeypatch.setattr(_aggregates, *FAULTS[aggregate])
    found = shown(aggregate, ENOUGH, level=0.99)
    print(f"{aggregate}: {found:.3f} of 1")
    assert found > 1.0


class ForOneMore(Histogram):
    """A histogram with noise for one row more or less, that says it is for a replaced one."""

    def __init__(self, **options):
        super().__init__(**options | {"relation": "add/remove"})

    @property
    def relation(self):
        return "substitute"


@pytest.mark.parametrize(("histogram", "within"), [(Histogram, True), (ForOneMore, False)])
def test_a_mechanism_loses_what_it_claims_for_a_replaced_answer(histogram, within):
    votes = histogram(domain=["a", "b"], epsilon=1.0, relation="substitute")
    mechanism = SubsampleAndAggregate(f=lambda block: block[0], blocks=2, aggregate=votes, default="a")
    counts = partial(_leads, mechanism)
    level, n = (1 - 1e-9, N // 3) if within else (0.99, 2 * ENOUGH)
    found = audit.epsilon_lower_bound(counts, ["a", "b"], ["a", "a"], n=n, level=level).epsilon
    print(f"{histogram.__name__}: {found:.3f} of 1")
    assert (found <= mechanism.epsilon) == within


def _leads(mechanism, data):
    """How much more votes one has than the other: what a replaced answer moves most."""
    counts = mechanism.release(data)
    return counts["a"] - counts["b"]
