"""Table: what it reads, what it refuses before it pays, and what it pays."""

from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpnoise import BudgetExceeded, ParameterError, PrivacyCost, Table, queries
from dpnoise.accounting import Ledger, pure_zcdp_rho
from dpnoise.hazmat import SeededRng

SURE = 1e6  # an epsilon whose noise is 0 but for a probability below 2**-1000
COLUMNS: dict[str, list[Any]] = {
    "user": ["ann", "ben", "ann", None, "eve", "ben"],
    "region": ["North", "South", "South", "North", None, "West"],
    "spend": [20.0, 35.0, 12.0, 80.0, 5.0, None],
    "visit": [1, 2, 3, 4, 5, 6],
}


def table(frame: Any = None, **options: Any) -> Table:
    return Table(COLUMNS if frame is None else frame, **{"person": "user", "rows": 9, **options})


FRAMES: dict[str, Any] = {
    "dict of lists": COLUMNS,
    "dict of arrays": {name: np.array(column, object) for name, column in COLUMNS.items()},
    "pandas": pd.DataFrame(COLUMNS),
    "pandas, Arrow": pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
    "pandas, categories": pd.DataFrame(COLUMNS).astype({"user": "category", "region": "category"}),
    "polars": pl.DataFrame(COLUMNS),
    "polars, lazy": pl.DataFrame(COLUMNS).lazy(),
    "polars, categories": pl.DataFrame(COLUMNS).cast({"user": pl.Categorical, "region": pl.Categorical}),
    "pyarrow": pa.table(COLUMNS),
    "pyarrow, dictionaries": pa.table(
        {
            name: pa.array(column).dictionary_encode() if name in ("user", "region") else column
            for name, column in COLUMNS.items()
        }
    ),
    "narwhals": nw.from_native(pd.DataFrame(COLUMNS)),
}


@pytest.mark.parametrize("kind", [*FRAMES, "duckdb"])
def test_all_tables_are_read_alike(kind: str) -> None:
    arrow = pa.table(COLUMNS)  # which DuckDB finds by its name
    frame = duckdb.sql("select * from arrow") if kind == "duckdb" else FRAMES[kind]
    assert arrow.num_rows == 6
    asked = table(frame)
    regions = asked.by("region", keys=["South", "North", "East"], other=True)
    found = regions.release(n=queries.Count(epsilon=SURE), total=("spend", queries.Sum(bounds=(0, 50), epsilon=SURE)))
    assert found.groups == ["South", "North", "East", "other"]
    assert found["n"].values == [2, 1, 0, 2]  # the row of nobody is left out
    assert found["total"].values == pytest.approx([47, 20, 0, 5], abs=0.01)
    assert asked.mean("visit", bounds=(0, 10), epsilon=SURE).value == pytest.approx(17 / 5, abs=0.01)
    assert table(frame, missing_person="own").count(epsilon=SURE).value == 6
    assert Table(frame).keys("region", epsilon=SURE, delta=0.5)["count"].labels == ["North", "South"]
    assert asked.histogram("region", domain=["West", "North"], epsilon=SURE).value == {"West": 1, "North": 1}


def test_none_is_a_key_if_it_is_named() -> None:
    found = table().by("region", keys=["South", None, "North"]).count(epsilon=SURE)
    assert (found.groups, found.value) == (["South", None, "North"], [2, 1, 1])
    with pytest.raises(ParameterError, match="keys must be one or more values that differ, got several of None"):
        table().by("region", keys=[None, None])


@pytest.mark.parametrize(
    ("keys", "column"),
    [
        ([2, 3, 9], [1, 2, 3, 4, 5, 6]),
        ([2.0, 3.0, 9.0], [1, 2, 3, 4, 5, 6]),
        ([2, 3, 9], [1.0, 2.0, 3.0, np.nan, 2.5, 6.0]),
        (np.array([2, 3, 9]), np.array([1, 2, 3, 4, 5, 6], np.uint8)),
        (pd.Categorical(["x"], ["x", "y", "z"]), ["a", "x", "y", None, "b", ""]),
    ],
)
def test_keys_are_numbers_or_texts(keys: Any, column: Any) -> None:
    found = Table({"key": column}).by("key", keys=keys).count(epsilon=SURE)
    assert found.value == [1, 1, 0]


