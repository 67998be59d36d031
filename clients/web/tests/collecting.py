"""The collector of the examples as a process, and what the command line counts of its files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from clients.web.examples import collector
from clients.web.tests.browsers import ROOT

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])}


class Collector:
    """A collector that can be killed and started again, at the same port."""

    def __init__(self, folder: Path, specification: str, *, batch: int = 10**9, origin: str | None = None) -> None:
        self.port = 0
        self.output = b""
        self.inbox = folder / "inbox"
        self.specification = folder / "specification.json"
        self.specification.write_text(specification, encoding="ascii")
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
        return f"http://127.0.0.1:{self.port}"

    def start(self, *, until_it_listens: bool = True) -> None:
        """Start it, and wait until it listens."""
        command = [sys.executable, collector.__file__, self.specification, self.inbox, "--port", str(self.port)]
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
            if found := re.match(rb"collecting on http://127\.0\.0\.1:(\d+)", line):
                break
        else:
            raise AssertionError(self.output)
        self.port = int(found[1])

    def kill(self) -> None:
        """End it without a chance to do anything."""
        if self._process is not None:
            self._process.kill()
            self._end()

    def stop(self) -> None:
        """End it as a system does that shuts down."""
        assert self._process is not None
        self._process.terminate()
        assert self._end() == 0, self.output

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
        waiting = [
            collector.divided(body)
            for path in self.inbox.glob("uploads-*.journal")
            for _, body in collector.uploads(path)
        ]
        return [message for part in (*made, *waiting) for message in part]

    def estimates(self, *options: str) -> Any:
        """Return what the command line counts."""
        command = [sys.executable, "-m", "dpnoise", "estimate", *self.files, "--messages", "length-prefixed"]
        asked = [*map(str, command), "--spec", str(self.specification), "--json", *options]
        done = subprocess.run(asked, capture_output=True, env=ENVIRONMENT, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
