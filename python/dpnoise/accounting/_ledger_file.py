"""The file of a ledger: an SQLite database that loses no spend and grants none twice.

Every spend is one transaction that first takes the write lock, then reads the total and appends a row; it is on disk
when it is committed. Rows are never changed. Amounts are decimal numbers in text, since SQLite would round numbers.

Between transactions the database is one file. During a transaction a second file, the journal, holds what is being
overwritten; after a kill the next connection restores it from there. Each row is hashed with the terms and with the
hash of the rows before it, and the last two hashes stand beside the terms. So opening a ledger takes the same time for
any number of rows: the last row, which has the totals, must match. A file does not pass if its end is missing, damaged
or older than its terms, as it may be in a copy without its journal. Damage in earlier rows changes no total, and is
found by `LedgerFile.entries`. The hashes have no key: they are no protection from a forger.

SQLite connections must not cross a fork, so each process has its own. Before a fork all connections are closed, while
no transaction is open, and they are opened again on demand.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

from dpnoise._errors import LedgerError
from dpnoise._files import InUse, atomic_write, locked

_APPLICATION: Final = 0x64704C67  # "dpLg", which distinguishes a ledger from other databases
_VERSION: Final = 4
_SECONDS: Final = 60.0  # to wait for other processes; a spend takes some milliseconds
_TABLES: Final = (
    """CREATE TABLE budget (
        terms TEXT NOT NULL,
        spends INTEGER NOT NULL,
        before TEXT NOT NULL,
        hash TEXT NOT NULL
    )""",
    """CREATE TABLE entries (
        number INTEGER PRIMARY KEY,
        time TEXT NOT NULL,
        label TEXT NOT NULL,
        mechanism TEXT NOT NULL,
        amounts TEXT NOT NULL,
        totals TEXT NOT NULL
    )""",
)
_ROWS: Final = "SELECT * FROM entries WHERE number > ? ORDER BY number"

# --- its content -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class State:
    """A ledger after so many spends."""

    terms: str
    """The filter, the budget and the neighbouring relation."""
    spends: int
    totals: str
    """Decimal numbers, separated by spaces; empty before the first spend."""
    hash: str


def _hash(before: str, terms: str, row: Sequence[object]) -> str:
    """Hash a row together with the terms and the hash of all rows before it."""
    return sha256(json.dumps([before, terms, *row]).encode()).hexdigest()


def _new(terms: str) -> State:
    return State(terms, 0, "", _hash("", terms, ()))


def _read(connection: sqlite3.Connection, known: State | None) -> State:
    """Read a ledger, from the state `known` or from the last row on; raise TypeError or ValueError for a wrong hash."""
    ((terms, spends, before, recorded),) = connection.execute("SELECT * FROM budget")
    state = known or (State(terms, spends - 1, "", before) if spends else _new(terms))
    number, totals, found = state.spends, state.totals, state.hash
    for row in connection.execute(_ROWS, (number,)):
        number, totals, found = number + 1, row[-1], _hash(found, terms, row)
    if (terms, number, found) != (state.terms, spends, recorded):
        raise ValueError
    return State(terms, number, totals, found)


def _append(connection: sqlite3.Connection, state: State, row: tuple[str, ...]) -> State:
    number = state.spends + 1
    after = State(state.terms, number, row[-1], _hash(state.hash, state.terms, (number, *row)))
    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", (number, *row))
    connection.execute("UPDATE budget SET spends = ?, before = ?, hash = ?", (after.spends, state.hash, after.hash))
    return after


def _create(connection: sqlite3.Connection, state: State) -> None:
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute("INSERT INTO budget VALUES (?, 0, '', ?)", (state.terms, state.hash))
    connection.execute(f"PRAGMA user_version = {_VERSION}")


# --- the file ----------------------------------------------------------------------------------------------------


class LedgerFile:
    """A ledger's file, and this process's connection to it.

    With `terms` the file is created if it does not exist.
    """

    def __init__(self, path: Path, *, terms: str | None = None, readonly: bool = False) -> None:
        self.path, self.readonly = path.absolute(), readonly
        self._connection: sqlite3.Connection | None = None
        self._known: State | None = None
        self.committing = False
        """Whether the last transaction failed in its last step, and so may be on disk all the same."""
        with _LOCK:
            if terms is not None:
                self._make(terms)
            self._open()
            with self._explained():
                self._identity = self._found()
            self.terms = self.state().terms
            _FILES.add(self)

    def state(self) -> State:
        """Read and verify the rows that this process has not read before."""
        with self._transaction("BEGIN") as (_, state):
            return state

    def entries(self) -> tuple[State, list[tuple[Any, ...]]]:
        """Read the rows, the oldest first, and verify the whole file."""
        with self._transaction("BEGIN") as (connection, state):
            if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise LedgerError(self._damaged())
            if self._verified(connection, _new(state.terms)) != state:
                raise LedgerError(self._damaged())
            return state, connection.execute(_ROWS, (0,)).fetchall()

    @contextmanager
    def write(self) -> Iterator[tuple[State, Callable[[tuple[str, ...]], State]]]:
        """Take the write lock; yield the state, and a function that appends a row.

        The row is on disk at the end, or rolled back by an error.
        """
        if self.readonly:
            raise LedgerError(f"{str(self.path)!r} was opened read-only")
        with self._transaction("BEGIN IMMEDIATE") as (connection, state):
            yield state, partial(_append, connection, state)

    def close(self) -> None:
        """Close the connection; the next transaction opens another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def __del__(self) -> None:
        self.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[tuple[sqlite3.Connection, State]]:
        with _LOCK, self._explained():
            connection = self._connection or self._open()
            self._check_identity()
            try:
                self.committing = False
                connection.execute(begin)
                state = self._verified(connection, self._known)
                yield connection, state
                after = self._verified(connection, state)
                self.committing = True
                connection.execute("COMMIT")
                self.committing, self._known = False, after
            except BaseException:
                try:
                    connection.rollback()
                    if self.committing:  # a row that can be read now may still be lost with the power
                        self.committing = _read(connection, state) != state
                except (sqlite3.Error, TypeError, ValueError):
                    self.close()  # which rolls back, too
                raise

    def _verified(self, connection: sqlite3.Connection, known: State | None) -> State:
        try:
            return _read(connection, known)
        except (TypeError, ValueError) as error:
            raise LedgerError(self._damaged()) from error

    def _make(self, terms: str) -> None:
        """Make a ledger, unless the file exists."""
        end = time.monotonic() + _SECONDS
        with self._explained():
            while not self.path.exists():
                try:
                    with locked(self.path):
                        if not self.path.exists():
                            self._write_empty(terms)
                except InUse as error:
                    if time.monotonic() > end:
                        raise LedgerError(str(error)) from None
                    time.sleep(0.01)

    def _write_empty(self, terms: str) -> None:
        """Write a ledger without spends, atomically, so that an empty file is never a ledger."""
        target = self.path.resolve()
        for left in (target.with_name(f"{target.name}-{kind}") for kind in ("journal", "wal")):
            if left.exists():  # SQLite would restore its old pages
                raise LedgerError(
                    f"{str(self.path)!r} cannot be made: {str(left)!r} belongs to a ledger that was here; restore "
                    f"that, or remove this file, too"
                )
        with atomic_write(self.path) as file:
            with closing(sqlite3.connect(file.name, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = MEMORY")
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                _create(connection, _new(terms))
            file.seek(0, os.SEEK_END)

    def _open(self) -> sqlite3.Connection:
        with self._explained():
            if not self.path.exists():
                hint = "" if self.readonly else "; give epsilon or rho, its budget, to make one"
                raise LedgerError(f"there is no ledger at {str(self.path)!r}{hint}")
            self._found()
            # Transactions are begun explicitly; the lock below serialises threads. Readers restore the file from its
            # journal, too, if they may write it.
            connection = sqlite3.connect(
                f"{self.path.as_uri()}?mode=rw",
                uri=True,
                timeout=_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                connection.execute("PRAGMA synchronous = EXTRA")  # FULL, and syncs the directory without the journal
                connection.execute(f"PRAGMA query_only = {self.readonly:d}")
                self._check_kind(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
            return connection

    def _check_kind(self, connection: sqlite3.Connection) -> None:
        def found(what: str) -> object:
            return connection.execute(f"PRAGMA {what}").fetchone()[0]

        name = repr(str(self.path))
        if found("application_id") != _APPLICATION:
            kind = "a database" if self.path.stat().st_size else "empty"
            raise LedgerError(f"{name} is {kind}, but not a ledger of dpnoise")
        version = found("user_version")
        if version != _VERSION:
            raise LedgerError(
                f"{name} is a ledger of version {version}, and this dpnoise reads version {_VERSION} only: see with "
                f"the dpnoise that made it what remains, and make a new ledger with that budget"
            )
        tables = tuple(sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master ORDER BY rowid"))
        if tables != _TABLES or found("journal_mode") != "delete":
            raise LedgerError(self._damaged())

    def _check_identity(self) -> None:
        """Refuse to spend from a file that was replaced or has several names: others might use another file."""
        if not self.path.exists():
            raise LedgerError(f"{str(self.path)!r} is gone")
        if self._found() != self._identity:
            raise LedgerError(f"{str(self.path)!r} has been replaced since it was opened")

    def _found(self) -> tuple[int, int]:
        status = self.path.stat()
        if status.st_nlink > 1 and not self.path.is_dir():
            # Each name would have its own journal: a spend interrupted under one name would stay so under the other.
            raise LedgerError(f"{str(self.path)!r} is one of {status.st_nlink} hard links; a ledger must have one name")
        return status.st_dev, status.st_ino

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn an error of SQLite or the system into one clear line."""
        try:
            yield
        except sqlite3.Error as error:
            raise LedgerError(self._explanation(str(error))) from error
        except UnicodeDecodeError as error:  # raised by sqlite3 for a message that quotes damaged text
            raise LedgerError(self._damaged()) from error
        except OSError as error:
            raise LedgerError(self._explanation(error.strerror or str(error))) from error

    def _explanation(self, said: str) -> str:
        name = repr(str(self.path))
        if os.path.isdir(self.path):  # which, unlike pathlib, does not raise without permission
            return f"{name} is a directory"
        if not os.path.isdir(self.path.parent):
            return f"{name} cannot be made: the directory {str(self.path.parent)!r} does not exist"
        if "not a database" in said:
            return f"{name} is not a ledger of dpnoise"
        if "readonly" in said and self.readonly:
            return f"{name} must first be opened with permission to write: a spend was cut short, and is to be undone"
        if "readonly" in said:
            return f"{name} cannot be written: the file or its directory is read-only"
        if "full" in said:
            return f"{name} cannot be written: {os.strerror(errno.ENOSPC)}"
        if "locked" in said:
            return f"{name} has been locked by another program for {_SECONDS:g} seconds"
        if any(word in said for word in ("malformed", "no such", "decode", "unsupported")):
            return self._damaged()
        return f"{name} cannot be used: {said}"

    def _damaged(self) -> str:
        return (
            f"{str(self.path)!r} is damaged or incomplete, and grants nothing: put its -journal file beside it if it "
            f"was copied without that, or restore a copy made after its last spend, or count its whole budget as spent"
        )


_LOCK: Final = threading.RLock()
"""Held during every transaction of this process, and while it forks."""

_FILES: Final[WeakSet[LedgerFile]] = WeakSet()


def _before_fork() -> None:
    _LOCK.acquire()
    for file in list(_FILES):
        file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)
