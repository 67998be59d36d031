"""Make tests/vectors/local.json: reports of every local protocol on given random bytes, and what a collector counts.

It is for whoever writes a client or a collector in another language. All bytes are in hexadecimal. Run by
``python -m tests.vectors.make_local``.
"""

import json
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


def text() -> str:
    """Return what belongs into the file."""
    return "[\n" + ",\n".join(json.dumps(vector(protocol)) for protocol in PROTOCOLS) + "\n]\n"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
