"""Damaged, cut, torn and partly copied ledgers: each is refused, or has the same budget, totals and entries."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dpnoise import BudgetExceeded, PrivacyCost
from dpnoise.accounting import Ledger, LedgerError

FULL = "DPNOISE_TEST_SAMPLES" in os.environ
STEP = 1 if FULL else 5
PAGE = 512  # of the ledgers here, an eighth of the usual size, so that few bytes are unused

needs_kill = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
needs_limits = pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="this system limits no files")


BUDGETS: dict[str, dict[str, Any]] = {
    "epsilon": {"epsilon": 2.0, "delta": 1e-6},
    "rho": {"rho": 1.0, "delta": 1e-6, "odometer_delta": 1e-6},
    "orders": {"epsilon": 2.0, "delta": 1e-3, "orders": (8, 64)},
}


def facts(ledger: Ledger[Any]) -> tuple[Any, ...]:
    return ledger.budget, ledger.spent, ledger.entries()


@pytest.fixture
def measure() -> str:
    return "epsilon"


@pytest.fixture
def path(memory_path: Path, measure: str) -> Path:
    """Return a ledger of several pages."""
    path = memory_path / "people.db"
    ledger: Ledger[Any] = Ledger(path, **BUDGETS[measure])
    for number in range(4):
        ledger.spend(PrivacyCost(0.25, 0.0 if measure == "orders" else 1e-7), f"{number}: " + "a question " * 20)
    del ledger
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA page_size = {PAGE}")
    connection.execute("VACUUM")
    connection.close()
    assert path.stat().st_size > 7 * PAGE
    return path


def outcomes(path: Path, damaged: Path, contents: Iterable[bytes], same: tuple[Any, ...]) -> Counter[str]:
    """Open a ledger with each content of one of its files in turn, and count what comes of it."""
    found: Counter[str] = Counter()
    messages: set[str] = set()
    granted = 0
    others = {file: file.read_bytes() for file in path.parent.iterdir()}
    for content in contents:
        for file, whole in others.items():  # an earlier opening may have restored the ledger from its journal
            file.write_bytes(content if file == damaged else whole)
        try:
            ledger = Ledger(path)
            assert (ledger.budget, ledger.spent) == same[:2]
        except LedgerError as error:
            messages.add(str(error))
            found["refused"] += 1
            continue
        try:
            assert ledger.entries() == same[2]
            found["the same"] += 1
        except LedgerError as error:
            messages.add(str(error))
            found["found by the check"] += 1
        if found.total() % 5:
            continue
        try:  # it grants what remains, and no more
            ledger.spend(ledger.remaining)
            with pytest.raises(BudgetExceeded):
                Ledger(path).spend(PrivacyCost(0.1))
            granted += 1
        except LedgerError as error:
            messages.add(str(error))
    print(damaged.name, dict(found), f"granted the rest: {granted}")
    assert all(message.isprintable() for message in messages)
    return found


def flipped(content: bytes, every_bit: bool = FULL) -> Iterator[bytes]:
    """Give the content with each byte altered by each bit and by all; the short form alters one bit of some."""
    for place in range(0, len(content), STEP if FULL else 3 * STEP):
        for bits in (*(1 << bit for bit in range(8)), 255) if every_bit else (1 << place % 8,):
            yield content[:place] + bytes([content[place] ^ bits]) + content[place + 1 :]


def cut(content: bytes) -> Iterator[bytes]:
    return (content[:length] for length in range(0, len(content), STEP))


@pytest.mark.parametrize("measure", BUDGETS)
def test_no_altered_byte_alters_a_total(path: Path, measure: str) -> None:
    altered = flipped(path.read_bytes(), every_bit=FULL and measure == "epsilon")
    found = outcomes(path, path, altered, facts(Ledger(path)))
    assert found["refused"] > found.total() / 6
    assert found["found by the check"] > found.total() / 10
    assert found["the same"] > 0, "some bytes mean nothing, such as SQLite's version"


def test_no_cut_file_is_a_ledger(path: Path) -> None:
    found = outcomes(path, path, cut(path.read_bytes()), facts(Ledger(path)))
    assert set(found) == {"refused"}
    path.write_bytes(b"")
    with pytest.raises(LedgerError, match="is empty, but not a ledger"):
        Ledger(path, epsilon=2.0, delta=1e-6)


@needs_kill
def test_one_file_is_the_whole_ledger_after_a_kill(memory_path: Path) -> None:
    spender = """if True:
        import os, signal, sys
        from dpnoise import PrivacyCost
        from dpnoise.accounting import Ledger
        ledger = Ledger(sys.argv[1], epsilon=2.0)
        for _ in range(3):
            ledger.spend(PrivacyCost(0.5))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    path = memory_path / "people.db"
    assert subprocess.run([sys.executable, "-c", spender, path], check=False).returncode == -signal.SIGKILL
    (memory_path / "people.db-lock").unlink()
    assert list(memory_path.iterdir()) == [path]
    assert (Ledger(path).spent.epsilon, Ledger(path).remaining.epsilon) == (1.5, 0.5)


