"""Every instruction set gives the same samples and reports from the same words, bit for bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpnoise import local

# Samples of every layout and of the rare paths, reports, and bytes, from one seeded stream each.
PROGRAM = """
import hashlib
from fractions import Fraction
import numpy as np
from dpnoise import AboveThreshold, Exponential, ReportNoisyMax, TopK
from dpnoise import _native, hazmat, instruction_set, local, samplers, sgd
digest = hashlib.sha256(hashlib.sha256(str({seed}).encode()).digest())
out = np.empty(100_000, np.int64)
designs = [(29, 0), (4, 0), (4, 2), (29, 29), (29, 30), (29, 38)]
tables = [("skellam", 3), ("skellam", 1000), ("staircase", 1, (88, 30)), ("negative_binomial_share", 10, 7)]
for table in tables:
    _native.Sampler(*table).fill(out, 1, hazmat.SeededRng({seed}))
    digest.update(out.tobytes())
others = set(samplers.__all__) - {{table[0] for table in tables}}
kinds = {{name: type(getattr(samplers, name)(1)) for name in sorted(others)}}
scales = (Fraction(1, 1000), 1, Fraction(432, 89), 10, 1000, 10**6, 2**31 - 1, Fraction(2**35 + 1, 3), 2**40)
for scale in scales:
    for distribution in (name for name, kind in kinds.items() if kind is int):
        _native.Sampler(distribution, scale).fill(out, 1, hazmat.SeededRng({seed}))
        digest.update(out.tobytes())
        for eta_bits, shift in designs:
            # Only a layout that is not too coarse or too fine for the scale leaves room for all weights.
            if not 0.5 <= scale / 2**shift <= 100:
                continue
            small = out[:20_000]
            _native.Sampler(distribution, scale, design=(eta_bits, shift)).fill(small, 1, hazmat.SeededRng({seed}))
            digest.update(small.tobytes())
for scale in (1e-300, 0.3, 7.0, 1e200):
    for distribution in (name for name, kind in kinds.items() if kind is float):
        real = np.empty(5_001)
        _native.Sampler(distribution, scale).fill(real, 1, hazmat.SeededRng({seed}))
        digest.update(real.tobytes())
for exponent in (-1019, -40, 0, 900):
    values = np.ldexp(np.arange(5_000) - 2500.5, np.arange(5_000) % 2000 - 1040)
    for epsilon in (1.0, 2.0**-38):  # the noise is added at once, or in two parts
        released = values.copy()
        step = 2.0**exponent
        mechanism = _native.Additive("laplace", epsilon=epsilon, sensitivity=step, granularity=step)
        mechanism.release(released, 1, hazmat.SeededRng({seed}))
        digest.update(released.tobytes())
for p in (0.5, 0.1, 1e-5, 1e-300):
    coins = np.empty(5_000, bool)
    for distribution in (name for name, kind in kinds.items() if kind is bool):
        _native.Sampler(distribution, p).fill(coins, 1, hazmat.SeededRng({seed}))
        digest.update(coins.tobytes())
for count in (1, 10, 2049, 5000):
    scores = np.cos(np.arange(count)) * np.arange(count) % 17
    rng = hazmat.SeededRng({seed})
    for mechanism in (Exponential(epsilon=1.0), ReportNoisyMax(epsilon=0.3), TopK(k=1, epsilon=0.1)):
        for _ in range(20):
            digest.update(str(mechanism.release(scores, rng=rng)).encode())
for n, d in ((3, 5), (20, 1000)):
    rows = np.ldexp(np.cos(np.arange(n * d)), np.arange(n * d) % 37 - 30).reshape(n, d)
    noisy = sgd.NoisyGradient(clip_norm=0.7, noise_multiplier=1.1, expected_batch_size=3.0)
    for gradients in (rows, rows.astype(np.float32), np.where(rows > 0.9, np.nan, rows)):
        digest.update(noisy.release(gradients, rng=hazmat.SeededRng({seed})).tobytes())
