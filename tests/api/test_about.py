"""What reports are about: labels, bounds, question and period are part of a specification, and nothing else is."""

from __future__ import annotations

import hashlib
import json
import math
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from local_families import EXAMPLES, perturbed, values_for
from refusals import refuses

from dpnoise import ParameterError, local
from dpnoise.hazmat import SeededRng

COLOURS = ["red", "green", "blue"]
SURVEY = local.OptimizedUnaryEncoding(domain=COLOURS, epsilon=2.0)
WEEK = SURVEY.about(question="favourite colour", period="2026-W48")
AGE = local.DuchiMean(epsilon=1.0).about(bounds=(0, 100), question="age in years")
SEVERAL = [
    scheme(
        attributes={
            "age": local.DuchiMean(epsilon=1.0).about(bounds=(0, 100)),
            "colour": SURVEY,
            "smokes": local.RandomizedResponse(epsilon=1.0),
        }
    )
    for scheme in (local.Sampled, local.Split)
]
ABOUT = {"question": "what, of whom?", "period": "2026-W48"}


def named(protocol: Any) -> dict[str, Any]:
    """Give the names that a repr is made of."""
    return {**vars(local), type(protocol).__name__: type(protocol)}


def fields(protocol: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(protocol.to_json())
    return found


# --- specifications ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bare", [*EXAMPLES.values(), *SEVERAL], ids=repr)
def test_every_protocol_may_be_about_something(bare: Any) -> None:
    assert (bare.question, bare.period) == (None, None)
    protocol = bare.about(**ABOUT)
    assert type(protocol) is type(bare)
    assert (protocol.question, protocol.period) == tuple(ABOUT.values())
    assert fields(protocol) == fields(bare) | ABOUT
    assert protocol.bare_digest == bare.bare_digest
    assert len({one.spec_id for one in (bare, protocol, bare.about(question="?"), bare.about(period="2026"))}) == 4
    assert protocol.about(period="2026-W49").question == ABOUT["question"]
    assert protocol.about() == protocol != bare
    for name in ("epsilon", "delta", "cost", "report_bytes", "counter_bytes"):
        assert getattr(protocol, name) == getattr(bare, name)
    for copy in (
        eval(repr(protocol), named(protocol)),  # noqa: S307
        pickle.loads(pickle.dumps(protocol)),  # noqa: S301
        local.Specification.from_json(protocol.to_document()),
        type(protocol).from_json(protocol.to_document()),
        bare.about(question=ABOUT["question"]).about(period=ABOUT["period"]),
        bare.about(question="other", period="other").about(**ABOUT),
    ):
        assert (copy, hash(copy), copy.to_json()) == (protocol, hash(protocol), protocol.to_json())
        assert copy.to_document() == protocol.to_document()


@pytest.mark.parametrize("name", EXAMPLES)
def test_reports_do_not_depend_on_what_they_are_about(name: str) -> None:
    bare = EXAMPLES[name]
    protocol, values, memo = bare.about(period="2026-W48"), values_for(bare, 20), local.ClientMemo.generate(20)
    one, other = (perturbed(each, values, memo, rng=SeededRng(3)) for each in (bare, protocol))
    np.testing.assert_array_equal(one, other)
    accumulator = protocol.accumulator()
    accumulator.add_messages(bare.messages(one))
    assert (accumulator.n, accumulator.rejected_reasons["wrong header"]) == (0, 20)
    accumulator.add_messages(protocol.messages(one))
    assert accumulator.n == 20


def test_the_ids_of_the_design_are_those_of_this_release() -> None:
    text = (
        '{"epsilon":2.0,"k":3,"labels":"a7cfed5396f96b307227eb5d7fb14c82","p":2048,"period":"2026-W48","planes":12,'
        '"protocol":"optimized_unary_encoding","q":489,"question":"favourite colour","version":1}'
    )
    assert (WEEK.to_json(), len(text), WEEK.spec_id) == (text, 194, "d1b43041022344b7")
    assert WEEK.about(period="2026-W49").spec_id == "bf2af79b64406ddd"
    bare = local.OptimizedUnaryEncoding(k=3, epsilon=2.0)
    assert bare.spec_id == "ea3e7c52e1fa2b7b"
    assert WEEK.bare_digest == bare.bare_digest == hashlib.sha256(bare.to_json().encode()).digest()
    assert fields(AGE)["labels"] == "892dd2e163a3e49ca8d716e31f8a0208"


def test_labels_are_told_apart_by_text_and_order() -> None:
    domains = [COLOURS, ["green", "red", "blue"], ["yes", "no", "unsure"], ["red,", "green", "blue"], ["1", "2", "3"]]
    made = [SURVEY.about(domain=domain) for domain in (*domains, [1, 2, 3])]
    assert [len({one.spec_id for one in made}), len(set(made))] == [5, 6]  # 1 and "1" are one text
    assert [one.k for one in made] == [3] * 6
    assert SURVEY.about(domain=COLOURS) == SURVEY


def test_text_is_shown_where_labels_are_not_known() -> None:
    unnamed = local.protocol_from_json(WEEK.to_json())
    assert unnamed.domain is None
    assert unnamed != WEEK
    assert repr(unnamed) == f"OptimizedUnaryEncoding.from_json({WEEK.to_json()!r})"
    assert eval(repr(unnamed), vars(local)) == unnamed  # noqa: S307
    assert pickle.loads(pickle.dumps(unnamed)) == unnamed  # noqa: S301
    assert unnamed.about(period="2026-W49").to_json() == WEEK.about(period="2026-W49").to_json()
    assert unnamed.to_document() == WEEK.to_json()


@pytest.mark.parametrize("protocol", [WEEK, AGE, *SEVERAL], ids=repr)
def test_texts_that_could_be_taken_for_others_are_refused(protocol: Any) -> None:
    for name, most in (("question", 255), ("period", 63)):
        for text in ("", " a", "a ", "a\nb", "a\u200bb", "\ufeffa", "a\u202eb", "a\U000e0041", "x" * (most + 1)):
            message = f"{name} must be of 1 to {most} bytes of UTF-8, without a space at either end and without charac"
            refuses(ParameterError, message, protocol.about, **{name: text})
        refuses(ParameterError, "in the normal form", protocol.about, **{name: "cafe\u0301"})
        refuses(ParameterError, "without lone surrogates", protocol.about, **{name: "\ud800"})
        refuses(TypeError, f"{name} must be a str, got int", protocol.about, **{name: 48})
        for text in ("x" * most, "caf\u00e9", "a b", "\u0645\u06cc\u200c\u062e", "\N{HOT BEVERAGE}"):
            assert getattr(protocol.about(**{name: text}), name) == text
    refuses(TypeError, "takes", protocol.about, week="2026-W48")
    with pytest.raises(TypeError):
        protocol.about("question")


def test_what_values_stand_for_must_fit_the_protocol() -> None:
    refuses(ParameterError, "domain must be of 3 labels, got 2 labels", SURVEY.about, domain=["a", "b"])
    refuses(ParameterError, "a value of domain must occur only once", SURVEY.about, domain=["a", "b", "a"])
    for bounds in ((1, 0), (1, 1), (0, float("inf")), (float("nan"), 1)):
        refuses(ParameterError, "bounds must be two finite numbers, the lower one first", AGE.about, bounds=bounds)
    refuses(TypeError, "domain", AGE.about, domain=["a", "b"])
    refuses(TypeError, "bounds", SURVEY.about, bounds=(0, 1))
    refuses(TypeError, "domain", SEVERAL[0].about, domain={"colour": COLOURS})


def test_attributes_have_no_question_of_their_own() -> None:
    for about in (WEEK, SURVEY.about(period="2026"), AGE):
        message = "attributes['a'] must have no question and no period, which all attributes together have"
        refuses(ParameterError, message, local.Split, attributes={"a": about, "b": SURVEY})
    unnamed = local.protocol_from_json(SURVEY.to_json())
    message = "attributes['a'] must have the labels of its specification"
    refuses(ParameterError, message, local.Split, attributes={"a": unnamed, "b": SURVEY})


# --- documents -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [WEEK, AGE, *SEVERAL, SEVERAL[0].about(**ABOUT)], ids=repr)
def test_a_document_may_be_written_again(protocol: Any) -> None:
    document = protocol.to_document()
    entries = json.loads(document)
    assert entries.keys() == {"dpnoise.domain", "dpnoise.protocol"}
    assert entries["dpnoise.protocol"] == protocol.to_json()
    for again in (
        document,
        json.dumps(entries),
        json.dumps(entries, indent=2),
        json.dumps(dict(reversed(entries.items())), ensure_ascii=True),
        f"\r\n\t{json.dumps(entries, separators=(',', ':'), ensure_ascii=False)} \n",
    ):
        for read in (local.Specification, type(protocol)):
            assert read.from_json(again) == protocol
    if isinstance(protocol, local.Protocol):
        assert local.protocol_from_json(document) == protocol


def test_labels_of_a_document_are_texts() -> None:
    assert local.protocol_from_json(SURVEY.about(domain=[10, 20, 30]).to_document()).domain == ("10", "20", "30")
    yes = local.RandomizedResponse(domain=[False, True], epsilon=1.0)
    assert local.protocol_from_json(yes.to_document()).domain == ("false", "true")
    assert local.protocol_from_json(yes.to_document(), domain=[False, True]) == yes


def changed(of: Any, **entries: Any) -> str:
    """Give a document with other entries, or without those that are None."""
    document = {**json.loads(of.to_document()), **{f"dpnoise.{name}": one for name, one in entries.items()}}
    return json.dumps({name: entry for name, entry in document.items() if entry is not None})


NOT_THE_LABELS = "domain must have the labels of the specification, in their order"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (changed(WEEK, domain=["green", "red", "blue"]), NOT_THE_LABELS),
        (changed(WEEK, domain=["red", "green", "Blue"]), NOT_THE_LABELS),
        (changed(WEEK, domain=["red", "green"]), "domain must be of 3 labels, got 2 labels"),
        (changed(WEEK, domain=["red", "red", "red"]), 'domain must be of different labels, got "red" twice'),
        (changed(WEEK, domain=[0, 1]), "bounds must be None for"),
        (changed(WEEK, domain=[0, 1, 2]), "a domain has other values than texts"),
        (changed(WEEK, domain=[True, False]), "a value is neither a text, a number, a list nor an object"),
        (changed(WEEK, domain={"colour": COLOURS}), "domain must be of one attribute, got labels by attribute"),
        (changed(WEEK, domain="red"), "a domain is no list"),
        (changed(WEEK, domain=None), '"dpnoise.domain" is missing'),
        (changed(WEEK, protocol=None), '"dpnoise.protocol" is missing'),
        (changed(WEEK, protocol=SURVEY.about(domain=["a", "b", "c"]).to_json()), NOT_THE_LABELS),
        (changed(WEEK, protocol=local.OptimizedUnaryEncoding(k=3, epsilon=2.0).to_json()), "that has no labels"),
        (changed(WEEK, protocol=fields(WEEK)), "is unknown, or of another kind"),
        (changed(WEEK, protocol=WEEK.to_document()), "not a protocol specification"),
        (changed(WEEK, normalization="NFC"), 'the field "dpnoise.normalization" is unknown'),
        (changed(WEEK)[:-1] + ', "dpnoise.domain": []}', '"dpnoise.domain" is there twice'),
        (changed(WEEK)[:-1], "a comma or an end is missing"),
        (changed(WEEK) + "]", "trailing characters"),
        (changed(WEEK, domain=[[[[]]]]), "too many objects and lists in one another"),
        (changed(AGE, domain=[0, 99]), "bounds must be those of the specification"),
        (changed(AGE, domain=[100, 0]), "bounds must be two finite numbers, the lower one first"),
        (changed(AGE, domain=["0.0", "100.0"]), "domain must be None for"),
        (changed(SEVERAL[0], domain={"colour": COLOURS}), NOT_THE_LABELS),
        (changed(SEVERAL[0], domain={"colour": COLOURS, "age": [0, 99]}), NOT_THE_LABELS),
        (changed(SEVERAL[0], domain={"colour": COLOURS, "age": [0, 100], "smokes": ["no", "yes"]}), NOT_THE_LABELS),
        (changed(SEVERAL[0], domain={"colour": COLOURS, "height": [0, 100]}), "height"),
        (changed(SEVERAL[0], domain={"colour": COLOURS[:2], "age": [0, 100]}), 'of 3 labels for "colour"'),
        (changed(SEVERAL[0], domain=COLOURS), "domain must be labels by the names of attributes, got one list"),
    ],
)
def test_a_document_that_contradicts_itself_is_refused(document: str, message: str) -> None:
    refuses(ParameterError, message, local.Specification.from_json, document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (WEEK.to_json().replace("a7cf", "A7CF"), "labels must be 32 hexadecimal digits"),
        (WEEK.to_json().replace("a7cf", ""), "labels must be 32 hexadecimal digits"),
        (WEEK.to_json().replace("a7cf", "+7cf"), "labels must be 32 hexadecimal digits"),
        (WEEK.to_json().replace('"labels":"a7cfed5396f96b307227eb5d7fb14c82"', '"labels":7'), '"labels" is not text'),
        (WEEK.to_json().replace("favourite", "favourite\\u0020"), "must be exactly as to_json gave them"),
        (WEEK.to_json().replace("favourite", "favo\\u200burite"), "characters that are not seen"),
        (WEEK.to_json().replace("favourite colour", " "), "without a space at either end"),
        (WEEK.to_json().replace("2026-W48", ""), "period must be of 1 to 63 bytes"),
        (WEEK.to_json().replace('"period"', '"perjod"'), "perjod"),
        (WEEK.to_json().replace('"p":2048,', '"p":2048,"period":"a",'), "must be exactly as to_json gave them"),
        (local.SquareWave(k=4, epsilon=1.0).to_json().replace('"planes"', f'"labels":"{"0" * 32}","planes"'),
         'so it has no "labels"'),
    ],
)  # fmt: skip
def test_a_specification_that_says_too_much_is_refused(text: str, message: str) -> None:
    refuses(ParameterError, message, local.Specification.from_json, text)


