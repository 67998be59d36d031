"""When the system starts no threads, the calling one does all of the work."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CHILD = """
import os, resource, sys, threading
import numpy as np
from dpnoise import Laplace, local, samplers

def refuse_threads():
    # Threads count as processes of the user. The superuser has no limit, so another user goes on.
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    if os.geteuid() == 0:
        os.setuid(65534)

def can_start_threads():
    try:
        thread = threading.Thread(target=int)
        thread.start()
    except RuntimeError:
        return False
    thread.join()
    return True

# Work for four threads each.
protocol = local.OptimizedUnaryEncoding(k=128, epsilon=1.0)
values = np.arange(200_000) % 100
if sys.argv[1] == "refused":
    refuse_threads()
print(can_start_threads())
noise = samplers.discrete_laplace(1000, out=np.full(400_000, 2**62), threads=4)
released = Laplace(epsilon=1.0).release(np.arange(400_000) * 1e6, threads=4)
reports = protocol.perturb(values, threads=4)
accumulator = protocol.accumulator()
accumulator.add(reports, threads=4)
counts = np.unpackbits(reports, axis=1, bitorder="little").sum(axis=0)
estimates = (counts - len(values) * protocol.q) / (protocol.p - protocol.q)

for part in np.split(noise, 40):
    assert 900 < np.abs(part).mean() < 1100
assert np.unique(noise[:1000]).size > 500
for part in np.split(released - np.arange(400_000) * 1e6, 40):
    assert 0.9 < np.abs(part).mean() < 1.1
for part in np.split(np.unpackbits(reports, axis=1, bitorder="little").sum(axis=1), 40):
    assert abs(part.mean() - protocol.p - 127 * protocol.q) < 1
assert accumulator.n == len(values)
assert np.allclose(accumulator.estimate().counts, estimates)
assert np.abs(estimates[:100] - 2000).max() < 10_000
print("all is well")
"""


def run(mode: str) -> list[str]:
    ran = subprocess.run([sys.executable, "-c", CHILD, mode], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_work_is_complete_without_threads() -> None:
    if not hasattr(os, "setuid"):
        pytest.skip("this system has no limit on the number of threads that a process could set")
    started, *result = run("refused")
    if started == "True":
        pytest.skip("this system starts threads in spite of the limit on their number")
    assert result == ["all is well"]


def test_the_same_work_with_threads() -> None:
    # Positive control: the limit was the only difference.
    assert run("allowed") == ["True", "all is well"]
