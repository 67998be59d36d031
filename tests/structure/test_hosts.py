"""The table of hosts says what the pins, the pages and the records say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benches.page import number
from benches.record import kept

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/backends"
BACKENDS = [path.stem for path in (ROOT / "python/dpnoise/backends").glob("[a-z]*") if path.suffix in ("", ".py")]
ROW = re.compile(r"(?m)^\| \[[^]]+\]\(\.\./backends/(\w+)\.md\), ([\d.]+) \|.* \| ([^|]+) \| ([^|]+) \|$")
HOSTS = {row[0]: row[1:] for row in ROW.findall((ROOT / "docs/integrations/index.md").read_text(encoding="utf-8"))}
PINS = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def pin(name: str) -> tuple[str, str, str]:
    """Return the host's package and bounds, which its extra names first."""
    found = re.search(rf'(?ms)^{name.replace("_", "-")} = \[.*?"([\w.-]+)>=([\d.]+),<([\d.]+)', PINS)
    assert found, name
    return found.group(1), found.group(2), found.group(3)


def wrong(name: str, version: str, tests: str, times: str) -> set[str]:
    """Say what contradicts a row of the table."""
    package, low, high = pin(name)
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    found = set()
    if not numbers(low) <= numbers(version) < numbers(high):
        found.add("pin")
    if version not in page:
        found.add("page")
    counts = re.search(r"(?m)^\| .* \| of (\d+) \|\n\| -.*\n\| pass .* \| (\d+) \|\n\| pass .* \| (\d+)\b", page)
    if counts and tests != f"{counts.group(2)} of {counts.group(1)} / {counts.group(3)} of {counts.group(1)}":
        found.add("tests")
    records = [record for record in kept().values() if package in record.versions]
    if any(record.versions[package] != version for record in records):
        found.add("record")
    measured = {
        f"{number(amounts[column])} / {number(table.amounts[record.ours][column])}"
        for record in records
        for table in record.tables.values()
        for entrant, amounts in table.amounts.items()
        if entrant.startswith(package) and record.ours in table.amounts
        for column in amounts
    }
    if records and times not in measured:
        found.add("times")
    return found


def test_every_backend_has_a_row() -> None:
    assert set(BACKENDS) == set(HOSTS)
    assert all(any(pin(name)[0] in record.versions for record in kept().values()) for name in BACKENDS)


@pytest.mark.parametrize("name", BACKENDS)
def test_the_row_of_a_host_says_what_the_other_places_say(name: str) -> None:
    assert wrong(name, *HOSTS[name]) == set()
