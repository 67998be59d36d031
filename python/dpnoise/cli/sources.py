"""Which files a command reads: files, patterns and directories in, files out; and what identifies a file."""

import glob
import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from dpnoise.cli.console import InputError, message_of, suffix_of

SUFFIX: Final = ".parquet"
STDIN: Final = Path("-")


def expand(sources: Sequence[Path], messages: bool = False) -> tuple[list[Path], dict[str, str]]:
    """Return the files that the arguments stand for, and the error of each invalid argument."""
    files: list[Path] = []
    failed = {}
    for source in sources:
        try:
            files += matching(source) if messages else reports_files(source)
        except (InputError, OSError) as error:
            failed[str(source)] = message_of(error)
    return files, failed


def reports_files(source: Path) -> list[Path]:
    """Return the files of reports that an argument stands for.

    A directory stands for the files below it, except names that begin with "." or "_", which engines use for metadata
    and incomplete files. A path that does not exist may be a pattern, or is an error.
    """
    if source == STDIN:
        raise InputError("stdin cannot be a Parquet file, which is read from its end: it takes --messages")
    if source.is_dir():
        found = [path for path in _below(source) if path.name.lower().endswith(SUFFIX)]
        if not found:
            raise InputError(f"{str(source)!r} is a directory without {SUFFIX} files")
        return found
    if matches := _matches(source):
        return [path for match in matches for path in (reports_files(match) if match.is_dir() else [match])]
    source.stat()  # what is not there is the system's error to name, and not a wrong name
    suffix_of(source, (SUFFIX,), "a file of reports, which are binary and do not fit into CSV,")
    return [source]


def matching(source: Path) -> list[Path]:
    """Return the files that an argument stands for: itself, or what matches a pattern, which not all shells expand."""
    return _matches(source) or [source]


def _matches(source: Path) -> list[Path]:
    if source.exists() or not glob.has_magic(str(source)):
        return []
    matches = sorted(map(Path, glob.glob(str(source), recursive=True)))
    if not matches:
        raise InputError(f"no file matches {str(source)!r}")
    return matches


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    if path == STDIN:
        yield stdin()
    else:
        with path.open("rb") as file:
            yield file


def stdin() -> BinaryIO:
    if sys.stdin is None:
        raise InputError("stdin is closed")
    return sys.stdin.buffer


def check_stdin(files: Sequence[Path | None]) -> None:
    """Refuse stdin in several places, before data are read as a list that errors may show."""
    if files.count(STDIN) > 1:
        raise InputError("- must be in the place of one file, since stdin is read once, got several")


def content(path: Path) -> bytes:
    with opened(path) as file:
        return file.read()


class Hashed:
    """A file that is read once, with the length and the SHA-256 of what has been read."""

    def __init__(self, file: BinaryIO) -> None:
        self.length = 0
        self._file = file
        self._digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        return self._taken(self._file.read(size))

    def readline(self, size: int) -> bytes:
        return self._taken(self._file.readline(size))

    def _taken(self, part: bytes) -> bytes:
        self._digest.update(part)
        self.length += len(part)
        return part

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content, as ``sha256sum`` prints it."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def _below(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.iterdir()):
        if path.name.startswith((".", "_")):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)
        elif path.is_file():
            yield path
