"""Several attributes: what reports, estimates and specifications are, and what cannot be randomised or read."""

import json
import math
import pickle
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from api.several_attributes import BOTH, CERTAIN, COLOURS, counted, mixed, people, small
from refusals import refuses

from dpnoise import ParameterError, local

# What reports and estimates are.


@pytest.mark.parametrize("make", BOTH)
def test_estimates_of_all_kinds_are_about_all_people(make):
    protocol, n = mixed(make), 9000
    found = protocol.estimate(protocol.perturb(people(n)), candidates={"word": ["plum", "fig"]})
    assert list(found) == list(protocol.attributes)
    assert {estimate.n for estimate in found.values()} == {n}
    # Standard deviations are up to 60 with a report from each person about each attribute, and 200 with one of
    # nine; only that of a range is 740. Seven of them are exceeded with probability 2.6e-12.
    near = 1500 if make is local.Sampled else 450
    assert abs(found["colour"].count("red").count - 3000) < near
    assert abs(found["smokes"].counts[1] - 2250) < near
    assert abs(found["word"].counts[0] - 4500) < near
    assert abs(found["age"].range(0, 49).count - 9000) < 5500
    assert abs(found["mood"].mean - 0.25) < 0.2
    assert abs(found["debt"].mean - 0.25) < 0.1
    assert abs(found["wealth"].mean + 0.25) < 0.1
    assert abs(found["height"].mean() - 0.5) < 0.1
    assert found["place"].values[0] == 4711
    assert found["size"].counts.shape == (300,)
    assert found["colour"].domain == tuple(COLOURS)


def test_a_report_of_sampled_is_the_number_of_one_attribute_and_the_report_on_it():
    protocols = {
        "a": local.GeneralizedRandomizedResponse(k=300, epsilon=CERTAIN),
        "b": local.GeneralizedRandomizedResponse(k=7, epsilon=CERTAIN),
        "c": local.RandomizedResponse(epsilon=CERTAIN),
    }
    # A third is about each attribute: one of those about the first differs from its value with a probability of 4e-10.
    protocol, n = local.Sampled(attributes=protocols), 300
    columns = {"a": np.arange(n) % 300, "b": np.arange(n) % 7, "c": np.arange(n) % 2 == 1}
    reports = protocol.perturb(columns)
    assert reports.shape == (n, 3)
    contents = reports[:, 1] + 256 * reports[:, 2].astype(np.int64)
    values = np.stack([np.asarray(columns[name]).astype(np.int64) for name in protocols])
    assert (contents == values[reports[:, 0], np.arange(n)]).all()
    assert set(reports[:, 0].tolist()) == {0, 1, 2}
    out = np.full((n, 3), 255, np.uint8)
    assert protocol.perturb(columns, out=out, threads=1) is out
    assert (out[out[:, 0] > 0, 2] == 0).all()


def test_a_report_of_split_is_all_reports_side_by_side():
    protocols = {
        "a": local.GeneralizedRandomizedResponse(k=300, epsilon=CERTAIN),
        "b": local.GeneralizedRandomizedResponse(k=7, epsilon=CERTAIN),
    }
    reports = local.Split(attributes=protocols).perturb({"b": [5, 6], "a": [257, 3]})
    assert reports.tolist() == [[1, 1, 5], [3, 0, 6]]


@pytest.mark.parametrize("make", BOTH)
def test_columns_may_be_a_data_frame(make):
    protocols = {
        "a": local.GeneralizedRandomizedResponse(domain=COLOURS, epsilon=CERTAIN),
        "b": local.DuchiMean(epsilon=1.0),
    }
    protocol, columns = make(attributes=protocols), {"a": ["blue", "red"] * 500, "b": [0.5, -1.0] * 500}
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    for frame in (pandas.DataFrame(columns), polars.DataFrame(columns), pyarrow.table(columns)):
        found = counted(protocol, protocol.perturb(frame))
        assert (found.n, found.rejected) == (1000, 0)
        assert protocol.estimate(found)["a"].count("green").count < 1e-3
    twice = pandas.DataFrame([["red", 0.5, 0.5]], columns=["a", "b", "b"])
    refuses(ParameterError, "different names, got more of 'b'", protocol.perturb, twice)
    refuses(
        ParameterError,
        "different names, got more of 'b'",
        protocol.perturb,
        pyarrow.Table.from_pandas(pandas.DataFrame(columns)).append_column("b", [columns["b"]]),
    )


