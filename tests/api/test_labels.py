"""Labels in, labels out: protocols and queries that have a domain, with data of every kind of container."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpnoise import ParameterError, _columns, local, plots, queries
from dpnoise._domain import Domain
from dpnoise.cli import main
from dpnoise.hazmat import SeededRng

TEXTS = ["red", "", "deep blue", "\N{HOT BEVERAGE}", "1"]
INTEGERS = [30, -7, 2**63 - 1, 0, 1]
BOOLEANS = [True, False]
DOMAINS: dict[str, list[Any]] = {"texts": TEXTS, "integers": INTEGERS, "booleans": BOOLEANS}

SECRET = "the patient of room 4711"

N = 40
MEMO = local.ClientMemo.generate(N)

MAKERS: dict[str, Callable[..., Any]] = {
    family.protocol.__name__: partial(
        family.protocol, **{one.name: one.example for one in family.parameters if one.required and one.name != "k"}
    )
    for family in local.FAMILIES.values()
    if "domain" in signature(family.protocol).parameters and family.protocol is not local.RandomizedResponse
}
MAKERS["UnaryEncoding, rounded"] = partial(local.UnaryEncoding, p=0.4, q=0.123)

OF_TEXTS: dict[str, Callable[[list[str]], Any]] = {
    "list": list,
    "tuple": tuple,
    "NumPy": np.array,
    "NumPy objects": lambda values: np.array(values, object),
    "NumPy texts as objects": lambda values: np.array([np.str_(value) for value in values], object),
    "NumPy strided": lambda values: np.repeat(np.array(values), 2)[::2],
    "pandas": pd.Series,
    "pandas objects": lambda values: pd.Series(values, dtype=object),
    "pandas of Arrow": lambda values: pd.Series(values, dtype=pd.ArrowDtype(pa.large_string())),
    "pandas of an Arrow dictionary": lambda values: pd.Series(
        pd.arrays.ArrowExtensionArray(pa.array(values).dictionary_encode())
    ),
    "pandas index": pd.Index,
    "pandas array": lambda values: pd.array(values, dtype="string"),
    "pandas categorical": lambda values: pd.Series(values, dtype="category"),
    "pandas categorical of other categories": lambda values: pd.Series(
        pd.Categorical(values, categories=[*reversed(TEXTS), "never"])
    ),
    "pandas Categorical": pd.Categorical,
    "pandas CategoricalIndex": pd.CategoricalIndex,
    "polars": pl.Series,
    "polars Categorical": lambda values: pl.Series(values, dtype=pl.Categorical),
    "polars Enum": lambda values: pl.Series(values, dtype=pl.Enum([*reversed(TEXTS), "never"])),
    "polars chunks": lambda values: pl.concat([pl.Series(values[:7]), pl.Series(values[7:])], rechunk=False),
    "Arrow": pa.array,
    "Arrow, large": lambda values: pa.array(values, pa.large_string()),
    "Arrow, view": lambda values: pa.array(values, pa.string_view()),
    "Arrow dictionary": lambda values: pa.array(values).dictionary_encode(),
    "Arrow chunks of dictionaries": lambda values: pa.chunked_array(
        [pa.array(values[:7]).dictionary_encode(), pa.array(values[7:]).dictionary_encode()]
    ),
    "Arrow sliced": lambda values: pa.array([values[0], *values])[1:],
}

OF_NUMBERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "NumPy": np.array,
    "pandas": pd.Series,
    "pandas nullable": lambda values: pd.Series(values).convert_dtypes(),
    "pandas categorical": lambda values: pd.Series(values, dtype="category"),
    "polars": pl.Series,
    "Arrow": pa.array,
    "Arrow dictionary": lambda values: pa.array(values).dictionary_encode(),
}

CONTAINERS = [
    *[pytest.param("texts", make, id=f"texts, {name}") for name, make in OF_TEXTS.items()],
    *[pytest.param("integers", make, id=f"integers, {name}") for name, make in OF_NUMBERS.items()],
    *[pytest.param("booleans", make, id=f"booleans, {name}") for name, make in OF_NUMBERS.items()],
]


def codes_of(labels: Sequence[Any]) -> np.ndarray:
    return np.arange(N) * 7 % len(labels)


def perturbed(protocol: Any, values: Any, **options: Any) -> np.ndarray:
    """Randomise with known words, so that equal inputs have equal reports."""
    if isinstance(protocol, local.LongitudinalProtocol):
        question = protocol.bare_digest.hex()  # people answer a question with one randomiser
        return protocol.perturb(values, MEMO, question=question, rng=SeededRng(5), **options)
    return protocol.perturb(values, rng=SeededRng(5), **options)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(("kind", "make"), CONTAINERS)
def test_reports_on_labels_are_those_on_their_numbers(name: str, kind: str, make: Callable[[list[Any]], Any]) -> None:
    labels = DOMAINS[kind]
    codes = codes_of(labels)
    values = make([labels[code] for code in codes])
    protocol = MAKERS[name](domain=labels)
    expected = perturbed(MAKERS[name](k=len(labels)), codes)
    assert np.array_equal(perturbed(protocol, values), expected)
    estimate = protocol.estimate(protocol.to_arrow(perturbed(protocol, values)))
    assert estimate.domain == tuple(labels)
    assert [estimate.count(label).count for label in labels] == estimate.counts.tolist()


@pytest.mark.parametrize(("kind", "make"), CONTAINERS)
def test_randomized_response_has_labels_for_no_and_yes(kind: str, make: Callable[[list[Any]], Any]) -> None:
    labels = DOMAINS[kind][:2]
    codes = codes_of(labels)
    protocol = local.RandomizedResponse(domain=labels, epsilon=1.0)
    reports = perturbed(protocol, make([labels[code] for code in codes]))
    assert np.array_equal(reports, perturbed(local.RandomizedResponse(epsilon=1.0), codes == 1))
    estimate = protocol.estimate(reports)
    assert estimate.domain == tuple(labels)
    assert estimate.count(labels[1]).count == estimate.counts[1]


@pytest.mark.parametrize("name", [name for name in MAKERS if "Unary" in name and "Long" not in name])
def test_encoding_takes_labels(name: str) -> None:
    values = [TEXTS[code] for code in codes_of(TEXTS)]
    assert np.array_equal(MAKERS[name](domain=TEXTS).encode(values), MAKERS[name](k=5).encode(codes_of(TEXTS)))


@pytest.mark.parametrize("labels", DOMAINS.values(), ids=DOMAINS)
def test_nobody_is_nobody(labels: list[Any]) -> None:
    protocol = local.OptimizedUnaryEncoding(domain=labels, epsilon=1.0)
    assert protocol.perturb([]).shape == (0, 1)
    assert protocol.estimate(protocol.perturb([])).n == 0


# --- what is out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", DOMAINS.values(), ids=DOMAINS)
def test_tables_have_the_labels(labels: list[Any]) -> None:
    protocol = local.GeneralizedRandomizedResponse(domain=labels, epsilon=1.0)
    estimate = protocol.estimate(protocol.perturb([labels[0]] * 9))
    frame = estimate.to_pandas()
    assert frame.index.tolist() == labels
    assert frame.index.name == "value"
    assert list(frame.columns) == ["count", "standard_error", "lower", "upper"]
    assert frame.loc[labels[1], "count"] == estimate.counts[1]
    for table in (estimate.to_polars(), pl.DataFrame(estimate)):
        assert table.columns[0] == "value"
        assert table["value"].to_list() == labels
        assert table["count"].to_list() == estimate.counts.tolist()
    assert estimate.to_arrow().column_names[0] == "value"
    assert estimate.to_arrow()["value"].to_pylist() == labels
    assert protocol.simulate([4] * len(labels)).domain == tuple(labels)


def test_a_picture_has_the_labels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(plots, "histogram", lambda labels, series, **_: drawn.append(labels))
    for labels in DOMAINS.values():
        protocol = local.OptimizedUnaryEncoding(domain=labels, epsilon=1.0)
        protocol.estimate(protocol.perturb(labels)).plot(tmp_path / "chart.png")
    assert drawn == [TEXTS, list(map(str, INTEGERS)), ["True", "False"]]


def test_counts_are_found_by_label_and_by_nothing_else() -> None:
    protocol = local.OptimizedUnaryEncoding(domain=[1, 0], epsilon=1.0)
    estimate = protocol.estimate(protocol.perturb([1, 0, 1]))
    found = estimate.count(np.int8(1))
    assert (found.count, found.standard_error) == (estimate.counts[0], estimate.standard_errors[0])
    assert (found.lower, found.upper) == (estimate.lower[0], estimate.upper[0])
    for other in (True, 1.0, "1", 2, None, [1]):
        with pytest.raises(ParameterError, match=r"^value must be a label of the domain \(1, 0\), got "):
            estimate.count(other)
    plain = local.OptimizedUnaryEncoding(k=2, epsilon=1.0).estimate(protocol.perturb([1]))
    assert plain.domain is None
    assert plain.count(1).count == plain.counts[1]
    with pytest.raises(ParameterError, match="value must be an integer from 0 to 1, got 2"):
        plain.count(2)


# --- what they are -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("labels", DOMAINS.values(), ids=DOMAINS)
def test_labels_are_part_of_the_specification(name: str, labels: list[Any]) -> None:
    labelled, plain = MAKERS[name](domain=labels), MAKERS[name](k=len(labels))
    assert '"labels":' not in plain.to_json()
    assert re.sub('"labels":"[0-9a-f]{32}",', "", labelled.to_json()) == plain.to_json()
    assert len({one.spec_id for one in (labelled, plain, MAKERS[name](domain=labels[::-1]))}) == 3
    assert labelled.bare_digest == plain.bare_digest == hashlib.sha256(plain.to_json().encode()).digest()
    assert labelled.k == len(labels)
    assert labelled.domain == tuple(labels)
    assert plain.domain is None
    assert labelled != plain
    assert labelled != MAKERS[name](domain=labels[::-1])
    same = MAKERS[name](domain=tuple(labels))
    assert labelled == same
    assert hash(labelled) == hash(same)
    for copy in (
        pickle.loads(pickle.dumps(labelled)),  # noqa: S301
        local.protocol_from_json(labelled.to_json(), domain=labels),
        type(plain).from_json(labelled.to_json(), domain=labels),
        plain.about(domain=labels),
        eval(repr(labelled), vars(local)),  # noqa: S307
    ):
        assert copy == labelled
        assert [type(label) for label in copy.domain] == [type(label) for label in labels]
    unnamed = local.protocol_from_json(labelled.to_json())
    assert (unnamed.domain, unnamed.to_json()) == (None, labelled.to_json())
    assert unnamed not in (labelled, plain)


def test_labels_of_two_kinds_are_never_the_same() -> None:
    made = [local.HadamardResponse(domain=labels, epsilon=1.0) for labels in ([1, 0], [True, False], ["1", "0"])]
    assert len(set(made)) == 3
    assert made[0] != made[1]


def test_a_long_domain_is_not_spelled_out() -> None:
    shown = repr(local.HadamardResponse(domain=range(1000, 2000), epsilon=1.0))
    assert shown.startswith("HadamardResponse(domain=(1000, 1001, ")
    assert shown.endswith("1019, ... (1000 in all)), epsilon=1.0)")


def test_labels_belong_to_protocols_that_count_values() -> None:
    tree = local.HierarchicalRange(k=5, epsilon=1.0)
    with pytest.raises(ParameterError, match="domain must not be given for a specification that has no labels"):
        local.protocol_from_json(tree.to_json(), domain=TEXTS)
    with pytest.raises(ParameterError, match="domain must be of 3 labels, got 5 labels"):
        local.LocalHashing(k=3, epsilon=1.0).about(domain=TEXTS)


def test_the_values_have_a_number_or_labels() -> None:
    for make in MAKERS.values():
        with pytest.raises(TypeError, match=r"^k must be an int, got None: give either k or domain$"):
            make()
        with pytest.raises(ParameterError, match=r"^either k or domain must be given, got both$"):
            make(k=5, domain=TEXTS)
    with pytest.raises(ParameterError, match=r"^domain must have 2 values, for no and yes, got 5$"):
        local.RandomizedResponse(domain=TEXTS, epsilon=1.0)


@pytest.mark.parametrize(
    "labels",
    [
        [3, -7, 0],  # a table
        [10**12, 5, -(2**63), 2**63 - 1],  # no table
        [2**63 - 1, 2**63 - 2],
        [-(2**63), 1 - 2**63],
        list(range(-200, 200, 7)),
    ],
    ids=str,
)
def test_integers_are_found_whatever_their_type(labels: list[int]) -> None:
    domain = Domain(labels)
    near = range(-300, 300)
    edges = {edge + step for edge in (*labels, -(2**63), 2**63, 2**64) for step in (-2, -1, 0, 1, 2)}
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        limits = np.iinfo(dtype)
        values = [value for value in (*near, *edges) if limits.min <= value <= limits.max]
        found = domain._numbers_of_integers(np.array(values, dtype)).tolist()
        assert found == [labels.index(value) if value in labels else -1 for value in values]


# --- domains -------------------------------------------------------------------------------------------------------

CATEGORIES: dict[str, Any] = {
    "list": ["b", "a", "c"],
    "NumPy": np.array(["b", "a", "c"]),
    "NumPy objects": np.array(["b", np.str_("a"), "c"], object),
    "pandas": pd.Series(["b", "a", "c"]),
    "pandas index": pd.Index(["b", "a", "c"]),
    "pandas CategoricalDtype": pd.CategoricalDtype(["b", "a", "c"]),
    "pandas Categorical": pd.Categorical(["a", "a", None], categories=["b", "a", "c"]),
    "pandas categorical": pd.Series(pd.Categorical(["c"], categories=["b", "a", "c"])),
    "polars": pl.Series(["b", "a", "c"]),
    "polars Enum": pl.Enum(["b", "a", "c"]),
    "polars series of Enum": pl.Series(["c", "c"], dtype=pl.Enum(["b", "a", "c"])),
    "Arrow": pa.array(["b", "a", "c"]),
    "Arrow dictionary": pa.array(["b", "b", "a", "c", "b", None]).dictionary_encode(),
    "Arrow chunks of dictionaries": pa.chunked_array([pa.array(["b", "a"]), pa.array(["a", "c"])]).dictionary_encode(),
}


@pytest.mark.parametrize("given", CATEGORIES.values(), ids=CATEGORIES)
def test_whatever_lists_labels_is_a_domain(given: Any) -> None:
    assert local.OptimizedUnaryEncoding(domain=given, epsilon=1.0).domain == ("b", "a", "c")
    histogram = queries.Histogram(domain=given, epsilon=1e9)
    assert histogram.domain == ("b", "a", "c")
    assert histogram.release(["c", "b", "c", "x", None]) == {"b": 1, "a": 0, "c": 2}


@pytest.mark.parametrize("given", [range(3), np.arange(3, dtype=np.uint8), pl.Series([0, 1, 2]), pa.array([0, 1, 2])])
def test_integers_become_those_of_python(given: Any) -> None:
    domain = local.OptimizedUnaryEncoding(domain=given, epsilon=1.0).domain
    assert domain == (0, 1, 2)
    assert {type(label) for label in domain or ()} == {int}


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        (["a"], ParameterError, "domain must have at least 2 values, got 1"),
        ([], ParameterError, "domain must have at least 2 values, got 0"),
        (["a", "b", "a"], ParameterError, "a value of domain must occur only once, got more of 'a'"),
        ([2**63, 0], ParameterError, "domain must be of integers that int64 can hold, got 9223372036854775808, 0"),
        (["\ud800", "a"], ParameterError, r"domain must be of texts that UTF-8 can hold, got '\ud800', 'a'"),
        (["a", 1], TypeError, "domain must be of texts, of integers or of booleans, got int and str"),
        ([1, True], TypeError, "domain must be of texts, of integers or of booleans, got bool and int"),
        ([1, 2.0], TypeError, "domain must be of texts, of integers or of booleans, got float and int"),
        ([0.5, float("nan")], TypeError, "domain must be of texts, of integers or of booleans, got float"),
        (["a", None], TypeError, "domain must be of texts, of integers or of booleans, got NoneType and str"),
        ([["a"], ["b"]], TypeError, "domain must be of texts, of integers or of booleans, got list"),
        ([b"a", b"b"], TypeError, "domain must be of texts, of integers or of booleans, got bytes"),
        ({"a", "b"}, TypeError, "domain must be a list, an array or a column of labels, got set"),
        ({"a": 1, "b": 2}, TypeError, "domain must be a list, an array or a column of labels, got dict"),
        ("ab", TypeError, "domain must be a list, an array or a column of labels, got str"),
        (np.array([["a", "b"]]), TypeError, "domain must be a list, an array or a column of labels, got ndarray"),
        (pd.CategoricalDtype(), TypeError, "domain must have categories, got a CategoricalDtype without"),
        (pl.Series(["a", "b"], dtype=pl.Categorical), TypeError, "domain must list its labels, and a polars Categ"),
        (pl.Categorical, TypeError, "domain must list its labels, and a polars Categorical does not"),
        (pa.dictionary(pa.int8(), pa.string()), TypeError, "domain must list its labels, and an Arrow type does not"),
        (pa.array(["a", "b", None]), ParameterError, "domain must have no missing values"),
    ],
)
def test_what_is_no_domain_is_refused(given: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        local.OptimizedUnaryEncoding(domain=given, epsilon=1.0)
    assert str(caught.value).startswith(message)


# --- values that are refused ---------------------------------------------------------------------------------------


def all_said(call: Callable[[], Any]) -> str:
    """Give all that an error says, of itself and of errors before it."""
    with pytest.raises((ParameterError, TypeError)) as caught:
        call()
    chain: list[BaseException] = [caught.value]
    while (
        before := chain[-1].__cause__ or (None if chain[-1].__suppress_context__ else chain[-1].__context__)
    ) is not None:
        chain.append(before)
    return "".join("".join(traceback.format_exception_only(error)) for error in chain)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    "container", [name for name in OF_TEXTS if "other categories" not in name and "Enum" not in name]
)
def test_a_value_that_is_no_label_is_not_told(name: str, container: str) -> None:
    values = [TEXTS[code] for code in codes_of(TEXTS)]
    values[17] = SECRET
    protocol = MAKERS[name](domain=TEXTS)
    out = np.full((N, protocol.report_bytes), 77, np.uint8)
    said = all_said(lambda: perturbed(protocol, OF_TEXTS[container](values), out=out))
    assert said.startswith("dpnoise.ParameterError: values must all be in the domain ('red', '', ")
    assert SECRET not in said
    assert "17" not in said
    assert (out == 77).all()


def test_a_message_that_tells_a_value_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def telling(values: Any, places: Any, name: str) -> Any:
        raise ParameterError(f"{name} must be labels, got {values[0]!r}")

    monkeypatch.setattr(_columns, "_places_of_items", telling)
    protocol = local.HadamardResponse(domain=TEXTS, epsilon=1.0)
    assert SECRET in all_said(lambda: protocol.perturb([SECRET]))

    def hiding(values: Any, places: Any, name: str) -> Any:
        try:
            raise KeyError(values[0])
        except KeyError:
            raise ParameterError(f"{name} must be labels")  # noqa: B904 # the fault that is planted

    monkeypatch.setattr(_columns, "_places_of_items", hiding)
    assert SECRET in all_said(lambda: protocol.perturb([SECRET]))


@pytest.mark.parametrize(
    "make",
    [
        list,
        lambda values: np.array(values, object),
        pd.Series,
        lambda values: pd.Series(values, dtype="category"),
        lambda values: pd.Series(values, dtype=object),
        lambda values: pd.array(values, dtype="string"),
        pl.Series,
        lambda values: pl.Series(values, dtype=pl.Categorical),
        pa.array,
        lambda values: pa.array(values).dictionary_encode(),
    ],
)
def test_missing_values_are_refused(make: Callable[[list[Any]], Any]) -> None:
    protocol = local.OptimizedUnaryEncoding(domain=TEXTS, epsilon=1.0)
    said = all_said(lambda: protocol.perturb(make(["red", None, SECRET])))
    assert said == (
        "dpnoise.ParameterError: values must have no missing values: fill or drop them first; perturb_encoded takes a "
        "row without a bit for a missing value\n"
    )


@pytest.mark.parametrize(
    ("labels", "values", "message"),
    [
        (TEXTS, [1, 1], "values must be texts, as the labels of the domain are, got int"),
        (TEXTS, ["red", True], "values must be texts, as the labels of the domain are, got bool"),
        (TEXTS, [b"red"], "values must be texts, as the labels of the domain are, got bytes"),
        (TEXTS, [["red"]], "values must be texts, as the labels of the domain are, got list"),
        (TEXTS, np.arange(2), "values must be texts, as the labels of the domain are, got int"),
        (TEXTS, pd.Series([1, 0]), "values must be texts, as the labels of the domain are, got int"),
        (TEXTS, pd.Series([1, 0], dtype="category"), "the categories of values must be texts, as the labels of the do"),
        (TEXTS, pl.Series([1, 0]), "values must be texts, as the labels of the domain are, got Int64"),
        (TEXTS, pa.array([1, 0]), "values must be texts, as the labels of the domain are, got a column of type int64"),
        (TEXTS, b"red", "values must be a NumPy array, list, "),
        (TEXTS, 1, "values must be texts, as the labels of the domain are, got int"),
        (TEXTS, {"red"}, "values must be a NumPy array, list, "),
        (INTEGERS, [True, False], "values must be integers, as the labels of the domain are, got bool"),
        (INTEGERS, True, "values must be integers, as the labels of the domain are, got bool"),
        (INTEGERS, "1", "values must be integers, got dtype str"),
        (INTEGERS, [1, True], "values must be integers, as the labels of the domain are, got bool"),
        (INTEGERS, np.array([True]), "values must be integers, got dtype bool"),
        (INTEGERS, [1.0, 0.0], "values must be integers, got dtype float64"),
        (INTEGERS, pl.Series([1.0]), "values must be integers, got dtype float64"),
        (INTEGERS, ["1"], "values must be integers, got dtype str"),
        (BOOLEANS, [1, 0], "values must be booleans, got dtype int64"),
        (BOOLEANS, ["true"], "values must be booleans, got dtype str"),
    ],
)
def test_values_of_another_kind_are_refused(labels: list[Any], values: Any, message: str) -> None:
    protocol = local.OptimizedUnaryEncoding(domain=labels, epsilon=1.0)
    with pytest.raises(TypeError) as caught:
        protocol.perturb(values)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("make", OF_NUMBERS.values(), ids=OF_NUMBERS)
def test_an_integer_that_is_no_label_is_not_told(make: Callable[[list[Any]], Any]) -> None:
    for secret in (4711, -4711, 31):
        said = all_said(
            lambda secret=secret: local.LocalHashing(domain=INTEGERS, epsilon=1.0).perturb(make([0, secret]))
        )
        assert said.startswith("dpnoise.ParameterError: values must all be in the domain (30, ")
        assert "4711" not in said
        assert "31" not in said


def test_tables_of_one_column_are_that_column() -> None:
    protocol = local.OptimizedUnaryEncoding(domain=TEXTS, epsilon=1.0)
    expected = protocol.perturb(["red"], rng=SeededRng(1))
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        assert np.array_equal(protocol.perturb(make({"colour": ["red"]}), rng=SeededRng(1)), expected)
        with pytest.raises(
            ParameterError, match=r"^values must be a single column, got a table of 2 columns: pass one"
        ):
            protocol.perturb(make({"colour": ["red"], "other": ["red"]}))


@pytest.mark.parametrize("container", ["pandas categorical", "pandas Categorical", "polars Categorical", "polars Enum",
                                       "Arrow dictionary", "pandas of Arrow", "polars", "Arrow"])  # fmt: skip
def test_columns_are_looked_up_without_a_loop(container: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[int] = []
    one_by_one = _columns._places_of_items

    def counting(values: Any, places: Any, name: str) -> Any:
        looked_up.append(len(values))
        return one_by_one(values, places, name)

    monkeypatch.setattr(_columns, "_places_of_items", counting)
    protocol = local.HadamardResponse(domain=TEXTS, epsilon=1.0)
    protocol.perturb(OF_TEXTS[container](TEXTS * 1000))
    assert sum(looked_up) <= len(TEXTS)  # the categories alone
    protocol.perturb(TEXTS * 1000)
    assert sum(looked_up) >= 5000


# --- accumulators --------------------------------------------------------------------------------------------------


def test_reports_are_counted_with_those_of_the_same_labels_alone() -> None:
    plain = local.OptimizedUnaryEncoding(k=5, epsilon=1.0)
    protocol = plain.about(domain=TEXTS)
    total = protocol.accumulator()
    total.add(protocol.to_arrow(protocol.perturb(["red"])))
    total.add(protocol.perturb(["red"]))
    total.merge(protocol.accumulator())
    total.merge(local.Accumulator.from_bytes(total.to_bytes()))
    assert total.n == 4
    assert total.protocol == protocol
    assert total.estimate().domain == tuple(TEXTS)
    copy = pickle.loads(pickle.dumps(total))  # noqa: S301
    assert copy == total
    assert copy.protocol == protocol
    for other, value, difference in (
        (plain.about(domain=TEXTS[::-1]), "red", r"about other labels \([0-9a-f]{32}\)"),
        (plain, 0, "without labels"),
    ):
        batch = other.to_arrow(other.perturb([value]))
        for refused, name in (
            (lambda batch=batch: total.add(batch), "reports"),
            (lambda other=other: total.merge(other.accumulator()), "other"),
            (lambda other=other: protocol.estimate(other.accumulator()), "collected"),
        ):
            with pytest.raises(ParameterError, match=f"^{name} must be of the same collection, got one {difference}$"):
                refused()
        assert total.n == 4
        assert other.accumulator() != protocol.accumulator()


def test_an_estimate_has_the_labels_of_whoever_has_some() -> None:
    labelled = local.RandomizedResponse(domain=["no", "yes"], epsilon=1.0)
    unnamed = local.protocol_from_json(labelled.to_json())
    collected = labelled.accumulator()
    collected.add(labelled.perturb(["no", "yes"]))
    assert labelled.estimate(local.Accumulator.from_bytes(collected.to_bytes())).domain == ("no", "yes")
    assert unnamed.estimate(collected).domain is None
    assert unnamed.estimate(collected).counts.tolist() == labelled.estimate(collected).counts.tolist()


@pytest.mark.parametrize("metadata", [b"{", b'{"a": 1}', b"[1, 2, 3, 4, 5]", b'["a"]', b"\xff"])
def test_labels_that_cannot_be_read_are_refused(metadata: bytes, tmp_path: Path) -> None:
    protocol = local.OptimizedUnaryEncoding(domain=TEXTS, epsilon=1.0)
    batch = protocol.to_arrow(protocol.perturb(TEXTS))
    damaged = batch.replace_schema_metadata({**batch.schema.metadata, b"dpnoise.domain": metadata})
    pq.write_table(pa.Table.from_batches([damaged]), tmp_path / "reports.parquet")
    with pytest.raises(ParameterError, match=r"cannot be used: the metadata 'dpnoise\.domain' cannot be used: "):
        protocol.accumulator().add_parquet(tmp_path / "reports.parquet")


# --- files and the command line ------------------------------------------------------------------------------------


def command(*arguments: object) -> int:
    return main(list(map(str, arguments)))


@pytest.mark.parametrize(("kind", "values"), DOMAINS.items())
def test_the_command_line_and_the_library_write_the_same_metadata(kind: str, values: list[Any], tmp_path: Path) -> None:
    protocol = local.GeneralizedRandomizedResponse(domain=values, epsilon=2.0)
    names = {"texts": TEXTS, "integers": list(map(str, INTEGERS)), "booleans": ["true", "false"]}[kind]
    source, theirs, ours = tmp_path / "in.parquet", tmp_path / "theirs.parquet", tmp_path / "ours.parquet"
    column = pa.array([values[code] for code in codes_of(values)])
    pq.write_table(pa.table({"colour": column}), source)
    (tmp_path / "domain.txt").write_text("\n".join(names) + "\n")
    options = ["--column", "colour", "--protocol", "grr", "--epsilon", 2.0, "--domain-file", tmp_path / "domain.txt"]
    assert command("perturb", source, *options, "-o", theirs) == 0
    batch = protocol.to_arrow(protocol.perturb(column))
    pq.write_table(pa.Table.from_batches([batch]), ours)

    found = pq.read_schema(theirs).metadata
    assert found.pop(b"dpnoise.file")
    assert found == batch.schema.metadata
    assert found[b"dpnoise.domain"] == json.dumps(names, ensure_ascii=False).encode()
    assert found[b"dpnoise.protocol"] == protocol.to_json().encode()

    total = protocol.accumulator()
    total.add_parquet(theirs)
    total.add_parquet(ours)
    assert total.n == 2 * N
    answer = tmp_path / "answer.json"
    assert command("estimate", theirs, ours, "-o", answer) == 0
    rows = json.loads(answer.read_text())["estimates"]
    assert [row["value"] for row in rows] == names
    assert [row["count"] for row in rows] == total.estimate().counts.tolist()

    other = local.GeneralizedRandomizedResponse(domain=values[::-1], epsilon=2.0)
    with pytest.raises(ParameterError, match=r"^reports must be of the same collection, got one about other labels"):
        other.accumulator().add_parquet(theirs)


# --- histograms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", OF_TEXTS.values(), ids=OF_TEXTS)
def test_a_histogram_counts_labels_in_any_container(make: Callable[[list[str]], Any]) -> None:
    histogram = queries.Histogram(domain=["red", "1", "unheard of"], epsilon=1e9)
    values = ["red", "1", "", "red", "deep blue", "red", "red", "red"]
    assert list(histogram.release(make(values)).items()) == [("red", 5), ("1", 1), ("unheard of", 0)]
