"""Files that are written atomically, and files that only one process at a time may change."""

from __future__ import annotations

import errno
import glob
import os
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from dpnoise._errors import Error, ParameterError

# Some network file systems have no locks.
_NO_LOCKS: Final = frozenset(
    getattr(errno, name) for name in ("ENOLCK", "ENOSYS", "ENOTSUP", "EOPNOTSUPP") if hasattr(errno, name)
)

_TAKEN: Final = frozenset({errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK})

# Some file systems do not sync directories.
_NO_SYNC: Final = frozenset({errno.EINVAL, *_NO_LOCKS})


class NotWritten(Error, OSError):
    """A file could not be written; `filename` is the user's name for it, and an earlier file is unchanged.

    Only when the disk fails in the very last step may the new file be there, until the power fails.
    """


class InUse(Error):
    """Another process holds the lock of a file. The message is one line and says which process."""


def checked_path(path: str | os.PathLike[str]) -> Path:
    found: object = os.fspath(path) if hasattr(path, "__fspath__") else path
    if not isinstance(found, str):
        raise TypeError(f"path must be a str or an os.PathLike of str, got {type(path).__name__}")
    if "\0" in found:
        raise ParameterError(f"path must have no NUL character, got {found!r}")
    with suppress(FileNotFoundError, NotADirectoryError):  # a loop of symbolic links is the system's error to name
        os.stat(found)
    return Path(found)


@contextmanager
def atomic_write(path: Path, reserve: int = 0) -> Iterator[BinaryIO]:
    """Open a file that takes the name `path` only if the block succeeds; otherwise nothing is left of it.

    The first `reserve` bytes are written, and overwritten later, so that a full disk is detected before the block
    begins. After the block the file is on disk under its name, with the permissions of the file that it replaces; a new
    one is its owner's alone. What killed processes left of earlier attempts is removed.
    """
    target = Path(os.path.realpath(path))  # keeps a symbolic link
    _sweep(target)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        with open(partial, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            # Windows does not remove open files. Elsewhere another process may have removed the file as a leftover.
            if sys.platform != "win32" and not (is_locked(file.fileno()) and partial.exists()):
                raise InUse(f"{str(path)!r} is in use by another process: try again when that has ended")
            if reserve:
                file.write(bytes(reserve))
                _to_disk(file)
                file.seek(0)
            yield file
            file.truncate()
            partial.chmod(mode)
            _to_disk(file)
            if sys.platform != "win32":
                partial.replace(target)  # while it is locked
                _sync_directory(target.parent)
        if sys.platform == "win32":
            partial.replace(target)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        # Disk errors have no file name, and the name of the partial file means nothing to the user.
        if isinstance(error, OSError) and error.filename in (None, str(partial)):
            raise NotWritten(error.errno, error.strerror, str(path)) from error
        raise


def _sweep(target: Path) -> None:
    """Remove the partial files of killed processes; a running process holds the lock of its own."""
    for partial in target.parent.glob(f".{glob.escape(target.name)}.{'[0-9a-f]' * 8}.partial"):
        with suppress(OSError):
            if sys.platform == "win32":
                partial.unlink()
            else:
                with partial.open("r+b") as file:
                    if is_locked(file.fileno(), without_locks=False):
                        partial.unlink()


def _to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_directory(directory: Path) -> None:
    """Put the new name of a file on disk, where the system lets a program do that."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except PermissionError:  # a directory that may be written but not listed
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes from changing `path` in the block, or raise `InUse`.

    The lock is on a file beside it, since `path` itself is replaced. The system releases the lock whenever the process
    ends. File systems without locks give no protection.
    """
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.lock")
    lock = _acquired(beside, path)
    try:
        yield
    finally:
        # Remove the lock file while locked, so that no other process locks it; Windows does not remove open files.
        if sys.platform == "win32":
            os.close(lock)
        with suppress(OSError):
            beside.unlink()
        if sys.platform != "win32":
            os.close(lock)


def _acquired(beside: Path, path: Path) -> int:
    while True:
        try:
            lock = os.open(beside, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise NotWritten(error.errno, error.strerror, str(path)) from error
        try:
            if not is_locked(lock):
                holder = os.read(lock, 200).decode(errors="replace") or "another process"
                raise InUse(f"{str(path)!r} is in use by {holder}: try again when that has ended")
            # The previous holder may have removed the file after it was opened here.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), os.stat(beside)):
                    with suppress(OSError):  # on a full disk the lock holds, but does not name its holder
                        os.ftruncate(lock, 0)
                        os.write(lock, f"process {os.getpid()} on {socket.gethostname()}".encode())
                    return lock
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def is_locked(descriptor: int, *, without_locks: bool = True) -> bool:
    """Try to lock an open file; False if another process has the lock, and `without_locks` where there are no locks."""
    try:
        if sys.platform == "win32":
            import msvcrt

            # Locked bytes cannot be read on Windows, so the lock is on a byte past the content.
            os.lseek(descriptor, 1 << 20, os.SEEK_SET)
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            finally:
                os.lseek(descriptor, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        if error.errno in _NO_LOCKS:
            return without_locks
        raise
    return True


def unlock(descriptor: int) -> None:
    """Unlock an open file also for processes that share it by a fork. On Windows, which has none, closing it does."""
    if sys.platform != "win32":
        import fcntl

        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
