"""What an answer looks like, what it costs and what is refused do not depend on the rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpnoise import Table, queries
from dpnoise.accounting import Ledger
from dpnoise.tables import Release


class Ids(NamedTuple):
    """Ids that are nearly equal, with the types of a column of them."""

    ids: list[Any]
    persons: int
    """So many of them are a person each; the others are missing, or may stand for several persons."""
    polars: Any
    pandas: Any

    @property
    def missing(self) -> int:
        return sum(one is None or one != one for one in self.ids)


TEXTS = ["Ann", "ann", "Ann ", "\u00c1", "A\u0301", "", "1", "1.0", "None", "nan", "NaT", None]
# 2.0**53 stands for 2**53 + 1, too.
FLOATS = [1.0, -1.0, 0.0, 2.0**53 - 1, 2.0**53, 2.0**53 + 2, 0.5, math.inf, math.nan, None]
IDS = {
    "texts": Ids(TEXTS, 11, pl.String, "str"),
    "integers": Ids([1, -1, 0, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), None], 7, pl.Int64, "Int64"),
    "unsigned integers": Ids([1, 2**64 - 1, 2**64 - 2, None], 3, pl.UInt64, "UInt64"),
    "floats": Ids(FLOATS, 4, pl.Float64, float),
    "bytes": Ids([b"", b"a", b"a\0", b"\xff", None], 4, pl.Binary, object),
}
KEYS = ["North", "South"]


def tables_of(ids: list[Any]) -> dict[str, list[tuple[Any, Any, Any]]]:
    """Tables of a person, a region and a number, that have as little in common as they can."""
    some = ids[0]
    return {
        "no rows": [],
        "one row": [(some, "North", 1.0)],
        "nobody": [(None, "North", 1.0)] * 3,
        "all rows of one": [(some, region, place) for place, region in enumerate(["North", "South", None, "East"] * 9)],
        "a row of each": [(person, "South", 1.0) for person in ids],
        "no keys": [(person, None, 1.0) for person in ids],
        "other keys": [(person, region, 1.0) for person in ids for region in ("north", "North ", "", "other")],
        "no values": [(person, region, None) for person in ids for region in KEYS],
        "large values": [(some, "North", value) for value in (math.inf, -math.inf, 1e308, 5e-324, -0.0, math.nan)],
        "many": [(ids[place % len(ids)], KEYS[place % 2], float(place)) for place in range(999)],
    }


def frames_of(rows: list[tuple[Any, Any, Any]], ids: Ids) -> dict[str, Any]:
    frame = pl.DataFrame(rows, {"user": ids.polars, "region": pl.String, "spend": pl.Float64}, orient="row")
    users, regions, spends = zip(*rows, strict=True) if rows else ((), (), ())
    of_numbers = pd.Series(spends, dtype=float)
    return {
        "polars": frame,
        "pandas": pd.DataFrame(
            {
                "user": pd.Series(users, dtype=ids.pandas),
                "region": pd.Series(regions, dtype=object),
                "spend": of_numbers,
            }
        ),
        "dict": {"user": list(users), "region": np.array(regions, object), "spend": np.array(spends, float)},
        "lazy": frame.lazy(),
        "categories": frame.cast({"region": pl.Categorical}),
        "arrow": frame.to_arrow(),
        "dictionaries": frame.cast({"region": pl.Categorical}).to_arrow(),
    }


BOUNDS: dict[str, Any] = {"bounds": (0, 10), "epsilon": 0.1}
ASKED: dict[str, Any] = {
    "n": queries.Count(epsilon=0.1),
    "numbers": ("spend", queries.Count(epsilon=0.1)),
    "total": ("spend", queries.Sum(**BOUNDS)),
    "mean": ("spend", queries.Mean(**BOUNDS)),
    "variance": ("spend", queries.Variance(**BOUNDS)),
    "deviation": ("spend", queries.StandardDeviation(**BOUNDS)),
    "median": ("spend", queries.Median(**BOUNDS)),
}
PARTS: dict[str, Any] = {
    "bins": ("spend", queries.Histogram(edges=[-math.inf, 0, 5], epsilon=0.1)),
    "labels": ("region", queries.Histogram(domain=["East", "North"], epsilon=0.1)),
    "quantiles": ("spend", queries.Quantiles(q=[0.75, 0.25], **BOUNDS)),
}


def grouped(table: Table, keys: list[str]) -> Any:
    return table.by("region", keys=keys, other=True, rows_per_group=2, groups=2)


def regions_of(frame: Any) -> list[str]:
    return ["North", *sorted({region for region in frame["region"] if region == "South"})]


Question = Callable[[Table, Any], Release]
QUESTIONS: dict[str, Question] = {
    "all rows": lambda table, frame: table.release(**ASKED, **PARTS),
    "groups": lambda table, frame: grouped(table, KEYS).release(**ASKED),
    "parts of groups": lambda table, frame: grouped(table, KEYS).release(**ASKED, **PARTS),
}
# The planted faults.
FAULTS: dict[str, Question] = {
    "groups of the rows": lambda table, frame: grouped(table, regions_of(frame)).count(epsilon=0.1),
    "numbers that are there": lambda table, frame: table.release(n=ASKED["numbers" if len(frame["user"]) else "n"]),
    "epsilon of the rows": lambda table, frame: table.count(epsilon=0.1 + (len(frame["user"]) > 9)),
}


def shape(release: Release) -> Any:
    """All that is not drawn."""
    answers = release.answers.values()
    for answer in answers:
        assert np.isfinite([*answer.values, *(answer.errors or [])]).all()
    pandas = release.to_pandas()
    drawn = {"value", "error", "lower", "upper", *pandas.select_dtypes("float"), *release.answers}
    shown = {name: list(pandas[name]) for name in pandas if name not in drawn}
    kinds = [(answer.title, answer.labels, list(map(type, answer.values)), answer.rank_error) for answer in answers]
    tables = pandas.dtypes.to_dict(), release.to_arrow().schema, release.to_polars().schema, repr(release).count("\n")
    return shown, kinds, tables, release.groups, release.cost, release.unit


def shapes_of(ask: Question, kind: str, missing_person: Any, libraries: int) -> list[Any]:
    found = []
    for rows in tables_of(IDS[kind].ids).values():
        for frame in list(frames_of(rows, IDS[kind]).values())[:libraries]:
            ledger = Ledger(":memory:", epsilon=9.0, person="user")
            table = Table(frame, person="user", rows=3, ledger=ledger, missing_person=missing_person)
            found.append((shape(ask(table, frame)), ledger.entries()[0].cost, len(ledger.entries())))
    return found


@pytest.mark.parametrize(
    ("kind", "missing_person", "libraries", "question"),
    [("texts", "drop", 7, "parts of groups"), *((kind, "own", 2, name) for kind in IDS for name in QUESTIONS)],
)
def test_answers_of_all_tables_look_alike(kind: str, missing_person: Any, libraries: int, question: str) -> None:
    first, *others = shapes_of(QUESTIONS[question], kind, missing_person, libraries)
    assert all(each == first for each in others)


@pytest.mark.parametrize("fault", FAULTS)
def test_answers_that_do_not_are_found(fault: str) -> None:
    first, *others = shapes_of(FAULTS[fault], "texts", "drop", 1)
    assert any(each != first for each in others)


@pytest.mark.parametrize("kind", IDS)
def test_ids_are_those_of_different_persons(kind: str) -> None:
    ids = IDS[kind]
    for frame in frames_of(tables_of(ids.ids)["a row of each"] * 3, ids).values():
        for missing_person, alone in (("drop", 0), ("own", 3 * ids.missing)):
            table = Table(frame, person="user", rows=1, missing_person=missing_person)
            assert table.count(epsilon=1e6).value == ids.persons + alone


WRONG: dict[str, Callable[[Table], Any]] = {
    "mean": lambda table: table.mean("region", **BOUNDS),
    "median": lambda table: table.median("region", **BOUNDS),
    "bins": lambda table: table.histogram("region", edges=[0, 1], epsilon=0.1),
    "labels": lambda table: table.histogram("spend", domain=["North"], epsilon=0.1),
    "keys": lambda table: table.by("region", keys=[1, 2]).count(epsilon=0.1),
    "keys of numbers": lambda table: table.by("spend", keys=["North"]).count(epsilon=0.1),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_errors_depend_on_the_types_of_values(wrong: str) -> None:
    messages = set()
    for rows in tables_of(IDS["texts"].ids).values():
        if any(region is not None and spend is not None for _, region, spend in rows):  # values have types
            for frame in frames_of(rows, IDS["texts"]).values():
                ledger = Ledger(":memory:", epsilon=9.0, person="user")
                with pytest.raises(TypeError) as refused:
                    WRONG[wrong](Table(frame, person="user", rows=3, ledger=ledger))
                messages.add(str(refused.value))
                assert not ledger.entries()
    assert len(messages) == 1
