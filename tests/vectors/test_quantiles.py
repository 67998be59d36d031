"""Bit-for-bit equality of several quantiles with the specification, fed the same words."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from vectors.noise_spec import Words
from vectors.selection_spec import Node, Place, Quantiles
from vectors.test_quantile import WILD, choice, steps_between
from vectors.test_selection import stream

from dpnoise import hazmat, queries
from dpnoise.sensitivity import Relation


class BothSides(Quantiles):
    """A planted fault: rows at a released place are on both sides of it."""

    def sides(self, rows: Sequence[Place], place: int) -> tuple[list[Place], list[Place]]:
        return [row if row is not None and row <= place else None for row in rows], super().sides(rows, place)[1]


def specified(
    query: queries.Quantiles, column: list[float], data: bytes, kind: type[Quantiles] = Quantiles
) -> tuple[list[float], int]:
    """The answers and how many bytes they take."""
    words, step = Words(data), Fraction(query.granularity)
    ends, values = steps_between(query.bounds, step, column)
    spec = kind([Fraction(q).limit_denominator(10**6) for q in query.q], ends)
    rows = [spec.place(value, words.take(4) >> 32 - spec.bits if spec.bits else 0) for value in values]

    def choose(q: Fraction, span: tuple[int, int], epsilon: float, rows: Sequence[Place]) -> dict[int, int]:
        scale, granularity, reach = choice(q, epsilon, "add/remove")
        return {Node(q, span).choose(scale, granularity, rows, words, reach): 1}

    epsilon = query.epsilon / (2 if query.relation == "substitute" else 1)
    ((places, _),) = spec.law(choose, rows, epsilon).items()
    return [float(answer * step) for answer in spec.answers(places)], words.position


@pytest.mark.parametrize("relation", ["add/remove", "substitute"])
@pytest.mark.parametrize("epsilon", [0.3, 40.0, 1e-9])
@pytest.mark.parametrize(("q", "bounds", "granularity"), [
    ([0.5, 0.1, 0.9, 0.5, 0.25], (0, 1e15), None),
    ([0.25, 0.75], (-7.3, 2.6), 0.5),
    ([0.333333, 1 / 3, 0.123457, 0.7], (-1e6, 1e6), None),
    ([1 - 1e-6, 0.5, 1e-6, 0.501], (0.3, 2.6), 1.0),
    ([i / 20 for i in range(1, 20)], (1e15, 1e15 + 8), 0.25),
    ([0.3], (0, 100), None),
])  # fmt: skip
def test_a_release_equals_the_specification(
    relation: Relation, epsilon: float, q: list[float], bounds: tuple[float, float], granularity: float | None
) -> None:
    query = queries.Quantiles(q=q, bounds=bounds, epsilon=epsilon, relation=relation, granularity=granularity)
    for count in (0, 1, 7, 12, 60):
        column, data = (5 * WILD)[:count], stream(f"{query} {count}", 40_000)
        expected, taken = specified(query, column, data)
        rng = hazmat.ScriptedRng(data)
        assert query.release(column, rng=rng).tolist() == expected
        assert rng.remaining == len(data) - taken, "both took the same words"


def test_rows_at_a_released_place_are_on_one_side() -> None:
    """Where 52 bits leave no fraction, rows of one value are at one place."""
    query = queries.Quantiles(q=[0.25, 0.5, 0.75], bounds=(0, 2.0**52), epsilon=60.0, granularity=1.0)
    column, differences = [2.0**51] * 12, 0
    for seed in range(8):
        data = stream(f"one side {seed}", 40_000)
        released = query.release(column, rng=hazmat.ScriptedRng(data)).tolist()
        assert released == specified(query, column, data)[0]
        differences += released != specified(query, column, data, BothSides)[0]
    assert differences > 0
