"""Counting files of reports: each file entirely or not at all, and no file twice."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Final

import numpy as np
import typer

from dpnoise import ParameterError, local
from dpnoise._display import progress
from dpnoise._files import NotWritten
from dpnoise.cli import signals
from dpnoise.cli.agreement import Agreement, Elsewhere
from dpnoise.cli.console import InputError, Interrupted, complain, message_of
from dpnoise.cli.delivery import OutputError
from dpnoise.cli.reports import Announced, open_reports
from dpnoise.cli.sources import STDIN, Hashed, opened, sha256
from dpnoise.cli.state import State, StateFile
from dpnoise.cli.tables import batch_rows

_SAVE_SECONDS: Final = 30  # seconds: a crash loses at most the work of this time, or of one file


@dataclass
class Collection:
    target: StateFile | None = None
    state: State | None = None
    counted: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    """The reason why a file was not counted, by its path."""
    repeated: dict[str, str] = field(default_factory=dict)
    """The path under which the same file has been counted already, by the path that was skipped."""
    saved: int = 0
    strangers: Counter[bytes] = field(default_factory=Counter)
    """How many messages had another header, by that header."""

    def save(self) -> None:
        """Write the state if it has changed; signals are deferred until it is written."""
        if self.target is not None and self.state is not None and self.counted > self.saved:
            with signals.deferred():
                self.target.write(self.state)
                self.saved = self.counted


@contextmanager
def collected(
    files: Sequence[Path],
    failed: dict[str, str],
    target: StateFile | None,
    agreement: Agreement,
    framing: local.Framing | None,
    threads: int | None,
) -> Iterator[Collection]:
    """Count files, on top of the state in `target`, and save the state there, except after the last files.

    The files are Parquet files of reports or, with a framing, files of messages. An unusable file is noted beside those
    that have failed already, and leaves no trace in the counts. The block saves the remaining counts by
    `Collection.save`, unless it ends with an error.
    """
    collection = Collection(target, failed=failed)
    if target is not None and target.path.exists():
        collection.state = target.read()
        agreement.check_state(collection.state)
    elif framing is not None:
        collection.state = agreement.of_messages()
    elif len(files) > 1:
        collection.state = agreement.of_most(files)
    try:
        _count(files, collection, agreement, framing, threads)
        yield collection
    except (OutputError, typer.Exit):  # the save has been tried
        raise
    except BaseException as error:
        with signals.ignored():
            collection.save()
        if target is None or not isinstance(error, KeyboardInterrupt):
            raise
        raise Interrupted(
            f"{str(target.path)!r} has what was counted before; of this run's files it has {collection.counted:,} now, "
            f"and the same command goes on with the others"
        ) from None


def _count(
    files: Sequence[Path],
    collection: Collection,
    agreement: Agreement,
    framing: local.Framing | None,
    threads: int | None,
) -> None:
    # Hashing a file takes longer than counting it, and a single file is compared with nothing.
    identify = sha256 if collection.target is not None or len(files) > 1 else str
    last_save = monotonic()
    total = None if STDIN in files else sum(map(_size, files))
    with progress("counting", total, "bytes") as advance:
        for path in files:
            try:
                if framing is None or collection.state is None:
                    part = _of_parquet(path, collection.state, agreement, identify, threads, advance)
                else:
                    part = _of_messages(path, collection, collection.state, agreement, framing, threads, advance)
                _take_in(part, str(path), collection)
            except Elsewhere:
                continue
            except (InputError, ParameterError, OSError, MemoryError) as error:
                collection.failed[str(path)] = _naming(path, error)
            if monotonic() - last_save > _SAVE_SECONDS:
                try:
                    collection.save()
                except NotWritten as error:
                    complain(f"{message_of(error)}; what has been counted since is kept in memory until there is room")
                last_save = monotonic()


def _of_parquet(
    path: Path,
    state: State | None,
    agreement: Agreement,
    identify: Callable[[Path], str],
    threads: int | None,
    advance: Callable[[float], None],
) -> State:
    """Count the reports of a Parquet file, unless it has been counted before."""
    file = open_reports(path)
    protocol = agreement.kind_of(file)
    if state is not None:
        state.check_same(repr(str(path)), protocol)
        protocol = state.accumulator.protocol  # the file may have lost its labels
    part = State(repr(str(path)), protocol.accumulator())
    identity = identify(path)
    part.sources[identity] = str(path)
    if state is not None and identity in state.sources:
        advance(_size(path))
        return part
    size, rows = _size(path), batch_rows(protocol.report_bytes)
    for batch in file.batches(rows):
        try:
            part.accumulator.add(batch, threads=threads)
        except TypeError as error:
            raise InputError(f"{part.name} cannot be used: {error}") from None
        advance(size * len(batch) / file.rows)
    return part


def _of_messages(
    path: Path,
    collection: Collection,
    state: State,
    agreement: Agreement,
    framing: local.Framing,
    threads: int | None,
    advance: Callable[[float], None],
) -> State:
    protocol = state.accumulator.protocol
    part = State(repr(str(path)), protocol.accumulator())
    own, *elsewhere = map(_header, (protocol, *agreement.others))
    with opened(path) as file:
        hashed = Hashed(file)
        messages, before = local.read_messages(hashed, framing, protocol), 0
        while batch := list(islice(messages, batch_rows(protocol.report_bytes))):
            headers = Counter(message[: len(own)] for message in batch)
            collection.strangers.update({one: n for one, n in headers.items() if one not in (own, *elsewhere)})
            part.accumulator.add_messages([one for one in batch if one[: len(own)] not in elsewhere], threads=threads)
            advance(hashed.length - before)
            before = hashed.length
    part.sources[hashed.sha256] = str(path)
    return part


def _header(protocol: Announced) -> bytes:
    """Return what a message begins with."""
    [message] = protocol.messages(np.zeros((1, protocol.report_bytes), np.uint8))
    return message[: -protocol.report_bytes]


def _take_in(part: State, name: str, collection: Collection) -> None:
    state, [identity] = collection.state, part.sources
    if state is not None and identity in state.sources:
        collection.repeated[name] = state.sources[identity]
        return
    # A signal cannot separate the two: the counts and the list of counted files always agree.
    with signals.deferred():
        collection.state = part if state is None else state.joined(part)
        collection.counted += 1


def _naming(path: Path, error: Exception) -> str:
    """Return the error with the name of the file, which an error of the disk lacks."""
    message = message_of(error) or "there is not enough memory for it"  # all that Python's own MemoryError says
    name = "stdin" if path == STDIN else str(path)
    return message if name in message else f"{name}: {message}"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
