"""The compiled steps of correlated noise against their specification, with the noise of their tickets drawn again."""

from __future__ import annotations

import hashlib
import hmac
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from vectors import local_spec
from vectors.correlated_noise_spec import BITS, fresh_noise, half_to_even, noise, query, shifts

from dpnoise.hazmat import SeededRng, regenerate
from dpnoise.keyed import NoiseKey, Ticket
from dpnoise.sgd import BandedToeplitz, CorrelatedGradient, CorrelatedGradientRun, MinSeparation

Integers = NDArray[np.int64]

STEPS, RESUMED = 12, 7
KEY = NoiseKey.from_secret_bytes(bytes(range(32)))
COEFFICIENTS = [1.0, 0.75, 0.5, 0.4999, 0.125]  # multiples of 1/8: many halves are rounded
ODD = [1.0, 3001 / 4096, 777 / 4096]


def mechanism(coefficients: Sequence[float] = COEFFICIENTS) -> CorrelatedGradient:
    """Of a clip norm of 1 and a divisor of 1: a release holds all bits of its integers."""
    return CorrelatedGradient(
        strategy=BandedToeplitz(coefficients, steps=STEPS),
        clip_norm=1.0,
        noise_multiplier=0.75,
        expected_batch_size=1.0,
        participation=MinSeparation(4),
    )


def in_units(released: Any) -> Integers:
    """Give what was released in 2**-12 steps of the grid."""
    units = np.asarray(released, np.float64) * (2.0**22 * 2**BITS)
    assert np.all(np.abs(units) < 2**53)
    assert np.all(units == np.rint(units))
    return units.astype(np.int64)


def batches(d: int) -> list[NDArray[np.float64]]:
    """Make batches of few rows, some of none, which are within the norm and on the grid: clipping changes none."""
    generator, most = np.random.default_rng(d), 2**22 // math.ceil(math.sqrt(d))
    return [generator.integers(-most, most, (generator.integers(4), d)) / 2.0**22 for _ in range(STEPS)]


def sums_of(data: Sequence[NDArray[np.float64]]) -> list[Integers]:
    """Give g_t, in units."""
    return [in_units(batch.sum(axis=0)) for batch in data]


def redrawn(run: CorrelatedGradientRun, own: CorrelatedGradient, d: int) -> list[Integers]:
    """Draw z of all steps again: with a sigma that differs in any bit this is other noise, so sigma is checked, too."""
    sensitivity = (2**22 + math.ceil(math.sqrt(d) / 2)) << BITS
    times = math.nextafter(own.noise_multiplier * own.strategy.sensitivity(own.participation), math.inf)
    sigma = math.nextafter(times * sensitivity, math.inf)
    return [regenerate(KEY, ticket, "discrete_gaussian", sigma, size=d) for ticket in tickets_of(run)]


def tickets_of(run: CorrelatedGradientRun) -> list[Ticket]:
    """Read a state as `rust/core/src/sgd/run_state.rs` describes it."""
    sealed, seal = run.state()[:-32], run.state()[-32:]
    subkey = hmac.new(KEY.to_secret_bytes(), b"dpnoise seal 1", hashlib.sha256).digest()
    assert seal == hmac.new(subkey, sealed, hashlib.sha256).digest()
    head, _digest, run_id, _d = struct.unpack("<13s32s16sQ", sealed[:69])
    assert (head, run_id) == (b"DPNR\1" + KEY.fingerprint, run.run_id)
    domain = f"dpnoise.sgd.CorrelatedGradient/{run_id.hex()}".encode()
    nonces = [sealed[place : place + 16] for place in range(69, len(sealed), 16)]
    bodies = [b"DPNT\1" + KEY.fingerprint + struct.pack("<Q", t) + nonce + domain for t, nonce in enumerate(nonces)]
    return [Ticket.from_bytes(body + struct.pack("<I", local_spec.crc32c(body))) for body in bodies]


def forgetful(numerators: Sequence[int], z: Sequence[Integers]) -> list[Integers]:
    """A planted fault: the run is resumed with a history of zeros."""
    return noise(numerators, z[:RESUMED]) + noise(numerators, z[RESUMED:])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("d", [1, 511, 512, 513, 4095, 4096, 4097, 12_289])
