"""Delivery of results: every output is tried, and each failure is named."""

import errno
import io
import os
import select
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO, cast

from dpnoise._errors import Error
from dpnoise.cli.console import message_of


class OutputError(Error):
    """A result has not arrived everywhere. The message is one line and names the failed outputs."""

    code = 5


class ClosedPipe(OutputError):
    """The reader of stdout has ended, such as `head`: the program ends in silence, as SIGPIPE would end it."""

    code = 141


class Stdout:
    """Standard output on which a failed write is an `OutputError`: typer and rich would end the program on others."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream: Any = stream  # None if it was closed before the program began
        self._failure = OutputError("stdout could not be written: it is closed") if stream is None else None

    def write(self, text: str) -> int:
        with self._explained():
            written: int = self._stream.write(text)
        return written

    def flush(self) -> None:
        if not self._failure:
            with self._explained():
                self._stream.flush()

    def isatty(self) -> bool:
        return self._stream is not None and bool(self._stream.isatty())

    def check(self) -> None:
        """Refuse a closed stream or pipe, as far as that can be detected before a write."""
        with self._explained(), suppress(io.UnsupportedOperation):  # a stream without a file descriptor is no pipe
            if hasattr(select, "poll"):
                poll = select.poll()
                poll.register(self._stream.fileno(), 0)
                if any(event & select.POLLERR for _, event in poll.poll(0)):
                    raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    def drop(self) -> None:
        """Discard the unwritten buffer, since Python would report it at the end of the process."""
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
                kind = ClosedPipe if isinstance(error, BrokenPipeError) else OutputError
                self._failure = kind(f"stdout could not be written: {error.strerror or error}")
        raise self._failure

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def guarded_stdout(program: bool) -> Iterator[None]:
    """Send printed output of the block through `Stdout`; `program` says that the process does nothing else."""
    if program and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # an unencodable name must not lose an answer
    stdout = Stdout(sys.stdout)
    try:
        with redirect_stdout(cast(TextIO, stdout)):
            yield
    finally:
        if program:
            stdout.drop()


def check_stdout() -> None:
    if isinstance(sys.stdout, Stdout):
        sys.stdout.check()


def deliver(steps: Mapping[str, Callable[[], object]]) -> None:
    """Take every step, even after a failure; then raise an error that names the failed ones by what they deliver."""
    failed, kinds = [], set()
    for name, step in steps.items():
        try:
            step()
            sys.stdout.flush()
        except Exception as error:
            # The message of an unknown error might show a value; others name their file.
            known = isinstance(error, Error | OSError)
            failed.append(message_of(error) if known else f"{name}: {type(error).__name__}")
            kinds.add(type(error))
    if failed:
        raise (ClosedPipe if kinds == {ClosedPipe} else OutputError)("; ".join(dict.fromkeys(failed)))
