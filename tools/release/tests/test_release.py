"""What a release says of itself agrees: the wheels, and what the workflow builds."""

import re
from pathlib import Path

from tools.release.wheels import WHEELS

ROOT = Path(__file__).parents[3]


def only(pattern, name):
    (found,) = re.findall(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    return found


def test_the_workflow_builds_every_wheel():
    workflow = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\{ wheel: ([\w-]+),", workflow)) == sorted(WHEELS)


def test_the_minimum_versions_are_those_of_the_documentation():
    platforms = (ROOT / "docs/platforms.md").read_text(encoding="utf-8")
    assert "Rust " + only(r'^rust-version = "([0-9.]+)"', "Cargo.toml") in platforms
    assert "CPython " + only(r'^requires-python = ">=([0-9.]+)"', "pyproject.toml") in platforms
    assert all(f"`{wheel.tag}`" in platforms for wheel in WHEELS.values())
