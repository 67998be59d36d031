"""RAPPOR: parameters, what stays the same, decoding, and every input that cannot be used."""

import json
import sys

import numpy as np
import pyarrow as pa
import pytest
from refusals import refuses

from dpnoise import ParameterError, RandomnessError, local
from dpnoise.hazmat import ScriptedRng, SeededRng
from dpnoise.local import _inputs

SHAPE = {"num_bloombits": 32, "num_hashes": 2, "num_cohorts": 16}
RAPPOR = local.Rappor(**SHAPE, f=0.25, p=0.3, q=0.8)
TEXTS = ["plum", "", "crème brûlée", "plum", "x" * 1000]


def test_parameters_out_of_range() -> None:
    def refused(message, **parameters):
        refuses(ParameterError, message, local.Rappor, **{**SHAPE, "f": 0.5, "p": 0.5, "q": 0.75, **parameters})

    for bits in (4, 24, 2**21):
        refused(f"num_bloombits must be a power of two from 8 to 2**20, got {bits}", num_bloombits=bits)
    for hashes in (0, 17):
        refused("num_hashes must be an integer from 1 to 16", num_hashes=hashes)
    refused("num_hashes must be an integer from 1 to 4 with num_bloombits = 8, got 5", num_bloombits=8, num_hashes=5)
    refused("num_bloombits, num_hashes and num_cohorts must be such that their product", num_bloombits=2**20)
    for name in "fpq":
        refused(f"{name} must be a probability strictly between 0 and 1, got 1.0", **{name: 1.0})
    refused("q must be greater than p = 0.5, got 0.5", q=0.5)
    refused("f must be such that epsilon = 2 * num_hashes * ln((2 - f) / f) is between 2**-20 and 32, got 1e-5", f=1e-5)
    refused("f, p and q must be such that the epsilon of a single report is at least 2**-20", p=0.5, q=0.5 + 1e-15)


def test_it_is_a_value() -> None:
    assert (RAPPOR.num_bloombits, RAPPOR.num_hashes, RAPPOR.num_cohorts) == (32, 2, 16)
    assert (RAPPOR.requested_f, RAPPOR.requested_p, RAPPOR.requested_q) == (0.25, 0.3, 0.8)
    assert (RAPPOR.f, RAPPOR.p, RAPPOR.q) == pytest.approx((0.25, 0.3, 0.8), rel=0.01)
    assert RAPPOR.report_bytes == 2 + 32 // 8
    assert local.Rappor(**SHAPE, f=0.25, p=0.3, q=0.80001) != RAPPOR
    assert not isinstance(RAPPOR, local.FrequencyProtocol)


@pytest.mark.parametrize("chances", [(0.25, 0.3, 0.8), (0.5, 0.5, 0.75), (0.9, 0.001, 0.002), (1e-3, 0.4, 0.41)])
def test_both_epsilons_are_those_of_the_probabilities(chances: tuple[float, float, float]) -> None:
    f, p, q = chances
    rappor = local.Rappor(**SHAPE, f=f, p=p, q=q)
    permanent = 4 * np.log((1 - f / 2) / (f / 2))
    set_, not_set = (bit * q + (1 - bit) * p for bit in (1 - f / 2, f / 2))
    first = 2 * np.log(set_ * (1 - not_set) / ((1 - set_) * not_set))
    assert 0.999 * permanent <= rappor.epsilon <= permanent * (1 + 1e-9)
    assert 0.998 * first <= rappor.epsilon_first <= first * (1 + 1e-9)
    assert rappor.requested_epsilon == pytest.approx(permanent, rel=1e-9)
    achieved = 4 * np.log((1 - rappor.f / 2) / (rappor.f / 2))
    set_, not_set = (bit * rappor.q + (1 - bit) * rappor.p for bit in (1 - rappor.f / 2, rappor.f / 2))
    assert rappor.epsilon == pytest.approx(achieved, rel=1e-12)
    assert rappor.epsilon_first == pytest.approx(2 * np.log(set_ * (1 - not_set) / ((1 - set_) * not_set)), rel=1e-9)
    assert rappor.epsilon_first < rappor.epsilon


def test_a_specification_that_contradicts_itself_is_refused() -> None:
    spec = json.loads(RAPPOR.to_json())
    for name, value in spec.items():
        if name in ("protocol", "version", "num_bloombits", "num_cohorts"):  # any others go with the probabilities, too
            continue
        altered = {**spec, name: value + (0.01 if name.startswith("prob") else 1)}
        with pytest.raises(ParameterError):
            local.protocol_from_json(json.dumps(altered, separators=(",", ":")))
        without = json.dumps({other: spec[other] for other in spec if other != name})
        refuses(ParameterError, f'the field "{name}" is missing', local.protocol_from_json, without)


