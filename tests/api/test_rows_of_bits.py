"""Rows of bits: every form of them gives the same reports, and what is refused is not shown."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from refusals import refuses

from dpnoise import ParameterError, local
from dpnoise.hazmat import ScriptedRng, SeededRng

LABELS = ["yes", "no", "unsure", "none"]
NUMBERED = local.OptimizedUnaryEncoding(k=4, epsilon=1.0)
LABELLED = local.OptimizedUnaryEncoding(domain=LABELS, epsilon=1.0)
MATRIX = np.eye(5, 4, dtype=np.uint8)[[1, 0, 4, 3, 2, 1]]  # the third row has no bit
PACKED = np.packbits(MATRIX, axis=1, bitorder="little")


def frame(dtype: str = "int64") -> pd.DataFrame:
    return pd.DataFrame(MATRIX, columns=LABELS)[["none", "yes", "unsure", "no"]].astype(dtype)


FORMS = {
    **{dtype: MATRIX.astype(dtype) for dtype in ("?", "u1", "i1", ">i2", "u4", "i8", "u8", "f2", "f4", ">f8")},
    "negative zeros": np.where(MATRIX, 1.0, -0.0),
    "lists": MATRIX.tolist(),
    "list of arrays": list(MATRIX),
    "by columns": np.asfortranarray(MATRIX.astype(float)),
    "strided": np.repeat(MATRIX, 2, axis=1)[:, ::2],
    "packed": PACKED,
    "packed, by columns": np.asfortranarray(PACKED),
    **{f"pandas {dtype}": frame(dtype) for dtype in ("bool", "uint8", "int64", "float64", "boolean", "Int64")},
    "pandas of several dtypes": frame().astype({"yes": bool, "no": float}),
    "polars": pl.from_pandas(frame()),
    "polars bool": pl.from_pandas(frame("bool")),
    "Arrow table": pa.Table.from_pandas(frame("bool")),
    "Arrow batch": pa.RecordBatch.from_pandas(frame()),
    "Arrow stream": pa.Table.from_pandas(frame()).to_reader(),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_agree(form):
    expected = LABELLED.perturb_encoded(PACKED, rng=SeededRng(1))
    assert np.array_equal(LABELLED.perturb_encoded(FORMS[form], rng=SeededRng(1)), expected)


@pytest.mark.parametrize("k", [2, 7, 8, 9, 15, 64, 100, 1001])
def test_bytes_are_the_same_as_values(k):
    protocol, values = local.SymmetricUnaryEncoding(k=k, epsilon=1.0), np.arange(2000) % k
    expected = protocol.perturb(values, rng=SeededRng(1))
    rows = protocol.bits(protocol.encode(values))
    for given in (rows, rows.astype(bool), rows.astype(np.int64)):
        assert np.array_equal(protocol.perturb_encoded(given, rng=SeededRng(1)), expected)
    out = np.empty_like(expected)
    assert protocol.perturb_encoded(rows, out=out, threads=2) is out
    for given in (rows[:0], rows[:0].astype(float), protocol.encode([])):
        assert protocol.perturb_encoded(given).shape == (0, protocol.report_bytes)


def test_one_row():
    expected = LABELLED.perturb_encoded([[0, 1, 0, 0]], rng=SeededRng(1))
    assert expected.shape == (1, 1)
    for row in ([0, 1, 0, 0], [False, True, False, False], np.array([0.0, 1.0, 0.0, 0.0])):
        assert np.array_equal(LABELLED.perturb_encoded(row, rng=SeededRng(1)), expected)
    # The items of a series have names, in whatever order.
    for column in (frame().iloc[0], pl.Series([0, 1, 0, 0])):
        refuses(ParameterError, "rows must have shape (n, 4), a column for", LABELLED.perturb_encoded, column)


def test_columns_are_found_by_name():
    by_numbers = pd.DataFrame(MATRIX)[[2, 0, 3, 1]]
    expected = NUMBERED.perturb_encoded(MATRIX, rng=SeededRng(1))
    for table in (by_numbers, by_numbers.rename(columns=str), pl.from_pandas(by_numbers.rename(columns=str))):
        assert np.array_equal(NUMBERED.perturb_encoded(table, rng=SeededRng(1)), expected)
    answers = local.OptimizedUnaryEncoding(domain=[True, False], epsilon=1.0)
    table = pd.get_dummies([True, False, False])  # whose columns are False and True
    assert np.array_equal(
        answers.perturb_encoded(table, rng=SeededRng(1)), answers.perturb([True, False, False], rng=SeededRng(1))
    )
    dummies = pd.get_dummies(pd.Series(["no", "yes"]))
    message = "rows must have a column for each label, 'unsure' is missing: reindex(columns=domain, fill_value=0)"
    refuses(ParameterError, message, LABELLED.perturb_encoded, dummies)
    assert LABELLED.perturb_encoded(dummies.reindex(columns=LABELLED.domain, fill_value=0)).shape == (2, 1)
    message = "rows must have columns named by the numbers from 0 to 3 alone"
    refuses(ParameterError, message, NUMBERED.perturb_encoded, frame())
    message = "rows must have one column for each label, got several for one of the domain ('yes', "
    refuses(ParameterError, message, LABELLED.perturb_encoded, frame()[["yes", "no", "unsure", "none", "yes"]])


def test_a_column_of_another_label_is_not_shown():
    """Dummies have the values of the data as names of columns."""
    for table in (pd.get_dummies(pd.Series([*LABELS, "secret"])), frame().assign(secret=0)):
        with pytest.raises(ParameterError) as caught:
            LABELLED.perturb_encoded(table)
        assert "secret" not in str(caught.value)
        assert str(caught.value).startswith("rows must have columns named by the domain ('yes', 'no', ")


@pytest.mark.parametrize("dtype", ["u1", "i1", "i8", "f4", "f8"])
def test_other_numbers_are_refused(dtype):
    rows = MATRIX.astype(dtype)
    for bad in {"u": [2, 255], "i": [2, -1], "f": [0.5, -1.0, 1e-40, np.nan, np.inf]}[rows.dtype.kind]:
        rows[3, 3] = bad
        message = "rows must be 0 or 1 in every column"
        refuses(ParameterError, message, LABELLED.perturb_encoded, rows, rng=ScriptedRng(b""))
        table = pd.DataFrame(rows, columns=LABELS)
        refuses(ParameterError, message, LABELLED.perturb_encoded, table, rng=ScriptedRng(b""))


def test_what_cannot_be_rows():
    def refused(kind, message, rows):
        refuses(kind, message, LABELLED.perturb_encoded, rows, rng=ScriptedRng(b""))

    refused(ParameterError, "rows must be 0 or 1 in every column", np.full((2, 4), 7, np.uint8).view(bool))
    refused(ParameterError, "rows must each have at most one of the first k = 4 bits set", np.ones((2, 4)))
    wanted = "rows must have shape (n, 4), a column for each value, or (n, 1) and dtype uint8 if they are packed, got "
    refused(ParameterError, wanted + "shape (4, 3) and dtype uint8", np.zeros((4, 3), "u1"))
    refused(ParameterError, wanted + "shape (4, 1) and dtype int64", np.zeros((4, 1), "i8"))
    refused(ParameterError, wanted + "shape (1, 4, 4) and dtype bool", np.zeros((1, 4, 4), "?"))
    refused(ParameterError, wanted + "shape (0,) and dtype float64", [])
    refused(ParameterError, "rows must be an array, got nested sequences of different lengths", [[1], [0, 1]])
    wanted = "rows must be 0 and 1, as bool, integers or floats, got dtype "
    refused(TypeError, wanted + "str", MATRIX.astype(str))
    refused(TypeError, wanted + "complex128", MATRIX.astype(complex))
    refused(TypeError, wanted + "object", None)
    refused(ParameterError, "rows must have no missing values", frame("Int64").mask(frame() == 1))
    refused(TypeError, "rows must be data that NumPy or pyarrow can read", pa.array([1, 0, 0, 0]))


@pytest.mark.parametrize("row", [[0, 1, 0, 0], np.array([0, 0, 0, 1], "u1")])
def test_a_row_among_values_is_noticed(row):
    message = "values may be a row of k = 4 bits, one of them set, and are taken for the values of 4 people"
    with pytest.warns(UserWarning, match=message) as caught:
        assert NUMBERED.perturb(row).shape == (4, 1)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for values in ([0, 0, 0, 0], [0, 1, 0, 1], [0, 2, 0, 0], [0, 1, 0], [0, 1, 0, 0, 0]):
            NUMBERED.perturb(values)
        local.GeneralizedRandomizedResponse(k=4, epsilon=1.0).perturb(row)
        local.OptimizedUnaryEncoding(domain=[0, 1, 2, 3], epsilon=1.0).perturb(row)


@pytest.mark.parametrize(
    ("protocol", "values"), [(NUMBERED, pd.array([1, None], "Int64")), (LABELLED, ["yes", None])], ids=["k", "domain"]
)
def test_missing_values_have_rows_without_a_bit(protocol, values):
    message = r"perturb_encoded takes a row without a bit for a missing value$"
    with pytest.raises(ParameterError, match=message):
        protocol.perturb(values)
    assert protocol.perturb_encoded([0, 0, 0, 0]).shape == (1, 1)


@pytest.mark.parametrize("protocol", [NUMBERED, LABELLED], ids=repr)
def test_rows_among_values_are_refused(protocol):
    for rows in (MATRIX, MATRIX.tolist(), [*MATRIX], frame(), pl.from_pandas(frame()), pa.Table.from_pandas(frame())):
        with pytest.raises((ParameterError, TypeError), match="; rows of bits are for perturb_encoded"):
            protocol.perturb(rows)
    with pytest.raises((ParameterError, TypeError)) as caught:
        protocol.perturb([0.5])
    assert "perturb_encoded" not in str(caught.value)
    with pytest.raises(TypeError, match=r"got int; rows of bits are for perturb_encoded$"):
        LABELLED.perturb([0, 1, 0, 0])  # what a function `encode` of one's own gives for one person
    other = local.GeneralizedRandomizedResponse(k=4, epsilon=1.0)
    with pytest.raises(ParameterError, match=r"values must be one-dimensional.* got shape \(6, 4\)$"):
        other.perturb(MATRIX)


@pytest.mark.parametrize(
    "protocol",
    [NUMBERED, LABELLED, local.ThresholdHistogramEncoding(k=9, epsilon=1.0), local.SubsetSelection(k=9, epsilon=1.0)],
    ids=repr,
)
def test_estimates_from_sums(protocol):
    reports = protocol.perturb(protocol.domain or [3, 0, 3, 2, 1])
    sums, expected = protocol.bits(reports).sum(axis=0), protocol.estimate(reports, level=0.9, post="norm")
    for given in (sums, sums.tolist(), pa.array(sums)):
        estimate = protocol.estimate_from_sums(given, len(reports), level=0.9, post="norm")
        assert np.array_equal(estimate.counts, expected.counts)
        assert np.array_equal(estimate.upper, expected.upper)
        assert (estimate.n, estimate.domain) == (expected.n, expected.domain)
    assert not protocol.estimate_from_sums(0 * sums, 0).counts.any()


def test_sums_that_cannot_be():
    def refused(kind, message, *arguments):
        refuses(kind, message, NUMBERED.estimate_from_sums, *arguments)

    refused(ParameterError, "sums must have shape (4,), one for each value, got (3,)", [1, 2, 3], 9)
    refused(ParameterError, "sums must be at most n = 9, the number of reports, got 10", [1, 2, 10, 3], 9)
    refused(ParameterError, "sums must be at least 0", [1, -2, 1, 3], 9)
    refused(TypeError, "sums must be integers, got dtype float64", [0.5, 1, 1, 1], 9)
    refused(ParameterError, "n must be an integer from 0 to 9223372036854775807, got -1", [0] * 4, -1)
    with pytest.warns(UserWarning, match="far more or fewer set bits"):
        NUMBERED.estimate_from_sums([1000] * 4, 1000)
    # Of longitudinal protocols, too.
    memo = local.ClientMemo.generate()
    flips = local.DBitFlip(k=9, epsilon=1.0, d=2)
    reports = flips.perturb([7], memo, question="colour")
    expected = flips.estimate(reports).counts
    assert np.array_equal(flips.estimate_from_sums(flips.bits(reports).sum(axis=0), 1).counts, expected)


@pytest.mark.parametrize(
    "protocol",
    [LABELLED, local.GeneralizedRandomizedResponse(domain=LABELS, epsilon=1.0)],
    ids=repr,
)
def test_lists_of_single_reports(protocol):
    reports = [protocol.perturb(label) for label in LABELS]
    expected = protocol.estimate(np.concatenate(reports)).counts
    for given in (reports, tuple(reports), [row[0] for row in reports], [row.tobytes() for row in reports]):
        assert np.array_equal(protocol.estimate(given).counts, expected)
    message = "reports of bytes must have 1 bytes each; messages are for add_messages"
    refuses(ParameterError, message, protocol.estimate, protocol.messages(reports))
    refuses(ParameterError, "reports must be an array", protocol.estimate, [b"1", reports[0]])


def test_lists_of_single_answers():
    protocol = local.RandomizedResponse(epsilon=1.0)
    reports = [protocol.perturb(answer) for answer in (True, False, True)]
    for given in (reports, [np.array([report]) for report in reports]):
        assert np.array_equal(protocol.estimate(given).counts, protocol.estimate(np.array(reports)).counts)


def test_estimates_of_rows_without_a_bit():
    """Chance: 1e-12 for each of four counts."""
    n = 100_000
    rows = MATRIX[np.arange(n) % 6]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate = LABELLED.estimate(LABELLED.perturb_encoded(rows))
    errors = (estimate.counts - rows.sum(axis=0)) / estimate.standard_errors
    assert np.all(np.abs(errors) < 7.2)
    assert abs(estimate.counts.sum() - n * 5 / 6) < 7.2 * np.linalg.norm(estimate.standard_errors)