def torn(path: Path, limit: int) -> tuple[Any, ...]:
    """Have a process killed in a spend when a file of it would grow beyond a limit; give the facts before."""
    spender = """if True:
        import resource, signal, sys
        from dpnoise import PrivacyCost
        from dpnoise.accounting import Ledger
        ledger = Ledger(sys.argv[1])
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
        ledger.spend(PrivacyCost(0.25, 1e-7), "the question that is cut short")
    """
    before = facts(Ledger(path))
    done = subprocess.run([sys.executable, "-c", spender, path, str(limit)], check=False)
    assert done.returncode == -signal.SIGXFSZ
    return before


@needs_limits
@pytest.mark.parametrize("lacks", [PAGE, PAGE - 16])
def test_a_spend_cut_short_is_undone_with_its_journal_and_refused_without(path: Path, lacks: int) -> None:
    untouched = path.read_bytes()
    before, journal = torn(path, path.stat().st_size - lacks), path.with_name("people.db-journal")
    assert path.read_bytes() != untouched
    left = {file: file.read_bytes() for file in (path, journal)}
    os.link(path, path.with_name("other"))
    with pytest.raises(LedgerError, match="is one of 2 hard links"):
        Ledger(path)
    assert {file: file.read_bytes() for file in left} == left, "nothing is undone under one of two names"
    path.with_name("other").unlink()
    journal.unlink()
    for opening in (Ledger, Ledger.open_readonly, lambda path: Ledger(path, epsilon=2.0, delta=1e-6)):
        with pytest.raises(LedgerError, match="is damaged or incomplete, and grants nothing: put its -journal file"):
            opening(path)
    assert path.read_bytes() == left[path]
    for opening in (Ledger, Ledger.open_readonly):
        for file, content in left.items():
            file.write_bytes(content)
        assert facts(opening(path)) == before
        assert not journal.exists()


@needs_limits
def test_no_altered_byte_of_a_journal_alters_a_total(path: Path) -> None:
    before, journal = torn(path, path.stat().st_size - PAGE), path.with_name("people.db-journal")
    left = {file: file.read_bytes() for file in (path, journal)}
    for damages in ((lambda content: [content]), flipped, cut):
        for file, content in left.items():
            file.write_bytes(content)
        found = outcomes(path, journal, damages(left[journal]), before)
        assert (found["refused"] > 0) == (found.total() > 1)


@needs_limits
def test_a_disk_that_fails_in_the_last_step_costs_nothing(path: Path) -> None:
    """The spend needs another page, which does not fit, while its journal did."""
    import resource

    ledger, before = Ledger(path), facts(Ledger(path))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, limits[1]))
    try:
        with pytest.raises(LedgerError, match="cannot be used: disk I/O error"):
            ledger.spend(PrivacyCost(0.25, 1e-7), "a question " * 20)
        assert ledger._file.recorded is False
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert facts(ledger) == facts(Ledger(path)) == before
    ledger.spend(PrivacyCost(0.25, 1e-7))
    assert ledger._file.recorded is True
    assert len(Ledger(path).entries()) == len(before[2]) + 1


