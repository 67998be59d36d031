"""The version stands wherever the script writes it, and nowhere else."""

import argparse
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from packaging.version import Version as Pep440

from tools.release.version import PAGES, PLACES, STATES, Version, changes, parsed

ROOT = Path(__file__).parents[3]
NOW = Version(re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)[1])
DEVELOPMENT, CANDIDATE, RELEASE = (parsed(f"97.98.99{end}") for end in ("-dev.0", "-rc.1", ""))
RECORDS = (
    "*.lock",
    "*record*.json",
    "benches/records/*",
    "CHANGELOG.md",
    "docs/releasing.md",
    "tools/release/*",
    "test_version.py",
)
"""What may name a version: records, the versions of others, and how the first release is made."""


def sources():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.fixture
def copy(tmp_path):
    """Return a copy of the files with places."""
    for path in {path for globs, *_ in PLACES for glob in globs for path in ROOT.glob(glob)}:
        (tmp_path / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tmp_path / path.relative_to(ROOT))
    write(tmp_path, DEVELOPMENT)
    return tmp_path


def write(root, version):
    for path, text in changes(root, version).items():
        path.write_text(text, encoding="utf-8")


def contents(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_every_place_has_the_version():
    assert parsed(NOW.semver) == NOW
    assert changes(ROOT, NOW) == {}


def test_a_place_that_disagrees_is_noticed(copy):
    ahead = changes(copy, CANDIDATE)
    assert len(ahead) > 20
    for path, text in ahead.items():
        kept = path.read_bytes()
        path.write_text(text, encoding="utf-8")
        assert list(changes(copy, DEVELOPMENT)) == [path]
        path.write_bytes(kept)


def test_there_and_back(copy):
    before = contents(copy)
    for version in (CANDIDATE, RELEASE):
        write(copy, version)
        assert changes(copy, version) == {}
    write(copy, DEVELOPMENT)
    assert contents(copy) == before


def test_the_changelog_begins_a_section_after_a_release(copy):
    write(copy, RELEASE)
    released = (copy / "CHANGELOG.md").read_text(encoding="utf-8")
    write(copy, parsed("97.99.0-dev.0"))
    developed = (copy / "CHANGELOG.md").read_text(encoding="utf-8")
    assert developed.replace("## [97.99.0] - Unreleased\n\n", "", 1) == released != developed


def test_the_version_stands_nowhere_else():
    new = changes(ROOT, CANDIDATE)
    written = re.compile(rf"(?<![\d.]){re.escape(NOW.base)}(?!\.?\d)")
    texts = {path: new.get(path, path.read_bytes().decode("utf-8", "ignore")) for path in sources()}
    stray = {str(path.relative_to(ROOT)) for path, text in texts.items() if written.search(text)}
    assert {name for name in stray if not any(Path(name).match(record) for record in RECORDS)} == set()
    assert stray, sorted(stray)


def test_a_page_has_a_text_for_every_state():
    shown = [path for glob in PAGES for path in ROOT.glob(glob) if "<!-- version -->" in path.read_text("utf-8")]
    assert shown
    for path in shown:
        for block in re.findall(r"(?s)<!-- version -->(.*?)<!-- end -->", path.read_text(encoding="utf-8")):
            assert sorted([*re.findall(r"<!-- (\w+)\n", block), NOW.state]) == sorted(STATES), path


@pytest.mark.parametrize(
    ("semver", "python", "bounds"),
    [
        ("0.1.0-dev.0", "0.1.0.dev0", ">=0.1.0.dev0,<0.2"),
        ("0.1.0-rc.1", "0.1.0rc1", ">=0.1.0rc1,<0.2"),
        ("0.1.0-rc.10", "0.1.0rc10", ">=0.1.0rc10,<0.2"),
        ("0.1.0", "0.1.0", ">=0.1.0,<0.2"),
        ("1.2.3", "1.2.3", ">=1.2.3,<2"),
    ],
)
def test_what_follows_from_a_version(semver, python, bounds):
    version = parsed(semver)
    assert (version.pep440, version.bounds) == (python, bounds)
    assert python == str(Pep440(semver))  # as maturin and hatchling write it


@pytest.mark.parametrize(
    "text",
    ["", "0.1", "v0.1.0", "01.1.0", "0.1.0rc1", "0.1.0-rc.0", "0.1.0-rc.01", "0.1.0-dev.1", "0.1.0-beta.1", "0.1.0\n"],
)
def test_another_form_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match=r"0\.1\.0-dev\.0, 0\.1\.0-rc\.1 or 0\.1\.0, got"):
        parsed(text)
