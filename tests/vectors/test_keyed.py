"""Keyed noise from its definition: HMAC, the place of each block in the stream, and the samplers' words."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from vectors.key_stream import key_stream
from vectors.noise_spec import Digits, noise

from dpnoise import hazmat, keyed, samplers

GOLDEN = json.loads((Path(__file__).parent / "keyed.json").read_text(encoding="utf-8"))

BLOCK = 4096
GROUPS = 1 << 8
"""More groups of words than a block of samples takes."""


def identity(distribution: str, scale: Fraction, exponent: int | None, radius: int | None) -> bytes:
    """Give what a distribution is bound by: shape, signs, the scale in steps, the grid's exponent or the radius."""
    shape = {
        "discrete_laplace": b"e-",
        "discrete_gaussian": b"g-",
        "geometric": b"e+",
        "laplace": b"e-",
        "gaussian": b"g-",
    }[distribution]
    steps = scale if exponent is None else scale / Fraction(2) ** exponent
    if isinstance(noise({b"e-": "laplace", b"g-": "gaussian", b"e+": "geometric"}[shape], steps), Digits):
        shape = shape.upper()
    parts = steps.numerator.to_bytes(16, "little") + steps.denominator.to_bytes(16, "little")
    grid = b"" if exponent is None else exponent.to_bytes(4, "little", signed=True)
    return shape + parts + grid + (b"" if radius is None else radius.to_bytes(8, "little"))


def block(key: bytes, ticket: keyed.Ticket, vector: dict[str, Any], index: int) -> NDArray[Any]:
    """Give a block of samples, from the words that the definition says."""
    exponent, domain = vector["exponent"], ticket.domain.encode()
    message = b"dpnoise keyed 1" + len(domain).to_bytes(8, "little") + domain + ticket.step.to_bytes(8, "little")
    bound = identity(vector["distribution"], Fraction(vector["scale"]), exponent, vector.get("radius"))
    subkey = hmac.new(key, message + ticket.nonce + bound, hashlib.sha256).digest()
    words = hazmat.ScriptedRng(key_stream(subkey, GROUPS, index << 32))
    draw = getattr(samplers, vector["distribution"])
    options: dict[str, Any] = {} if exponent is None else {"granularity": 2.0**exponent}
    if "radius" in vector:
        options["radius"] = vector["radius"]
    samples: NDArray[Any] = draw(Fraction(vector["scale"]), size=BLOCK, rng=words, **options)
    return samples


def digest(samples: NDArray[Any]) -> str:
    return hashlib.sha256(samples.tobytes()).hexdigest()


@pytest.mark.parametrize("vector", GOLDEN["draws"], ids=lambda vector: f"{vector['distribution']}-{vector['scale']}")
def test_golden_vectors(vector: dict[str, Any]) -> None:
    secret = bytes.fromhex(GOLDEN["key"])
    key, ticket = keyed.NoiseKey.from_secret_bytes(secret), keyed.Ticket.from_bytes(bytes.fromhex(vector["ticket"]))
    start, size = vector["start"], vector["size"]
    granularity = None if vector["exponent"] is None else 2.0 ** vector["exponent"]
    scale = Fraction(vector["scale"])
    options = {"granularity": granularity, "radius": vector.get("radius")}
    samples = hazmat.regenerate(key, ticket, vector["distribution"], scale, size=size, start=start, **options)
    assert digest(samples) == vector["sha256"]
    assert samples[:4].tolist() == vector["first"]
    first, last = start // BLOCK, (start + size - 1) // BLOCK
    expected = np.concatenate([block(secret, ticket, vector, index) for index in range(first, last + 1)])
    assert np.array_equal(samples, expected[start - first * BLOCK :][:size])


def test_fingerprints_and_tickets() -> None:
    secret = bytes.fromhex(GOLDEN["key"])
    key = keyed.NoiseKey.from_secret_bytes(secret)
    assert key.fingerprint == hmac.new(secret, b"dpnoise fingerprint 1", hashlib.sha256).digest()[:8]
    ticket = key.ticket(2**40 + 3, domain="käse")
    body = b"DPNT\1" + key.fingerprint + (2**40 + 3).to_bytes(8, "little") + ticket.nonce + "käse".encode()
    assert ticket.to_bytes()[:-4] == body


@pytest.mark.parametrize("instruction_set", ["portable", "avx2", "avx512", "neon"])
def test_every_instruction_set_gives_them(instruction_set: str) -> None:
    program = "import json; from tests.vectors import make_keyed as made; print(json.dumps(made.vectors()))"
    environment = {**os.environ, "DPNOISE_INSTRUCTION_SET": instruction_set}
    command = [sys.executable, "-c", program]
    root = Path(__file__).parents[2]
    run = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if "DPNOISE_INSTRUCTION_SET must be unset or an instruction set of this CPU" in run.stderr:
        pytest.skip(f"this CPU has no {instruction_set}")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == GOLDEN["draws"]
