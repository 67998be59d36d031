"""Local protocols against their definitions: the same reports from the same random words, and the same counts."""

from __future__ import annotations

import json
import struct
import unicodedata
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from dpnoise import ParameterError, local
from dpnoise.hazmat import ScriptedRng, SeededRng
from tests import local_families
from tests.vectors import local_spec, make_local

OF_OTHER_VALUES = (local.MeanProtocol, local.SquareWave, local.LongitudinalProtocol, local.PrefixExtension)
PROTOCOLS = [
    # Those of the vectors, whose values are few, and others.
    *(p for p in make_local.PROTOCOLS if not isinstance(p, OF_OTHER_VALUES + local_families.OF_TEXTS)),
    local.RandomizedResponse(epsilon=1.0),
    local.RandomizedResponse(p=0.8),
    local.OptimizedUnaryEncoding(k=128, epsilon=0.1),
    local.GeneralizedRandomizedResponse(k=70_001, epsilon=9.0),
    local.LocalHashing(k=2, epsilon=1.0),
    local.LocalHashing(k=128, epsilon=0.001),
    local.LocalHashing(k=1000, epsilon=6.0, g=300),
    local.LocalHashing(k=50_000, epsilon=0.1),
    local.LocalHashing(k=2**16, epsilon=9.0),
    local.LocalHashing(k=3, epsilon=20.0, g=65_536),
    local.HadamardResponse(k=2, epsilon=1.0),
    local.HadamardResponse(k=15, epsilon=25.0),
    local.HadamardResponse(k=129, epsilon=0.001),
    local.HadamardResponse(k=70_000, epsilon=3.0),
    local.SubsetSelection(k=2, epsilon=1.0),
    local.SubsetSelection(k=128, epsilon=0.001),
    local.SubsetSelection(k=1000, epsilon=6.0, omega=300),
    local.SubsetSelection(k=5000, epsilon=3.0),
    local.ThresholdHistogramEncoding(k=3, epsilon=9.0),
    local.SummationHistogramEncoding(k=2, epsilon=1.0),
    local.SummationHistogramEncoding(k=15, epsilon=0.01),
    local.SummationHistogramEncoding(k=1000, epsilon=32.0),
    local.HierarchicalRange(k=2, epsilon=1.0),
    local.HierarchicalRange(k=100, epsilon=0.001, branching=8),
    local.HierarchicalRange(k=500, epsilon=9.0),
    local.ProjectiveGeometryResponse(k=2, epsilon=1.0),
    local.ProjectiveGeometryResponse(k=15, epsilon=0.001),
    local.ProjectiveGeometryResponse(k=1000, epsilon=2.0),
    local.ProjectiveGeometryResponse(k=500, epsilon=3.0, prime=499),
    local.ProjectiveGeometryResponse(k=2**24, epsilon=1.0),
    local.ProjectiveGeometryResponse(k=300_000, epsilon=9.0),
]
OF_NUMBERS = [
    *(
        mean(epsilon=epsilon)
        for mean in (local.DuchiMean, local.PiecewiseMean, local.HybridMean)
        for epsilon in (1e-6, 0.5, 1.0, 4.0, 30.0)
    ),
    *(local.LaplaceMean(epsilon=epsilon) for epsilon in (1e-6, 1.0, 30.0)),
    *(local.GaussianMean(epsilon=epsilon, delta=1e-6) for epsilon in (1e-6, 1.0, 30.0)),
    local.SquareWave(k=2, epsilon=0.01),
    local.SquareWave(k=100, epsilon=1.0),
    local.SquareWave(k=4096, epsilon=6.0),
]
LONGITUDINAL = [
    local.LongitudinalUnaryEncoding(k=2, epsilon_permanent=2.0, epsilon_first=1.0),
    local.LongitudinalUnaryEncoding(k=15, epsilon_permanent=0.5, epsilon_first=0.4, permanent="symmetric"),
    local.LongitudinalUnaryEncoding(k=700, epsilon_permanent=4.0, epsilon_first=0.01),
    local.LOLOHA(k=2, epsilon_permanent=2.0, epsilon_first=1.0),
    local.LOLOHA(k=15, epsilon_permanent=0.5, epsilon_first=0.01),
    local.LOLOHA(k=1000, epsilon_permanent=3.0, epsilon_first=2.0, g=200),
    local.LOLOHA(k=2**24, epsilon_permanent=2.0, epsilon_first=1.0, g=3),  # many words are rejected
    local.DBitFlip(k=2, d=1, epsilon=1.0),
    local.DBitFlip(k=15, d=15, epsilon=0.1),
    local.DBitFlip(k=700, d=40, epsilon=3.0),
]