class Late:
    """The fault: a connection that reports a failure of a commit that is on disk."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection, self.rollback, self.close = connection, connection.rollback, connection.close

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        cursor = self._connection.execute(statement, *values)
        if statement == "COMMIT":
            raise sqlite3.OperationalError("disk I/O error")
        return cursor


def test_a_spend_that_may_be_on_disk_in_spite_of_a_failure_is_known(path: Path) -> None:
    ledger = Ledger(path)
    ledger._file._connection = Late(ledger._file._connection)  # type: ignore[assignment]
    with pytest.raises(LedgerError, match="cannot be used: disk I/O error"):
        ledger.spend(PrivacyCost(0.25))
    assert ledger._file.recorded is None
    assert Ledger(path).spent.epsilon == 1.25


def test_pages_of_two_states_are_no_ledger(path: Path) -> None:
    """What a copy can be that is made during a spend, or a crash leave without a journal."""
    before, old = facts(Ledger(path)), path.read_bytes()
    Ledger(path).spend(PrivacyCost(0.25, 1e-7), "long enough for another page " * 30)
    after, new = facts(Ledger(path)), path.read_bytes()
    pages = [(old[i : i + PAGE], new[i : i + PAGE]) for i in range(0, len(new), PAGE)]
    differ = [number for number, (first, second) in enumerate(pages) if first != second]
    assert len(differ) > 4
    found: Counter[str] = Counter()
    for taken in itertools.product((0, 1), repeat=len(differ)):
        choice = dict(zip(differ, taken, strict=True))
        path.write_bytes(b"".join(page[choice.get(number, 0)].ljust(PAGE, b"\0") for number, page in enumerate(pages)))
        try:
            ledger = Ledger(path)
            assert ledger.spent in (before[1], after[1])
            opened = facts(ledger)
        except LedgerError:
            found["refused"] += 1
        else:
            assert opened in (before, after)
            found["before" if opened == before else "after"] += 1
    print(dict(found))
    assert found["after"] > 0
    assert found["refused"] > 2 ** len(differ) / 2


@needs_limits
@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="this system has no such permissions")
def test_a_journal_that_cannot_be_used_is_not_passed_over(path: Path) -> None:
    torn(path, path.stat().st_size - PAGE)
    # Not in such a folder, which nobody else may enter.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in path.parent.iterdir():
            shutil.move(file, folder)
        (folder / "links").mkdir()
        link = folder / "links" / "ledger"
        link.symlink_to(folder / path.name)
        root = os.geteuid() == 0  # who may read anything
        for mode, of_journal, message in (
            (0o444, 0o444, "must first be opened with permission to write: a spend was cut short"),
            (0o666, 0, "cannot be used: unable to open"),
        ):
            for file in (folder / path.name, folder / f"{path.name}-lock"):
                file.chmod(mode)
            (folder / f"{path.name}-journal").chmod(of_journal)
            folder.chmod(0o555)
            if root:
                os.seteuid(65534)
            try:
                for way in (folder / path.name, link):
                    with pytest.raises(LedgerError, match=message):
                        Ledger.open_readonly(way)
            finally:
                if root:
                    os.seteuid(0)
        folder.chmod(0o755)


def test_an_older_copy_is_noticed_only_by_who_has_seen_a_newer_one(path: Path) -> None:
    """The limit of what can be promised, and what is done beyond it."""
    older, ledger = path.read_bytes(), Ledger(path)
    ledger.spend(PrivacyCost(0.25))
    path.write_bytes(older)
    for call in (ledger.entries, lambda: ledger.spend(PrivacyCost(0.25)), lambda: ledger.remaining):
        with pytest.raises(LedgerError, match="is damaged or incomplete"):
            call()
    assert path.read_bytes() == older
    assert Ledger(path).spent.epsilon == 1.0


def test_damage_is_noticed_while_a_ledger_is_open(path: Path) -> None:
    ledger = Ledger(path)
    for damage, call in (
        ("UPDATE budget SET terms = replace(terms, '\"2\"', '\"9\"')", lambda: ledger.spend(PrivacyCost(0.1))),
        ("UPDATE entries SET time = 'never' WHERE number = 2", ledger.entries),
        ("DROP TABLE entries", lambda: ledger.spent),
    ):
        whole = path.read_bytes()
        connection = sqlite3.connect(path)
        connection.execute(damage)
        connection.commit()
        connection.close()
        with pytest.raises(LedgerError, match="is damaged or incomplete"):
            call()
        path.write_bytes(whole)
