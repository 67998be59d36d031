"""Sketches over texts: parameters, texts of every kind, estimates, and every input that cannot be used."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from refusals import refuses

from dpnoise import ParameterError, RandomnessError, local
from dpnoise.hazmat import ScriptedRng, SeededRng

KINDS = [local.CountMeanSketch, local.HadamardCountMeanSketch]
SKETCHES = [kind(epsilon=4.0, rows=16, width=64, seed=3) for kind in KINDS]
TEXTS = ["plum", "", "crème brûlée", "plum", "x" * 1000]


# --- Parameters ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_out_of_range(kind):
    def refused(message, **parameters):
        refuses(ParameterError, message, kind, **{"epsilon": 1.0, "rows": 4, "width": 16, **parameters})

    for width in (4, 24, 2**21):
        refused(f"width must be a power of two from 8 to 2**20, got {width}", width=width)
    refused(f"seed must be an integer from 0 to 2**32 - 1, got {2**32}", seed=2**32)
    refused("rows and width must be such that rows * width is at most 2**24, got rows = 33, ", rows=33, width=2**19)


@pytest.mark.parametrize("sketch", SKETCHES, ids=repr)
def test_a_sketch_is_a_value(sketch):
    assert (sketch.rows, sketch.width, sketch.seed, sketch.requested_epsilon) == (16, 64, 3, 4.0)
    assert 0.999 * 4.0 <= sketch.epsilon <= 4.0
    assert sketch != type(sketch)(epsilon=4.0, rows=16, width=64)
    assert not isinstance(sketch, local.FrequencyProtocol)


def test_sizes_of_reports():
    assert SKETCHES[0].report_bytes == 2 + 64 // 8
    assert [local.HadamardCountMeanSketch(epsilon=1.0, rows=r, width=8).report_bytes for r in (1, 16, 17)] == [1, 1, 2]
    assert local.HadamardCountMeanSketch(epsilon=1.0, rows=2**16, width=256).report_bytes == 4


# --- Texts ---------------------------------------------------------------------------------------------------------

SAME = [
    [text.encode() for text in TEXTS],
    tuple(TEXTS),
    np.array(TEXTS),
    np.array(TEXTS, object),
    pd.Series(TEXTS),
    pl.Series(TEXTS),
    pa.array(TEXTS),
    pa.array(TEXTS, pa.large_string()),
    pa.array(TEXTS, pa.string_view()),
    pa.array([text.encode() for text in TEXTS]),
    pa.array([text.encode() for text in TEXTS], pa.large_binary()),
    pa.array(["another", *TEXTS])[1:],
    pa.chunked_array([TEXTS[:2], [], TEXTS[2:]]),
]


@pytest.mark.parametrize("texts", SAME, ids=lambda texts: str(getattr(texts, "type", type(texts))))
@pytest.mark.parametrize("sketch", SKETCHES, ids=repr)
def test_the_same_texts_give_the_same_reports(sketch, texts):
    expected = sketch.perturb(TEXTS, rng=SeededRng(1))
    assert expected.shape == (5, sketch.report_bytes)
    assert np.array_equal(sketch.perturb(texts, rng=SeededRng(1)), expected)
    estimate = sketch.estimate(expected, texts)
    assert np.array_equal(estimate.counts, sketch.estimate(expected, TEXTS).counts)
    assert [text if isinstance(text, str) else text.decode() for text in estimate.candidates] == TEXTS


@pytest.mark.parametrize("texts", [[], (), np.array([], "U1"), pa.array([], pa.string()), pa.chunked_array([], "utf8")])
def test_no_texts_are_legal(texts):
    for sketch in SKETCHES:
        assert sketch.perturb(texts).shape == (0, sketch.report_bytes)
        assert sketch.estimate(sketch.perturb(["a"]), texts, simultaneous=True).counts.shape == (0,)


@pytest.mark.parametrize(
    ("texts", "kind", "message"),
    [
        ("plum", TypeError, "must be str or bytes, all of one type, in a list or an array, got str"),
        (b"plum", TypeError, "in a list or an array, got bytes"),
        (None, TypeError, "in a list or an array, got NoneType"),
        (7, TypeError, "in a list or an array, got int"),
        ([1, 2], TypeError, "all of one type, got int; fill or drop missing values first"),
        (["plum", None, float("nan")], TypeError, "all of one type, got NoneType, float; fill or drop missing values"),
        (["plum", b"pear"], TypeError, "all of one type, got both"),
        ([["plum"]], TypeError, "all of one type, got list"),
        (np.array([["plum"]]), ParameterError, "in one dimension, got shape (1, 1) and dtype str"),
        (np.array([b"plum"]), ParameterError, "in one dimension, got shape (1,) and dtype bytes"),
        (np.arange(3), TypeError, "all of one type, got int64"),
        (["\ud800 plum"], ParameterError, "must be Unicode text, without lone surrogates"),
        (pa.array(["plum", None]), ParameterError, "must have no missing values: fill or drop them first"),
        (pa.array([1, 2]), TypeError, "all of one type, got a column of type int64"),
    ],
)
def test_what_is_no_text_is_refused_and_not_shown(texts, kind, message):
    for sketch in SKETCHES:
        for name, call in {
            "values": lambda: sketch.perturb(texts, rng=ScriptedRng(b"")),  # noqa: B023
            "candidates": lambda: sketch.estimate(sketch.accumulator(), texts),  # noqa: B023
        }.items():
            with pytest.raises(kind, match=re.escape(message)) as caught:
                call()
            assert str(caught.value).startswith(f"{name} must ")
            assert "plum" not in str(caught.value)
            assert caught.value.__cause__ is None
            assert caught.value.__suppress_context__ or caught.value.__context__ is None


# --- Reports and estimates -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sketch", SKETCHES, ids=repr)
def test_out_and_threads(sketch):
    expected = sketch.perturb(TEXTS, rng=SeededRng(2))
    out = np.empty_like(expected)
    assert sketch.perturb(TEXTS, out=out, rng=SeededRng(2)) is out
    assert np.array_equal(out, expected)
    refuses(ParameterError, "out must have the shape", sketch.perturb, TEXTS, out=out[:-1])
    refuses(ParameterError, "threads must be None or a positive integer", sketch.perturb, TEXTS, threads=0)
    refuses(RandomnessError, "nothing was released", sketch.perturb, TEXTS, out=out, rng=ScriptedRng(bytes(4)))
    assert not out.any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_share_the_work_without_a_seam(kind, threads):
    sketch = kind(epsilon=8.0, rows=7, width=512)
    texts = ["plum"] * 150_000 + ["pear"] * 50_000
    accumulator = sketch.accumulator()
    accumulator.add(sketch.perturb(texts, threads=threads), threads=threads)
    assert (accumulator.n, accumulator.rejected) == (200_000, 0)
    estimate = sketch.estimate(accumulator, ["plum", "pear", "fig"])
    assert np.all(np.abs(estimate.counts - [150_000, 50_000, 0]) < 7 * estimate.standard_errors)


@pytest.mark.parametrize("sketch", SKETCHES, ids=repr)
def test_states_and_messages(sketch):
    reports = sketch.perturb(TEXTS * 20)
    accumulator = sketch.accumulator()
    accumulator.add_messages(sketch.messages(reports))
    again = local.Accumulator.from_bytes(accumulator.to_bytes())
    assert again == accumulator
    assert np.array_equal(sketch.estimate(again, ["plum"]).counts, sketch.estimate(reports, ["plum"]).counts)
    refuses(TypeError, f"use {type(sketch).__name__}.estimate(accumulator", accumulator.estimate)
    other = type(sketch)(epsilon=4.0, rows=16, width=64)
    refuses(ParameterError, "collected must be of", other.estimate, accumulator, ["plum"])
    refuses(ParameterError, "reports must have shape", sketch.estimate, reports[:, :-1], ["plum"])


@pytest.mark.parametrize("sketch", SKETCHES, ids=repr)
def test_an_estimate_is_a_table(sketch):
    reports = sketch.perturb(["plum"] * 5000 + ["pear"] * 1000)
    estimate = sketch.estimate(reports, ["plum", "pear", "fig"], level=0.9)
    wider = sketch.estimate(reports, ["plum", "pear", "fig"], level=0.9, simultaneous=True)
    assert np.all(wider.upper - wider.lower > estimate.upper - estimate.lower)
    assert (estimate.n, estimate.rejected, estimate.level, wider.simultaneous) == (6000, 0, 0.9, True)
    columns = ["value", "count", "standard_error", "lower", "upper"]
    assert estimate.to_arrow().column_names == columns
    assert estimate.to_arrow()["value"].to_pylist() == ["plum", "pear", "fig"]
    assert estimate.to_pandas()["count"].tolist() == estimate.to_polars()["count"].to_list() == estimate.counts.tolist()
    refuses(ValueError, "read-only", estimate.counts.fill, 0)
    for level in (0.0, 1.0, float("nan")):
        refuses(
            ParameterError, "level must be between 0 and 1, exclusive", sketch.estimate, reports, ["plum"], level=level
        )


@pytest.mark.parametrize("sketch", SKETCHES, ids=repr)
def test_no_reports_give_zeros(sketch):
    estimate = sketch.estimate(sketch.accumulator(), ["plum"])
    assert (estimate.counts.tolist(), estimate.standard_errors.tolist(), estimate.n) == ([0.0], [0.0], 0)


def test_texts_of_all_kinds_are_listed_as_candidates() -> None:
    sketch = local.CountMeanSketch(epsilon=4.0, rows=16, width=64)
    reports = sketch.perturb(pl.Series([b"a", b"b"]))
    assert len(reports) == 2

    class Exported:
        def __arrow_c_array__(self, schema: object = None) -> object:
            return pa.array(["a", "b"]).__arrow_c_array__(schema)

    assert sketch.estimate(reports, Exported()).candidates == ["a", "b"]
    for unordered in ({"a", "b"}, {"a": 1}):
        with pytest.raises(TypeError, match="in a list or an array, got"):
            sketch.estimate(reports, unordered)
