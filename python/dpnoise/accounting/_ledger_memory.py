"""A ledger without a file, for one process: what it has granted is forgotten with it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

from dpnoise._errors import LedgerError
from dpnoise.accounting._ledger_file import Row, State

IN_MEMORY: Final = ":memory:"
"""As SQLite calls it."""

Spends: TypeAlias = "tuple[Row, int, Spends] | None"
"""The last spend, with its number and the spends before it."""


class MemoryLedger:
    """The spends of a ledger in memory, as `LedgerFile` has those of a file.

    A spend replaces the state that it has seen, or is decided again. So it is whole whichever thread, signal handler or
    finalizer spends meanwhile, and nobody waits.
    """

    path: Final = Path(IN_MEMORY)
    readonly: Final = False

    def __init__(self, terms: str) -> None:
        self.terms = terms
        self._spends: Spends = None
        self._lock, self._process = threading.RLock(), os.getpid()

    def state(self) -> State:
        self._check_process()
        return self._state_after(self._spends)

    def entries(self) -> tuple[State, list[tuple[Any, ...]]]:
        self._check_process()
        last = spends = self._spends
        rows = []
        while spends is not None:
            row, number, spends = spends
            rows.append((number, *row))
        return self._state_after(last), rows[::-1]

    def append(self, row_after: Callable[[State], Row]) -> None:
        self._check_process()
        while True:
            spends = self._spends
            state = self._state_after(spends)
            after = row_after(state), state.spends + 1, spends
            with self._lock:
                if self._spends is spends:  # nothing can come between this and the next line
                    self._spends = after
                    return

    def _state_after(self, spends: Spends) -> State:
        return State(self.terms, 0, "", "") if spends is None else State(self.terms, spends[1], spends[0][-1], "")

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise LedgerError(
                "a ledger in memory cannot be used in a forked process, which has a copy of its budget: give it a path"
            )
