"""Signals in the middle of native work: they are heeded, and memory that was not used yet is not touched."""

import os
import signal
from collections.abc import Callable

import numpy as np
import pytest

from dpnoise import local, samplers

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")

# Each report is compared with all values, which takes tenths of a second together.
PROTOCOL = local.LocalHashing(k=1 << 16, epsilon=1.0)
REPORTS = np.tile(PROTOCOL.perturb(np.arange(1000)), (100, 1))


@pytest.fixture
def heeded() -> Callable[[Callable[[], object]], int]:
    """Return a function that counts how often a signal of every millisecond is heeded in a call."""

    def count(call: Callable[[], object]) -> int:
        times = 0

        def heed(*_: object) -> None:
            nonlocal times
            times += 1

        former = signal.signal(signal.SIGALRM, heed)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        try:
            call()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, former)
        return times

    return count


def test_counting_heeds_signals(heeded: Callable[[Callable[[], object]], int]) -> None:
    counts, messages = PROTOCOL.accumulator(), PROTOCOL.messages(REPORTS)
    for add in (lambda: counts.add(REPORTS, threads=1), lambda: counts.add_messages(messages, threads=1)):
        assert heeded(add) > 20
    twice = PROTOCOL.accumulator()
    twice.add(np.concatenate([REPORTS, REPORTS]))
    assert counts == twice


def test_the_epsilon_of_shuffled_reports_heeds_signals(heeded: Callable[[Callable[[], object]], int]) -> None:
    assert heeded(lambda: PROTOCOL.shuffled_cost(n=2**62, delta=1e-6)) > 10


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="this system does not say what memory is used")
def test_memory_that_was_not_used_yet_is_not_touched() -> None:
    def used() -> int:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    noise = np.empty(1 << 29, np.int64)  # of 4 GiB, which takes seconds to fill
    before, former = used(), signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        with pytest.raises(KeyboardInterrupt):
            samplers.discrete_laplace(3.0, out=noise, threads=1)
        assert used() - before < noise.nbytes / 2
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
