"""Bit-for-bit equality of quantiles with the specification, fed the same words, and at the thresholds of runs."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from vectors.noise_spec import Words, exp_neg
from vectors.selection_spec import Quantile as Specification
from vectors.selection_spec import Runs, to_grid
from vectors.test_selection import prefixes, stream, word

from dpnoise import Exponential, hazmat
from dpnoise.queries import Quantile
from dpnoise.sensitivity import Relation

WILD = [3.0, math.nan, 3.0, -1e300, 5e-324, 7e5, math.inf, 0.5, 2.25, 2.25, 2.25, -0.0]


def choice(q: Fraction, epsilon: float, relation: Relation) -> tuple[Fraction, Fraction, int]:
    """The scale and the granularity of the scores, and how many gaps are looked at on either side of the quantile."""
    added = max(q.numerator, q.denominator - q.numerator)
    mechanism = Exponential(epsilon=epsilon, sensitivity=added if relation == "add/remove" else q.denominator)
    granularity = Fraction(mechanism.granularity)
    steps = math.ceil(Fraction(mechanism.sensitivity) / granularity)
    reach = math.ceil(117 * math.log(2) * mechanism.scale / q.denominator) + 1
    return 2 * steps / Fraction(epsilon), granularity, reach


def choice_of(query: Quantile) -> tuple[Fraction, Fraction, int]:
    return choice(Fraction(query.q).limit_denominator(10**6), query.epsilon, query.relation)


def steps_between(
    bounds: tuple[float, float], granularity: Fraction, column: list[float]
) -> tuple[tuple[int, int], list[int | None]]:
    """The ends, and the values clamped to them and rounded."""
    lower, upper = (Fraction(bound) / granularity for bound in bounds)
    ends = math.ceil(lower), math.floor(upper)

    def steps(value: float) -> int | None:
        if math.isnan(value):
            return None
        clamped = min(
            max(Fraction(value) if math.isfinite(value) else value, ends[0] * granularity), ends[1] * granularity
        )
        return to_grid(clamped, granularity)

    return ends, [steps(value) for value in column]


def specified(query: Quantile, column: list[float]) -> tuple[Specification, list[int | None]]:
    ends, values = steps_between(query.bounds, Fraction(query.granularity), column)
    return Specification(Fraction(query.q).limit_denominator(10**6), ends), values


def compare(query: Quantile, column: list[float], data: bytes) -> float:
    rng, words = hazmat.ScriptedRng(data), Words(data)
    spec, values = specified(query, column)
    scale, granularity, reach = choice_of(query)
    expected = float(spec.choose(scale, granularity, values, words, reach) * Fraction(query.granularity))
    assert query.release(column, rng=rng) == expected
    assert rng.remaining == len(data) - words.position, "both took the same words"
    return expected


@pytest.mark.parametrize("relation", ["add/remove", "substitute"])
@pytest.mark.parametrize("epsilon", [0.3, 4.0, 1e-9])
@pytest.mark.parametrize(("q", "bounds", "granularity"), [
    (0.5, (0, 1e15), None),
    (0.25, (-7.3, 2.6), 0.5),
    (0.123457, (-1e6, 1e6), None),
    (1 - 1e-6, (0.3, 2.6), 1.0),
])  # fmt: skip
def test_a_release_equals_the_specification(
    relation: Relation, epsilon: float, q: float, bounds: tuple[float, float], granularity: float | None
) -> None:
    query = Quantile(q=q, bounds=bounds, epsilon=epsilon, relation=relation, granularity=granularity)
    for count in (0, 1, 7, 12):
        compare(query, WILD[:count], stream(f"{query} {count}"))


def test_a_release_from_several_blocks_equals_the_specification() -> None:
    query = Quantile(q=0.25, bounds=(0, 1e6), epsilon=0.3)
    compare(query, [float(i % 7 * i % 100) for i in range(2100)], stream("several blocks"))
    compare(Quantile(q=0.25, bounds=(0, 1e6), epsilon=0.03), [1.5, math.nan, 7.0] * 700, stream("all gaps"))


def test_candidates_beyond_the_gaps_that_are_sorted_are_thinned() -> None:
    """What happens with a probability below 2**-64: the words propose such a candidate, and keep it or not."""
    query = Quantile(q=0.5, bounds=(0, 2.0**20), epsilon=0.5)
    column = [*map(float, range(600)), *[math.nan] * 7, *[50.0] * 9]
    spec, values = specified(query, column)
    scale, granularity, reach = choice_of(query)
    runs = spec.runs(values, reach)
    assert spec.is_window(len(column), reach)
    law = Runs(scale, [to_grid(score, granularity) for score, _, _ in runs], [length for _, _, length in runs])
    (weights,) = law.selection.weights_in_block
    order, kept = list(law.selection.order), set()
    for run in (0, len(runs) - 2):
        number = sum(weights[other] for other in order[: order.index(run)])
        digits = 8 if law.selection.threshold_in_block(run) > 2**-63 else 16  # that must be 0 to accept it
        proposal = 2 * (2 * (bytes(32) + word(number, sum(weights)) + bytes(digits)) + bytes(8))
        for place in (0, runs[run][2] // 2, runs[run][2] - 1):
            own = to_grid(spec.score(values, runs[run][1] + place), granularity)
            keeping = exp_neg((to_grid(runs[run][0], granularity) - own) / scale)
            for prefix in prefixes(keeping):
                coin = (2 * prefix).to_bytes(8, "little")
                released = compare(query, column, proposal + word(place, runs[run][2]) + coin + stream("rest", 1600))
                kept.add((run, released == (runs[run][1] + place) * query.granularity))
    assert kept == {(run, is_kept) for run in (0, len(runs) - 2) for is_kept in (False, True)}


def test_every_threshold_and_both_ends_of_every_run() -> None:
    # Runs of lengths 0, 1, and up to 2**52.
    query = Quantile(q=0.5, bounds=(0, 2.0**20), epsilon=1.0)
    column = [1.0, 1.0, 1.0 + 2.0**-32, 5.0, 700.0, 2.0**19]
    spec, values = specified(query, column)
    runs, (scale, granularity, _) = spec.runs(values), choice_of(query)
    law = Runs(scale, [to_grid(score, granularity) for score, _, _ in runs], [length for _, _, length in runs])
    (weights,) = law.selection.weights_in_block

    def attempt(number: int, prefix: int) -> bytes:
        """The words that choose and accept the run on which a number falls, twice, and then accept it or not."""
        return 2 * (bytes(32) + word(number, sum(weights)) + bytes(8)) + (2 * prefix).to_bytes(8, "little")

    first, outcomes = 0, set()
    for run in law.selection.order:
        for prefix, place in itertools.product(prefixes(law.threshold(run)), {0, max(law.lengths[run] - 1, 0)}):
            # The other attempt chooses the first run of all.
            data = attempt(first, prefix) + attempt(0, 0) + word(place, max(law.lengths[run], 1)) + stream("rest", 1600)
            compare(query, column, data)
            outcomes.add((run, law.choose(Words(data))[0] == run))
        first += weights[run]
    lengths = dict(enumerate(law.lengths))
    assert {run for run, kept in outcomes if kept} == {run for run, length in lengths.items() if length}
    assert {run for run, kept in outcomes if not kept} == set(lengths) - {0}


def test_the_runs_are_the_candidates() -> None:
    """Exhaustively: each candidate is in one run, and has its score by the definition."""
    for q in (Fraction(1, 2), Fraction(1, 3), Fraction(9, 10)):
        spec = Specification(q, (-1, 4))
        for n in range(5):
            for values in itertools.product([None, -1, 0, 2, 4], repeat=n):
                runs = spec.runs(values)
                found = {first + place: score for score, first, length in runs for place in range(length)}
                assert sum(length for _, _, length in runs) == len(found) == 6
                assert found == {candidate: spec.score(values, candidate) for candidate in range(-1, 5)}
