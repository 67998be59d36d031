"""Make tests/vectors/local.json: reports of every local protocol on given random bytes, and what a collector counts.

In about.json are collections whose specifications say what reports are about. Both are for whoever writes a client or a
collector in another language. All bytes are in hexadecimal. Run by ``python -m tests.vectors.make_local``.
"""

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnoise import local
from dpnoise.hazmat import ScriptedRng
from tests.vectors import local_spec

TARGET = Path(__file__).with_name("local.json")
PROTOCOLS = [
    local.RandomizedResponse.coin_flips(),
    local.SymmetricUnaryEncoding(k=5, epsilon=1.0),
    local.OptimizedUnaryEncoding(k=15, epsilon=1.0),
    local.UnaryEncoding(k=9, p=0.75, q=0.25),
    local.GeneralizedRandomizedResponse(k=15, epsilon=1.0),
    local.GeneralizedRandomizedResponse(k=1000, epsilon=5.0),
    local.LocalHashing(k=15, epsilon=1.0),
    local.LocalHashing(k=300, epsilon=0.1),
    local.HadamardResponse(k=15, epsilon=1.0),
    local.HadamardResponse(k=300, epsilon=0.1),
    local.SubsetSelection(k=15, epsilon=1.0),
    local.SubsetSelection(k=40, epsilon=0.1),
    local.LongitudinalUnaryEncoding(k=15, epsilon_permanent=2.0, epsilon_first=1.0),
    local.LongitudinalUnaryEncoding(k=9, epsilon_permanent=1.0, epsilon_first=0.9, permanent="symmetric"),
    local.LOLOHA(k=15, epsilon_permanent=2.0, epsilon_first=1.0),
    local.LOLOHA(k=300, epsilon_permanent=1.0, epsilon_first=0.1),
    local.DBitFlip(k=15, d=4, epsilon=1.0),
    local.DBitFlip(k=40, d=1, epsilon=0.1),
    local.LaplaceMean(epsilon=1.0),
    local.DuchiMean(epsilon=1.0),
    local.PiecewiseMean(epsilon=10.0),
    local.HybridMean(epsilon=10.0),
    local.SquareWave(k=15, epsilon=1.0),
    local.ThresholdHistogramEncoding(k=15, epsilon=1.0),
    local.SummationHistogramEncoding(k=3, epsilon=1.0),
    local.CountMeanSketch(epsilon=2.0, rows=3, width=16, seed=1),
    local.HadamardCountMeanSketch(epsilon=1.0, rows=5, width=8),
    local.HierarchicalRange(k=6, epsilon=1.0),
    local.PrefixExtension(epsilon=1.0, bits=20, step=8, rows=2, width=8),
    local.Rappor(num_bloombits=16, num_hashes=2, num_cohorts=3, f=0.3, p=0.5, q=0.75),
    local.ProjectiveGeometryResponse(k=15, epsilon=1.0),
    local.ProjectiveGeometryResponse(k=300, epsilon=2.0),
    local.GaussianMean(epsilon=1.0, delta=1e-6),
]
PROTOCOLS += [family.example() for family in local.FAMILIES.values() if family.protocol not in map(type, PROTOCOLS)]
PEOPLE = 8

ABOUT = TARGET.with_name("about.json")
SURVEY = local.OptimizedUnaryEncoding(domain=["red", "green", "blue"], epsilon=2.0)
HOSTILE = ["", "1", 'a "b" \\ \n\x7f', "th\u00e9", "the\u0301", "\N{HOT BEVERAGE}", "\N{GRINNING FACE}"]
ASKED = 'Caf\u00e9 "deux" / trois \\ \N{GRINNING FACE} \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645'
COLLECTIONS = [
    SURVEY,
    SURVEY.about(question="favourite colour", period="2026-W48"),
    SURVEY.about(question="favourite colour", period="2026-W49"),
    SURVEY.about(question="favourite colour", period="2026-W48", domain=["green", "red", "blue"]),
    local.OptimizedUnaryEncoding(k=3, epsilon=2.0).about(question="favourite colour"),
    local.OptimizedUnaryEncoding(k=3, epsilon=2.0).about(period="2026-11"),
    local.GeneralizedRandomizedResponse(domain=HOSTILE, epsilon=1.0).about(question=ASKED, period="\u00e9t\u00e9 2026"),
    local.HadamardResponse(domain=[-1, 0, 2**63 - 1], epsilon=1.0).about(question="q" * 255, period="p" * 63),
    local.RandomizedResponse(domain=[False, True], epsilon=1.0).about(question="\N{GRINNING FACE}" * 63),
    local.DuchiMean(epsilon=1.0).about(question="age in years", period="2026-11", bounds=(0, 100)),
    local.LaplaceMean(epsilon=1.0).about(bounds=(-1e-7, 2.5e22)),
    local.CountMeanSketch(epsilon=2.0, rows=3, width=16, seed=1).about(question="favourite word"),
    local.LongitudinalUnaryEncoding(domain=["a", "b", "c"], epsilon_permanent=2.0, epsilon_first=1.0).about(
        question="colour", period="2026-W48"
    ),
    *(
        scheme(
            attributes={
                "age": local.DuchiMean(epsilon=1.0).about(bounds=(0, 100)),
                "smokes": local.RandomizedResponse(epsilon=1.0),
                "\N{HOT BEVERAGE}": local.GeneralizedRandomizedResponse(domain=["tea", "coffee"], epsilon=1.0),
            }
        ).about(question="habits", period="2026")
        for scheme in (local.Sampled, local.Split)
    ),
]


