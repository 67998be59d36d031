"""Who gets a crate or a binary gets the licences of what is in it, and the list of that."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from packaging.version import Version

from tools.release.third_party import MODULE, NOTICES, TARGETS, inventory, notices

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("folder", ["rust/kernels", "rust/core", "integrations/prio"])
def test_a_published_crate_has_the_licences(folder):
    command = ["cargo", "package", "--list", "--allow-dirty"]
    packaged = subprocess.check_output(command, cwd=ROOT / folder, text=True).splitlines()
    for name in ("LICENSE-APACHE", "LICENSE-MIT"):
        assert name in packaged
        assert (ROOT / folder / name).read_bytes() == (ROOT / name).read_bytes()


def test_the_notices_are_those_of_what_is_linked():
    assert NOTICES.read_text(encoding="utf-8") == notices(), "python tools/release/third_party.py writes them anew"


@pytest.mark.parametrize("target", TARGETS[MODULE])
def test_the_inventory_lists_what_is_linked(target):
    document = inventory(target, ROOT, 0)
    assert document == inventory(target, ROOT, 0)
    assert document != inventory(target, ROOT, 1)
    assert str(ROOT) not in document
    listed = json.loads(document)
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    version = Version(re.search(r'^version = "(.*)"', manifest, re.MULTILINE)[1])
    assert listed["metadata"]["component"]["purl"] == f"pkg:pypi/dpnoise@{version}"
    names = {component["name"] for component in listed["components"]}
    assert {"dpnoise-core", "dpnoise-kernels", "getrandom", "numpy", "pyo3"} <= names
    # procedural macros, what these use, build scripts, tests, and what only UEFI needs
    assert not {"pyo3-macros", "syn", "pyo3-build-config", "proptest", "r-efi"} & names
    known = {component["bom-ref"] for component in (*listed["components"], listed["metadata"]["component"])}
    used = {name for one in listed["dependencies"] for name in one["dependsOn"]}
    assert used < known == {one["ref"] for one in listed["dependencies"]}
