"""Run the own tests of an integration's host plain and with our noise, and say why those fail that pass plain only.

    make -C integrations/<host> host-suite CHECKOUT=... [HOST=PACKAGE] [ARGUMENTS='of pytest']

CHECKOUT holds the host's sources, of the version that is installed. Seeds are refused by our noise, which hides what
else a test would find; so there is a third run where seeds do nothing, if the table names the functions that refuse
them. Errors that the table does not expect are printed; exits with 1 if there are any.

The table is ``suite`` of a host in ``tool.dpnoise`` of pyproject.toml:

- ``tests``: where the tests are, below the checkout.
- ``replaced``: the module whose names ours take; without one, our ``install()`` does it.
- ``seeds``: functions of ours that refuse seeds, and what they return for no seed, "" for None.
- ``expected``: patterns of errors and of names of tests, explained on the host's page.
- ``features``: those that OpenDP has to enable before it takes measurements of others.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any


def pytest_configure() -> None:
    """Put our noise in place: this file is a plugin of pytest when it runs with ours."""
    suite = json.loads(os.environ["DPNOISE_SUITE"])
    ours = importlib.import_module(suite["module"])
    if "DPNOISE_SEEDLESS" in os.environ:
        for place, given in suite["seeds"].items():
            module, _, name = place.rpartition(".")
            setattr(importlib.import_module(module), name, lambda *_, given=given or None, **__: given)
    if "replaced" not in suite:
        ours.install()
        return
    theirs = importlib.import_module(suite["replaced"])
    for name in ours.__all__:
        setattr(theirs, name, getattr(ours, name))


def pytest_runtest_setup() -> None:
    """Make the promise that OpenDP asks for."""
    if features := json.loads(os.environ["DPNOISE_SUITE"]).get("features"):
        importlib.import_module("opendp.prelude").enable_features(*features)


def run(
    suite: dict[str, Any], checkout: str, arguments: tuple[str, ...], *, ours: bool, **variables: str
) -> dict[str, str | None]:
    """Run the tests; give, for each that is not skipped, None where it passes and its error where not."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        plugin = ["-p", Path(__file__).stem] if ours else []
        # This file alone, and not the folders beside it, which are named like the hosts.
        Path(folder, Path(__file__).name).symlink_to(Path(__file__).resolve())
        paths = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
        # Workers of Spark are to be of this environment.
        variables |= {"DPNOISE_SUITE": json.dumps(suite), "PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable}
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                f"--junitxml={report}",
                *plugin,
                *suite["tests"],
                *arguments,
            ],
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


def main(checkout: str, package: str = "", *arguments: str) -> int:
    """Compare the run that is plain with the others."""
    given = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    hosts = {host["package"]: host for host in given["tool"]["dpnoise"]["hosts"] if "suite" in host}
    if not package and len(hosts) == 1:
        (package,) = hosts
    if package not in hosts:
        print(f"HOST must be one of {', '.join(hosts) or 'none, since no host here has tests'}, got {package!r}")
        return 1
    module = hosts[package].get("module") or given["project"]["name"].replace("-", "_")
    suite = {"module": module, **hosts[package]["suite"]}
    plain = run(suite, checkout, arguments, ours=False)
    passed = sorted(test for test, problem in plain.items() if problem is None)
    lines, strange = [f"{package}: {len(passed)} of {len(plain)} pass plain"], 0
    for what, more in {"with ours": {}, "with ours, seeds do nothing": {"DPNOISE_SEEDLESS": "1"}}.items():
        if more and "seeds" not in suite:
            continue
        found = run(suite, checkout, arguments, ours=True, **more)
        broken = {test: problem for test in passed if (problem := found.get(test, "was not run"))}
        why: Counter[str] = Counter()
        for test, problem in broken.items():
            reasons = (each for each in suite.get("expected", ()) if re.search(each, test + problem))
            reason = next(reasons, "not expected")
            why[reason] += 1
            if reason == "not expected":
                strange += 1
                lines.append(f"--- {test}\n{problem[-2000:]}")
        lines.append(f"{len(passed) - len(broken)} of these {what}; the others: {dict(why)}")
    print(*lines, sep="\n")
    return int(strange > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
