"""The file of a ledger: an SQLite database that loses no spend and grants none twice.

Every spend is one transaction that first takes the write lock, then reads the total and appends a row; it is on disk
when it is committed. Rows are never changed. Amounts are decimal numbers in text, since SQLite would round numbers.

SQLite connections must not cross a fork, so each process has its own. Before a fork all connections are closed, while
no transaction is open, and they are opened again on demand.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

from dpnoise._errors import LedgerError
from dpnoise.accounting._cost import PrivacyCost
from dpnoise.accounting._exact import decimal_of, exact_sum
from dpnoise.sensitivity import Relation, check_relation

_APPLICATION: Final = 0x64704C67  # "dpLg", which distinguishes a ledger from other databases
_VERSION: Final = 2
_SECONDS: Final = 60.0  # to wait for other processes; a spend takes some milliseconds
_SCHEMA: Final = f"""
    CREATE TABLE budget (epsilon TEXT NOT NULL, delta TEXT NOT NULL, relation TEXT NOT NULL);
    CREATE TABLE entries (
        number INTEGER PRIMARY KEY,
        time TEXT NOT NULL,
        label TEXT NOT NULL,
        mechanism TEXT NOT NULL,
        epsilon TEXT NOT NULL,
        delta TEXT NOT NULL,
        total_epsilon TEXT NOT NULL,
        total_delta TEXT NOT NULL
    );
    PRAGMA application_id = {_APPLICATION};
    PRAGMA user_version = {_VERSION};
