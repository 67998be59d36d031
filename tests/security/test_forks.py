"""What must be used once is not used by a copy of the process, however that was made."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

# The child of some kind of fork goes on with a run of its parent; it prints what became of that, as does the parent.
FAMILY = """
import ctypes, os, signal, sys
import numpy as np
import dpnoise
from dpnoise import keyed
how = sys.argv[1]
library = ctypes.PyDLL(None, use_errno=True)
NEW_USERS, NEW_PIDS = 0x10000000, 0x20000000

def leave_pids():
    if library.unshare(NEW_PIDS) and library.unshare(NEW_USERS | NEW_PIDS):
        print("refused:", os.strerror(ctypes.get_errno()), flush=True)
        os._exit(0)

def fork():
    if how == "C":
        return library.fork()
    if how.isdigit():  # the number of the system call
        return library.syscall(int(how), int(signal.SIGCHLD), 0, 0, 0, 0)
    if how == "namespace":
        leave_pids()
    return os.fork()

def wait(child):
    os.waitpid(child, 0)
    os._exit(0)

if how == "namespace":  # a first process of its container, whose child will be one, too
    leave_pids()
    child = os.fork()
    if child:
        wait(child)
run = dpnoise.AboveThreshold(epsilon=1e6, threshold=0.0, max_positives=5).start()
words = dpnoise.SecureBitGenerator()
words.random_raw(3)
key = keyed.NoiseKey.generate()
ticket = key.ticket(0)
training = dpnoise.sgd.CorrelatedGradient(
    strategy=dpnoise.sgd.BandedToeplitz([1.0, 0.5], steps=9),
    clip_norm=1.0,
    noise_multiplier=1.0,
    expected_batch_size=1.0,
    participation=dpnoise.sgd.SingleEpoch(),
).start()
training.step(np.ones((1, 2)))
pid = os.getpid()
child = fork()
if child:
    os.waitpid(child, 0)
try:
    answer = run.is_above(1e9)
except dpnoise.Error as error:
    answer = type(error).__name__
try:
    key.draw(ticket, "laplace", 1.0, size=2)
    drawn = "drawn"
except dpnoise.Error as error:
    drawn = type(error).__name__
try:
    trained = len(training.step(np.ones((1, 2))))
except dpnoise.Error as error:
    trained = type(error).__name__
print("parent" if child else "child", os.getpid() == pid, answer, drawn, trained, *words.random_raw(4), flush=True)
os._exit(0)
"""

CLONE = {"x86_64": "56", "aarch64": "220"}.get(platform.machine(), "")


@pytest.mark.parametrize("how", ["os", "C", "namespace", "system call"])
def test_a_copy_of_the_process_cannot_go_on(how: str) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    if how in ("namespace", "system call") and (sys.platform != "linux" or not CLONE):
        pytest.skip("namespaces and the numbers of system calls are known for Linux on x86-64 and aarch64")
    call = [sys.executable, "-c", FAMILY, CLONE if how == "system call" else how]
    shown = subprocess.run(call, capture_output=True, text=True, check=True).stdout
    if shown.startswith("refused:"):
        pytest.skip(f"this system lets nobody make a namespace of process numbers, {shown.strip()}")
    found = {line.split()[0]: line.split()[1:] for line in shown.splitlines()}
    assert found["parent"][:4] == ["True", "True", "drawn", "2"], "the runs themselves go on, and the ticket is used"
    assert found["child"][:4] == [str(how == "namespace"), "HaltedError", "ParameterError", "HaltedError"]
    assert not set(found["parent"][4:]) & set(found["child"][4:]), "words of SecureBitGenerator"
