"""The check of Rust's layers accepts this repository and catches every kind of planted violation."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.layers import check


def plant(root, files):
    (root / "rust/core/src").mkdir(parents=True)
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return [*check.check_layers(root), *check.check_circles(root), *check.check_unsafe(root)]


def core(name):
    return f"rust/core/src/{name}"


def test_this_repository_is_clean(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [check.__file__])
    assert check.main() == 0
    assert capsys.readouterr().out == ""


def test_every_crate_is_checked():
    root = Path(check.__file__).parents[2]
    [members] = re.findall(r"(?m)^members = \[(.*)\]", (root / "Cargo.toml").read_text())
    checked = {str(path.relative_to(root)) for crate in check.CRATES for path in root.glob(crate)}
    assert set(re.findall(r'"(.*?)"', members)) <= checked


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
    assert plant(tmp_path, {core("helpers.rs"): ""}) == ["helpers has no layer: give it one in tools/layers/check.py"]


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
    caught = subprocess.run([sys.executable, check.__file__, tmp_path], capture_output=True, text=True, check=False)
    assert caught.returncode == 1
    assert caught.stdout == "error imports rng, upward or sideways: what they share moves down\n"
    nothing_to_check = subprocess.run(
        [sys.executable, check.__file__, tmp_path / "python"], capture_output=True, check=False
    )
    assert nothing_to_check.returncode == 1