def answers(protocol: local.Protocol, values: np.ndarray) -> np.ndarray:
    return values.astype(bool) if isinstance(protocol, local.RandomizedResponse) else values


def script(seed: int, length: int = 1_500_000) -> bytes:
    return np.random.default_rng(seed).bytes(length)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_the_same_words_give_the_same_reports(protocol: local.Protocol) -> None:
    spec = json.loads(protocol.to_json())
    n = 2100 if spec["protocol"] in local_spec.NUMBERS else 60
    values = np.arange(n) * 7919 % protocol.k
    stream = script(protocol.k)
    expected, left = local_spec.perturb(spec, values.tolist(), stream)
    rng = ScriptedRng(stream[: len(stream) - left])
    assert protocol.perturb(answers(protocol, values), rng=rng).tobytes() == expected
    assert protocol.report_bytes == local_spec.report_bytes(spec)


def secrets_of(n: int) -> list[bytes]:
    return [sha256(f"secret {i}".encode()).digest() for i in range(n)]


@pytest.mark.parametrize("protocol", LONGITUDINAL, ids=repr)
def test_the_same_words_and_secrets_give_the_same_reports(protocol: local.LongitudinalProtocol) -> None:
    spec = json.loads(protocol.to_json())
    n = 1100 if spec["protocol"] in local_spec.NUMBERS else 60
    values, secrets, stream = np.arange(n) * 7919 % protocol.k, secrets_of(n), script(protocol.k, 500_000)
    memo = local.ClientMemo.from_bytes(local_spec.memo(secrets))
    for first in (0, 20):  # people who are asked again, together with others or without them
        expected, left = local_spec.perturb_remembering(spec, values[first:].tolist(), secrets[first:], "ä?", stream)
        rng = ScriptedRng(stream[: len(stream) - left])
        assert protocol.perturb(values[first:], memo[first:], question="ä?", rng=rng).tobytes() == expected
        assert rng.remaining == 0
    assert protocol.report_bytes == local_spec.report_bytes(spec)


