"""Counting files of reports: each one whole or not at all, and none twice."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Final

from dpnoise import ParameterError, local
from dpnoise._progress import progress
from dpnoise.cli.console import InputError, Interrupted, message_of
from dpnoise.cli.sources import sha256
from dpnoise.cli.state import State, StateFile
from dpnoise.local import _arrow, _parquet

_SAVE_SECONDS: Final = 30  # a crash loses at most the work of so long, or of one file


@dataclass
class Collection:
    """What a run has counted, and what became of each file."""

    state: State | None = None
    counted: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    """What was wrong with a file, by its path."""
    repeated: dict[str, str] = field(default_factory=dict)
    """The path under which the same file has been counted already, by the path that was skipped."""


def collect(files: Sequence[Path], failed: dict[str, str], target: StateFile | None, threads: int | None) -> Collection:
    """Count files, on top of the state in `target`, and keep the state there.

    A file that cannot be used is noted, beside those that have failed already, and leaves no trace in the counts.
    """
    collection = Collection(target.read() if target is not None and target.path.exists() else None, failed=failed)
    # To hash a file takes longer than to count it, and one file alone is compared with nothing.
    identify = sha256 if target is not None or len(files) > 1 else str
    saved, last_save = 0, monotonic()

    def save() -> None:
        nonlocal saved, last_save
        if target is not None and collection.state is not None and collection.counted > saved:
            target.write(collection.state)
            saved, last_save = collection.counted, monotonic()

    try:
        with progress("aggregating", sum(map(_size, files)), "bytes") as advance:
            for path in files:
                try:
                    _take_in(path, collection, identify, threads, advance)
                except (InputError, ParameterError, OSError) as error:
                    collection.failed[str(path)] = message_of(error)
                if monotonic() - last_save > _SAVE_SECONDS:
                    save()
    except KeyboardInterrupt:
        if target is None:
            raise
        raise Interrupted(
            f"{str(target.path)!r} has what was counted before; of this run's files it has {collection.counted:,} now, "
            f"and the same command goes on with the others"
        ) from None
    finally:
        save()
    return collection


def _take_in(
    path: Path,
    collection: Collection,
    identify: Callable[[Path], str],
    threads: int | None,
    advance: Callable[[float], None],
) -> None:
    file = _parquet.open_reports(path)
    if file.protocol is None:
        raise InputError(f"{str(path)!r} does not say how its reports were made: no metadata 'dpnoise.protocol'")
    if not isinstance(file.protocol, local.FrequencyProtocol):
        kind = type(file.protocol).__name__
        raise InputError(f"{str(path)!r} has reports of {kind}, which are not counted by value: use it from Python")
    domain = file.domain or [str(value) for value in range(file.protocol.k)]
    part = State(str(path), file.protocol.accumulator(), domain)
    state = collection.state
    if state is not None:
        state.check_same(part.name, file.protocol, domain)
    identity = identify(path)
    if state is not None and identity in state.sources:
        collection.repeated[part.name] = state.sources[identity]
        advance(_size(path))
        return
    size, rows = _size(path), _arrow.rows_per_block(file.protocol.report_bytes)
    for batch in file.batches(rows):
        try:
            part.accumulator.add(batch, threads=threads)
        except TypeError as error:
            raise InputError(f"{part.name!r} cannot be used: {error}") from None
        advance(size * len(batch) / file.rows)
    part.sources[identity] = part.name
    collection.state = part if state is None else state.joined(part)
    collection.counted += 1


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