def test_each_person_reports_on_each_attribute_equally_often():
    protocol = small()
    n = 40_000
    found = protocol.perturb({"a": ["red"] * n, "b": [3] * n})[:, 0]
    # A standard deviation is 100; seven are exceeded with probability 2.6e-12.
    assert abs(int(Counter(found.tolist())[0]) - n // 2) < 700


# What is refused.


@pytest.mark.parametrize("make", BOTH)
def test_attributes_that_are_none(make):
    yes = local.RandomizedResponse(epsilon=1.0)
    asked_again = local.DBitFlip(k=4, epsilon=1.0, d=2)
    rappor = local.Rappor(num_bloombits=16, num_hashes=2, num_cohorts=64, f=0.5, p=0.5, q=0.75)
    for attributes, kind, message in [
        ([("a", yes), ("b", yes)], TypeError, "attributes must be a mapping of names to protocols, got list"),
        ({}, ParameterError, "attributes must be from 2 to 256 of them, got 0"),
        ({"a": yes}, ParameterError, "attributes must be from 2 to 256 of them; one needs only its protocol, got 1"),
        ({f"a{i}": yes for i in range(257)}, ParameterError, "attributes must be from 2 to 256 of them, got 257"),
        ({"a": yes, "": yes}, ParameterError, "attributes must be of names that are not empty, got an empty name"),
        ({"a": yes, "\ud800": yes}, ParameterError, "texts that UTF-8 can hold, got '\\ud800'"),
        ({"a": yes, 3: yes}, TypeError, "names of attributes must be str, got int"),
        (
            {"a": yes, "b": 3},
            TypeError,
            "attributes['b'] must be a protocol of dpnoise.local for one attribute, got int",
        ),
        ({"a": yes, "b": make(attributes={"c": yes, "d": yes})}, TypeError, f"for one attribute, got {make.__name__}"),
        ({"a": yes, "b": asked_again}, ParameterError, 'without a memo, which clients keep, got d_bit_flip for "b"'),
        ({"a": yes, "b": rappor}, ParameterError, 'without a memo, which clients keep, got rappor for "b"'),
    ]:
        refuses(kind, message, make, attributes=attributes)
    refuses(TypeError, f"{make.__name__} takes its parameters by name, use attributes=", make, {"a": yes, "b": yes})


@pytest.mark.parametrize("make", BOTH)
def test_columns_are_checked_before_anything_is_written(make):
    protocol, good = mixed(make), people(20)
    out = np.full((20, protocol.report_bytes), 7, np.uint8)
    bad = {
        "colour": (["red"] * 19 + ["secret"], ParameterError),
        "size": ([0] * 19 + [300], ParameterError),
        "smokes": ([True] * 19 + [None], TypeError),
        "height": ([0.5] * 19 + [1.0000001], ParameterError),
        "mood": ([0.5] * 19 + [math.nan], ParameterError),
        "debt": ([0.5] * 19 + [-2], ParameterError),
        "wealth": ([0.5] * 19 + [math.inf], ParameterError),
        "age": ([0] * 19 + [-1], ParameterError),
        "word": (["plum"] * 19 + ["\ud800"], ParameterError),
        "place": ([0] * 19 + [2**16], ParameterError),
    }
    assert set(bad) == set(good)
    for name, (column, kind) in bad.items():
        with pytest.raises(kind, match=rf"columns(\['{name}'\]| for \"{name}\") ?") as caught:
            protocol.perturb(good | {name: column}, out=out)
        assert (out == 7).all()
        assert not any(text in str(caught.value) for text in ("secret", "1.0000001", "65536", "got 300"))
    refuses(
        ParameterError, "got unknown 'color', missing 'colour'", protocol.perturb, {"color": good.pop("colour"), **good}
    )
    good["colour"] = ["red"] * 21
    refuses(ParameterError, "of one value for each person, got lengths [21, 20, ", protocol.perturb, good)
    refuses(TypeError, "columns must be a mapping of names to columns or a data frame, got list", protocol.perturb, [1])
    good["colour"] = ["red"] * 20
    refuses(ParameterError, "out must have the shape", protocol.perturb, good, out=np.empty((3, 3), np.uint8))
    assert (protocol.perturb(good, out=out) != 7).any()  # positive control


@pytest.mark.parametrize("make", BOTH)
def test_estimates_need_reports_and_candidates(make):
    protocol = mixed(make)
    reports = protocol.perturb(people(2000))
    refuses(
        ParameterError,
        "candidates must be given by the names of attributes, got missing 'word'",
        protocol.estimate,
        reports,
    )
    texts = {"word": ["plum"]}
    refuses(TypeError, "candidates must be a mapping", protocol.estimate, reports, candidates=["plum"])
    refuses(ParameterError, "got unknown 'colour'", protocol.estimate, reports, candidates=texts | {"colour": ["x"]})
    refuses(ParameterError, "level must be between 0 and 1", protocol.estimate, reports, candidates=texts, level=1.0)
    refuses(ParameterError, "post must be None or one of", protocol.estimate, reports, candidates=texts, post="no")
    empty = protocol.accumulator()
    refuses(ParameterError, "every attribute, got none about 'colour'", protocol.estimate, empty, candidates=texts)
    other = mixed(make, epsilon=1.0).accumulator()
    refuses(ParameterError, "collected must be of", protocol.estimate, other, candidates=texts)
    refuses(ParameterError, "reports must have shape", protocol.estimate, reports[:, :-1], candidates=texts)
    for simultaneous in ("no", 1, None):
        refuses(
            TypeError,
            f"simultaneous must be a bool, got {type(simultaneous).__name__}",
            protocol.estimate,
            reports,
            candidates=texts,
            simultaneous=simultaneous,
        )


@pytest.mark.parametrize("make", BOTH)
def test_accumulators_of_the_other_kind_are_named(make):
    several, alone = small(make), local.RandomizedResponse(epsilon=1.0)
    for protocol, other in ((several, alone), (alone, several)):
        message = f"collected must be of {protocol!r}, got an accumulator of {other!r}"
        refuses(ParameterError, message, protocol.estimate, other.accumulator())


# Specifications.


@pytest.mark.parametrize("make", BOTH)
def test_specifications_round_trip(make):
    protocol = mixed(make, **{'\u00e9 "\n\b\x00\x7f\\\U0001f600': local.HadamardResponse(k=9, epsilon=1e-6)})
    text = protocol.to_json()
    bare = {**protocol.attributes, "colour": local.OptimizedUnaryEncoding(k=3, epsilon=CERTAIN)}
    pairs = [[name, one.to_json()] for name, one in bare.items()]
    labels = json.loads(text)["labels"]
    expected = {"attributes": pairs, "labels": labels, "protocol": make.__name__.lower(), "version": 1}
    assert text == json.dumps(expected, separators=(",", ":"))  # and so in ASCII
    read = make.from_json(f" {text}\r\n", domain={"colour": COLOURS})
    assert (read, hash(read), read.to_json(), read.spec_id) == (protocol, hash(protocol), text, protocol.spec_id)
    assert make.from_json(text) != protocol  # it has no labels
    assert pickle.loads(pickle.dumps(protocol)) == protocol  # noqa: S301
    assert read != mixed(make)
    with pytest.raises(TypeError):
        protocol.attributes["colour"] = protocol.attributes["size"]


def test_the_two_kinds_and_the_order_matter():
    yes, no = local.RandomizedResponse(epsilon=1.0), local.DuchiMean(epsilon=1.0)
    one, other = {"a": yes, "b": no}, {"b": no, "a": yes}
    made = [make(attributes=attributes) for make in BOTH for attributes in (one, other)]
    assert len(set(made)) == len({each.spec_id for each in made}) == 4


def test_specifications_that_are_none():
    yes = local.RandomizedResponse(epsilon=1.0)
    protocol = local.Sampled(attributes={"a": yes, "b": yes})
    text, fields = protocol.to_json(), json.loads(protocol.to_json())

    def changed(**changes):
        return json.dumps(fields | changes, separators=(",", ":"))

    inner = yes.to_json()
    not_exact = "must be exactly as to_json gave it"
    for wrong, message in [
        (changed(attributes=[["a", inner], ["a", inner]]), 'attributes must be of different names, got "a" twice'),
        (changed(attributes=[["a", inner]]), "attributes must be from 2 to 256 of them"),
        (changed(attributes=[["a", inner], ["", inner]]), "of names that are not empty"),
        (changed(attributes=[["a", inner], ["b", text]]), 'attribute "b": not a protocol specification'),
        (changed(attributes=[["a", inner], ["b", inner.replace("1497", "1999")]]), 'attribute "b"'),
        (changed(attributes=[["a", inner], ["b", json.loads(inner)]]), not_exact),
        (changed(attributes={"a": inner, "b": inner}), not_exact),
        (changed(version=2), "version 2 is not 1, the one this release reads"),
        (changed(more=1), not_exact),
        (changed(protocol="smp"), 'scheme must be "sampled" or "split", got "smp"'),
        (changed(protocol=["sampled"]), not_exact),
        (changed(protocol="split"), "the specification must be of Sampled, got one of Split"),
        (text.replace(",", ", ", 1), "must be exactly as to_json gave them"),
        (text.replace('"a"', r'"\u0061"'), "must be exactly as to_json gave them"),
        (text.replace('"a"', r'"\ud800"'), not_exact),
        (text.replace('"a"', r'"\ud83d\ude0g"'), not_exact),
        (text.replace('"version":1', '"version":1,"version":1'), not_exact),
        (inner, "the specification must be of Sampled, got one of RandomizedResponse"),
        ("[" * 100_000, "it is longer than 4096 bytes"),
        *((text[:i], "not a protocol specification: ") for i in range(len(text))),
    ]:
        refuses(ParameterError, message, local.Sampled.from_json, wrong)
    refuses(TypeError, "text must be a str, got bytes", local.Sampled.from_json, text.encode())
    refuses(TypeError, "domain must be a mapping", local.Sampled.from_json, text, domain=COLOURS)
    refuses(ParameterError, "got unknown 'c'", local.Sampled.from_json, text, domain={"c": [1, 2]})
    message = "attribute 'b': domain must be of 2 labels"
    refuses(ParameterError, message, local.Sampled.from_json, text, domain={"b": COLOURS})
    for read in (local.protocol_from_json, local.RandomizedResponse.from_json):
        refuses(ParameterError, "got one of Sampled", read, f" {text}")


def test_the_specification_of_the_page_is_one():
    page = (Path(__file__).parents[2] / "docs/reference/wire_format.md").read_text(encoding="utf-8")
    (text,) = re.findall(r'^\{"attributes".*$', page, re.MULTILINE)
    smokes, mood = local.Sampled.from_json(text).attributes.values()
    assert (smokes, mood) == (local.RandomizedResponse.coin_flips(), local.DuchiMean(epsilon=1.0))
