"""The contracts of imports in pyproject.toml accept the package and catch every kind of planted violation."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python/dpnoise"
AREAS = sorted(folder.parent.name for folder in PACKAGE.glob("*/__init__.py"))


def broken(folder):
    """Return the names of the contracts that the package in a folder breaks."""
    command = [Path(sys.executable).with_name("lint-imports"), "--config", ROOT / "pyproject.toml", "--no-cache"]
    checked = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found = re.findall(r"^(.*) (KEPT|BROKEN)\b", checked.stdout, re.MULTILINE)
    assert len(found) > len(AREAS), checked.stdout + checked.stderr
    return [name for name, outcome in found if outcome == "BROKEN"]


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copied")
    shutil.copytree(PACKAGE, folder / "dpnoise", ignore=shutil.ignore_patterns("*.so", "*.pyd", "data", "__pycache__"))
    return folder


def test_the_package_keeps_all_contracts(copied):
    assert broken(copied) == []


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("samplers/_draw.py", "from dpnoise.keyed import NoiseKey", "Areas import downward, and not sideways"),
        ("sgd/_gradients.py", "def f():\n    import dpnoise.local", "Areas import downward, and not sideways"),
        (
            "_files.py",
            "if TYPE_CHECKING:\n    from dpnoise import sensitivity",
            "Areas import downward, and not sideways",
        ),
        ("helpers.py", "", "Areas import downward, and not sideways"),
        ("local/_inputs.py", "def f():\n    from dpnoise.local._protocol import Protocol", "No circles of modules"),
        ("sensitivity.py", "try:\n    import pandas\nexcept ImportError:\n    pass", "Who imports an extra"),
        ("queries/_totals.py", "import pyarrow.compute", "Who imports an extra"),
        *(("__main__.py", f"import dpnoise.{area}.planted", f"Public names: {area}") for area in AREAS),
    ],
)
def test_a_planted_import_breaks_its_contract(copied, file, line, contract):
    planted = copied / "dpnoise" / file
    before = planted.read_text() if planted.exists() else None
    private = [copied / "dpnoise" / area / "planted.py" for area in AREAS if line.endswith(".planted")]
    try:
        for module in private:
            module.touch()
        planted.write_text(f"{before or ''}\n{line}\n")
        assert broken(copied) == [contract]
    finally:
        for module in private:
            module.unlink()
        planted.unlink() if before is None else planted.write_text(before)


def test_no_module_imports_the_package_that_it_is_in():
    """Such a circle leads through the face of a package, which the contract does not follow."""
    graph = grimp.build_graph("dpnoise", cache_dir=None)

    def circles():
        inside = [module for module in graph.modules if module.count(".") > 1]
        return [one for one in inside if one.rpartition(".")[0] in graph.find_modules_directly_imported_by(one)]

    assert circles() == []
    graph.add_import(importer="dpnoise.local._inputs", imported="dpnoise.local")
    assert circles() == ["dpnoise.local._inputs"]


@pytest.mark.parametrize("file", ["audit/x.py", "cli/x.py", "engines/x.py", "plots.py"])
@pytest.mark.parametrize("line", ["from dpnoise import _native", "from dpnoise._native import Sampler"])
def test_tenants_do_not_use_the_native_module(file, line):
    def refused(name):
        command = [Path(sys.executable).with_name("ruff"), "check", "--select=TID251", f"--stdin-filename={name}", "-"]
        checked = subprocess.run(command, cwd=ROOT, input=line, capture_output=True, text=True, check=False)
        return "TID251" in checked.stdout

    assert refused(PACKAGE / file)
    assert not refused(PACKAGE / "sgd/x.py")
