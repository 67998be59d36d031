"""The key stream of a seed, word for word."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from vectors.key_stream import GROUP, key_stream

from dpnoise import hazmat, samplers


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_a_seed_gives_the_specified_stream(seed: int) -> None:
    key = hashlib.sha256(b"dpnoise seed " + seed.to_bytes(8, "little")).digest()
    script = hazmat.ScriptedRng(key_stream(key, 200))
    seeded = hazmat.SeededRng(seed)
    for n in (1, 1000, 7):  # the requests do not end with a group
        expected = samplers.discrete_laplace(2**40, size=n, rng=script)
        assert np.array_equal(samplers.discrete_laplace(2**40, size=n, rng=seeded), expected)
    assert script.remaining < 200 * GROUP - 20_000


def test_the_published_vector_is_reproduced() -> None:
    # ChaCha12 under a key of zeros, draft-strombergson-chacha-test-vectors-01, section 2.1: the first words of block 0.
    words = np.frombuffer(key_stream(bytes(32), 1), "<u4").reshape(16, 16)
    assert words[:4, 0].tobytes() == bytes.fromhex("9bf49a6a0755f953811fce125f2683d5")
