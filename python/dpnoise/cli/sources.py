"""Which files a command reads: files, patterns and directories in, files out; and what identifies a file."""

import glob
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from dpnoise.cli.console import InputError, message_of, suffix_of

SUFFIX = ".parquet"


def expand(sources: Sequence[Path]) -> tuple[list[Path], dict[str, str]]:
    """Return the files that the arguments stand for, and the error of each invalid argument."""
    files: list[Path] = []
    failed = {}
    for source in sources:
        try:
            files += reports_files(source)
        except (InputError, OSError) as error:
            failed[str(source)] = message_of(error)
    return files, failed


def reports_files(source: Path) -> list[Path]:
    """Return the files of reports that an argument stands for.

    A directory stands for the files below it, except names that begin with "." or "_", which engines use for metadata
    and incomplete files. A path that does not exist may be a pattern.
    """
    if source.is_dir():
        found = [path for path in _below(source) if path.name.lower().endswith(SUFFIX)]
        if not found:
            raise InputError(f"{str(source)!r} is a directory without {SUFFIX} files")
        return found
    if not source.exists() and glob.has_magic(str(source)):
        matches = sorted(map(Path, glob.glob(str(source), recursive=True)))
        if not matches:
            raise InputError(f"no file matches {str(source)!r}")
        return [path for match in matches for path in (reports_files(match) if match.is_dir() else [match])]
    suffix_of(source, (SUFFIX,), "a file of reports, which are binary and do not fit into CSV,")
    return [source]


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