def test_what_is_permanent_stays() -> None:
    """The instantaneous round is held fixed by scripted words; what is left is the cohort and the permanent row."""
    n = 500  # of so many a cohort is empty with a probability of 1.6e-13
    texts, memo = ["plum"] * n, local.ClientMemo.generate(n)
    first = RAPPOR.perturb(texts, memo, question="fruit", rng=SeededRng(1))
    for copy in (memo, local.ClientMemo.from_bytes(memo.to_bytes())):
        np.testing.assert_array_equal(RAPPOR.perturb(texts, copy, question="fruit", rng=SeededRng(1)), first)
    other = RAPPOR.perturb(["pear"] * n, memo, question="fruit", rng=SeededRng(1))
    np.testing.assert_array_equal(other[:, :2], first[:, :2], "the cohort is of the person, not of the text")
    assert (other[:, 2:] != first[:, 2:]).any(axis=1).mean() > 0.9
    assert len(np.unique(first[:, 0])) == 16
    again = RAPPOR.perturb(texts, memo, question="fruit")
    assert (again != first).any(), "the second round is drawn anew"
    others = RAPPOR.perturb(texts, local.ClientMemo.generate(n), question="fruit", rng=SeededRng(1))
    assert (others != first).any(), "the positive control: other secrets give other answers"
    asked = RAPPOR.perturb(texts, memo, question="another", rng=SeededRng(1))
    assert (asked != first).any(axis=1).mean() > 0.9, "so do other questions"


def test_texts_of_any_kind_out_and_threads() -> None:
    memo = local.ClientMemo.generate(5)
    expected = RAPPOR.perturb(TEXTS, memo, question="fruit", rng=SeededRng(1))
    for texts in ([text.encode() for text in TEXTS], np.array(TEXTS), pa.array(TEXTS), pa.chunked_array([TEXTS])):
        assert np.array_equal(RAPPOR.perturb(texts, memo, question="fruit", rng=SeededRng(1)), expected)
    out = np.empty_like(expected)
    assert RAPPOR.perturb(TEXTS, memo, question="fruit", out=out) is out
    assert RAPPOR.perturb([], local.ClientMemo.generate(0), question="fruit").shape == (0, RAPPOR.report_bytes)
    refuses(ParameterError, "out must have the shape", RAPPOR.perturb, TEXTS, memo, question="fruit", out=out[:-1])
    refuses(
        ParameterError,
        "threads must be None or a positive integer",
        RAPPOR.perturb,
        TEXTS,
        memo,
        question="fruit",
        threads=0,
    )
    refuses(
        RandomnessError,
        "nothing was released",
        RAPPOR.perturb,
        TEXTS,
        memo,
        question="fruit",
        out=out,
        rng=ScriptedRng(bytes(4)),
    )
    assert not out.any()


def test_what_cannot_be_reported_on_is_refused() -> None:
    memo = local.ClientMemo.generate(2)
    refuses(TypeError, "values must be str or bytes, all of one type", RAPPOR.perturb, [1, 2], memo, question="fruit")
    message = "memo must be one of 3 people, one for each value, got one of 2"
    refuses(ParameterError, message, RAPPOR.perturb, ["a"] * 3, memo, question="fruit")
    message = "memo must be a ClientMemo, got bytes"
    refuses(TypeError, message, RAPPOR.perturb, ["a", "b"], memo.to_bytes(), question="fruit")
    refuses(TypeError, "memo", RAPPOR.perturb, ["a", "b"], question="fruit")
    refuses(TypeError, "question", RAPPOR.perturb, ["a", "b"], memo)
    refuses(TypeError, "question must be a str, got int", RAPPOR.perturb, ["a", "b"], memo, question=1)
    refuses(ParameterError, "question must be Unicode", RAPPOR.perturb, ["a", "b"], memo, question="cafe\u0301")
    refuses(ParameterError, "question must be Unicode", RAPPOR.perturb, ["a", "b"], memo, question="\ud800")


