"""The programs that answer for the clients of each language, as processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "target/clients"


@dataclass(frozen=True)
class Language:
    """How the runner of a language is started."""

    name: str
    client: str
    """The folder of the client that has it."""
    command: tuple[str, ...]
    file: Path
    """What `make build-clients` leaves, and the program starts from."""
    parts: tuple[str, ...] = ("client", "collector", "noise")
    """The parts of the C library that the client has."""

    @property
    def missing(self) -> str | None:
        """What is missing of it, in words."""
        if not self.file.exists():
            return f"{self.name}: {self.file.relative_to(ROOT)} is not there: make build-clients"
        return None if shutil.which(self.command[0]) else f"{self.name}: {self.command[0]} is not installed"


def native(name: str, client: str) -> Language:
    """Describe a runner that is a program of its own."""
    file = BUILT / name / "runner"
    return Language(name, client, (str(file),), file)


REQUIRED = os.environ.get("DPNOISE_TEST_CLIENTS", "").split()
"""The clients that are tested, if not all: their tests fail, rather than skip, where something is missing."""

LANGUAGES = {
    language.name: language
    for language in (
        native("c", "c"),
        native("cpp", "c"),
        native("go", "go"),
        native("java", "java"),
        Language(
            "node",
            "web",
            ("node", "clients/web/tests/runner.mjs"),
            ROOT / "clients/web/dist/dpnoise-collector.wasm",
            parts=("client", "collector"),
        ),
    )
    if not REQUIRED or language.client in REQUIRED
}

SECONDS = 60
"""A runner that takes longer for a line is ended, so that a fault in it does not stop the tests."""
CHANCES = 5
"""A runner that ended so often is not started again."""


class Runner:
    """A runner: it is started when it is asked something, and again when it has ended."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self.command = command
        self._process: subprocess.Popen[str] | None = None
        self._ended = 0

    def answer(self, line: str) -> str:
        """Send a line, and return the line that comes back."""
        process = self._process
        if process is None:
            if self._ended == CHANCES:
                raise RuntimeError(f"the runner ended {CHANCES} times")
            pipe = subprocess.PIPE
            process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, encoding="utf-8", cwd=ROOT)
            self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        guard = threading.Timer(SECONDS, process.kill)
        guard.start()
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            guard.cancel()
        if answer.endswith("\n"):
            return answer[:-1]
        self.close()
        self._ended += 1
        raise RuntimeError(f"the runner ended without an answer to {line[:200]!r}")

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            with self._process as process:
                process.kill()
            self._process = None
