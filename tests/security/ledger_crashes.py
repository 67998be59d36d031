"""Processes that die at each line of a spend, fork while threads spend, and make one ledger; prints the outcome."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

from ledger_interruptions import interrupted

from dpnoise import PrivacyCost
from dpnoise.accounting import Ledger

COST = PrivacyCost(0.1)


def spend_until(ledger: Ledger[PrivacyCost], line: int, reports: int, boastful: bool) -> None:
    """Spend, and die when so many lines of the ledger's code have begun; the boastful say at once that it is done."""
    if boastful:
        os.write(reports, b"granted")
    interrupted(lambda: ledger.spend(COST, "doomed"), line, lambda: os.kill(os.getpid(), signal.SIGKILL))
    os.write(reports, b"granted")
    os._exit(0)


def die_everywhere(folder: Path, boastful: bool = False) -> list[tuple[bool, int]]:
    """Whether the spend was granted, and how many rows it has left, by the line at which the process was killed."""
    outcomes: list[tuple[bool, int]] = []
    granted = False
    while not granted:
        path = folder / f"{len(outcomes)}-{boastful}"
        ledger = Ledger(path, epsilon=1.0)
        readable, writable = os.pipe()
        child = os.fork()
        if not child:
            spend_until(ledger, len(outcomes) + 1, writable, boastful)
        os.close(writable)
        granted = os.read(readable, 10) == b"granted"
        os.close(readable)
        os.waitpid(child, 0)
        again = Ledger(path)
        outcomes.append((granted, len(again.entries())))
        again.spend(COST, "after")  # no lock is left behind
    return outcomes


def fork_among_threads(path: Path) -> dict[str, Any]:
    """Let threads spend while the process forks, and its children spend with what they inherit."""
    ledger = Ledger(path, epsilon=100.0)

    def spend(times: int) -> None:
        for _ in range(times):
            ledger.spend(COST, str(os.getpid()))

    threads = [threading.Thread(target=spend, args=(20,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    children = []
    for _ in range(6):
        child = os.fork()
        if not child:
            spend(5)
            os._exit(0)
        children.append(child)
    codes = [os.waitpid(child, 0)[1] for child in children]
    for thread in threads:
        thread.join()
    return {"codes": codes, "rows": len(ledger.entries()), "spent": ledger.spent.epsilon}


def make_at_once(path: Path) -> int:
    """Let processes make the same ledger and spend from it; give the number of spends that it holds."""
    readable, writable = os.pipe()
    children = []
    for _ in range(6):
        child = os.fork()
        if not child:
            os.close(writable)
            os.read(readable, 1)  # until all may begin
            Ledger(path, epsilon=1.0).spend(COST)
            os._exit(0)
        children.append(child)
    os.close(readable)
    os.close(writable)
    for child in children:
        os.waitpid(child, 0)
    return len(Ledger(path).entries())


def main() -> None:
    """Run all, in the folder that is given."""
    warnings.simplefilter("ignore", DeprecationWarning)  # of forking among threads, which is the point here
    folder = Path(sys.argv[1])
    found = {
        "deaths": die_everywhere(folder),
        "boastful_deaths": die_everywhere(folder, boastful=True),
        "forks": fork_among_threads(folder / "forks"),
        "made": [make_at_once(folder / f"made-{number}") for number in range(20)],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