def test_released_keys_are_keys() -> None:
    asked = table({**COLUMNS, "user": range(6)}, rows=1)
    keys = asked.keys("region", epsilon=SURE, delta=0.5)
    assert asked.by("region", keys=keys).count(epsilon=SURE).value == [2, 2]
    with pytest.raises(ParameterError, match=r"what Table\.keys has released"):
        asked.by("region", keys=asked.count(epsilon=1.0))


def test_no_message_shows_the_values_of_a_column() -> None:
    for keys in (np.array(["secret", "secret"]), pd.Series(["secret"] * 2), pl.Series(["secret"] * 2)):
        with pytest.raises(ParameterError, match=r"that differ, got equal values$"):
            table().by("region", keys=keys)
    with pytest.raises(ParameterError, match=r"that differ, got equal values$"):
        table().by("region", keys=["secret"] * 21)


class OwnCount(queries.Count):
    """A query of a user's, whose release is of something else."""


@pytest.mark.parametrize("values", [[None], ["1"]])
@pytest.mark.parametrize(
    "kind", ["decimals", "wide integers", "bytes", "Arrow decimals", "Arrow bytes", "texts of NumPy"]
)
def test_the_type_of_a_column_decides_also_where_it_has_no_value(kind: str, values: list[Any]) -> None:
    numbers, texts = [one and int(one) for one in values], [one and one.encode() for one in values]
    column = {
        "decimals": lambda: pl.Series(numbers, dtype=pl.Decimal(10, 2)),
        "wide integers": lambda: pl.Series(numbers, dtype=pl.Int128),
        "bytes": lambda: pl.Series(texts, dtype=pl.Binary),
        "Arrow decimals": lambda: pa.array([one and Decimal(one) for one in values], pa.decimal128(9)),
        "Arrow bytes": lambda: pa.array(texts, pa.binary()),
        "texts of NumPy": lambda: np.array(values, np.dtypes.StringDType(na_object=None)),
    }[kind]()
    with pytest.raises(TypeError, match="must be of the kind of the keys"):
        Table({"key": column}).by("key", keys=[1] if kind == "texts of NumPy" else ["a"]).count(epsilon=1.0)


