"""The file of a ledger: an SQLite database that loses no spend and grants none twice.

Every spend is one transaction that first takes all locks, then reads the total and appends a row; it is on disk when it
is committed. Rows are never changed. Amounts are decimal numbers or quotients, in text: SQLite would round numbers.

Between transactions the database is one file. During a transaction a second file, the journal, holds what is being
overwritten; after a kill the next connection restores it from there. Each row is hashed with the terms and with the
hash of the rows before it, and the last two hashes stand beside the terms. So opening a ledger takes the same time for
any number of rows: the last row, which has the totals, must match. A file does not pass if its end is missing, damaged
or older than its terms, as it may be in a copy without its journal. Damage in earlier rows changes no total, and is
found by `LedgerFile.entries`. The hashes have no key: they are no protection from a forger.

SQLite's locks keep out other programs, but they are POSIX locks: a process loses its own as soon as any of its threads
closes the file, as a backup does that has read it. So processes of dpnoise keep each other out by a lock on a file of
its own, which nothing else opens, whenever they open or read a ledger or write to it. It is held by the open file and
not by the process, where the system has such locks. Where it has not, the file of the lock should be left out of
backups by a process that spends.

SQLite connections must not cross a fork, so each process has its own. Before a fork all connections are closed, while
no transaction is open, and they are opened again on demand. A signal handler or a finalizer that runs in the middle of
a transaction is refused before it has touched anything; if it forks, the transaction fails in both processes.
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
from os import PathLike
from pathlib import Path
from stat import S_ISREG
from typing import Any, BinaryIO, ClassVar, Final, TypeAlias, TypeVar
from weakref import WeakSet

from dpnoise._errors import LedgerError
from dpnoise._files import InUse, atomic_write, checked_path, is_locked, unlock

_APPLICATION: Final = 0x64704C67  # "dpLg", which distinguishes a ledger from other databases
_VERSION: Final = 6
_SECONDS: Final = 60.0  # to wait for other processes; a spend takes some milliseconds
_PATIENCE: Final = 0.02  # seconds of it that SQLite waits for other programs, while no signal is answered
_PAUSE: Final = 0.002  # seconds; all who wait look equally often, so that none waits much longer than the others
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
Row: TypeAlias = tuple[str, ...]
T = TypeVar("T")

_FIRST_READ: Final = "SELECT count(*) FROM sqlite_master"  # which takes a reader's lock
_ROWS: Final = "SELECT * FROM entries WHERE number > ? ORDER BY number"

# --- its content -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class State:
    """A ledger after so many spends."""

    terms: str
    """The filter, the budget, the neighbouring relation and the person."""
    spends: int
    totals: str
    """Decimal numbers or quotients, separated by spaces; empty before the first spend."""
    hash: str


def _hash(before: str, terms: str, row: Sequence[object]) -> str:
    """Hash a row together with the terms and the hash of all rows before it."""
    return sha256(json.dumps([before, terms, *row]).encode()).hexdigest()


def _new(terms: str) -> State:
    return State(terms, 0, "", _hash("", terms, ()))


def _state_of(connection: sqlite3.Connection, known: State | None) -> State:
    """Read a ledger, from the state `known` or from the last row on; raise TypeError or ValueError for a wrong hash."""
    ((terms, spends, before, recorded),) = connection.execute("SELECT * FROM budget")
    state = known or (State(terms, spends - 1, "", before) if spends else _new(terms))
    number, totals, found = state.spends, state.totals, state.hash
    for row in connection.execute(_ROWS, (number,)):
        number, totals, found = number + 1, row[-1], _hash(found, terms, row)
    if (terms, number, found) != (state.terms, spends, recorded):
        raise ValueError
    return State(terms, number, totals, found)


def _insert(connection: sqlite3.Connection, state: State, row: Row) -> None:
    number = state.spends + 1
    after = State(state.terms, number, row[-1], _hash(state.hash, state.terms, (number, *row)))
    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", (number, *row))
    connection.execute("UPDATE budget SET spends = ?, before = ?, hash = ?", (after.spends, state.hash, after.hash))


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

    _busy: ClassVar[bool] = False
    """Whether a transaction is open in this process; whoever has the lock below and finds it set has interrupted it."""

    def __init__(self, path: str | PathLike[str], *, terms: str | None = None, readonly: bool = False) -> None:
        self._connection: sqlite3.Connection | None = None
        self.readonly = readonly
        self._known: State | None = None
        self.recorded: bool | None = False
        """Whether the last row is on disk that `append` was to append; None if it may be, after a failure."""
        try:
            self.path = checked_path(path).absolute()
        except OSError as error:
            gone = isinstance(error, FileNotFoundError)  # of a path that is not absolute
            reason = "the current directory does not exist" if gone else error.strerror
            raise LedgerError(f"{os.fspath(path)!r} cannot be used: {reason}") from error
        self._lock_path = os.path.realpath(self.path) + "-lock"
        with self._explained():
            if terms is None or self._status() is not None:
                self._check_format()  # or the file of the lock would be made beside anything
        self._exclusively(partial(self._begin, terms))

    def state(self) -> State:
        """Read and verify the rows that this process has not read before."""
        return self._exclusively(partial(self._read, lambda connection, state: state))

    def entries(self) -> tuple[State, list[tuple[Any, ...]]]:
        """Read the rows, the oldest first, and verify the whole file."""

        def read(connection: sqlite3.Connection, state: State) -> tuple[State, list[tuple[Any, ...]]]:
            if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise LedgerError(damaged(self.path))
            if self._verified(connection, _new(state.terms)) != state:
                raise LedgerError(damaged(self.path))
            return state, connection.execute(_ROWS, (0,)).fetchall()

        return self._exclusively(partial(self._read, read))

    def append(self, row_after: Callable[[State], Row]) -> None:
        """Append the row that a function makes of the state; it is on disk then, or rolled back by an error."""
        if self.readonly:
            raise LedgerError(f"{str(self.path)!r} was opened read-only")
        self._exclusively(partial(self._append, row_after, os.getpid()))

    def close(self) -> None:
        """Close the connection; the next transaction opens another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def __del__(self) -> None:
        self.close()

    def _begin(self, terms: str | None) -> None:
        if terms is not None and self._status() is None:
            self._write_empty(terms)
        self._identity = self._identity_of(self.path.stat())
        self.terms = self._read(lambda connection, state: state.terms)
        _FILES.add(self)

    def _read(self, read: Callable[[sqlite3.Connection, State], T]) -> T:
        connection = self._connected()
        try:
            self._wait(partial(_done, connection, "BEGIN", _FIRST_READ))
            state = self._verified(connection, self._known)
            result = read(connection, state)
            connection.execute("COMMIT")
        except BaseException as error:
            self._undo(connection, error)
            raise
        self._known = state
        return result

    def _append(self, row_after: Callable[[State], Row], process: int) -> None:
        self.recorded = False
        connection, state = self._connected(), None
        try:
            # So that no other program can make the commit wait.
            self._wait(partial(_done, connection, "BEGIN EXCLUSIVE"))
            state = self._verified(connection, self._known)
            _insert(connection, state, row_after(state))
            after = self._verified(connection, state)
            if os.getpid() != process:
                raise LedgerError(f"{str(self.path)!r} cannot be used: a signal handler has forked during a spend")
            self.recorded = None
            connection.execute("COMMIT")
            self.recorded, self._known = True, after
        except BaseException as error:
            self._undo(connection, error)
            if self.recorded is None and state is not None:
                self._look(state)
            raise

    def _undo(self, connection: sqlite3.Connection, error: BaseException) -> None:
        """Roll back; a connection that has failed may still have locks, and is closed, which rolls back, too."""
        with suppress(sqlite3.Error):
            connection.rollback()
            if not isinstance(error, sqlite3.Error):
                return
        self.close()

    def _look(self, before: State) -> None:
        """Find out whether a commit that failed is undone. A row that can be read may still be lost with the power."""
        with suppress(sqlite3.Error, OSError, LedgerError, TypeError, ValueError):
            if _state_of(self._connected(), before) == before:
                self.recorded = False

    def _exclusively(self, work: Callable[[], T]) -> T:
        """Do the work while no other process, thread, signal handler or finalizer uses this file."""
        process, lock = os.getpid(), None
        with _LOCK, self._explained():
            if LedgerFile._busy:
                raise LedgerError(
                    f"{str(self.path)!r} cannot be used now: a signal handler or finalizer has interrupted another use "
                    f"of a ledger; let it only note what is to be done, and do that later"
                )
            try:
                LedgerFile._busy = True
                try:
                    lock = self._locked()
                    return work()
                finally:
                    if lock is not None:
                        with lock:
                            if os.getpid() == process:  # a forked child shares the lock, and must not end it
                                unlock(lock.fileno())
            finally:
                LedgerFile._busy = False

    def _wait(self, attempt: Callable[[], bool]) -> None:
        """Repeat an attempt until it succeeds; in between signals are answered."""
        end = time.monotonic() + _SECONDS
        while not attempt():
            if time.monotonic() > end:
                raise LedgerError(f"{str(self.path)!r} has been locked by another program for {_SECONDS:g} seconds")
            time.sleep(_PAUSE)

    def _locked(self) -> BinaryIO:
        """Lock the file beside the ledger, and return it."""
        while True:
            lock = self._lock_file()
            try:
                if lock.name == os.devnull:
                    return lock
                self._wait(partial(is_locked, lock.fileno()))
                if os.fstat(lock.fileno()).st_nlink:
                    return lock
            except BaseException:
                lock.close()
                raise
            lock.close()  # the file has been removed, and others lock a new one

    def _lock_file(self) -> BinaryIO:
        """Open the file that is locked, or make it, for those who may read the ledger.

        Only `open_readonly` does without where nobody has spent, and this process cannot make the file.
        """
        status = self._status()
        mode = 0o600 if status is None else status.st_mode & 0o666
        try:
            return open(self._lock_path, "ab", opener=lambda path, flags: os.open(path, flags, mode))
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            there = os.path.exists(self._lock_path)
            if not there and not self.readonly:
                raise
            return open(self._lock_path if there else os.devnull, "rb")

    def _verified(self, connection: sqlite3.Connection, known: State | None) -> State:
        try:
            return _state_of(connection, known)
        except (TypeError, ValueError) as error:
            raise LedgerError(damaged(self.path)) from error

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

    def _connected(self) -> sqlite3.Connection:
        """Return a connection to the file that was opened.

        A file that was replaced or has several names is refused: others might use another file.
        """
        if (status := self._status()) is None:
            raise LedgerError(f"{str(self.path)!r} is gone")
        if self._identity_of(status) != self._identity:
            raise LedgerError(f"{str(self.path)!r} has been replaced since it was opened")
        return self._connection or self._open()

    def _check_format(self) -> None:
        if (status := self._status()) is None:
            hint = "" if self.readonly else "; give epsilon or rho, its budget, to make one"
            raise LedgerError(f"there is no ledger at {str(self.path)!r}{hint}")
        self._identity_of(status)
        with self.path.open("rb") as file:
            header = file.read(72)
        if header[68:] != _APPLICATION.to_bytes(4, "big"):
            kind = {b"": "empty, but ", b"SQLite format 3\0": "a database, but "}.get(header[:16], "")
            raise LedgerError(f"{str(self.path)!r} is {kind}not a ledger of dpnoise")

    def _open(self) -> sqlite3.Connection:
        # Transactions are begun explicitly; the lock below serialises threads. Readers restore the file from its
        # journal, too, if they may write it.
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode=rw",
            uri=True,
            timeout=_PATIENCE,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            extra = "PRAGMA synchronous = EXTRA"  # FULL, and syncs the directory without the journal
            self._wait(
                partial(_done, connection, extra, f"PRAGMA query_only = {self.readonly:d}", "BEGIN", _FIRST_READ)
            )
            self._check_kind(connection)
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _check_kind(self, connection: sqlite3.Connection) -> None:
        def found(what: str) -> object:
            return connection.execute(f"PRAGMA {what}").fetchone()[0]

        name = repr(str(self.path))
        version = found("user_version")
        if version != _VERSION:
            raise LedgerError(
                f"{name} is a ledger of version {version}, and this dpnoise reads version {_VERSION} only: see with "
                f"the dpnoise that made it what remains, and make a new ledger with that budget"
            )
        tables = tuple(sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master ORDER BY rowid"))
        if tables != _TABLES or found("journal_mode") != "delete":
            raise LedgerError(damaged(self.path))

    def _status(self) -> os.stat_result | None:
        try:
            return self.path.stat()
        except FileNotFoundError:
            return None

    def _identity_of(self, status: os.stat_result) -> tuple[int, int]:
        if not S_ISREG(status.st_mode):
            kind = "a directory" if self.path.is_dir() else "no regular file"
            raise LedgerError(f"{str(self.path)!r} is {kind}")
        if status.st_nlink > 1:
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
        except InUse as error:
            raise LedgerError(str(error)) from error
        except UnicodeDecodeError as error:  # raised by sqlite3 for a message that quotes damaged text
            raise LedgerError(damaged(self.path)) from error
        except OSError as error:
            of_lock = f" for {self._lock_path!r}" if error.filename == self._lock_path else ""
            raise LedgerError(self._explanation(f"{error.strerror or error}{of_lock}")) from error

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
            return damaged(self.path)
        return f"{name} cannot be used: {said}"


def damaged(path: Path) -> str:
    return (
        f"{str(path)!r} is damaged or incomplete, and grants nothing: put its -journal file beside it if it was copied "
        f"without that, or restore a copy made after its last spend, or count its whole budget as spent"
    )


def _done(connection: sqlite3.Connection, *statements: str) -> bool:
    """Execute statements; False, and no transaction is open, if another program has locked the file."""
    try:
        for statement in statements:
            connection.execute(statement)
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        connection.rollback()
        return False
    return True


_LOCK: Final = threading.RLock()
"""Held during every transaction of this process, and while it forks."""

_FILES: Final[WeakSet[LedgerFile]] = WeakSet()


def _before_fork() -> None:
    _LOCK.acquire()
    for file in list(_FILES):
        file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)
