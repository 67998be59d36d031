"""A spend that is interrupted: before each of its lines by other uses of ledgers and by forks, and by Ctrl-C."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from dpnoise import PrivacyCost
from dpnoise.accounting import Ledger, LedgerError

COST = PrivacyCost(0.25)


def interrupted(action: Callable[[], object], line: int, handler: Callable[[], object]) -> bool:
    """Act, and call a handler before the line of that number of the ledger's code; False if there are fewer lines."""
    begun = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal begun
        if "_ledger" not in frame.f_code.co_filename:
            return None
        if event == "line":
            begun += 1
            if begun == line:
                sys.settrace(None)
                handler()
        return trace

    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(None)
    return begun >= line


def uses(folder: Path, use: Callable[[Ledger[Any], Path], object]) -> Counter[str]:
    """Count what comes of another use of ledgers before each line of a spend; the spend itself must be granted."""
    outcomes: Counter[str] = Counter()
    path, other = folder / "ledger", folder / "other"
    again = True
    while again:
        ledger = Ledger(path, epsilon=1.0)
        Ledger(other, epsilon=1.0)

        def handler(ledger: Ledger[Any] = ledger) -> None:
            try:
                use(ledger, other)
                outcomes["done"] += 1
            except LedgerError as error:
                outcomes[
                    "refused" if "a signal handler or finalizer has interrupted" in str(error) else str(error)
                ] += 1

        before = outcomes["done"]
        again = interrupted(lambda ledger=ledger: ledger.spend(COST, "outer"), outcomes.total() + 1, handler)
        inner = outcomes["done"] - before if use is spend_again else 0
        labels = sorted(entry.label for entry in Ledger(path).entries())
        assert labels == ["inner"] * inner + ["outer"], labels
        ledger.spend(COST)
        for file in folder.iterdir():
            file.unlink()
    return outcomes


def read(ledger: Ledger[Any], other: Path) -> None:
    assert ledger.spent.epsilon in (0.0, 0.25)


def spend_again(ledger: Ledger[Any], other: Path) -> None:
    ledger.spend(COST, "inner")


def open_again(ledger: Ledger[Any], other: Path) -> None:
    assert len(Ledger.open_readonly(ledger.path).entries()) in (0, 1)


def spend_elsewhere(ledger: Ledger[Any], other: Path) -> None:
    Ledger(other).spend(COST)


def forks(folder: Path) -> Counter[str]:
    """Fork before each line of a spend; both processes go on with it, and what they were granted is recorded."""
    outcomes: Counter[str] = Counter()
    again = True
    while again:
        path = folder / f"{outcomes.total()}"
        ledger, forked = Ledger(path, epsilon=1.0), []
        parent = os.getpid()
        granted = False

        def handler(ledger: Ledger[Any] = ledger, forked: list[tuple[int, bool]] = forked) -> None:
            forked.append((os.fork(), ledger._file.recorded is not False))

        try:
            again = interrupted(lambda ledger=ledger: ledger.spend(COST), outcomes.total() + 1, handler)
            granted = True
        except LedgerError:
            pass
        finally:
            if os.getpid() != parent:
                os._exit(granted)
        both = granted + sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child, _ in forked)
        after = both == 2 and forked[0][1]  # both processes have what was granted to one
        assert len(Ledger(path).entries()) == both - after
        ledger.spend(COST)
        outcomes[f"granted to {both} of {1 + len(forked)}"] += 1
    return outcomes


def stops(path: Path, times: int) -> Counter[str]:
    """Raise KeyboardInterrupt in spends, at random moments; what the ledger says of each is compared with its rows."""
    outcomes: Counter[str] = Counter()
    caught: list[BaseException] = []  # an exception that is kept keeps no lock
    rows: set[str] = set()
    ledger = Ledger(path, epsilon=1e6)
    begun = time.perf_counter()
    for serial in range(20):
        ledger.spend(COST, f"before {serial}")
    longest = 1.5 * (time.perf_counter() - begun) / 20
    choice = random.Random(20261128)
    armed = False

    def stop(*_: object) -> None:
        if armed:
            raise KeyboardInterrupt

    former = signal.signal(signal.SIGALRM, stop)
    for serial in range(times):
        returned = ledger._file.recorded = False
        try:
            armed = True
            signal.setitimer(signal.ITIMER_REAL, choice.uniform(1e-6, longest))
            ledger.spend(COST, f"{serial}")
            armed, returned = False, True
        except KeyboardInterrupt as error:
            armed = False
            caught.append(error)
        if serial % 10 == 0:
            rows = {entry.label for entry in ledger.entries()}
            there, said = f"{serial}" in rows, ledger._file.recorded
            assert said in (there, None), (serial, there, said)
            assert there or not returned
        outcomes["granted" if returned else f"stopped, recorded: {ledger._file.recorded}"] += 1
    signal.signal(signal.SIGALRM, former)
    most, rows = outcomes.total() - outcomes["stopped, recorded: False"], {e.label for e in Ledger(path).entries()}
    assert most - outcomes["stopped, recorded: None"] <= len(rows) - 20 <= most
    return outcomes


def main() -> None:
    """Run all, in the folder that is given."""
    warnings.simplefilter("ignore", DeprecationWarning)
    folder = Path(sys.argv[1])
    found: dict[str, Counter[str]] = {
        use.__name__: uses(folder, use) for use in (read, spend_again, open_again, spend_elsewhere)
    }
    print(json.dumps({**found, "forks": forks(folder), "stops": stops(folder / "stopped", int(sys.argv[2]))}))


if __name__ == "__main__":
    main()