IDS: dict[str, tuple[Any, int]] = {
    "texts that are nearly equal": (["Ann", "ann", "ann ", "Ann"], 3),
    "normal forms": (["\u00e9", "e\u0301", "\u00e9"], 2),
    "integers": ([1, 1, 2], 2),
    "integers and floats that are equal": ([1, 1.0, 2], 2),
    "integers beyond 2**53": (np.array([2**53, 2**53 + 1, 2**53]), 2),
    "unsigned integers": (np.array([2**64 - 1, 2**64 - 2, 1], np.uint64), 3),
    "the ends of 64 bits": (np.array([2**63 - 1, -(2**63), -1, 0]), 4),
    "floats from 2**53 on are nobody": (np.array([2.0**53, 2.0**53 + 2, np.nan, 2.0**53 - 1]), 1),
    "singles from 2**24 on are nobody": (np.array([2**24, 2**24 - 1, 2**24 + 2], np.float32), 1),
    "such floats in a list": ([2.0**53, 2.0**53 + 2, 2**53 + 1, None], 1),
    "fractions are nobody": (np.array([0.5, 1.0, 0.5]), 1),
    "zeros": (np.array([0.0, -0.0]), 1),
    "pandas, missing": (pd.Series([2**53, 2**53 + 1, None], dtype="Int64"), 2),
    "polars, missing": (pl.Series([2**53, 2**53 + 1, None]), 2),
    "pyarrow, missing": (pa.chunked_array([[2**53, 2**53 + 1], [None]]), 2),
    "pyarrow texts in chunks": (pa.chunked_array([["a", "b"], ["b", None]]), 2),
    "decimals": ([Decimal(2**53), Decimal(2**53 + 1), Decimal("1"), 1, Decimal("1.0000000000000000001")], 3),
    "bytes": ([b"a", b"b", b"a"], 2),
    "UUIDs": ([UUID(int=1), UUID(int=2), UUID(int=1), None], 2),
    "an empty text is somebody": (["", "a", None], 2),
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_are_told_apart_exactly(kind: str) -> None:
    ids, persons = IDS[kind]
    count = queries.PerPerson(queries.Count(epsilon=SURE), person="user", rows=1)
    for seed in range(20):
        assert count.release(np.ones(len(ids)), ids, rng=SeededRng(seed)) == persons


@pytest.mark.parametrize(
    ("name", "hint"), [("groupby", "by"), ("std", "standard_deviation"), ("quantile", "quantiles")]
)
def test_names_of_other_libraries_are_known(name: str, hint: str) -> None:
    for asked in (table(), table().by("region", keys=["North"])):
        with pytest.raises(AttributeError, match=f"has no {name}, use {hint}"):
            getattr(asked, name)


REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: Table([1, 2]), TypeError, "frame must be a table of pandas, .* or a dict of arrays, got list"),
    (lambda: Table({}), ParameterError, "frame must have columns"),
    (lambda: Table("visits.csv"), TypeError, "got str: read it first"),
    (lambda: table(pd.DataFrame(COLUMNS).set_index("user")), ParameterError, "an index is no column"),
    (lambda: Table(COLUMNS, person="user"), ParameterError, "person and rows must be given together"),
    (lambda: Table(COLUMNS, rows=3), ParameterError, "person and rows must be given together"),
    (
        lambda: table(person="users"),
        ParameterError,
        r"person must be a column of frame, .*'user', .*did you mean 'user'\?",
    ),
    (lambda: table(rows=0), ParameterError, "rows must be an integer from 1 to 1048576, got 0"),
    (lambda: table(rows=2.5), TypeError, "rows must be an int, got float"),
    (lambda: table(missing_person="keep"), ParameterError, 'missing_person must be "drop" or "own"'),
    (lambda: Table(COLUMNS, missing_person="own"), ParameterError, 'missing_person must be "drop" without person'),
    (lambda: table(person="visits"), ParameterError, "did you mean 'visit'"),
    (lambda: table(ledger=1.0), TypeError, "ledger must be a Ledger, got float"),
    (
        lambda: table(ledger=Ledger(":memory:", epsilon=1)),
        ParameterError,
        r"Ledger\(..., epsilon=..., person='user'\), got one for rows",
    ),
    (
        lambda: Table(COLUMNS, ledger=Ledger(":memory:", epsilon=1, person="user")),
        ParameterError,
        r"got one for persons \(user\)",
    ),
    (lambda: table(ledger=Ledger(":memory:", epsilon=1, relation="substitute")), ParameterError, "substitute"),
    (
        lambda: table(pd.DataFrame([[1, 2]], columns=["user", "user"])),
        ParameterError,
        "frame must have columns with different names",
    ),
    (
        lambda: table().mean("spending", bounds=(0, 1), epsilon=1),
        ParameterError,
        "column must be a column of frame, .*did you mean 'spend'",
    ),
    (
        lambda: table().mean(["spend"], bounds=(0, 1), epsilon=1),
        TypeError,
        "column must be the name of one column, got list",
    ),
    (
        lambda: table().mean("region", bounds=(0, 1), epsilon=1),
        TypeError,
        "column 'region' must be of real numbers, got",
    ),
    (lambda: table().mean("spend", epsilon=1), TypeError, "bounds"),
    (lambda: table().mean("spend", bounds=(1, 0), epsilon=1), ParameterError, "bounds must be"),
    (lambda: table().mean("spend", bounds=(0, 1), epsilon=0), ParameterError, "epsilon must be positive"),
    (lambda: table().count(epsilon=1, level=1), ParameterError, "level must be between 0 and 1"),
    (
        lambda: table().release(n=OwnCount(epsilon=1)),
        TypeError,
        "n must be a query of dpnoise, got its subclass OwnCount",
    ),
    (
        lambda: table().mean("spend", bounds=(0, 1), epsilon=1, level=1 - 2**-53),
        ParameterError,
        "level must be at most",
    ),
    (lambda: table().release(), ParameterError, "release needs questions"),
    (lambda: table().release(n=1.0), TypeError, "n must be a query, or a column and a query"),
    (lambda: table().release(n=("spend", "mean")), TypeError, "n must be a query, or a column and a query"),
    (lambda: table().release(m=queries.Mean(bounds=(0, 1), epsilon=1)), ParameterError, "m must name the column"),
    (lambda: table().release(n=queries.Count(epsilon=1, relation="substitute")), ParameterError, "add/remove"),
    (
        lambda: table().release(k=("region", queries.StabilityHistogram(epsilon=1, delta=0.1))),
        ParameterError,
        "public groups",
    ),
    (lambda: table().by("region"), TypeError, "keys="),
    (lambda: table().by("regions", keys=["North"]), ParameterError, "did you mean 'region'"),
    (lambda: table().by(["region", "user"], keys=["North"]), TypeError, "column must be the name of one column"),
    (lambda: table().by("region", keys=[]), ParameterError, "keys must be one or more values that differ"),
    (lambda: table().by("region", keys="North"), TypeError, "keys must be a list"),
    (
        lambda: table().by("region", keys=["North", "North"]),
        ParameterError,
        "keys must be one or more values that differ",
    ),
    (lambda: table().by("visit", keys=[1, 1.0]), ParameterError, "keys must be one or more values that differ"),
    (lambda: table().by("visit", keys=[1, True]), TypeError, "keys must be all texts, all numbers or all booleans"),
    (
        lambda: table().by("region", keys=[1, 2]).count(epsilon=1),
        TypeError,
        r"of the kind of the keys \(numbers\), got texts",
    ),
    (
        lambda: table().by("region", keys=["other"], other=True),
        ParameterError,
        "other must be False where 'other' is a key",
    ),
    (lambda: table().by("region", keys=["North"], other=1), TypeError, "other must be a bool"),
    (lambda: table().by("region", keys=["North"], groups=0), ParameterError, "groups must be an integer from 1"),
    (lambda: Table(COLUMNS).by("region", keys=["North"], groups=1), ParameterError, "must be None without person"),
    (
        lambda: table().by("region", keys=["North"]).release(region=queries.Count(epsilon=1)),
        ParameterError,
        "name of the column of the groups",
    ),
    (
        lambda: table({**COLUMNS, "user": [True] * 6}).count(epsilon=1),
        TypeError,
        "must be texts or integers that name the persons",
    ),
    (lambda: table({**COLUMNS, "user": [1]}).count("spend", epsilon=1), ParameterError, "columns of one length"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_mistakes_are_answered_before_anything_is_paid(case: int) -> None:
    call, kind, message = REFUSED[case]
    with pytest.raises(kind, match=message):
        call()


def test_nothing_is_paid_for_what_is_refused() -> None:
    ledger = Ledger(":memory:", epsilon=1.0, person="user")
    asked = table(ledger=ledger)
    for wrong in (
        lambda: asked.mean("region", bounds=(0, 1), epsilon=0.5),
        lambda: asked.by("region", keys=[1]).count(epsilon=0.5),
        lambda: asked.release(n=queries.Count(epsilon=0.5), m=("region", queries.Mean(bounds=(0, 1), epsilon=0.5))),
        lambda: asked.count(epsilon=1.5),
        lambda: asked.release(n=queries.Count(epsilon=0.5), m=queries.Count(epsilon=0.75)),
        lambda: asked.count(epsilon=0.5, label=1),
    ):
        with pytest.raises((TypeError, ParameterError, BudgetExceeded)):
            wrong()
    assert asked.spent == PrivacyCost(0.0, 0.0, "add/remove", "user")


def test_an_answer_is_one_entry_of_the_ledger() -> None:
    ledger = Ledger(":memory:", epsilon=1.0, person="user")
    asked = table(ledger=ledger)
    questions: dict[str, Any] = {
        "n": queries.Count(epsilon=0.1),
        "spend": ("spend", queries.Mean(bounds=(0, 9), epsilon=0.2)),
    }
    found = asked.by("region", keys=["North", "South"]).release(**questions)
    (entry,) = ledger.entries()
    assert entry.label == "n, spend"
    assert (
        entry.cost == found.cost == asked.spent == PrivacyCost(0.3, 0.0, "add/remove", "user")
    )  # 0.1 + 0.2 is not 0.3 in floats
    assert entry.mechanism.count("person='user', rows=9") == 2
    assert (found.unit, Table(COLUMNS).count(epsilon=1).unit) == ("person: user", "row")
    asked.count(epsilon=0.7)
    with pytest.raises(BudgetExceeded):
        asked.count(epsilon=1e-9)


def test_a_budget_of_rho_pays_for_rows_in_several_groups_less() -> None:
    ledger = Ledger(":memory:", rho=1.0, person="user")
    table(rows=4, ledger=ledger).by("region", keys=["North"], rows_per_group=1).count(epsilon=0.8)
    assert ledger.spent.rho == pytest.approx(4 * pure_zcdp_rho(0.2), rel=1e-12)
    table(rows=4, ledger=ledger).by("region", keys=["North"]).count(epsilon=0.8)
    assert ledger.spent.rho == pytest.approx(4 * pure_zcdp_rho(0.2) + pure_zcdp_rho(0.8), rel=1e-12)