def test_a_domain_beside_a_document_must_be_the_same() -> None:
    for text in (WEEK.to_json(), WEEK.to_document()):
        assert local.protocol_from_json(text, domain=COLOURS) == WEEK
        refuses(ParameterError, NOT_THE_LABELS, local.protocol_from_json, text, domain=COLOURS[::-1])
    assert local.protocol_from_json(AGE.to_json(), domain=(0, 100)) == AGE
    message = "bounds must be those of the specification"
    refuses(ParameterError, message, local.protocol_from_json, AGE.to_json(), domain=(0, 1))
    bare = local.OptimizedUnaryEncoding(k=3, epsilon=2.0)
    message = "domain must not be given for a specification that has no labels"
    refuses(ParameterError, message, local.protocol_from_json, bare.to_json(), domain=COLOURS)


# --- states --------------------------------------------------------------------------------------------------------


def test_a_state_is_read_with_the_labels_or_without() -> None:
    counted = WEEK.accumulator()
    counted.add(WEEK.perturb(["red"] * 50))
    state = counted.to_bytes()
    plain = local.Accumulator.from_bytes(state)
    assert (plain.to_bytes(), plain.n, plain.protocol.domain) == (state, 50, None)
    assert plain.protocol.question == "favourite colour"
    assert plain.estimate().count(0).count == counted.estimate().count("red").count
    assert local.Accumulator.from_bytes(state, domain=COLOURS).estimate().domain == tuple(COLOURS)
    refuses(ParameterError, NOT_THE_LABELS, local.Accumulator.from_bytes, state, domain=COLOURS[::-1])
    mean = AGE.accumulator()
    mean.add(AGE.perturb([50.0] * 50))
    within = local.Accumulator.from_bytes(mean.to_bytes(), domain=(0, 100))
    assert within.protocol == AGE
    message = "bounds must be those of the specification"
    refuses(ParameterError, message, local.Accumulator.from_bytes, mean.to_bytes(), domain=(0, 1))


