"""The checks of imports accept this repository and catch every kind of planted violation."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "check_layers.py"
PACKAGE = ROOT / "python/dpnoise"
AREAS = sorted(folder.parent.name for folder in PACKAGE.glob("*/__init__.py"))

spec = importlib.util.spec_from_file_location("check_layers", SCRIPT)
check_layers = importlib.util.module_from_spec(spec)
sys.modules["check_layers"] = check_layers
spec.loader.exec_module(check_layers)


# --- Python: the contracts in pyproject.toml -------------------------------------------------------------------------


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


@pytest.mark.parametrize("file", ["audit/x.py", "backends/pydp/x.py", "cli/x.py", "engines/x.py", "plots.py"])
@pytest.mark.parametrize("line", ["from dpnoise import _native", "from dpnoise._native import Sampler"])
def test_tenants_do_not_use_the_native_module(file, line):
    def refused(name):
        command = [Path(sys.executable).with_name("ruff"), "check", "--select=TID251", f"--stdin-filename={name}", "-"]
        checked = subprocess.run(command, cwd=ROOT, input=line, capture_output=True, text=True, check=False)
        return "TID251" in checked.stdout

    assert refused(PACKAGE / file)
    assert not refused(PACKAGE / "sgd/x.py")


# --- Rust: the script ------------------------------------------------------------------------------------------------


def plant(root, files):
    (root / "rust/core/src").mkdir(parents=True)
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return [*check_layers.check_layers(root), *check_layers.check_circles(root), *check_layers.check_unsafe(root)]


def core(name):
    return f"rust/core/src/{name}"


def test_this_repository_is_clean(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(SCRIPT)])
    assert check_layers.main() == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("file", "text", "imported"),
    [
        ("samplers/bernoulli.rs", "use crate::mechanisms::laplace::Laplace;", "mechanisms"),
        ("params.rs", "//! Docs.\n\nuse crate::rng::SecureRng;", "rng"),
        ("error.rs", "use super::samplers::Bernoulli;", "samplers"),
        ("local/mod.rs", "use crate::mechanisms::Laplace;", "mechanisms"),
        ("mechanisms/laplace.rs", "use super::super::local;", "local"),
        ("rng/mod.rs", "use {std::fmt, crate::local};", "local"),
        ("rng/mod.rs", "use crate::{\n  error::Error,\n  params::{self, Scale},\n  sgd as descent,\n};", "sgd"),
        ("error.rs", "fn f() -> u8 {\n    crate::rng::word()\n}", "rng"),
        ("error.rs", "macro_rules! m { () => { $crate::samplers::fill() } }", "samplers"),
        ("error.rs", "#[cfg(test)]\nmod tests {\n    use crate::rng::ScriptedRng;\n}", "rng"),
        ("samplers/mod.rs", "/* a comment */ use crate::stability::mode;", "stability"),
        ("samplers/mod.rs", "use crate::Noise;", "mechanisms"),
    ],
)
def test_forbidden_import(tmp_path, file, text, imported):
    areas = {core(f"{area}/mod.rs"): "" for area in ("local", "mechanisms", "rng", "samplers", "sgd", "stability")}
    library = "pub use mechanisms::laplace::Laplace as Noise;\npub mod mechanisms;"
    files = {core("lib.rs"): library, core("mechanisms/laplace.rs"): "", **areas, core(file): text}
    (violation,) = plant(tmp_path, files)
    module = file.removesuffix(".rs").removesuffix("/mod").replace("/", "::")
    assert violation == f"{module} imports {imported}, upward or sideways: what they share moves down"


def test_a_module_without_a_layer(tmp_path):
    assert plant(tmp_path, {core("helpers.rs"): ""}) == ["helpers has no layer: give it one in scripts/check_layers.py"]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("local/mod.rs", "use crate::{Error, params, instruction_set, rng::SecureRng, params::Epsilon};"),
        ("local/direct.rs", "use super::wire::Report; use crate::local::accumulator::Accumulator;"),
        ("samplers/grid.rs", "use crate::rng::SecureRng; use super::geometric;"),
        ("rng/wipe.rs", "use crate::instruction_set;\nmod tests { use super::*; use super::super::chacha; }"),
        ("params.rs", "use crate::error::Error;"),
        ("error.rs", "use std::fmt; fn f() -> Error { self::Error::Empty }"),
        ("error.rs", '//! Raised by crate::local::encode.\nconst S: &str = "crate::local"; // crate::rng\n'),
        ("error.rs", "const S: &str = r#\"a \" crate::rng \"#; const C: char = '\"'; fn f<'a>(x: &'a str) {}"),
        ("rng/mod.rs", "pub(crate) fn f() {} pub(super) fn g() {}"),
    ],
)
def test_allowed_import(tmp_path, file, text):
    assert plant(tmp_path, {core("lib.rs"): "pub use error::Error;", core(file): text}) == []


@pytest.mark.parametrize(
    ("files", "circle"),
    [
        ({"a.rs": "use crate::b::f;", "b.rs": "use super::a::g;"}, "a -> b -> a"),
        (
            {"a.rs": "\nuse crate::b::f;", "b.rs": "use crate::c;", "c.rs": "fn f() { crate::a::g() }"},
            "a -> b -> c -> a",
        ),
        (
            {"m/mod.rs": "pub use a::f;", "m/a.rs": "use super::b;", "m/b.rs": "use super::f;"},
            "m::a -> m::b -> m::a",
        ),
        (
            {"m/mod.rs": "fn g() {}\nfn h() { self::a::f() }", "m/a.rs": "use super::g;"},
            "m::a -> m -> m::a",
        ),
        ({"lib.rs": "pub use m::F;", "m.rs": "use crate::n;", "n.rs": "use crate::F;"}, "m -> n -> m"),
    ],
)
def test_circle_of_rust_files(tmp_path, files, circle):
    (violation,) = plant(tmp_path, {f"rust/kernels/src/{name}": text for name, text in files.items()})
    found = re.fullmatch(r"rust/kernels/src: a circle of imports, (.*): what they share moves down", violation)
    assert set(found[1].split(" <- ")) == set(circle.split(" -> "))


@pytest.mark.parametrize(
    "files",
    [
        {"a.rs": "use crate::b::f;", "b.rs": "#[cfg(test)]\nmod tests {\n    use crate::a::g;\n    fn f() {}\n}"},
        {"m/mod.rs": "mod a;\npub use a::F;\npub(crate) fn g() {}", "m/a.rs": "use super::g;"},
        {"a.rs": "use crate::b::f; use crate::c;", "b.rs": "use crate::c::{self, g};", "c.rs": "use std::fmt;"},
        {"a.rs": "use self::f as g; /// see [`crate::b`]", "b.rs": "use crate::a;"},
    ],
)
def test_no_circle_of_rust_files(tmp_path, files):
    assert plant(tmp_path, {f"rust/kernels/src/{name}": text for name, text in files.items()}) == []


@pytest.mark.parametrize(
    "text",
    [
        "unsafe fn f() {}",
        "/// # Errors\n/// None.\nunsafe fn f() {}",
        "/// No contract.\ntrait Lanes {\n    unsafe fn load();\n}",
        "impl<F: for<'a> Fn(&'a u8)> X<F> {\n    unsafe fn load() {}\n}",
    ],
)
def test_unsafe_function_without_a_contract(tmp_path, text):
    planted = ["clients/c/src/memory.rs", "rust/kernels/src/avx2.rs"]
    violations = plant(tmp_path, dict.fromkeys(planted, text))
    assert [violation.partition(":")[0] for violation in violations] == planted
    assert all("Safety section" in violation for violation in violations)


@pytest.mark.parametrize(
    "text",
    [
        '/// # Safety\n/// AVX2.\n#[inline]\n#[target_feature(enable = "avx2")]\n#[must_use]\nunsafe fn f() {}',
        "/// # Safety\n/// The CPU has AVX2.\ntrait Lanes {\n    unsafe fn load();\n}",
        "impl Lanes for X {\n    #[inline(always)]\n    unsafe fn load() {}\n}",
        'const S: &str = "unsafe fn f() { }";\ntype F = unsafe fn(u8);',
        'unsafe extern "C" {\n    fn f(prepare: Option<unsafe extern "C" fn()>);\n}',
    ],
)
def test_unsafe_function_with_a_contract(tmp_path, text):
    assert plant(tmp_path, {"rust/kernels/src/avx2.rs": text}) == []


def test_exit_code_and_message(tmp_path):
    plant(tmp_path, {core("error.rs"): "use crate::rng;", core("rng.rs"): ""})
    caught = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, check=False)
    assert caught.returncode == 1
    assert caught.stdout == "error imports rng, upward or sideways: what they share moves down\n"
    nothing_to_check = subprocess.run([sys.executable, SCRIPT, tmp_path / "python"], capture_output=True, check=False)
    assert nothing_to_check.returncode == 1


def test_every_test_file_of_the_core_is_compiled():
    # The integration tests are modules of one program: Cargo does not look for files by itself.
    folder = ROOT / "rust/core/tests"
    named = set(re.findall(r"^mod (\w+);", (folder / "all.rs").read_text(), re.MULTILINE))
    assert named == {file.stem for file in folder.glob("*.rs")} - {"all"}