def collected(n: int = 3000) -> local.Accumulator:
    accumulator = RAPPOR.accumulator()
    accumulator.add(
        RAPPOR.perturb(["plum"] * n + ["pear"] * (n // 2), local.ClientMemo.generate(n + n // 2), question="fruit")
    )
    return accumulator


def test_states_and_messages() -> None:
    reports = RAPPOR.perturb(TEXTS * 20, local.ClientMemo.generate(100), question="fruit")
    accumulator = RAPPOR.accumulator()
    accumulator.add_messages(RAPPOR.messages(reports))
    assert local.Accumulator.from_bytes(accumulator.to_bytes()) == accumulator
    assert accumulator.n == 100
    refuses(TypeError, "use Rappor.estimate(accumulator", accumulator.estimate)
    other = local.Rappor(**SHAPE, f=0.25, p=0.3, q=0.7)
    refuses(ParameterError, "collected must be of", other.estimate, accumulator, ["plum"])
    refuses(ParameterError, "reports must have shape", RAPPOR.estimate, reports[:, :-1], ["plum"])


def test_an_estimate_is_a_table() -> None:
    state = collected()
    estimate = RAPPOR.estimate(state, ["fig", "plum", "pear"], level=0.9)
    wider = RAPPOR.estimate(state, ["fig", "plum", "pear"], level=0.9, simultaneous=True)
    assert estimate.candidates[-2:] == ["plum", "pear"]
    assert estimate.significant[-2:].all()
    assert np.all(np.abs(estimate.counts[-2:] - [3000, 1500]) < 7 * estimate.standard_errors[-2:])
    assert np.all(wider.upper - wider.lower > estimate.upper - estimate.lower)
    assert (estimate.n, estimate.rejected, estimate.level, wider.simultaneous) == (4500, 0, 0.9, True)
    columns = ["value", "count", "standard_error", "lower", "upper", "significant"]
    assert estimate.to_arrow().column_names == columns
    assert estimate.to_arrow()["value"].to_pylist() == estimate.candidates
    assert estimate.to_pandas()["count"].tolist() == estimate.to_polars()["count"].to_list() == estimate.counts.tolist()
    for array in (estimate.counts, estimate.significant):
        refuses(ValueError, "read-only", array.fill, 0)
    as_bytes = RAPPOR.estimate(state, [b"fig", b"plum", b"pear"], level=0.9)
    np.testing.assert_array_equal(as_bytes.counts, estimate.counts)


def test_candidates_that_cannot_be_decoded_are_refused() -> None:
    state = collected(100)
    refuses(TypeError, "candidates must be str or bytes, all of one type", RAPPOR.estimate, state, [1])
    refuses(ParameterError, "candidates must have different Bloom filters", RAPPOR.estimate, state, ["a", "b", "a"])
    assert RAPPOR.estimate(state, ["plum"], level=1e-200).significant.all()
    for level in (0.0, 1.0, float("nan")):
        refuses(
            ParameterError, "level must be between 0 and 1, exclusive", RAPPOR.estimate, state, ["plum"], level=level
        )
    one = local.Rappor(num_bloombits=8, num_hashes=1, num_cohorts=1, f=0.01, p=0.01, q=0.99)
    many = [str(i) for i in range(9)]
    refuses(ParameterError, "candidates must have different Bloom filters", one.estimate, one.accumulator(), many)
    message = "got the same for 'a' and 'a': list each text once"
    refuses(ParameterError, message, RAPPOR.estimate, state, ["b", "a", "c", "a"])


def bits_of(rappor: local.Rappor, texts: list[str]) -> np.ndarray:
    bits = np.empty((len(texts), rappor.num_cohorts, rappor.num_hashes), np.int64)
    rappor._native.bloom_bits(_inputs.fingerprints(texts, "texts"), bits)
    return bits


def test_bloom_filters_are_the_same_whichever_hash_functions_agree() -> None:
    rappor = local.Rappor(num_bloombits=8, num_hashes=3, num_cohorts=1, f=0.1, p=0.1, q=0.9)
    texts = [str(i) for i in range(300)]
    alike: dict[frozenset[int], dict[tuple[int, ...], str]] = {}
    for text, bits in zip(texts, np.sort(bits_of(rappor, texts)[:, 0]).tolist(), strict=True):
        alike.setdefault(frozenset(bits), {})[tuple(bits)] = text
    one, other = next(list(texts.values())[:2] for texts in alike.values() if len(texts) > 1)
    message = f"got the same for {one!r} and {other!r}"
    refuses(ParameterError, message, rappor.estimate, rappor.accumulator(), [one, other])


def test_as_many_texts_as_bits_tell_apart_have_errors() -> None:
    """Nothing is left in the residuals then; the counts are those of the bits, less that of the bit nobody has."""
    rappor = local.Rappor(num_bloombits=8, num_hashes=1, num_cohorts=1, f=0.05, p=0.1, q=0.9)
    texts = [str(i) for i in range(100)]
    own = dict(zip(bits_of(rappor, texts).ravel().tolist(), texts, strict=True))
    present = [own[bit] for bit in range(1, 8)]
    truth = np.arange(2000, 9000, 1000)
    reports = rappor.perturb(np.repeat(present, truth), local.ClientMemo.generate(truth.sum()), question="fruit")
    estimate = rappor.estimate(reports, present)
    assert estimate.candidates == present
    # Two bits, each of all people.
    told = np.array([0.9, 0.1]) @ np.array([[0.975, 0.025], [0.025, 0.975]])
    expected = np.sqrt(2 * truth.sum() * told.prod()) / (told[0] - told[1])
    np.testing.assert_allclose(estimate.standard_errors, expected, rtol=0.05)
    assert np.all(np.abs(estimate.counts - truth) < 7 * estimate.standard_errors)


def test_nothing_is_found_where_nothing_is() -> None:
    empty = RAPPOR.estimate(RAPPOR.accumulator(), ["plum"])
    assert (empty.candidates, empty.counts.shape, empty.n) == ([], (0,), 0)
    none = RAPPOR.estimate(collected(), [], simultaneous=True)
    assert (none.candidates, none.significant.shape, none.n) == ([], (0,), 4500)


def test_without_scipy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    refuses(
        ImportError,
        'decoding RAPPOR needs scipy.sparse: pip install "scipy>=1.11"',
        RAPPOR.estimate,
        collected(10),
        ["plum"],
    )
