"""What happens when the operating system has no randomness to give."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# Has the kernel refuse the system call getrandom from here on, with the error EIO.
NO_RANDOMNESS = """
import ctypes, os, platform, struct, sys
import numpy as np
import dpnoise
from dpnoise import samplers

number = {"x86_64": 318, "aarch64": 278}[platform.machine()]
EIO, ALLOW, ERRNO = 5, 0x7FFF0000, 0x00050000
load, equal, give = 0x20, 0x15, 0x06
steps = [(load, 0, 0, 0), (equal, 0, 1, number), (give, 0, 0, ERRNO | EIO), (give, 0, 0, ALLOW)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
filter = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program)))
libc = ctypes.CDLL(None, use_errno=True)

def refuse_randomness():
    NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2
    if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(SECCOMP, FILTER, filter, 0, 0):
        print("skip: the kernel takes no filter for system calls", flush=True)
        os._exit(0)
    try:
        os.getrandom(16)
    except OSError:
        return
    print("skip: the C library has randomness without asking the kernel", flush=True)
    os._exit(0)

"""


def without_randomness(script: str) -> subprocess.CompletedProcess[str]:
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip("only on Linux, on x86-64 or ARM, this test can refuse randomness")
    ran = subprocess.run([sys.executable, "-c", NO_RANDOMNESS + script], capture_output=True, text=True, check=False)
    if ran.stdout.startswith("skip: "):
        pytest.skip(ran.stdout[6:].strip())
    return ran


def test_a_process_without_randomness_is_aborted() -> None:
    ran = without_randomness("""
bits = dpnoise.SecureBitGenerator()
refuse_randomness()
print(len(set(bits.random_raw(2048).tolist())), flush=True)  # what was in store
bits.random_raw()
print("it went on", flush=True)
""")
    assert ran.stdout == "2048\n"
    assert ran.returncode < 0
    assert "dpnoise.SecureBitGenerator: the source of randomness failed" in ran.stderr
    assert "the process is aborted" in ran.stderr
    # Positive control: with randomness the same draws end well.
    ran = without_randomness("bits = dpnoise.SecureBitGenerator()\nbits.random_raw(2048)\nprint(bits.random_raw())")
    assert ran.returncode == 0


def test_without_randomness_calls_raise_and_release_nothing() -> None:
    ran = without_randomness("""
protocol, laplace = dpnoise.local.OptimizedUnaryEncoding(k=15, epsilon=1.0), dpnoise.Laplace(epsilon=1.0)
noise, reports = np.full(10**5, 7), np.full((10**5, 2), 7, np.uint8)
values = np.zeros(10**5, np.int64)
calls = [
    dpnoise.SecureBitGenerator,
    lambda: samplers.random_bytes(16),
    lambda: samplers.discrete_laplace(3.0),
    lambda: samplers.discrete_laplace(3.0, out=noise, threads=2),
    lambda: samplers.gaussian(3.0),
    lambda: samplers.bernoulli(0.5, size=100),
    lambda: laplace.release(1.0),
    lambda: laplace.release(np.zeros(10**5)),
    lambda: protocol.perturb(values, out=reports, threads=2),
]
for call in calls:
    call()
refuse_randomness()
for call in calls:
    try:
        call()
    except dpnoise.RandomnessError as error:
        print(error)
print(noise.any(), reports.any())
""")
    assert ran.returncode == 0, ran.stderr
    *errors, wiped = ran.stdout.splitlines()
    assert len(errors) == 9
    assert all(error.startswith("the source of randomness failed, nothing was released: ") for error in errors)
    assert wiped == "False False"
