"""Run a host's own tests plain and with our backend, and say why those fail that pass plain only. Run by hand.

    python scripts/host_suites.py opacus CHECKOUT [more arguments of pytest]

CHECKOUT holds the host's sources, of the version that is installed. Seeds are refused by our backends, which hides what
else a test would find; so there is a third run where seeds do nothing. Errors that the table does not expect are
printed; exits with 1 if there are any.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple


class Suite(NamedTuple):
    """Of a host: where its tests are, how our backend takes its place, and what fails then that passes plain."""

    tests: tuple[str, ...]  # below the checkout
    replaced: str | None = None  # the module whose names ours take; without one, the backend's install() does it
    seeds: Mapping[str, Any] = {}  # functions of the backend that refuse seeds, and what they give for no seed
    expected: tuple[str, ...] = ()  # patterns of errors and of names of tests, explained in docs/backends


NO_SEED = "since anybody who knows (a seed|it) can subtract the noise"
SUITES: dict[str, Suite] = {}


def pytest_configure() -> None:
    """Put our backend in place: this file is a plugin of pytest when it runs with ours."""
    host = os.environ["DPNOISE_HOST"]
    ours = importlib.import_module(f"dpnoise.backends.{host}")
    if "DPNOISE_SEEDLESS" in os.environ:
        for place, given in SUITES[host].seeds.items():
            module, _, name = place.rpartition(".")
            setattr(importlib.import_module(f"dpnoise.backends.{module}"), name, lambda *_, given=given, **__: given)
    if not (replaced := SUITES[host].replaced):
        ours.install()
        return
    theirs = importlib.import_module(replaced)
    for name in ours.__all__:
        setattr(theirs, name, getattr(ours, name))


def run(host: str, checkout: str, arguments: tuple[str, ...], *, ours: bool, **variables: str) -> dict[str, str | None]:
    """Run the tests; give, for each that is not skipped, None where it passes and its error where not."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        plugin = ["-p", Path(__file__).stem] if ours else []
        paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        # Workers of Spark are to be of this environment.
        variables |= {"DPNOISE_HOST": host, "PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable}
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *plugin, *SUITES[host].tests, *arguments],
            env={**os.environ, **variables},
            cwd=checkout,
            check=False,
        )
        cases = [case for case in ET.parse(report).iter("testcase") if case.find("skipped") is None]  # noqa: S314
    return dict(result(case) for case in cases)


def result(case: ET.Element) -> tuple[str, str | None]:
    """Read the name of a test, without the addresses that some show, and its error."""
    problems: list[Any] = [*case.findall("failure"), *case.findall("error")]
    name = re.sub("0x[0-9a-f]+", "0x", f"{case.get('classname')}::{case.get('name')}")
    return name, "".join(problem.text or problem.get("message") for problem in problems) or None


def main(host: str, checkout: str, *arguments: str) -> int:
    """Compare the run that is plain with the others."""
    plain = run(host, checkout, arguments, ours=False)
    passed = sorted(test for test, problem in plain.items() if problem is None)
    lines, strange = [f"{host}: {len(passed)} of {len(plain)} pass plain"], 0
    for what, more in {"with ours": {}, "with ours, seeds do nothing": {"DPNOISE_SEEDLESS": "1"}}.items():
        if more and not SUITES[host].seeds:
            continue
        found = run(host, checkout, arguments, ours=True, **more)
        broken = {test: problem for test in passed if (problem := found.get(test, "was not run"))}
        why: Counter[str] = Counter()
        for test, problem in broken.items():
            reason = next((each for each in SUITES[host].expected if re.search(each, test + problem)), "not expected")
            why[reason] += 1
            if reason == "not expected":
                strange += 1
                lines.append(f"--- {test}\n{problem[-2000:]}")
        lines.append(f"{len(passed) - len(broken)} of these {what}; the others: {dict(why)}")
    print(*lines, sep="\n")
    return int(strange > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
