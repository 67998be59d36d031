"""The machine that a record is of, our entrants on it, and who else used it meanwhile."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import dpnoise
from benches import peers
from benches.record import Record
from benches.targets import INSTRUCTION_SETS

OURS = INSTRUCTION_SETS[dpnoise.instruction_set()]
TWO_THREADS = f"{OURS}, 2 threads"


def cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    rustc = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    return {
        "dpnoise": dpnoise.__version__,
        "rustc": rustc.removeprefix("rustc "),
        "CPython": platform.python_version(),
        "NumPy": np.__version__,
    }


def _processor_time() -> tuple[float, float]:
    """Return how many seconds all processors were in use, by other virtual machines too, and by our processes."""
    fields = Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()
    user, nice, system, _idle, _waiting, interrupts, soft_interrupts, steal = map(int, fields[1:9])
    ticks = user + nice + system + interrupts + soft_interrupts + steal
    return ticks / os.sysconf("SC_CLK_TCK"), sum(os.times()[:4])


def new_record(kind: str | None) -> Record:
    """Return an empty record of today on this machine."""
    return Record(
        kind=kind,
        date=datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        cpu=cpu(),
        cores=os.cpu_count() or 1,
        ours=OURS,
        versions=versions() | peers.versions(),
    )


class Watch:
    """What others take of the machine from now on. Linux tells."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.before = _processor_time() if sys.platform == "linux" else None

    def share(self) -> float | None:
        """Return it as a share of the processors' time, or None where nothing tells."""
        if self.before is None:
            return None
        everyone, ours = (now - then for now, then in zip(_processor_time(), self.before, strict=True))
        return max(0.0, (everyone - ours) / (time.monotonic() - self.began) / (os.cpu_count() or 1))
