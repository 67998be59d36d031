"""Importing dpnoise takes no time: what is not used is not imported, and yet everything is found."""

import ast
import os
import shlex
import subprocess
import sys
from importlib import import_module
from importlib.metadata import metadata, version
from pathlib import Path

import numpy
import pytest

import dpnoise
from dpnoise._errors import install_command

PACKAGE = Path(dpnoise.__file__).parent
LIGHT = {"dpnoise", "dpnoise._errors", "dpnoise._native"}
HEAVY = {
    *("asyncio", "ctypes", "dataclasses", "decimal", "fractions", "hashlib", "inspect", "json", "multiprocessing"),
    *("pathlib", "random", "secrets", "socket", "sqlite3", "statistics", "subprocess", "tempfile", "threading"),
    *("typing", "numpy", "matplotlib", "pandas", "polars", "pyarrow", "rich", "scipy", "typer", "dp_accounting"),
    "dask",
}
LAZY = ["dpnoise", "dpnoise.accounting"]


def loaded_by(program: str, path: Path = PACKAGE.parent) -> set[str]:
    """Return the modules that a program has imported when it ends, with nothing else on the way."""
    report = f"{program}\nimport sys\nprint(*sys.modules)"
    # With NumPy, but without the site, whose hooks import what they like.
    environment = {**os.environ, "PYTHONPATH": f"{path}{os.pathsep}{Path(numpy.__file__).parents[1]}"}
    command = [sys.executable, "-S", "-c", report]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=environment)
    return set(result.stdout.split())


def too_much(loaded: set[str]) -> set[str]:
    """Return what `import dpnoise` should not have imported."""
    return {name for name in loaded if name.partition(".")[0] == "dpnoise"} - LIGHT | loaded & HEAVY


def test_importing_the_package_imports_next_to_nothing():
    loaded = loaded_by("import dpnoise")
    assert loaded >= LIGHT
    assert not too_much(loaded)


@pytest.mark.parametrize(
    ("planted", "module"),
    [
        ("import json", "json"),
        ("from dpnoise import sensitivity", "dpnoise.sensitivity"),
        ("__getattr__('sensitivity')", "dpnoise.sensitivity"),
    ],
)
def test_a_planted_import_is_found(tmp_path, planted, module):
    (tmp_path / "dpnoise").mkdir()
    for entry in PACKAGE.iterdir():
        if entry.name != "__init__.py":
            (tmp_path / "dpnoise" / entry.name).symlink_to(entry)
    face = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    (tmp_path / "dpnoise/__init__.py").write_text(f"{face}\n{planted}\n", encoding="utf-8")
    assert module in too_much(loaded_by("import dpnoise", tmp_path))


def refused(names):
    """Return what stops the import of modules where there is no package but NumPy."""
    program = f"""
import sys

class Nothing:
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] not in {{*sys.stdlib_module_names, "numpy", "dpnoise"}}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Nothing())
for name in {names}:
    __import__(name)
"""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60).stderr


def test_the_version_is_that_of_the_metadata():
    assert dpnoise.__version__ == version("dpnoise")


@pytest.mark.parametrize("extra", metadata("dpnoise").get_all("Provides-Extra"))
def test_what_an_extra_brings_can_be_installed(extra):
    pip, install, *packages = shlex.split(install_command("package.part", extra))
    assert (pip, install) == ("pip", "install")
    assert packages
    assert not any(package.startswith("dpnoise") for package in packages)


def test_without_metadata_the_package_is_named(tmp_path):
    (tmp_path / "dpnoise").symlink_to(PACKAGE)
    program = "from dpnoise._errors import require\nrequire('absent_package.part', 'cli')"
    command = [sys.executable, "-S", "-c", program]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    error = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False).stderr
    assert 'ImportError: this needs absent_package.part: pip install "absent-package"\n' in error


def test_only_the_command_line_needs_an_extra_to_be_imported():
    names = [".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts) for file in PACKAGE.rglob("*.py")]
    core = [name for name in names if not name.startswith(("dpnoise.__main__", "dpnoise.cli."))]
    assert len(core) > 100
    assert refused(core) == ""
    assert "ModuleNotFoundError: typer" in refused([*core, "dpnoise.cli.app"])


@pytest.mark.parametrize("package", LAZY)
def test_every_name_is_there(package):
    module = import_module(package)
    assert len(set(module.__all__)) == len(module.__all__)
    assert set(module.__all__) <= set(dir(module))
    assert all(getattr(module, name) is not None for name in module.__all__)


@pytest.mark.parametrize("package", LAZY)
def test_every_name_is_found_first(package):
    # Each in a process of its own, where nothing else has been imported by then.
    program = f"""
import os, sys, {package} as package
for name in package.__all__:
    child = os.fork()
    if child == 0:
        missing = name not in dir(package)
        exec(f"from {package} import {{name}}")
        os._exit(missing)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(name)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


@pytest.mark.parametrize("package", LAZY)
def test_type_checkers_see_what_there_is(package):
    module = import_module(package)
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    seen = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            seen |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    assert set(module.__all__) <= set(seen)
    for name in module.__all__:
        origin, original = seen[name]
        found = getattr(module, name)
        if origin == package:
            assert found is import_module(f"{package}.{original}")
        else:
            assert found is getattr(import_module(origin), original)


@pytest.mark.parametrize("package", LAZY)
@pytest.mark.parametrize("name", ["nothing", "__wrapped__", "numpy"])
def test_an_unknown_name_is_an_attribute_error(package, name):
    with pytest.raises(AttributeError, match=f"^module '{package}' has no attribute '{name}'$"):
        getattr(import_module(package), name)
    with pytest.raises(ImportError, match=f"cannot import name '{name}' from '{package}'"):
        exec(f"from {package} import {name}")  # noqa: S102
