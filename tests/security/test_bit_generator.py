"""The words of SecureBitGenerator never repeat. Each check is also run on PCG64, whose words do."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from dpnoise import SecureBitGenerator

STORE = 16_384 // 8
# Two words of 64 bits are equal by chance with a probability below 2**-30 in all that is drawn here.
Words = NDArray[np.uint64]


def repeats(runs: list[Words]) -> int:
    words = np.concatenate(runs)
    return words.size - np.unique(words).size


def seeded() -> np.random.PCG64:
    return np.random.PCG64(1)


def test_instances_and_refills_have_their_own_streams() -> None:
    def runs(make: Callable[[], np.random.BitGenerator]) -> list[Words]:
        return [make().random_raw(5 * STORE + i) for i in range(20)]

    assert repeats(runs(SecureBitGenerator)) == 0
    assert repeats(runs(seeded)) > 0


def test_threads_share_one_without_repeating() -> None:
    bits = SecureBitGenerator()
    generator = np.random.Generator(bits)
    with ThreadPoolExecutor(4) as pool:
        raw = list(pool.map(lambda _: bits.random_raw(1000), range(200)))
        drawn = list(pool.map(lambda _: generator.integers(0, 2**64, 1000, np.uint64), range(200)))
    assert repeats([*raw, *drawn]) == 0


def test_threads_with_their_own_do_not_repeat() -> None:
    with ThreadPoolExecutor(4) as pool:
        assert repeats(list(pool.map(lambda _: SecureBitGenerator().random_raw(1000), range(50)))) == 0
        assert repeats(list(pool.map(lambda _: seeded().random_raw(1000), range(50)))) > 0


INHERITED: dict[str, np.random.BitGenerator] = {"secure": SecureBitGenerator(), "PCG64": seeded()}


def draw(name: str) -> Words:
    return INHERITED[name].random_raw(8)


def runs_of_processes(method: str, name: str) -> list[Words]:
    INHERITED[name].random_raw(3)  # the store is full when the processes start
    context = multiprocessing.get_context(method)
    runs = [draw(name)]
    for _ in range(3):
        with context.Pool(1) as pool:  # each process is a fork of this one
            runs.append(pool.apply(draw, (name,)))
    return runs


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_have_their_own_streams(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    assert repeats(runs_of_processes(method, "secure")) == 0
    assert repeats(runs_of_processes(method, "PCG64")) > 0


# A process, its child and its grandchild each print words of one generator that existed before they did.
FAMILY = """
import ctypes, os, sys
import numpy as np
from dpnoise import SecureBitGenerator
fork = {"os": os.fork, "C": ctypes.PyDLL(None).fork}[sys.argv[1]]
bits = {"secure": SecureBitGenerator, "PCG64": np.random.PCG64}[sys.argv[2]]()
bits.random_raw(3)
depth = 0
while depth < 2:
    child = fork()
    if child:
        os.waitpid(child, 0)
        break
    depth += 1
print(depth, *bits.random_raw(8), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("fork", ["os", "C"])
@pytest.mark.parametrize("name", ["secure", "PCG64"])
def test_forks_have_their_own_streams(fork: str, name: str) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    ran = subprocess.run([sys.executable, "-c", FAMILY, fork, name], capture_output=True, text=True, check=True)
    lines = [[int(word) for word in line.split()] for line in ran.stdout.splitlines()]
    assert sorted(line[0] for line in lines) == [0, 1, 2]
    assert repeats([np.array(line[1:], np.uint64) for line in lines]) == (0 if name == "secure" else 16)