@pytest.mark.parametrize("protocol", SEVERAL, ids=repr)
def test_a_state_of_several_attributes_is_read_with_their_labels(protocol: Any) -> None:
    state = protocol.accumulator().to_bytes()
    domains = {"colour": COLOURS, "age": (0, 100)}
    assert local.AttributesAccumulator.from_bytes(state, domain=domains).protocol == protocol
    assert local.AttributesAccumulator.from_bytes(state).protocol != protocol
    for wrong in ({"colour": COLOURS}, {**domains, "age": (0, 99)}, {**domains, "smokes": ["no", "yes"]}):
        refuses(ParameterError, NOT_THE_LABELS, local.AttributesAccumulator.from_bytes, state, domain=wrong)


# --- the table of wrong pairings -----------------------------------------------------------------------------------

OTHERS = {
    "other labels": (SURVEY, SURVEY.about(domain=["yes", "no", "unsure"]), r"about other labels \([0-9a-f]{32}\)"),
    "another order": (SURVEY, SURVEY.about(domain=["green", "red", "blue"]), r"about other labels \([0-9a-f]{32}\)"),
    "no labels": (SURVEY, local.OptimizedUnaryEncoding(k=3, epsilon=2.0), "without labels"),
    "another question": (WEEK, WEEK.about(question="worst colour"), r'about another question \("worst colour"\)'),
    "no question": (WEEK, SURVEY.about(period="2026-W48"), "without a question"),
    "another period": (WEEK, WEEK.about(period="2026-W49"), r'about another period \("2026-W49"\)'),
    "no period": (WEEK, SURVEY.about(question="favourite colour"), "without a period"),
    "other bounds": (AGE, AGE.about(bounds=(0, 1)), r"about other labels \([0-9a-f]{32}\)"),
    "attributes of another week": (*(SEVERAL[0].about(period=one) for one in "ab"), r'about another period \("b"\)'),
}


