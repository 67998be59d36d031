"""No two calls share randomness: not across calls, threads, forks or spawned processes."""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from dpnoise import Laplace, hazmat, local, samplers

# Noise of this scale has 40 bits of entropy a sample, so two equal runs of 8 mean a shared stream.
SCALE = 2**40
LENGTH = 8


def draw(_: int = 0) -> bytes:
    return samplers.discrete_laplace(SCALE, size=LENGTH).tobytes()


def all_distinct(runs: list[bytes]) -> bool:
    return len(set(runs)) == len(runs)


def test_calls_and_threads_have_their_own_streams() -> None:
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(draw, range(500)))
    assert all_distinct(runs)
    # Within a call, the parts of different threads.
    noise = samplers.discrete_laplace(SCALE, size=2**17, threads=2)
    assert np.unique(noise).size > noise.size - 10


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_have_their_own_streams(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    draw()  # whatever state there might be exists before the fork
    with multiprocessing.get_context(method).Pool(2) as pool:
        runs = pool.map(draw, range(20), chunksize=1)
    assert all_distinct([draw(), *runs])


def test_a_bare_fork_repeats_nothing() -> None:
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, draw())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 4096) != draw()
    os.close(reader)
    os.close(writer)


def test_a_shared_stream_would_be_seen() -> None:
    # Positive control: two generators with one seed.
    runs = [samplers.discrete_laplace(SCALE, size=LENGTH, rng=hazmat.SeededRng(1)).tobytes() for _ in range(2)]
    assert not all_distinct(runs)


def test_a_generator_in_use_is_refused_elsewhere() -> None:
    rng = hazmat.SeededRng(1)
    errors: list[Any] = []

    def use() -> None:
        try:
            samplers.discrete_laplace(10, size=300_000, rng=rng)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all("in use by another call" in str(error) for error in errors)


def test_generators_can_neither_be_copied_nor_pickled() -> None:
    import copy
    import pickle

    for rng in (hazmat.SeededRng(1), hazmat.ScriptedRng(b"")):
        with pytest.raises(TypeError):
            pickle.dumps(rng)
        with pytest.raises(TypeError):
            copy.copy(rng)


def low_bits_of(mechanism: Any, x: float, n: int) -> set[float]:
    """Return the remainders of releases modulo the mechanism's grid: what Mironov's attack looks at."""
    released = mechanism.release(np.full(n, x))
    return set(np.remainder(released, mechanism.granularity).tolist())


def test_low_order_bits_say_nothing() -> None:
    mechanism = Laplace(epsilon=1.0)
    assert low_bits_of(mechanism, 0.0, 100_000) == low_bits_of(mechanism, 0.1, 100_000) == {0.0}
    # Positive control: floating-point noise added to a value leaves bits below the grid, and they depend on the value.
    noise = np.random.default_rng().laplace(0, 1, 100_000)
    assert len(set(np.remainder(noise + 0.1, mechanism.granularity).tolist())) > 100


def test_neighbours_have_the_same_support() -> None:
    # On a coarse grid every output of one input is an output of the other.
    mechanism = Laplace(epsilon=4.0, sensitivity=1.0, granularity=0.25)
    supports = [{mechanism.release(x) for _ in range(20_000)} for x in (0.0, 0.9)]
    common = supports[0] & supports[1]
    assert {x for x in common if -0.5 <= x <= 1.5} == {i / 4 for i in range(-2, 7)}


def test_reports_of_one_value_differ() -> None:
    reports = local.OptimizedUnaryEncoding(k=256, epsilon=1.0).perturb(np.zeros(1000, np.int64))
    assert np.unique(reports, axis=0).shape[0] == 1000
