"""Releases: printed, as tables of other libraries, and as charts. Their columns and types do not depend on data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpnoise import ParameterError, PrivacyCost, Table, queries
from dpnoise.tables import Answer, Release, _release

ALL = (-math.inf, math.inf)
REGIONS = ["North", "South", "West"]
COUNTS = Answer("count of rows", "", [], [1466, 12, -3], [45.0, 45.0, 45.0], None, ALL)
MEANS = Answer("mean of spend", "", [], [66.935846, 0.512345, 500.0], [24.195875, 0.0416, 500.0], None, (0.0, 500.0))
DAYS = [date(2025, 2, 3), date(2025, 3, 4), date(2025, 5, 6)]
MEDIANS = Answer("median of day", "", [], DAYS, None, 429.058, ALL)
BINS = Answer("histogram of spend", "bin", ["[0, 10)", "[10, inf]"], [133, 2410] * 3, [9.0] * 6, None, ALL)
QUANTILES = Answer("quantiles of spend", "q", [0.1, 0.25], [16.06912, 117.8234] * 3, None, 429.058, (0.0, 500.0))


def grouped(**answers: Answer) -> Release:
    return Release(answers, "region", REGIONS, 0.95, PrivacyCost(0.5, 0.0, "add/remove", "user"), 3, "drop")


def whole(**answers: Answer) -> Release:
    """Make a release without groups, of what the answers have for the first group."""
    first = {}
    for name, answer in answers.items():
        size = max(1, len(answer.labels))
        first[name] = answer._replace(values=answer.values[:size], errors=answer.errors and answer.errors[:size])
    return Release(first, None, [], 0.9, PrivacyCost(1.5, 1e-9, "add/remove"), None, "drop")


# --- printed


def test_an_answer_by_group_is_printed() -> None:
    assert repr(grouped(mean=MEANS)).split("\n") == [
        "mean of spend, by region",
        "region   mean  error  lower  upper",
        "North      67     24     43     91",
        "South   0.512  0.042  0.471  0.554",
        "West      500    500      0    500",
        "epsilon 0.5 (person: user, at most 3 rows)",
        "each answer within its error with a probability of 95 %",
    ]


def test_several_answers_by_group_are_printed_beside_each_other_without_the_ends_of_their_intervals() -> None:
    assert repr(grouped(n=COUNTS, spend=MEANS, day=MEDIANS)).split("\n") == [
        "count of rows, mean of spend, median of day, by region",
        "region      n  n_error  spend  spend_error  day         day_rank_error",
        "North   1,466       45     67           24  2025-02-03             429",
        "South      12       45  0.512        0.042  2025-03-04             429",
        "West       -3       45    500          500  2025-05-06             429",
        "epsilon 0.5 (person: user, at most 3 rows)",
        "each answer within its error or rank error with a probability of 95 %",
    ]


def test_answers_with_parts_are_printed_below_each_other() -> None:
    assert repr(whole(n=COUNTS, q=QUANTILES, h=BINS, day=MEDIANS)).split("\n") == [
        "count of rows, quantiles of spend, histogram of spend, median of day",
        "answer  part           value       error  lower  upper  rank_error",
        "n                      1,466          45  1,421  1,511",
        "q       q 0.1          16.07                                   429",
        "q       q 0.25         117.82                                  429",
        "h       bin [0, 10)    133             9    124    142",
        "h       bin [10, inf]  2,410           9  2,401  2,419",
        "day                    2025-02-03                              429",
        "epsilon 1.5, delta 1e-09 (each row is a person)",
        "each answer within its error or rank error with a probability of 90 %",
    ]


def test_quantiles_alone_and_by_group_are_printed_with_their_labels_as_they_are() -> None:
    assert repr(whole(quantiles=QUANTILES)).split("\n")[1:-2] == [
        "q     quantiles  rank_error",
        "0.1       16.07         429",
        "0.25     117.82         429",
    ]
    assert repr(grouped(quantiles=QUANTILES)).split("\n")[3] == "North   0.25     117.82         429"


def test_one_row_and_rows_of_nobody_are_said() -> None:
    cost = PrivacyCost(0.1 + 0.2, 0.0, "add/remove", "user")
    last = repr(Release({"n": COUNTS}, "region", REGIONS, 0.999, cost, 1, "own")).split("\n")[-2:]
    assert last == [
        "epsilon 0.30000000000000004 (person: user, at most 1 row; a row without a person is a person of its own)",
        "each answer within its error with a probability of 99.9 %",
    ]


# --- as tables of other libraries

REGION = {"region": "string"}
ENDS = {"error": "double", "lower": "double", "upper": "double"}
LONG = {"answer": "string", "part": "string"}
SHAPES: list[tuple[Callable[..., Release], dict[str, Answer], int, dict[str, str]]] = [
    (whole, {"count": COUNTS}, 1, {"count": "int64", **ENDS}),
    (grouped, {"mean": MEANS}, 3, REGION | {"mean": "double", **ENDS}),
    (grouped, {"median": MEDIANS}, 3, REGION | {"median": "date32[day]", "rank_error": "double"}),
    (whole, {"quantiles": QUANTILES}, 2, {"q": "double", "quantiles": "double", "rank_error": "double"}),
    (grouped, {"histogram": BINS}, 6, REGION | {"bin": "string", "histogram": "int64", **ENDS}),
    (
        grouped,
        {"n": COUNTS, "spend": MEANS},
        3,
        REGION
        | {"n": "int64", **{f"n_{end}": kind for end, kind in ENDS.items()}}
        | {"spend": "double", **{f"spend_{end}": kind for end, kind in ENDS.items()}},
    ),
    (whole, {"n": COUNTS, "spend": MEANS}, 2, LONG | {"value": "double", **ENDS}),
    (grouped, {"n": COUNTS, "h": BINS}, 9, REGION | LONG | {"value": "int64", **ENDS}),
    (grouped, {"n": COUNTS, "q": QUANTILES}, 9, REGION | LONG | {"value": "double", **ENDS, "rank_error": "double"}),
    (whole, {"n": COUNTS, "day": MEDIANS}, 2, LONG | {"value": "string", **ENDS, "rank_error": "double"}),
]


@pytest.mark.parametrize(("make", "answers", "rows", "schema"), SHAPES)
def test_columns_have_the_same_types_in_each_library(
    make: Callable[..., Release], answers: dict[str, Answer], rows: int, schema: dict[str, str]
) -> None:
    release = make(**answers)
    arrow, frame, polars = release.to_arrow(), release.to_pandas(), release.to_polars()
    assert {field.name: str(field.type) for field in arrow.schema} == schema
    assert arrow.num_rows == len(frame) == len(polars) == rows
    names = {"string": pl.String, "int64": pl.Int64, "double": pl.Float64, "date32[day]": pl.Date}
    assert dict(polars.schema) == {name: names[kind] for name, kind in schema.items()}
    texts = str(pd.Series(["a"]).dtype)
    kinds = {"string": texts, "int64": "int64", "double": "float64", "date32[day]": "object"}
    assert [str(dtype) for dtype in frame.dtypes] == [kinds[kind] for kind in schema.values()]
    assert polars.rows() == [tuple(row.values()) for row in arrow.to_pylist()]


def test_what_an_answer_does_not_have_is_missing() -> None:
    release = whole(n=COUNTS, q=QUANTILES)
    assert release.to_arrow()["error"].to_pylist() == [45.0, None, None]
    assert release.to_polars()["rank_error"].to_list() == [None, 429.058, 429.058]
    assert release.to_pandas()["upper"].isna().tolist() == [False, True, True]


def test_ends_of_intervals_are_within_the_range_of_the_answer() -> None:
    frame = grouped(mean=MEANS).to_pandas()
    assert frame["lower"].tolist() == [66.935846 - 24.195875, 0.512345 - 0.0416, 0.0]
    assert frame["upper"].tolist() == [66.935846 + 24.195875, 0.512345 + 0.0416, 500.0]


KEYS: list[tuple[list[Any], str]] = [
    (["a", None], "string"),
    ([2020, 2021, "other"], "string"),
    ([True, False, "other"], "string"),
    ([1, 2.5], "double"),
    ([1, 2], "int64"),
    ([True, False], "bool"),
]


@pytest.mark.parametrize(("groups", "kind"), KEYS)
def test_groups_of_several_types_are_texts_or_floats(groups: list[Any], kind: str) -> None:
    size = len(groups)
    answer = COUNTS._replace(values=[1] * size, errors=[2.0] * size)
    release = Release({"n": answer}, "key", groups, 0.95, PrivacyCost(1.0), None, "drop")
    assert str(release.to_arrow().schema.field("key").type) == kind
    assert release.to_polars()["key"].to_list() == release.to_arrow()["key"].to_pylist()
    shown = [line.split()[0] for line in repr(release).split("\n")[2:-2]]
    assert shown == list(map(str, groups))


COLUMNS_OF_KEYS: dict[str, tuple[Any, Any, str]] = {
    "texts in a list": (["a"] * 30 + ["b"], [], "string"),
    "texts of pandas": (pd.Series(["a"] * 30 + ["b"]), pd.Series([], dtype="str"), "string"),
    "texts of polars": (pl.Series(["a"] * 30), pl.Series([], dtype=pl.String), "string"),
    "texts of Arrow": (pa.array(["a"] * 30), pa.array([], pa.string()), "string"),
    "integers": (np.array([7] * 30), np.array([], np.int64), "int64"),
    "small integers": (np.array([7] * 30, np.uint8), np.array([], np.uint8), "uint64"),
    "integers of polars beside missing ones": (pl.Series([7] * 30 + [None]), pl.Series([], dtype=pl.Int64), "int64"),
    "floats": (np.array([0.5] * 30), np.array([], np.float32), "double"),
    "booleans": (np.array([True] * 30), np.array([], np.bool_), "bool"),
}


@pytest.mark.parametrize("kind", COLUMNS_OF_KEYS)
def test_keys_have_the_same_columns_whether_there_are_any(kind: str) -> None:
    column, empty, name = COLUMNS_OF_KEYS[kind]
    found, none = (Table({"key": one}).keys("key", epsilon=1e6, delta=1e-300) for one in (column, empty))
    assert (len(found["count"].labels), len(none["count"].labels)) == (1, 0)
    schema = {"value": name, "count": "int64", **ENDS}
    for release in (found, none):
        assert {field.name: str(field.type) for field in release.to_arrow().schema} == schema
    assert found.to_polars().schema == none.to_polars().schema
    assert found.to_pandas().dtypes.to_dict() == none.to_pandas().dtypes.to_dict()
    assert repr(none).split("\n")[1] == "value  count  error  lower  upper"


def test_integral_keys_of_floats_are_floats() -> None:
    for column in ([2.0] * 30, [2.5] * 30):
        released = Table({"key": np.array(column)}).keys("key", epsilon=1e6, delta=1e-300)
        assert str(released.to_arrow().schema.field("value").type) == "double"


def test_types_that_depend_on_answers_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_release, "_of_one_type", lambda column, empty: column)
    with pytest.raises(AssertionError):
        test_keys_have_the_same_columns_whether_there_are_any("texts in a list")
    with pytest.raises((TypeError, pa.ArrowInvalid, pa.ArrowTypeError)):
        whole(n=COUNTS, day=MEDIANS).to_arrow()


def test_no_column_takes_the_place_of_another() -> None:
    table, count = Table({"key": [1], "n_error": [1]}), queries.Count(epsilon=1.0)
    histogram = "key", queries.Histogram(domain=[1], epsilon=1.0)
    for columns in (
        lambda: table.release(error=count),
        lambda: table.release(value=histogram),
        lambda: table.release(n=count, n_lower=count),
        lambda: table.by("n_error", keys=[1]).release(n=count, m=count),
    ):
        with pytest.raises(ParameterError, match="must not name an answer or groups"):
            columns()
    assert len(table.by("key", keys=[1]).release(error=count, value=count).to_pandas().columns) == 9
    assert table.spent == PrivacyCost(2.0, 0.0, "add/remove")


# --- single answers


def test_a_single_answer_has_its_numbers() -> None:
    one, groups, parts = whole(n=COUNTS), grouped(n=COUNTS), whole(h=BINS)
    assert (one.value, one.error, one.lower, one.upper) == (1466, 45.0, 1421.0, 1511.0)
    assert (groups.value, groups.lower) == ([1466, 12, -3], [1421.0, -33.0, -48.0])
    assert (parts.value, parts.error) == ({"[0, 10)": 133, "[10, inf]": 2410}, [9.0, 9.0])
    assert (whole(q=QUANTILES).error, whole(q=QUANTILES).upper) == (None, None)


def test_one_of_several_answers_is_named() -> None:
    release = grouped(n=COUNTS, spend=MEANS)
    assert release["spend"] is MEANS
    with pytest.raises(KeyError, match="the answers are 'n', 'spend', got 'mean'"):
        release["mean"]
    with pytest.raises(ParameterError, match=r"several answers, 'n', 'spend': take one of them, as in release\[name\]"):
        _ = release.value


# --- charts


def bars_of(axes: Any) -> list[float]:
    return [patch.get_width() for patch in axes.patches]


def whiskers_of(axes: Any) -> list[list[float]]:
    return [[float(end) for end in line[:, 0]] for line in axes.collections[0].get_segments()]


def points_of(axes: Any) -> list[list[Any]]:
    return [list(line.get_xdata()) for line in axes.lines if line.get_marker() == "o"]


def rows_of(axes: Any) -> list[str]:
    """Return the names of the rows from the top."""
    labels = {tick: label.get_text() for tick, label in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)}
    return [labels[tick] for tick in sorted(labels, reverse=True)]


@pytest.fixture
def close() -> Iterator[None]:
    """Close the figures of a test."""
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="the extra `plot` is not installed")
    yield
    pyplot.close("all")


@pytest.mark.usefixtures("close")
def test_an_answer_is_drawn_as_bars_with_whiskers_in_the_order_of_the_groups() -> None:
    axes = grouped(mean=MEANS).plot()
    assert rows_of(axes) == REGIONS
    assert bars_of(axes)[:2] == MEANS.values[:2]
    assert math.isnan(bars_of(axes)[2])  # the interval is the whole range
    assert [patch.get_y() for patch in axes.patches] == sorted((patch.get_y() for patch in axes.patches), reverse=True)
    assert whiskers_of(axes) == [[*map(pytest.approx, ends)] for ends in zip(MEANS.lower, MEANS.upper, strict=True)]
    figure: Any = axes.figure
    assert figure.get_suptitle() == "mean of spend, by region"
    assert figure.get_supxlabel() == (
        "epsilon 0.5 (person: user, at most 3 rows); each answer within its error (whiskers) with a probability of 95 %"
    )
    assert (axes.get_xlabel(), axes.get_legend()) == ("mean of spend", None)


@pytest.mark.usefixtures("close")
def test_several_answers_by_group_share_the_names_of_the_groups() -> None:
    first = grouped(n=COUNTS, spend=MEANS, day=MEDIANS).plot()
    axes = first.figure.axes
    assert [one.get_xlabel().replace("\n", " ") for one in axes] == [
        "n: count of rows",
        "spend: mean of spend",
        "day: median of day (rank error: 429)",
    ]
    assert rows_of(first) == REGIONS
    assert [one.yaxis.get_tick_params()["labelleft"] for one in axes] == [True, False, False]
    assert (bars_of(axes[0]), bars_of(axes[1])[:2]) == (COUNTS.values, MEANS.values[:2])
    assert points_of(axes[2]) == [DAYS]
    assert len({one.get_position().y0 for one in axes}) == 1


@pytest.mark.usefixtures("close")
def test_answers_with_other_rows_stand_below_each_other() -> None:
    axes = whole(n=COUNTS, h=BINS, q=QUANTILES).plot().figure.axes
    assert [rows_of(one) for one in axes[:2]] == [[""], BINS.labels]
    assert [bars_of(one) for one in axes[:2]] == [[1466], [133, 2410]]
    assert axes[2].get_ylabel() == "q"
    assert points_of(axes[2]) == [[16.06912, 117.8234]]
    assert list(axes[2].lines[0].get_ydata()) == [0.1, 0.25]
    assert len({one.get_position().x0 for one in axes}) == 1


@pytest.mark.usefixtures("close")
def test_parts_of_groups_have_colours_or_rows_of_their_own() -> None:
    axes = grouped(h=BINS).plot()
    assert (rows_of(axes), bars_of(axes)) == (REGIONS, [133] * 3 + [2410] * 3)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == BINS.labels
    axes = grouped(q=QUANTILES).plot()
    assert points_of(axes) == [[16.06912] * 3, [117.8234] * 3]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["q 0.1", "q 0.25"]
    edges = [f"[{i}, {i + 1})" for i in range(7)]
    axes = grouped(h=BINS._replace(labels=edges, values=list(range(21)), errors=[9.0] * 21)).plot()
    assert rows_of(axes) == [f"{region}, {edge}" for region in REGIONS for edge in edges]
    assert bars_of(axes) == list(range(21))
    q = [i / 10 for i in range(1, 10)]
    axes = grouped(q=QUANTILES._replace(labels=q, values=list(range(27)))).plot()
    assert rows_of(axes) == REGIONS
    assert sorted(x for points in points_of(axes) for x in points) == list(range(27))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["q from 0.1 to 0.9"]


@pytest.mark.usefixtures("close")
def test_of_many_groups_the_first_are_drawn() -> None:
    shops = [f"shop {i}" for i in range(80)]
    answer = COUNTS._replace(values=list(range(80)), errors=[1.0] * 80)
    axes = Release({"n": answer}, "shop", shops, 0.95, PrivacyCost(1.0), None, "drop").plot()
    assert (rows_of(axes), bars_of(axes)) == (shops[:60], list(range(60)))
    assert axes.get_xlabel() == "count of rows (the first 60 of 80)"
    q = [i / 100 for i in range(1, 100)]
    axes = whole(q=QUANTILES._replace(labels=q, values=q)).plot()
    assert points_of(axes) == [q]


@pytest.mark.usefixtures("close")
def test_no_keys_are_an_empty_chart() -> None:
    none = Answer("keys of shop", "value", [], [], [], None, ALL)
    axes = Release({"count": none}, None, [], 0.95, PrivacyCost(1.0), None, "drop").plot()
    assert (bars_of(axes), rows_of(axes), axes.get_xlabel()) == ([], [], "keys of shop (none)")


@pytest.mark.usefixtures("close")
def test_a_chart_is_drawn_on_axes_or_written(tmp_path: Path) -> None:
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(ncols=2)
    assert grouped(mean=MEANS).plot(ax=right) is right
    assert (len(left.patches), len(right.patches)) == (0, 3)
    assert right.get_title(loc="left").replace("\n", " ") == "mean of spend, by region"
    assert "epsilon 0.5" in right.get_xlabel()
    assert figure.get_suptitle() == ""
    with pytest.raises(ParameterError, match="ax must be None for 2 answers, each of which has axes of its own"):
        grouped(n=COUNTS, spend=MEANS).plot(ax=left)
    grouped(n=COUNTS, spend=MEANS).plot(tmp_path / "chart.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["chart.svg"]


def texts_read_as_formulas(figure: Any) -> list[str]:
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text) if "$" in text.get_text() and text.get_parse_math()]


@pytest.mark.usefixtures("close")
def test_names_and_labels_are_text_and_no_markup() -> None:
    labels = ["$a$", "_x", "a\n\u202eb", "x" * 80]
    answer = Answer("histogram of $c$\n", "value", labels, [1, 2, 3, 4] * 4, [1.0] * 16, None, ALL)
    cost = PrivacyCost(1.0, 0.0, "add/remove", "$u$\n")
    release = Release({"n": answer}, "$by$", labels, 0.95, cost, 3, "drop")
    axes = release.plot()
    figure: Any = axes.figure
    figure.draw_without_rendering()
    shown = ["$a$", "_x", "a\\n\\u202eb", "x" * 50 + "..."]
    assert rows_of(axes) == shown
    assert [text.get_text() for text in axes.get_legend().get_texts()] == shown
    assert figure.get_suptitle() == "histogram of $c$\\n, by $by$"
    assert "person: $u$\\n" in figure.get_supxlabel()
    assert texts_read_as_formulas(figure) == []
    axes.set_ylabel("$a$")
    assert texts_read_as_formulas(figure) == ["$a$"]
    from matplotlib import pyplot

    figure, one = pyplot.subplots()
    release.plot(ax=one)
    assert texts_read_as_formulas(figure) == []


@pytest.mark.parametrize(
    ("unit", "kind"), [("W", "D"), ("D", "D"), ("h", "ms"), ("s", "ms"), ("ms", "ms"), ("us", "us")]
)
def test_times_of_numpy_are_read_by_all_libraries(unit: str, kind: str) -> None:
    bounds = (np.datetime64("2023-01-05", unit), np.datetime64("2025-01-02", unit))
    when = np.array(["2024-01-04"] * 9, f"datetime64[{unit}]")
    asked = Table({"when": when, "key": ["a"] * 9})
    release = asked.by("key", keys=["a", "b"], other=True).median("when", bounds=bounds, epsilon=1.0)
    assert release.to_arrow().column("median").type == (pa.date32() if kind == "D" else pa.timestamp(kind))
    assert release.to_polars()["median"].to_list() == release.to_arrow().column("median").to_pylist()
    assert release.to_pandas()["median"].tolist() == [pd.Timestamp(one) for one in release.value]


@pytest.mark.parametrize(
    ("keys", "labels"),
    [
        ([2**53 + 1, 2**53, 1.5], ["9007199254740993", "9007199254740992", "1.5"]),
        ([2**64, 1], ["18446744073709551616", "1"]),
        ([1, np.int64(2)], [1, 2]),
        ([1, 2.5], [1.0, 2.5]),
        ([True, np.bool_(False)], [True, False]),
    ],
)
def test_groups_have_names_of_one_type_that_differ(keys: list[Any], labels: list[Any]) -> None:
    column = [True] if isinstance(keys[0], bool) else [1]
    release = Table({"key": column}).by("key", keys=keys).count(epsilon=1.0)
    for found in (
        release.to_arrow()["key"].to_pylist(),
        release.to_polars()["key"].to_list(),
        list(release.to_pandas()["key"]),
    ):
        assert found == labels
        assert set(map(type, found)) <= {type(labels[0]), np.int64}