@pytest.mark.parametrize("case", OTHERS)
def test_reports_about_something_else_are_counted_nowhere(case: str, tmp_path: Any) -> None:
    own, other, difference = OTHERS[case]
    reports = np.zeros((30, other.report_bytes), np.uint8)
    counted, others = own.accumulator(), other.accumulator()
    others.add(reports)
    counted.add_messages(other.messages(reports))
    assert (counted.n, counted.rejected_reasons["wrong header"]) == (0, 30)
    before = counted.to_bytes()
    path = tmp_path / "reports.parquet"
    pq.write_table(pa.Table.from_batches([other.to_arrow(reports)]), path)
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: counted.merge(others), "other"),
        (lambda: counted.merge(type(counted).from_bytes(others.to_bytes())), "other"),
        (lambda: own.estimate(others), "collected"),
    ]
    if isinstance(own, local.Protocol):
        calls += [
            (lambda: counted.add(other.to_arrow(reports)), "reports"),
            (lambda: counted.add_parquet(path), "reports"),
            (lambda: own.estimate(other.to_arrow(reports)), "reports"),
        ]
    for call, name in calls:
        with pytest.raises(ParameterError, match=f"^{name} must be of the same collection, got one {difference}$"):
            call()
        assert counted.to_bytes() == before
    refuses(ParameterError, "other must be another accumulator, got this one", counted.merge, counted)


