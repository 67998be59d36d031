"""Processes that spend from one ledger at once and are killed at random moments; prints what came of it as JSON.

With `--readers` each process also reads the file all the time, as a backup does, in a thread and in a signal handler:
closing a file ends the POSIX locks of a process on it. Each process notes in a file of its own what it is about to
spend and, when it was told so, that it was granted or refused. A note is one system call, so a kill loses none. The
parent has used the ledger before it forks.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

from dpnoise import BudgetExceeded, PrivacyCost
from dpnoise.accounting import Ledger, LedgerError, RenyiCost, ZcdpCost

COSTS: dict[str, Any] = {
    "epsilon": PrivacyCost(0.001, 1e-9),
    "rho": ZcdpCost(0.001, 1e-9),
    "orders": RenyiCost({32: 0.01, 64: 0.001}),
}


def make(path: Path, measure: str, granted: int) -> Ledger[Any]:
    """Make a ledger whose budget is for so many spends."""
    most = round(0.001 * granted, 3)
    if measure == "epsilon":
        return Ledger(path, epsilon=most, delta=0.5)
    if measure == "rho":
        return Ledger(path, rho=most, delta=0.5, odometer_delta=1e-6)
    # The order 64 has a little more than is granted, and less than one spend more.
    needed = most + (math.log(2 / 0.001) - math.log(64)) / 63 + math.log1p(-1 / 64)
    return Ledger(path, epsilon=needed + 1e-6, delta=0.001, orders=(32, 64))


def read_all_the_time(ledger: Ledger[Any]) -> None:
    """Read the ledger's file in a thread, and use the ledger in a signal handler, until the process ends."""

    def copy() -> None:
        while True:
            ledger.path.read_bytes()

    def handle(*_: object) -> None:
        ledger.path.read_bytes()
        with suppress(LedgerError):  # in the middle of a spend
            assert ledger.spent is not None

    threading.Thread(target=copy, daemon=True).start()
    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.005)


def spend(ledger: Ledger[Any], notes: Path, worker: int, spends: int, cost: Any) -> None:
    """Spend until so many were granted or refused, counting what a killed predecessor has noted."""
    before = [line.split()[0] for line in notes.read_text().splitlines()] if notes.exists() else []
    tried, answered = before.count("tries"), len(before) - before.count("tries")
    file = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for serial in range(tried, tried + spends - answered):
        label = f"{worker}/{serial}"
        os.write(file, f"tries {label}\n".encode())
        begun, answer = time.perf_counter(), "granted"
        try:
            ledger.spend(cost, label)
        except BudgetExceeded:
            answer = "refused"
        os.write(file, f"{answer} {label} {time.perf_counter() - begun}\n".encode())


def fork(ledger: Ledger[Any], folder: Path, worker: int, spends: int, cost: Any, readers: bool) -> int:
    """Start a process."""
    child = os.fork()
    if child:
        return child
    try:
        if readers:
            read_all_the_time(ledger)
        spend(ledger, folder / f"{worker}.notes", worker, spends, cost)
    except BaseException as error:
        (folder / f"{worker}.failure").write_text(repr(error))
        os._exit(1)
    os._exit(0)


def main() -> None:
    """Run the processes, kill some, and compare the ledger with the notes."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--measure", choices=COSTS, required=True)
    for name in ("processes", "spends", "kills", "granted", "seed"):
        options.add_argument(f"--{name}", type=int, required=True)
    options.add_argument("--readers", action="store_true")
    chosen = options.parse_args()
    choice = random.Random(chosen.seed)
    cost = COSTS[chosen.measure]
    ledger = make(chosen.folder / "ledger", chosen.measure, chosen.granted)
    ledger.spend(PrivacyCost(0.0), "parent")

    started = time.perf_counter()
    running = {
        fork(ledger, chosen.folder, worker, chosen.spends, cost, chosen.readers): worker
        for worker in range(chosen.processes)
    }
    killed = 0
    while running:
        if killed < chosen.kills:
            time.sleep(choice.expovariate(200))
            victim = choice.choice(sorted(running))
            os.kill(victim, signal.SIGKILL)
            os.waitpid(victim, 0)
            killed += 1
            worker = running.pop(victim)
            running[fork(ledger, chosen.folder, worker, chosen.spends, cost, chosen.readers)] = worker
        else:
            done, _ = os.wait()
            del running[done]
    seconds = time.perf_counter() - started

    waits: list[float] = []
    notes: dict[str, set[str]] = {"tries": set(), "granted": set(), "refused": set()}
    for file in chosen.folder.glob("*.notes"):
        for line in file.read_text().splitlines():
            kind, label, *waited = line.split()
            notes[kind].add(label)
            waits += map(float, waited)
    entries = Ledger(chosen.folder / "ledger").entries()[1:]
    labels = Counter(entry.label for entry in entries)
    total = str(entries[-1].total.amounts())
    expected = {
        "epsilon": PrivacyCost(len(entries) / 1000, float(Decimal("1e-9") * len(entries))).amounts(),
        "rho": ZcdpCost(len(entries) / 1000, float(Decimal("1e-9") * len(entries))).amounts(),
        "orders": RenyiCost({32: len(entries) / 100, 64: len(entries) / 1000}).amounts(),
    }
    figures = {
        "tried": len(notes["tries"]),
        "granted": len(notes["granted"]),
        "refused": len(notes["refused"]),
        "recorded": len(entries),
        "lost": len(notes["granted"] - set(labels)),
        "recorded_twice": sum(count > 1 for count in labels.values()),
        "recorded_though_refused": len(notes["refused"] & set(labels)),
        "recorded_and_never_tried": len(set(labels) - notes["tries"]),
        "recorded_and_unanswered": len(set(labels) - notes["granted"]),
        "killed": killed,
        "exhausted": len(entries) == chosen.granted,
        "sum_is_exact": total == expected[chosen.measure],
        "failures": [file.read_text() for file in chosen.folder.glob("*.failure")],
        "milliseconds_per_spend": 1000 * seconds / max(len(entries), 1),
        "longest_wait_seconds": max(waits),
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