"""

Amounts = tuple[Decimal, Decimal]
"""Of epsilon and of delta."""


# --- its content -----------------------------------------------------------------------------------------------


def budget(connection: sqlite3.Connection) -> Amounts:
    """Read the budget."""
    epsilon, delta = connection.execute("SELECT epsilon, delta FROM budget").fetchone()
    return Decimal(epsilon), Decimal(delta)


def relation(connection: sqlite3.Connection) -> Relation:
    """Read the neighbouring relation."""
    found: Relation = connection.execute("SELECT relation FROM budget").fetchone()[0]
    check_relation(found)
    return found


def total(connection: sqlite3.Connection) -> Amounts:
    """Read the total of all spends."""
    last = connection.execute("SELECT total_epsilon, total_delta FROM entries ORDER BY number DESC LIMIT 1").fetchone()
    return (Decimal(last[0]), Decimal(last[1])) if last else (Decimal(0), Decimal(0))


def entries(connection: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    """Read the rows, the oldest first."""
    yield from connection.execute("SELECT * FROM entries ORDER BY number")


def append(connection: sqlite3.Connection, row: tuple[str, ...]) -> None:
    """Write a row, the next number excepted."""
    connection.execute("INSERT INTO entries VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", row)


def _verify(connection: sqlite3.Connection) -> None:
    """Recompute the totals: a missing or altered row must not give its cost back to the budget."""
    spent = (Decimal(0), Decimal(0))
    for expected, (number, *_, epsilon, delta, total_epsilon, total_delta) in enumerate(entries(connection), 1):
        spent = exact_sum((spent[0], Decimal(epsilon))), exact_sum((spent[1], Decimal(delta)))
        if (number, Decimal(total_epsilon), Decimal(total_delta)) != (expected, *spent):
            raise LedgerError
    relation(connection)
    if any(part < 0 for part in budget(connection)):
        raise LedgerError


# --- the file ----------------------------------------------------------------------------------------------------


class LedgerFile:
    """A ledger's file, and this process's connection to it.

    With `budget` it is made if it does not exist.
    """

    def __init__(self, path: Path, *, budget: PrivacyCost | None = None, readonly: bool = False) -> None:
        self.path, self.readonly = path.absolute(), readonly
        self._connection: sqlite3.Connection | None = None
        self._frozen = False
        self.committing = False
        """Whether the last transaction failed in its last step, and so may be on disk all the same."""
        with _LOCK:
            if budget is not None:
                self._make(budget)
            self._open()
            with self._explained():
                self._identity = self._found()
            _FILES.add(self)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Give a connection that sees one state of the ledger."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Give a connection with the write lock; its changes are on disk at the end, or rolled back by an error."""
        if self.readonly:
            raise LedgerError(f"{str(self.path)!r} was opened read-only")
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def close(self) -> None:
        """Close the connection; the next transaction opens another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def __del__(self) -> None:
        self.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with _LOCK, self._explained():
            connection = self._connection or self._open()
            self._check_identity()
            try:
                self.committing = False
                connection.execute(begin)
                yield connection
                self.committing = True
                connection.execute("COMMIT")
                self.committing = False
                if self._frozen:
                    self.close()  # it would not see later writes of others
            except BaseException:
                try:
                    connection.rollback()
                except sqlite3.Error:
                    self.close()  # which undoes it, too
                raise

    def _make(self, budget: PrivacyCost) -> None:
        """Make a ledger, unless the file exists."""
        with self._explained(), self._connected("rwc") as connection:
            connection.execute("BEGIN IMMEDIATE")
            # All of it or nothing is there if this process is killed.
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                amounts = [str(decimal_of(part)) for part in (budget.epsilon, budget.delta)]
                connection.execute("INSERT INTO budget VALUES (?, ?, ?)", (*amounts, budget.relation))
            connection.execute("COMMIT")

    def _open(self) -> sqlite3.Connection:
        with self._explained():
            if not self.path.exists():
                hint = "" if self.readonly else "; give epsilon, its budget, to make one"
                raise LedgerError(f"there is no ledger at {str(self.path)!r}{hint}")
            try:
                self._connection = self._checked("ro" if self.readonly else "rw")
            except sqlite3.OperationalError:
                # SQLite makes files beside it to share it with other readers, which needs a writable directory.
                target = self.path.resolve()  # SQLite puts them beside the target of a symbolic link
                if not self.readonly or target.with_name(f"{target.name}-wal").exists():
                    raise
                self._connection, self._frozen = self._checked("ro&immutable=1"), True
            return self._connection

    def _checked(self, mode: str) -> sqlite3.Connection:
        connection = self._connect(mode)
        try:
            self._check_kind(connection)
            if not self.readonly:
                # WAL is faster. Spends are as safe without it, for example if another process is reading now.
                with suppress(sqlite3.OperationalError):
                    connection.execute("PRAGMA journal_mode = WAL")
            self._check_contents(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _connected(self, mode: str) -> Iterator[sqlite3.Connection]:
        connection = self._connect(mode)
        try:
            yield connection
        finally:
            connection.close()

    def _connect(self, mode: str) -> sqlite3.Connection:
        if self.path.exists():
            self._found()
        # Transactions are begun explicitly; the lock below serialises threads.
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode={mode}",
            uri=True,
            timeout=_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute("PRAGMA synchronous = EXTRA")  # FULL, and the directory too while there is no WAL
        return connection

    def _check_kind(self, connection: sqlite3.Connection) -> None:
        if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise LedgerError(f"{str(self.path)!r} is a database, but not a ledger of dpnoise")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version != _VERSION:
            raise LedgerError(
                f"{str(self.path)!r} is a ledger of version {version}, and this dpnoise reads version {_VERSION}"
            )

    def _check_contents(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN")
        try:
            sound = connection.execute("PRAGMA quick_check").fetchone()[0] == "ok"
            _verify(connection)
        except (LedgerError, ArithmeticError, TypeError, ValueError):
            sound = False
        if not sound:
            raise LedgerError(f"{str(self.path)!r} is damaged: its rows or totals do not agree")
        connection.execute("COMMIT")

    def _check_identity(self) -> None:
        """Refuse to spend from a file that was replaced or has several names: others might use another file."""
        if not self.path.exists():
            raise LedgerError(f"{str(self.path)!r} is gone")
        if self._found() != self._identity:
            raise LedgerError(f"{str(self.path)!r} has been replaced since it was opened")

    def _found(self) -> tuple[int, int]:
        status = self.path.stat()
        if status.st_nlink > 1 and not self.path.is_dir():
            # Each name would have its own WAL, and spends by one name would not be visible by the other.
            raise LedgerError(f"{str(self.path)!r} is one of {status.st_nlink} hard links; a ledger must have one name")
        return status.st_dev, status.st_ino

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn an error of SQLite into one clear line."""
        try:
            yield
        except sqlite3.Error as error:
            raise LedgerError(self._explanation(error)) from error
        except OSError as error:
            raise LedgerError(f"{str(self.path)!r} cannot be used: {error.strerror}") from error

    def _explanation(self, error: sqlite3.Error) -> str:
        name, said = repr(str(self.path)), str(error)
        if os.path.isdir(self.path):  # which, unlike pathlib, does not raise without permission
            return f"{name} is a directory"
        if not os.path.isdir(self.path.parent):
            return f"{name} cannot be made: the directory {str(self.path.parent)!r} does not exist"
        if "not a database" in said:
            return f"{name} is not a ledger of dpnoise"
        if "readonly" in said:
            return f"{name} cannot be written: the file or its directory is read-only"
        if "locked" in said:
            return f"{name} has been locked by another program for {_SECONDS:g} seconds"
        if "malformed" in said or "no such" in said:
            return f"{name} is damaged: {said}"
        return f"{name} cannot be used: {said}"


_LOCK: Final = threading.RLock()
"""Held during every transaction of this process, and while it forks."""

_FILES: Final[WeakSet[LedgerFile]] = WeakSet()


def _before_fork() -> None:
    _LOCK.acquire()
    for file in list(_FILES):
        file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)
