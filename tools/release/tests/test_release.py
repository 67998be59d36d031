"""What a release says of itself agrees: the wheels, and what the workflow builds."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_the_workflows_compile_with_what_the_records_were_made_with():
    built = json.loads((ROOT / "tools/instructions/record.json").read_text(encoding="utf-8"))["built"]
    for workflow in (ROOT / ".github/workflows").iterdir():
        name = workflow.relative_to(ROOT).as_posix()
        toolchain = only(r'^  RUSTUP_TOOLCHAIN: "(.*?)"', name)
        assert built.startswith(f"rustc {toolchain}, "), name


def test_a_name_of_nothing_is_refused(tmp_path):
    # The source distribution was tested in the place of a wheel that was named wrongly.
    command = [sys.executable, ROOT / "tools/release/wheels.py", "test", "linux-x86-64", tmp_path]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "invalid choice: 'linux-x86-64'" in refused.stderr


CRATES = ["dpnoise-kernels", "dpnoise-core", "dpnoise-prio"]


@pytest.mark.parametrize(
    ("version", "before", "after"),
    [("97.98.99-rc.1", CRATES[:1], CRATES), ("97.98.99", [], CRATES), ("97.98.99-dev.0", [], [])],
)
def test_the_crates_that_an_index_lacks_are_published(tmp_path, version, before, after):
    # A cargo with an index of its own.
    index, cargo = tmp_path / "index", tmp_path / "cargo"
    index.write_text("".join(f"{crate}@{version}\n" for crate in before))
    cargo.write_text(
        "#!/bin/sh\n"
        f'case "$*" in info*) for last; do :; done; grep -qx "$last" {index} ;;\n'
        f'"publish --package $3 --locked") echo "$3@{version}" >> {index} ;; *) exit 1 ;; esac\n'
    )
    cargo.chmod(0o755)
    (tmp_path / "Cargo.toml").write_text(f'version = "{version}"\n')
    script = tmp_path / "tools/release/publish_crates.sh"
    script.parent.mkdir(parents=True)
    shutil.copy(ROOT / "tools/release/publish_crates.sh", script)
    settings = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert (subprocess.run([script], env=settings, check=False).returncode == 0) == bool(after)
    assert index.read_text().splitlines() == [f"{crate}@{version}" for crate in after]