def test_steps_are_those_of_the_specification(d: int, threads: int) -> None:
    """Twelve steps of five bands, the ring of the history more than twice around; at the edges of tiles and blocks."""
    own, data = mechanism(), batches(d)
    run = own.start(key=KEY)
    x = [in_units(run.step(batch, threads=threads)) for batch in data]
    w = np.subtract(x, sums_of(data))
    z = redrawn(run, own, d)
    np.testing.assert_array_equal(w, noise(own.strategy._numerators, z))
    assert np.abs(w).max() > 2**30, "there is noise"
    assert np.any(w != forgetful(own.strategy._numerators, z)), "a planted fault"
    if d > 500:  # of so many numbers, some hundred are rounded from a half
        assert np.any(w != noise(own.strategy._numerators, z, half_to_even)), "a planted fault"


@pytest.mark.parametrize("coefficients", [ODD, [1.0], [1.0] * STEPS])
def test_other_strategies_are_those_of_the_specification(coefficients: list[float]) -> None:
    own = mechanism(coefficients)
    run = own.start(key=KEY)
    w = [in_units(run.step(np.empty((0, 1000)))) for _ in range(STEPS)]
    np.testing.assert_array_equal(w, noise(own.strategy._numerators, redrawn(run, own, 1000)))


def test_a_resumed_run_is_that_of_the_specification() -> None:
    own, d = mechanism(), 5000
    run, w = own.start(key=KEY), []
    for t in range(STEPS):
        if t == RESUMED:
            run = own.resume(run.state(), key=KEY)
        w.append(in_units(run.step(np.empty((0, d)))))
    z = redrawn(run, own, d)
    np.testing.assert_array_equal(w, noise(own.strategy._numerators, z))
    lost = np.array(forgetful(own.strategy._numerators, z))
    assert (lost[:RESUMED] == w[:RESUMED]).all()
    assert (lost[RESUMED] != w[RESUMED]).mean() > 0.99


def test_neighbours_differ_by_the_exact_shift_on_the_trajectory_that_was_released() -> None:
    """What z must have been had the data been those of the neighbour, on real releases."""
    own, d = mechanism(ODD), 20_000
    numerators, data = own.strategy._numerators, batches(d)
    run = own.start(key=KEY)
    x = [in_units(run.step(batch)) for batch in data]
    generator = np.random.default_rng(1)
    rows = [generator.integers(-(2**14), 2**14, d) for _ in range(STEPS)]
    sums = sums_of(data)
    sums_of_neighbour = [g + (u << BITS) for g, u in zip(sums, rows, strict=True)]
    z, expected = redrawn(run, own, d), shifts(numerators, rows)
    q = np.array([query(numerators, sums[: t + 1], x[:t]) for t in range(STEPS)])
    q_neighbour = np.array([query(numerators, sums_of_neighbour[: t + 1], x[:t]) for t in range(STEPS)])
    np.testing.assert_array_equal(np.subtract(x, q), z)
    np.testing.assert_array_equal(q_neighbour - q, expected)
    np.testing.assert_array_equal(np.subtract(z, fresh_noise(numerators, np.subtract(x, sums_of_neighbour))), expected)
    uneven = [query(numerators, sums_of_neighbour[: t + 1], x[:t], half_to_even) for t in range(STEPS)]
    uneven = np.subtract(uneven, [query(numerators, sums[: t + 1], x[:t], half_to_even) for t in range(STEPS)])
    # One in 2**13 is a half and moves by an odd multiple: none of them would be, with a probability of 1e-11.
    assert 0 < np.sum(uneven != expected) < 1e-3 * uneven.size, "a planted fault"


def test_the_noise_does_not_depend_on_the_data() -> None:
    own, data = mechanism(), batches(600)
    found = [in_units(own.release(given, rng=SeededRng(1))) for given in (data, [np.empty((0, 600))] * STEPS)]
    np.testing.assert_array_equal(found[0] - found[1], sums_of(data))
