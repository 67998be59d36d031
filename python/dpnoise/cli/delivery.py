"""Handing over what is finished: all of it is tried, what fails is named, and nothing is lost in silence."""

import errno
import io
import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO, cast

from dpnoise._errors import Error
from dpnoise.cli.console import message_of


class OutputError(Error):
    """What was asked for has not arrived everywhere. The message is one line and says where not."""

    code = 5


class Stdout:
    """Standard output on which a failed write is an `OutputError`: typer and rich would end the program on others."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream: Any = stream  # None if it was closed before the program began
        self._failure = "it is closed" if stream is None else ""

    def write(self, text: str) -> int:
        """Write, perhaps to a buffer."""
        with self._explained():
            written: int = self._stream.write(text)
        return written

    def flush(self) -> None:
        """Write what is in the buffer, if nothing has failed before."""
        if not self._failure:
            with self._explained():
                self._stream.flush()

    def isatty(self) -> bool:
        """Say whether it is a terminal."""
        return self._stream is not None and bool(self._stream.isatty())

    def check(self) -> None:
        """Refuse one that is closed or that nobody reads, as far as that shows before anything is written."""
        with self._explained(), suppress(io.UnsupportedOperation):  # a stream of Python's alone is no pipe
            if hasattr(select, "poll"):
                poll = select.poll()
                poll.register(self._stream.fileno(), 0)
                if any(event & select.POLLERR for _, event in poll.poll(0)):
                    raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    def drop(self) -> None:
        """Give up what cannot be written, about which Python would complain when the process ends."""
        if self._failure and self._stream is not None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        if not self._failure:
            try:
                yield
                return
            except OSError as error:
                self._failure = error.strerror or str(error)
        raise OutputError(f"stdout could not be written: {self._failure}")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def guarded_stdout(program: bool) -> Iterator[None]:
    """Have what is printed in the block pass through `Stdout`; `program` says that the process is for nothing else."""
    if program and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # an answer must not be lost to a name that is not encodable
    stdout = Stdout(sys.stdout)
    try:
        with redirect_stdout(cast(TextIO, stdout)):
            yield
    finally:
        if program:
            stdout.drop()


def check_stdout() -> None:
    """Refuse to go on if nobody would read what is printed."""
    if isinstance(sys.stdout, Stdout):
        sys.stdout.check()


def deliver(*steps: Callable[[], object]) -> None:
    """Take every step, also when one fails; at the end it is said which have failed."""
    failed = []
    for step in steps:
        try:
            step()
            sys.stdout.flush()
        except Exception as error:
            # What an error says that is not known here might show a value.
            failed.append(message_of(error) if isinstance(error, Error | OSError) else type(error).__name__)
    if failed:
        raise OutputError("; ".join(dict.fromkeys(failed)))