def random_bytes(label: str, length: int) -> bytes:
    """Return bytes that anyone can make again: SHA-256 of a label and a counter, joined."""
    blocks = [sha256(f"{label} {i}".encode()).digest() for i in range(length // 32 + 1)]
    return b"".join(blocks)[:length]


def answers(protocol: Any) -> NDArray[Any]:
    """Return what people report on."""
    if isinstance(protocol, local.MeanProtocol):
        return np.linspace(-1.0, 1.0, PEOPLE)
    if isinstance(protocol, local.SquareWave):
        return np.linspace(0.0, 1.0, PEOPLE)
    if isinstance(protocol, local.CountMeanSketch | local.HadamardCountMeanSketch | local.Rappor):
        return np.array(["", "plum", "plum", "crème brûlée", "a" * 52, "b" * 53, "c" * 200, "naïve"])
    if isinstance(protocol, local.PrefixExtension):
        return np.arange(PEOPLE) ** 2 * 20_000
    values = np.arange(PEOPLE) * 7 % protocol.k
    return values == 1 if isinstance(protocol, local.RandomizedResponse) else values


def memo_of(protocol: Any) -> bytes | None:
    """Return the memo of the people, if they keep one."""
    if not isinstance(protocol, local.LongitudinalProtocol | local.Rappor):
        return None
    return local_spec.memo([random_bytes(f"person {i}", 32) for i in range(PEOPLE)])


def vector(protocol: Any) -> dict[str, Any]:
    """Return the vector of a protocol."""
    given = answers(protocol)
    stream = random_bytes(protocol.to_json(), 4096)
    rng = ScriptedRng(stream)
    memo = memo_of(protocol)
    remembered = {"memo": local.ClientMemo.from_bytes(memo), "question": "colour"} if memo else {}
    reports = protocol.perturb(given, **remembered, rng=rng).view(np.uint8).reshape(PEOPLE, -1)
    malformed = bytes([0xFF]) * protocol.report_bytes
    messages = [*protocol.messages(reports), protocol.messages(reports)[0][:-1], b"DP" + bytes(12)]
    accumulator = protocol.accumulator()
    accumulator.add_messages(messages)
    return {
        "specification": protocol.to_json(),
        "spec_id": protocol.spec_id,
        "values": given.astype(int if given.dtype == bool else given.dtype).tolist(),
        **({"memo": memo.hex(), "question": "colour"} if memo else {}),
        "random": stream[: len(stream) - rng.remaining].hex(),
        "reports": [report.tobytes().hex() for report in reports],
        "messages": [message.hex() for message in messages],
        "malformed": malformed.hex(),
        "state": accumulator.to_bytes().hex(),
    }


def collection(protocol: Any) -> dict[str, Any]:
    """Return the vector of a collection: what is announced, the memo if there is one, messages, and their state."""
    memo = memo_of(protocol)
    given = memo and local.ClientMemo.from_bytes(memo)
    if given:
        protocol.perturb([protocol.domain[0]] * PEOPLE, given, question=protocol.question)
    rows = np.zeros((2, protocol.report_bytes), np.uint8)
    messages = [*protocol.messages(rows), *SURVEY.messages(np.zeros((1, SURVEY.report_bytes), np.uint8))]
    accumulator = protocol.accumulator()
    accumulator.add_messages(messages)
    return {
        "specification": protocol.to_json(),
        "document": protocol.to_document(),
        "spec_id": protocol.spec_id,
        "bare_digest": protocol.bare_digest.hex(),
        "question": protocol.question,
        "period": protocol.period,
        **({"memo": memo.hex(), "memo_afterwards": given.to_bytes().hex()} if memo and given else {}),
        "messages": [message.hex() for message in messages],
        "state": accumulator.to_bytes().hex(),
    }


def text() -> str:
    """Return what belongs into the file of protocols."""
    return _lines(map(vector, PROTOCOLS))


def text_about() -> str:
    """Return what belongs into the file of collections."""
    return _lines(map(collection, COLLECTIONS))


def _lines(vectors: Iterable[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(map(json.dumps, vectors)) + "\n]\n"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
    ABOUT.write_text(text_about(), encoding="utf-8")
