"""Makes each system call of a ledger fail in turn, with `failing_calls.c` preloaded; prints what came of it as JSON."""

from __future__ import annotations

import ctypes
import errno
import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from dpnoise import PrivacyCost
from dpnoise.accounting import Ledger, LedgerError

COST = PrivacyCost(0.25)
FAULTS: dict[str, tuple[int, bool]] = {
    **{name: (getattr(errno, name), False) for name in ("EIO", "ENOSPC", "EINTR", "EACCES", "ENOLCK")},
    "all further calls EIO": (errno.EIO, True),
    "all further calls ENOSPC": (errno.ENOSPC, True),
    "half is transferred": (-1, False),  # as failing_calls.c numbers them
    "POSIX locks dropped": (-2, False),
}
QUICK = {"spend": ["EIO", "all further calls ENOSPC", "half is transferred", "POSIX locks dropped"]}
NAMES = {True: "granted", False: "refused", None: "perhaps granted"}
shim = ctypes.CDLL(sys.argv[2])


def spend(ledger: Ledger[Any], path: Path) -> bool | None:
    """Return whether the spend was granted; None if it may be recorded though it was not."""
    try:
        ledger.spend(COST)
    except LedgerError:
        return ledger._file.recorded
    return True


def boastful_spend(ledger: Ledger[Any], path: Path) -> bool:
    """Grant whatever happens to the file: the fault that must be found."""
    spend(ledger, path)
    return True


def refused(use: Callable[[Path], object]) -> Callable[[Ledger[Any], Path], bool]:
    """Use another ledger object, which may fail and spends nothing."""

    def action(ledger: Ledger[Any], path: Path) -> bool:
        with suppress(LedgerError):
            use(path)
        return False

    return action


ACTIONS: dict[str, Callable[[Ledger[Any], Path], bool | None]] = {
    "spend": spend,
    "open": refused(lambda path: Ledger(path)),
    "check": refused(lambda path: Ledger.open_readonly(path).entries()),
    "make": refused(lambda path: Ledger(path.with_name("new"), epsilon=1.0)),
    "boastful": boastful_spend,
}


def found(action: str, folder: Path, base: Path, fault: tuple[int, bool]) -> Counter[str]:
    """Count the outcomes of an action, one for each call that can fail."""
    outcomes: Counter[str] = Counter()
    while True:
        for old in folder.iterdir():
            old.unlink()
        path = folder / "ledger"
        shutil.copy(base, path)
        ledger = Ledger(path)
        shim.arm(ctypes.c_long(outcomes.total() + 1), *fault, bytes(path))
        try:
            granted = ACTIONS[action](ledger, path)
        finally:
            fired = shim.disarm()
        if not fired:
            return outcomes
        rows = len(Ledger.open_readonly(path).entries()) - 1
        left = ledger.remaining.epsilon  # of the object that has failed
        if action == "make":
            Ledger(path.with_name("new"), epsilon=1.0).spend(COST)
        ledger.spend(COST)
        allowed = {True: (1,), False: (0,), None: (0, 1)}[granted]
        right = rows in allowed and left == 0.75 - 0.25 * rows and len(Ledger(path).entries()) == rows + 2
        outcomes[f"{NAMES[granted]}, recorded {rows}" if right else "wrong"] += 1


def main() -> None:
    """Run all, in the folder that is given."""
    base, folder = Path(sys.argv[1]) / "base", Path(sys.argv[1]) / "work"
    folder.mkdir()
    Ledger(base, epsilon=1.0).spend(COST)
    everything = "--all" in sys.argv
    chosen = {action: FAULTS if everything else dict.fromkeys(QUICK.get(action, ["EIO"])) for action in ACTIONS}
    outcomes = {a: {name: found(a, folder, base, FAULTS[name]) for name in names} for a, names in chosen.items()}
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main()