def test_another_randomiser_is_named_before_labels() -> None:
    other = local.OptimizedUnaryEncoding(domain=COLOURS[::-1], epsilon=1.0).about(period="2026-W49")
    message = f"other must be of the same protocol, {WEEK.to_json()}, got {other.to_json()}"
    refuses(ParameterError, message, WEEK.accumulator().merge, other.accumulator())


# --- bounds of means -----------------------------------------------------------------------------------------------

MEANS = [
    local.DuchiMean(epsilon=8.0),
    local.PiecewiseMean(epsilon=8.0),
    local.HybridMean(epsilon=8.0),
    local.LaplaceMean(epsilon=8.0),
    local.GaussianMean(epsilon=8.0, delta=1e-6),
]


@pytest.mark.parametrize("mean", MEANS, ids=repr)
@pytest.mark.parametrize("bounds", [(0, 100), (-3.5, -3.25), (-1e300, 1e300), (5e-324, 1e-300)])
def test_a_mean_is_in_the_unit_of_its_bounds(mean: Any, bounds: tuple[float, float]) -> None:
    lower, upper = bounds
    protocol = mean.about(bounds=bounds)
    assert protocol.bounds == (float(lower), float(upper))
    assert mean.bounds is None
    middle, half = lower / 2 + upper / 2, upper / 2 - lower / 2
    places = np.linspace(-1, 1, 9)
    numbers = np.clip(middle + half * places, lower, upper)
    reports = protocol.perturb(numbers, rng=SeededRng(1))
    if half < 1e290 and half > 1e-290 and middle == round(middle, 3):
        np.testing.assert_array_equal(reports, mean.perturb(places, rng=SeededRng(1)))
    found, plain = protocol.estimate(reports), mean.estimate(reports)
    assert found.mean == pytest.approx(middle + half * plain.mean)
    assert found.standard_error == pytest.approx(half * plain.standard_error)
    assert (found.lower, found.upper) == pytest.approx((middle + half * plain.lower, middle + half * plain.upper))
    for place, number in ((0.0, middle), (-1.0, lower), (1.0, upper)):
        assert protocol.variance(7, number) == pytest.approx(half * half * mean.variance(7, place))
    refuses(ParameterError, "x must be between", protocol.variance, 7, np.nextafter(upper, np.inf))
    together = local.Split(attributes={"a": protocol, "b": SURVEY})
    plain_together = local.Split(attributes={"a": mean, "b": SURVEY})
    assert together.variance("a", 7, at=lower) == pytest.approx(half * half * plain_together.variance("a", 7, at=-1.0))
    refuses(ParameterError, "at must be between", together.variance, "a", 7, np.nextafter(lower, -np.inf))