def test_another_secret_purpose_or_specification_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control of what is derived."""
    protocol = local.DBitFlip(k=40, d=30, epsilon=1.0)
    spec, secrets = json.loads(protocol.to_json()), secrets_of(3)
    reports = protocol.perturb([1, 2, 3], local.ClientMemo.from_bytes(local_spec.memo(secrets)), question="a").tobytes()

    def expected(spec: dict[str, Any], secrets: list[bytes], question: str = "a") -> bytes:
        return local_spec.perturb_remembering(spec, [1, 2, 3], secrets, question, b"")[0]

    assert expected(spec, secrets) == reports
    assert expected(spec, secrets[::-1]) != reports
    assert expected({**spec, "epsilon": 2.0}, secrets) != reports
    assert expected(spec, secrets, "b") != reports
    monkeypatch.setattr(local_spec, "KEY_OF_ANSWERS", 3)
    assert expected(spec, secrets) != reports


@pytest.mark.parametrize("protocol", OF_NUMBERS, ids=repr)
def test_the_same_words_give_the_same_reports_on_numbers(protocol: local.SquareWave | local.MeanProtocol) -> None:
    spec = json.loads(protocol.to_json())
    numbers = np.concatenate([np.linspace(0, 1, 1600), [1e-300, 2.0**-63, 2.0**-62, 1e-10, 1.0 - 2.0**-53]])
    if isinstance(protocol, local.MeanProtocol):
        numbers = np.concatenate([numbers, -numbers])
    stream = script(1)
    expected, left = local_spec.perturb(spec, numbers.tolist(), stream)
    reports = protocol.perturb(numbers, rng=ScriptedRng(stream[: len(stream) - left]))
    assert reports.tobytes() == expected
    any_bytes = np.frombuffer(script(3, 50 * protocol.report_bytes), np.uint8).reshape(50, -1)
    some = np.vstack([reports[:50], any_bytes])
    accumulator = protocol.accumulator()
    accumulator.add(some)
    header = local_spec.message_header(protocol.to_json())
    assert accumulator.to_bytes() == local_spec.state(protocol.to_json(), [header + row.tobytes() for row in some])


@pytest.mark.parametrize("field", ["width", "k"])
def test_another_window_is_noticed(field: str) -> None:
    """The positive control: a window or a grid that is one larger."""
    protocol = local.PiecewiseMean(epsilon=4.0)
    spec = json.loads(protocol.to_json())
    numbers = np.linspace(-1, 1, 1000).tolist()
    other, _ = local_spec.perturb({**spec, field: spec[field] + 1}, numbers, script(1))
    assert protocol.perturb(numbers, rng=ScriptedRng(script(1))).tobytes() != other


def test_another_definition_is_noticed() -> None:
    """The positive control: a hash that takes the residue itself modulo g."""
    protocol = local.LocalHashing(k=15, epsilon=1.0)
    spec = json.loads(protocol.to_json())
    values = (np.arange(200) % 15).tolist()
    expected, _ = local_spec.perturb(spec, values, script(1))
    other, _ = local_spec.perturb({**spec, "prime": 19}, values, script(1))
    assert protocol.perturb(values, rng=ScriptedRng(script(1))).tobytes() == expected != other


def reports_on(protocol: local.Protocol, values: np.ndarray) -> np.ndarray:
    given = answers(protocol, values)
    if isinstance(protocol, local.LongitudinalProtocol):
        memo = local.ClientMemo.from_bytes(local_spec.memo(secrets_of(len(values))))
        return protocol.perturb(given, memo, question="a")
    return protocol.perturb(given, rng=SeededRng(2)).view(np.uint8).reshape(-1, protocol.report_bytes)


@pytest.mark.parametrize("protocol", [p for p in (*PROTOCOLS, *LONGITUDINAL) if p.k <= 1000], ids=repr)
def test_reports_count_for_what_they_are_defined_to(protocol: local.Protocol) -> None:
    spec = json.loads(protocol.to_json())
    width = protocol.report_bytes
    good = reports_on(protocol, np.arange(300) % 2)
    any_bytes = np.frombuffer(script(3, 300 * width), np.uint8).reshape(-1, width)
    reports = np.vstack([good, any_bytes])
    supported = [local_spec.supports(spec, report.tobytes()) for report in reports]
    expected = np.sum([found for found in supported if found is not None], axis=0)
    n = sum(found is not None for found in supported)
    accumulator = protocol.accumulator()
    accumulator.add(reports)
    counters, counted, rejected = accumulator._state.counters()
    assert (counters.tolist(), counted, rejected) == (expected.tolist(), n, len(reports) - n)


SKETCHES = [
    local.CountMeanSketch(epsilon=4.0, rows=1, width=8),
    local.CountMeanSketch(epsilon=1.0, rows=300, width=128, seed=2**32 - 1),
    local.CountMeanSketch(epsilon=0.1, rows=3, width=2**13, seed=7),
    local.HadamardCountMeanSketch(epsilon=1.0, rows=1, width=8),
    local.HadamardCountMeanSketch(epsilon=25.0, rows=300, width=128, seed=2**32 - 1),
    local.HadamardCountMeanSketch(epsilon=0.001, rows=16, width=2**20),
]


@pytest.mark.parametrize("protocol", SKETCHES, ids=repr)
def test_the_same_words_give_the_same_reports_on_texts(protocol: Any) -> None:
    spec = json.loads(protocol.to_json())
    texts = [f"{i * i % 17} plums".encode() for i in range(2100 if spec["protocol"] in local_spec.NUMBERS else 60)]
    stream = script(protocol.rows)
    expected, left = local_spec.perturb(spec, [local_spec.fingerprint(text) for text in texts], stream)
    rng = ScriptedRng(stream[: len(stream) - left])
    assert protocol.perturb(texts, rng=rng).tobytes() == expected
    assert protocol.report_bytes == local_spec.report_bytes(spec)


@pytest.mark.parametrize(
    "protocol",
    [
        local.PrefixExtension(epsilon=1.0, bits=1, step=1, rows=1, width=8),
        local.PrefixExtension(epsilon=5.0, bits=20, step=16, rows=300, width=64, seed=2**32 - 1),
        local.PrefixExtension(epsilon=0.01, bits=63, step=8, rows=10, width=1024),
    ],
    ids=repr,
)
def test_the_same_words_give_the_same_reports_on_prefixes(protocol: Any) -> None:
    spec = json.loads(protocol.to_json())
    values = [i * 7919**4 % 2**protocol.bits for i in range(2100)]
    stream = script(protocol.bits)
    expected, left = local_spec.perturb(spec, values, stream)
    rng = ScriptedRng(stream[: len(stream) - left])
    assert protocol.perturb(values, rng=rng).tobytes() == expected
    assert protocol.report_bytes == local_spec.report_bytes(spec)


@pytest.mark.parametrize(
    "protocol",
    [
        local.Rappor(num_bloombits=8, num_hashes=1, num_cohorts=1, f=0.5, p=0.5, q=0.75),
        local.Rappor(num_bloombits=64, num_hashes=3, num_cohorts=300, f=0.3, p=0.01, q=0.2),
        local.Rappor(num_bloombits=2**13, num_hashes=16, num_cohorts=5, f=0.9, p=0.3, q=0.31),
    ],
    ids=repr,
)
def test_the_same_words_and_secrets_give_the_same_reports_on_texts(protocol: local.Rappor) -> None:
    spec, n = json.loads(protocol.to_json()), 50
    texts, secrets, stream = [f"{i * i % 17} plums".encode() for i in range(n)], secrets_of(n), script(1, 900_000)
    memo, values = local.ClientMemo.from_bytes(local_spec.memo(secrets)), [local_spec.fingerprint(x) for x in texts]
    for first in (0, 20):
        expected, left = local_spec.perturb_remembering(spec, values[first:], secrets[first:], "ä?", stream)
        rng = ScriptedRng(stream[: len(stream) - left])
        assert protocol.perturb(texts[first:], memo[first:], question="ä?", rng=rng).tobytes() == expected
        assert rng.remaining == 0
    assert protocol.report_bytes == local_spec.report_bytes(spec)


VECTORS, COLLECTIONS = (json.loads(path.read_text(encoding="utf-8")) for path in (make_local.TARGET, make_local.ABOUT))


def test_the_documentation_has_the_codes_of_all_protocols() -> None:
    assert {family.name: family.code for family in local.FAMILIES.values()} == local_spec.CODES


def test_the_vectors_are_those_of_this_release() -> None:
    assert [json.loads(vector["specification"])["protocol"] for vector in VECTORS] == [
        json.loads(protocol.to_json())["protocol"] for protocol in make_local.PROTOCOLS
    ]
    assert make_local.text() == make_local.TARGET.read_text(encoding="utf-8")
    assert make_local.text_about() == make_local.ABOUT.read_text(encoding="utf-8")


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["specification"])
def test_a_vector_follows_from_the_definitions(vector: dict[str, Any]) -> None:
    spec = json.loads(vector["specification"])
    assert vector["spec_id"] == sha256(vector["specification"].encode()).hexdigest()[:16]
    values = vector["values"]
    if spec["protocol"] == "randomized_response":
        values = [value == 1 for value in values]
    if spec["protocol"] in local_spec.OF_TEXTS:
        values = [local_spec.fingerprint(text.encode()) for text in values]
    random = bytes.fromhex(vector["random"])
    if "memo" in vector:
        secrets = [bytes(secret) for (secret,) in struct.iter_unpack("32s", bytes.fromhex(vector["memo"])[16:-4])]
        assert local_spec.memo(secrets).hex() == vector["memo"]
        expected, left = local_spec.perturb_remembering(spec, values, secrets, vector["question"], random)
    else:
        expected, left = local_spec.perturb(spec, values, random)
    assert (expected.hex(), left) == ("".join(vector["reports"]), 0)
    assert local_spec.supports(spec, bytes.fromhex(vector["malformed"])) is None
    received = [bytes.fromhex(message) for message in vector["messages"]]
    header = local_spec.message_header(vector["specification"])
    assert [message for message in received if message.startswith(header)][:-1] == [
        header + bytes.fromhex(report) for report in vector["reports"]
    ]
    assert local_spec.state(vector["specification"], received).hex() == vector["state"]


@pytest.mark.parametrize("vector", COLLECTIONS, ids=lambda vector: vector["specification"])
def test_a_collection_follows_from_the_definitions(vector: dict[str, Any]) -> None:
    text, document = vector["specification"], json.loads(vector["document"])
    spec = json.loads(text)
    assert text == local_spec.canonical(spec)
    assert vector["spec_id"] == sha256(text.encode()).hexdigest()[:16]
    assert vector["bare_digest"] == local_spec.bare_digest(spec).hex()
    assert (vector["question"], vector["period"]) == (spec.get("question"), spec.get("period"))
    assert all(local_spec.may_be_asked(spec[name], most) for name, most in local_spec.ABOUT.items() if name in spec)
    if "labels" in spec:
        assert (document.keys(), document["dpnoise.protocol"]) == ({"dpnoise.domain", "dpnoise.protocol"}, text)
        names = [name for name, _ in spec.get("attributes", [])]
        assert spec["labels"] == local_spec.labels_digest(local_spec.listed(document["dpnoise.domain"], names))
    else:
        assert document == spec
    received = [bytes.fromhex(message) for message in vector["messages"]]
    header = local_spec.message_header(text)
    assert [message.startswith(header) for message in received] == [True, True, text == make_local.SURVEY.to_json()]
    if "attributes" not in spec:
        assert local_spec.state(text, received).hex() == vector["state"]
    if "memo" in vector:
        secrets = [bytes(secret) for (secret,) in struct.iter_unpack("32s", bytes.fromhex(vector["memo"])[16:-4])]
        assert local_spec.memo(secrets).hex() == vector["memo"]
        assert local_spec.memo(secrets, [(spec["question"], spec)]).hex() == vector["memo_afterwards"]


def test_permanent_answers_depend_on_the_question_alone() -> None:
    """Labels and period change nothing of what a person answers, and neither does a question in the specification."""
    secrets, stream, values = secrets_of(20), script(1), (np.arange(20) % 15).tolist()
    bare = local.DBitFlip(k=15, d=4, epsilon=1.0)
    expected, _ = local_spec.perturb_remembering(json.loads(bare.to_json()), values, secrets, "colour", stream)
    for protocol in (bare, bare.about(question="colour", period="2026-W48"), bare.about(domain=range(15))):
        spec = json.loads(protocol.to_json())
        assert local_spec.perturb_remembering(spec, values, secrets, "colour", stream)[0] == expected
        memo = local.ClientMemo.from_bytes(local_spec.memo(secrets))
        assert protocol.perturb(values, memo, question="colour").tobytes() == expected


@pytest.mark.parametrize("name", ["question", "period"])
def test_every_character_that_is_not_seen_is_refused(name: str) -> None:
    protocol = local.RandomizedResponse(epsilon=1.0)
    most = local_spec.ABOUT[name]
    for code in (*range(0x3100), *range(0xF900, 0x10100), *range(0xDFF00, 0xE0200)):
        text = f"a{chr(code)}b"
        if 0xD800 <= code < 0xE000 or not unicodedata.is_normalized("NFC", text):
            continue
        if local_spec.may_be_asked(text, most):
            assert getattr(protocol.about(**{name: text}), name) == text
        else:
            with pytest.raises(ParameterError, match="characters that are not seen"):
                protocol.about(**{name: text})
    lengths = (*("\u00e9" * n for n in (31, 32, 127, 128)), "x" * most, "x" * (most + 1))
    for text in ("", " ", " a", "a ", "a b", "\u00a0a", *lengths):
        if local_spec.may_be_asked(text, most):
            protocol.about(**{name: text})
        else:
            with pytest.raises(ParameterError, match=f"^{name} must be of 1 to {most} bytes of UTF-8"):
                protocol.about(**{name: text})


def test_bounds_are_written_as_doubles_of_specifications() -> None:
    for power in range(-324, 307):
        for digits in ("1", "-1", "1.5", "9.87654321"):
            upper = float(f"{digits}e{power}")
            if upper == 0:
                continue
            lower = -2.0 - 2 * abs(upper)
            protocol = local.DuchiMean(epsilon=1.0).about(bounds=(lower, upper))
            expected = local_spec.labels_digest(local_spec.listed([lower, upper], []))
            assert json.loads(protocol.to_json())["labels"] == expected, upper
