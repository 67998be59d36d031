"""The collector of the examples as a process, and what the command line counts of its files."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from clients.web.examples import collector
from clients.web.tests.browsers import ROOT

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])}


class Collector:
    """A collector that can be killed and started again, at the same ports."""

    def __init__(self, folder: Path, *texts: str, batch: int = 10**9, origin: str | None = None) -> None:
        self.ports = [0, 0]
        self.output = b""
        self.inbox = folder / "inbox"
        self.specifications = [folder / f"specification-{number}.json" for number in range(len(texts))]
        for path, text in zip(self.specifications, texts, strict=True):
            path.write_text(text, encoding="ascii")
        self._options = ["--batch", str(batch), *(["--origin", origin] if origin else [])]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Collector:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def address(self) -> str:
        """The origin of the collector."""
        return f"http://127.0.0.1:{self.ports[0]}"

    def start(self, *, until_it_listens: bool = True) -> None:
        """Start it, and wait until it listens."""
        command = [sys.executable, collector.__file__, self.inbox, *self.specifications, "--ports", *self.ports]
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [*map(str, command), *self._options], stdout=pipe, stderr=subprocess.STDOUT, env=ENVIRONMENT
        )
        assert process.stdout is not None
        self._process = process
        if not until_it_listens:
            return
        for line in process.stdout:
            self.output += line
            if found := re.match(rb"collecting on http://127.0.0.1:(\d+), /status at port (\d+)$", line):
                break
        else:
            raise AssertionError(self.output)
        self.ports = [int(port) for port in found.groups()]

    def peak_memory(self) -> int:
        """Return how many bytes it had at most (of Linux)."""
        assert self._process is not None
        (kib,) = re.findall(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{self._process.pid}/status").read_text(), re.MULTILINE)
        return 1024 * int(kib)

    def kill(self) -> None:
        """End it without a chance to do anything."""
        if self._process is not None:
            self._process.kill()
            self._end()

    def stop(self) -> None:
        """End it as a system does that shuts down."""
        assert self._process is not None
        self._process.terminate()
        code = self._end()
        assert code == 0, (code, self.output)

    def _end(self) -> int:
        assert self._process is not None
        self.output += self._process.communicate(timeout=60)[0]
        code, self._process = self._process.returncode, None
        return code

    @property
    def files(self) -> list[Path]:
        """The files that are ready to be counted."""
        return sorted(self.inbox.glob("messages-*.bin"))

    def messages(self) -> list[bytes]:
        """Return all messages that are on the disk."""
        made = [collector.divided(path.read_bytes()) for path in self.files]
        return [*(message for part in made for message in part), *self.column("message", "messages")]

    def column(self, name: str, table: str) -> list[Any]:
        """Return what a copy of the database has: the collector locks its own."""
        with tempfile.TemporaryDirectory() as folder:
            for path in self.inbox.glob("inbox.sqlite*"):
                shutil.copy(path, folder)
            copy = sqlite3.connect(Path(folder, "inbox.sqlite"))
            found = [value for (value,) in copy.execute(f"SELECT {name} FROM {table}")]  # noqa: S608
            copy.close()
        return found

    def estimates(self, *options: str) -> Any:
        """Return what the command line counts."""
        command = [sys.executable, "-m", "dpnoise", "estimate", *self.files, "--messages", "length-prefixed"]
        asked = [*map(str, command), "--spec", str(self.specifications[-1]), "--json", *options]
        done = subprocess.run(asked, capture_output=True, env=ENVIRONMENT, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