above = AboveThreshold(epsilon=0.1, threshold=3.0, max_positives=50)
digest.update(above.release(np.arange(100) % 7, rng=hazmat.SeededRng({seed})).tobytes())
for k in (2, 15, 128, 1000):
    protocol = local.OptimizedUnaryEncoding(k=k, epsilon=1.0)
    digest.update(protocol.perturb(np.arange(5000) % k, rng=hazmat.SeededRng({seed})).tobytes())
    response = local.GeneralizedRandomizedResponse(k=k, epsilon=1.0)
    digest.update(response.perturb(np.arange(5000) % k, rng=hazmat.SeededRng({seed})).tobytes())
    hashing = local.LocalHashing(k=k, epsilon=1.0)
    reports = hashing.perturb(np.arange(5000) % k, rng=hazmat.SeededRng({seed}))
    digest.update(reports.tobytes() + hashing.estimate(reports).counts.tobytes())
print(instruction_set(), digest.hexdigest())
"""


def digest(instruction_set: str, seed: int = 1) -> str:
    environment = {**os.environ, "DPNOISE_INSTRUCTION_SET": instruction_set}
    command = [sys.executable, "-c", PROGRAM.format(seed=seed)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if "DPNOISE_INSTRUCTION_SET must be unset or an instruction set of this CPU" in run.stderr:
        pytest.skip(f"this CPU has no {instruction_set}")
    assert run.returncode == 0, run.stderr
    name, value = run.stdout.split()
    assert name == instruction_set
    return value


@pytest.fixture(scope="module")
def portable() -> str:
    return digest("portable")


@pytest.mark.parametrize("instruction_set", ["avx2", "avx512", "neon"])
def test_an_instruction_set_agrees_with_portable_code(instruction_set: str, portable: str) -> None:
    assert digest(instruction_set) == portable


def test_another_stream_is_told_apart(portable: str) -> None:
    # Positive control.
    assert digest("portable", seed=2) != portable


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"DPNOISE_INSTRUCTION_SET": "sse9"}, "SET must be unset or an instruction set of this CPU (portable"),
        ({"DPNOISE_GENERATOR": "rc4"}, "must be unset or a generator for this CPU and instruction set (chacha12"),
        ({"DPNOISE_GENERATOR": "aes256", "DPNOISE_INSTRUCTION_SET": "portable"}, "set (chacha12), got"),
    ],
)
def test_an_unknown_choice_is_an_error(variables: dict[str, str], message: str) -> None:
    command = [sys.executable, "-c", "from dpnoise import samplers; samplers.discrete_laplace(1)"]
    run = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert message in run.stderr
    assert f'"{next(iter(variables.values()))}"' in run.stderr


REPRODUCIBLE = """
import json
import sys
import numpy as np
import dpnoise
from dpnoise import hazmat, local, samplers
from tests.vectors import make_keyed
seeded = samplers.laplace(1.0, size=5, rng=hazmat.SeededRng(5)).tolist()
memo = local.ClientMemo.from_bytes(bytes.fromhex(sys.argv[1]))
permanent = local.DBitFlip(k=64, d=8, epsilon=1.0).perturb(np.arange(len(memo)), memo, question="day").tobytes().hex()
secure = [dpnoise.generator(), samplers.random_bytes(8).hex()]
print(json.dumps([secure, make_keyed.vectors(), seeded, permanent]))
"""


def test_generators_differ_in_secure_words_alone() -> None:
    """Seeds, noise keys and memos give the same under both, as they are never of AES."""
    memo = local.ClientMemo.generate(20).to_bytes().hex()
    found = {}
    for generator in ("chacha12", "aes256"):
        command = [sys.executable, "-c", REPRODUCIBLE, memo]
        environment = {**os.environ, "DPNOISE_GENERATOR": generator}
        root = Path(__file__).parents[2]
        run = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
        if "DPNOISE_GENERATOR must be unset or a generator for this CPU" in run.stderr:
            pytest.skip(f"this CPU has no {generator}")
        assert run.returncode == 0, run.stderr
        (name, secure), *reproducible = json.loads(run.stdout)
        assert name == generator
        found[secure] = reproducible
    first, second = found.values()
    assert first == second