@pytest.mark.parametrize("mean", MEANS, ids=repr)
def test_bounds_given_to_the_class_are_those_of_about(mean: Any) -> None:
    protocol = type(mean)(bounds=(-5, 100), **mean._arguments())
    other = mean.about(bounds=(-5, 100))
    assert protocol == other == eval(repr(other), vars(local))  # noqa: S307
    assert repr(protocol).startswith(f"{type(mean).__name__}(bounds=(-5.0, 100.0), epsilon=")
    assert protocol.bounds == other.bounds == (-5.0, 100.0)
    assert protocol.spec_id == other.spec_id != mean.spec_id
    values = [-7.0, -5, 3, 200]
    np.testing.assert_array_equal(protocol.perturb(values, rng=SeededRng(1)), other.perturb(values, rng=SeededRng(1)))
    for bounds in ((1, 0), (0, math.inf), (0, 5e-324)):
        refuses(ParameterError, "bounds must be two finite numbers", type(mean), bounds=bounds, **mean._arguments())
    refuses(TypeError, "bounds must be two numbers", type(mean), bounds=7, **mean._arguments())


@pytest.mark.parametrize("mean", MEANS, ids=repr)
def test_numbers_are_clamped_to_the_bounds(mean: Any) -> None:
    protocol = mean.about(bounds=(0, 100))
    outside, ends = [-1e308, -1.0, 100.5, np.inf, -np.inf], [0, 0, 100, 100, 0]
    np.testing.assert_array_equal(protocol.perturb(outside, rng=SeededRng(1)), protocol.perturb(ends, rng=SeededRng(1)))
    for values in ([float("nan")], [0.0, float("nan")]):
        with pytest.raises(ParameterError) as caught:
            protocol.perturb(values)
        assert "nan" not in str(caught.value).removeprefix("values")[:20]
    refuses(ParameterError, "values", mean.perturb, [1.5])  # without bounds nothing is clamped


