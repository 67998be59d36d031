"""Running the command line inside the test process, and data with a known truth."""

import csv
import errno
import io
import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpnoise._display import escaped
from dpnoise.cli import main

TRUTH = {"red": 9_000, "green": 5_000, "": 2_500, "deep blue": 1_500}


@dataclass(frozen=True)
class Outcome:
    """What a run of the command line left behind; `err` has messages as lines, also with --json."""

    code: int
    out: str
    err: str
    documents: list[Any]
    """The documents on stderr, which are there with --json alone."""

    @property
    def json(self) -> Any:
        """Return the document on stdout."""
        return json.loads(self.out)


class FullStdout:
    """A standard output without room, which shows when its buffer is written."""

    encoding, errors, text = "utf-8", "strict", ""

    def write(self, text: str) -> int:
        """Take text."""
        self.text += text
        return len(text)

    def flush(self) -> None:
        """Fail if there is anything to write."""
        if self.text:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def isatty(self) -> bool:
        """Be a file."""
        return False

    def fileno(self) -> int:
        """Be one of Python's alone."""
        raise io.UnsupportedOperation


@pytest.fixture
def full_stdout() -> FullStdout:
    """Return a standard output on a full disk."""
    return FullStdout()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Return a function that runs the command line on its arguments."""

    def call(*arguments: object) -> Outcome:
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        documents = list(map(json.loads, err.splitlines())) if "--json" in arguments else []
        lines = "".join(f"dpnoise: {escaped(one['message'])}\n" for one in documents)
        return Outcome(code, out, lines or err, documents)

    return call


@pytest.fixture
def refuse(run: Callable[..., Outcome]) -> Callable[..., str]:
    """Return a function that runs the command line, expects exactly one line of refusal, and returns it."""

    def call(*arguments: object) -> str:
        outcome = run(*arguments)
        assert outcome.code == 2, outcome
        assert outcome.out == ""
        assert outcome.err.startswith("dpnoise: ")
        assert outcome.err.count("\n") == 1, outcome.err
        return outcome.err.removeprefix("dpnoise: ").strip()

    return call


@pytest.fixture(scope="session")
def values() -> list[str]:
    """Return one value per row, as `TRUTH` counts them, in a mixed order."""
    rows = [value for value, count in TRUTH.items() for _ in range(count)]
    return [rows[i] for i in np.random.default_rng(1).permutation(len(rows))]


@pytest.fixture
def colours_csv(tmp_path: Path, values: list[str]) -> Path:
    """Return a CSV file with the values in the second of three columns."""
    path = tmp_path / "colours.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "colour", "note"])
        writer.writerows([i, value, 'a, "b"' if i % 1000 == 0 else "-"] for i, value in enumerate(values))
    return path


@pytest.fixture(scope="session")
def tolerance() -> Callable[[int, float, float], float]:
    """Return how far a count may be off before a test with at most 100 counts gives a false alarm of 1e-9.

    Bernstein's inequality, so no normal approximation: every report moves the count by at most M = 1/(p - q) around
    its mean with a variance of at most M^2/4, and P(|sum| > t) <= 2 exp(-t^2 / (2 n M^2/4 + 2 M t/3)).
    """

    def bound(n: int, p: float, q: float) -> float:
        step, logarithm = 1.0 / (p - q), math.log(2 * 100 / 1e-9)
        linear = step * logarithm / 3
        return linear + math.sqrt(linear**2 + n * step**2 / 2 * logarithm)

    return bound