@pytest.mark.parametrize("protocol", [scheme.about(period="2026") for scheme in SEVERAL], ids=repr)
def test_a_mean_among_attributes_has_bounds(protocol: Any) -> None:
    n = 4000
    people = {"age": [20.0, 200.0] * (n // 2), "colour": ["red"] * n, "smokes": [True] * n}
    found = protocol.estimate(protocol.perturb(people))
    assert abs(found["age"].mean - 60) < 9 * found["age"].standard_error < 40
    assert found["colour"].domain == tuple(COLOURS)


# --- memos ---------------------------------------------------------------------------------------------------------

LONGITUDINAL = [
    local.LongitudinalUnaryEncoding(domain=COLOURS, epsilon_permanent=2.0, epsilon_first=1.0),
    local.LOLOHA(domain=COLOURS, epsilon_permanent=2.0, epsilon_first=1.0),
    local.DBitFlip(domain=COLOURS, d=2, epsilon=2.0),
]
AGAIN = (
    "the specification must have the randomiser of earlier reports on this question: another one costs epsilon again"
)


@pytest.mark.parametrize("protocol", LONGITUDINAL, ids=repr)
def test_a_year_of_weeks_costs_no_epsilon_and_another_epsilon_is_refused(protocol: Any) -> None:
    memo, values = local.ClientMemo.generate(3), COLOURS
    for week in range(52):
        about = protocol.about(question="colour", period=f"2026-W{week + 1:02}")
        about.perturb(values, memo, question="colour")
    assert len(memo.to_bytes()) == 16 + 3 * 32 + 64 + 4  # of one question
    name = "epsilon" if isinstance(protocol, local.DBitFlip) else "epsilon_permanent"
    other = eval(re.sub(f"{name}=2.0", f"{name}=2.0000001", repr(protocol)), vars(local))  # noqa: S307
    for asked in (other, other.about(period="2026-W53"), other.about(question="colour")):
        refuses(ParameterError, AGAIN, asked.perturb, values, memo, question="colour")
    protocol.about(domain=["a", "b", "c"]).perturb(["a", "b", "c"], memo, question="colour")  # the same answers
    other.perturb(values, memo, question="another question")
    refuses(ParameterError, AGAIN, protocol.perturb, values, memo, question="another question")


def test_whoever_has_a_part_of_a_memo_has_its_questions() -> None:
    one, other, _ = LONGITUDINAL
    memo = local.ClientMemo.generate(3)
    part, kept = memo[1:], []
    one.perturb(["red", "red"], part, question="colour")
    for asked in (memo, part, memo[0], pickle.loads(pickle.dumps(memo)), local.ClientMemo.from_bytes(memo.to_bytes())):  # noqa: S301
        kept.append(asked.to_bytes()[-68:])
        values = ["red"] * len(asked) if len(asked) > 1 else ["red"]
        refuses(ParameterError, AGAIN, other.perturb, values, asked, question="colour")
        one.perturb(values, asked, question="colour")
    assert len({record[:64] for record in kept}) == 1
    untouched = local.ClientMemo.generate(3)
    other.perturb(["red"] * 3, untouched, question="colour")  # the positive control


def test_refused_values_answer_no_question() -> None:
    one, other, _ = LONGITUDINAL
    memo = local.ClientMemo.generate(1)
    for call in (
        lambda: one.perturb(["none of them"], memo, question="colour"),
        lambda: one.perturb(["red", "red"], memo, question="colour"),
        lambda: one.about(question="food").perturb(["red"], memo, question="colour"),
        lambda: one.perturb(["red"], memo, question="cafe\u0301"),
        lambda: one.perturb(["red"], memo, question="colour", threads=0),
    ):
        with pytest.raises(ParameterError):
            call()
        assert len(memo.to_bytes()) == 16 + 32 + 4
    other.perturb(["red"], memo, question="colour")


@pytest.mark.parametrize("protocol", LONGITUDINAL, ids=repr)
def test_a_question_of_the_specification_is_the_one_that_is_asked(protocol: Any) -> None:
    memo, about = local.ClientMemo.generate(1), protocol.about(question="colour")
    message = 'question must be that of the specification, "colour", got "food"'
    refuses(ParameterError, message, about.perturb, ["red"], memo, question="food")
    about.perturb(["red"], memo, question="colour")


@pytest.mark.parametrize("known", [WEEK, AGE, *SEVERAL], ids=repr)
def test_merging_adds_what_the_other_one_knows_of_labels(known: Any) -> None:
    counted = known.accumulator()
    unknown = type(counted).from_bytes(counted.to_bytes())
    assert unknown.protocol != known
    unknown.merge(counted)
    assert unknown.protocol == known
    counted.merge(type(counted).from_bytes(counted.to_bytes()))
    assert counted.protocol == known


def test_numbers_of_unknown_bounds_are_refused() -> None:
    unknown = local.Protocol.from_json(AGE.to_json())
    state = AGE.accumulator()
    state.add(AGE.perturb([30, 40]))
    kept = local.Accumulator.from_bytes(state.to_bytes())
    for call in (
        lambda: unknown.perturb([0.5]),
        lambda: unknown.estimate(state),
        lambda: kept.protocol.estimate(kept),
        lambda: unknown.variance(10, 0.5),
    ):
        refuses(ParameterError, "the bounds of the mean must be known: read the document", call)
    assert local.Protocol.from_json(AGE.to_json(), domain=(0, 100)) == AGE
    refuses(ParameterError, "values must be numbers, and none of them NaN", AGE.perturb, [float("nan")])
    refuses(ParameterError, "bounds must be two finite numbers", local.DuchiMean(epsilon=1).about, bounds=(0, 5e-324))


def test_a_call_without_a_report_binds_no_memo() -> None:
    first, second = (local.DBitFlip(k=8, epsilon=epsilon, d=8) for epsilon in (1.0, 2.0))
    memo = local.ClientMemo.generate(2)
    for call in (
        lambda: first.perturb([1, 9], memo, question="minutes"),
        lambda: first.perturb([1, 2], memo, question="minutes", rng=5),  # type: ignore[arg-type]
        lambda: first.perturb([1], memo, question="minutes"),
    ):
        with pytest.raises((ParameterError, TypeError)):
            call()
    first.perturb([], memo[0:0], question="minutes")
    second.perturb([1, 2], memo, question="minutes")
    refuses(ParameterError, "another one costs epsilon again", first.perturb, [1, 2], memo, question="minutes")


def test_binary_reports_are_counted_as_bytes() -> None:
    protocol = local.RandomizedResponse(epsilon=30.0)
    assert protocol.estimate([b"\1", b"\0", b"\1"]).counts.round().tolist() == [1, 2]


@pytest.mark.parametrize("protocol", SEVERAL, ids=repr)
def test_unknown_labels_of_several_attributes_are_shown_as_such(protocol: Any) -> None:
    unknown = type(protocol).from_json(protocol.to_json())
    assert eval(repr(unknown), named(unknown)) == unknown  # noqa: S307 # our own text


def test_columns_of_tables_cause_no_warning_of_rows_of_bits(recwarn: pytest.WarningsRecorder) -> None:
    protocol = local.OptimizedUnaryEncoding(k=3, epsilon=1.0)
    protocol.perturb(pa.array([0, 1, 0]))
    assert not recwarn.list
    with pytest.warns(UserWarning, match="perturb_encoded"):
        protocol.perturb([0, 1, 0])
