"""The structure check accepts this repository and catches every kind of planted violation."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "check_layers.py"

spec = importlib.util.spec_from_file_location("check_layers", SCRIPT)
check_layers = importlib.util.module_from_spec(spec)
sys.modules["check_layers"] = check_layers
spec.loader.exec_module(check_layers)


def plant(root, files):
    (root / "rust/core/src").mkdir(parents=True)
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return check_layers.check(root)


def core(name):
    return f"rust/core/src/{name}"


def test_this_repository_is_clean():
    assert check_layers.check(ROOT) == []


@pytest.mark.parametrize(
    ("file", "text", "line", "words"),
    [
        ("samplers/bernoulli.rs", "use crate::mechanisms::laplace::Laplace;", 1, "samplers (mid) imports upward"),
        ("params.rs", "//! Docs.\n\nuse crate::rng::SecureRng;", 3, "params (leaf) imports upward"),
        ("error.rs", "use super::samplers::Bernoulli;", 1, "error (leaf) imports upward"),
        ("local/mod.rs", "use crate::mechanisms::Laplace;", 1, "local imports sideways from mechanisms"),
        ("mechanisms/laplace.rs", "pub use super::super::local;", 1, "mechanisms imports sideways from local"),
        ("rng/mod.rs", "use {std::fmt, crate::local};", 1, "rng (mid) imports upward from local"),
        ("rng/mod.rs", "use crate::{\n  error::Error,\n  params::{self, Scale},\n  sgd as descent,\n};", 4, "from sgd"),
        ("error.rs", "fn f() -> u8 {\n    crate::rng::word()\n}", 2, "error (leaf) imports upward from rng"),
        ("error.rs", "macro_rules! m { () => { $crate::samplers::fill() } }", 1, "from samplers"),
        ("error.rs", "#[cfg(test)]\nmod tests {\n    use super::super::rng::SecureRng;\n}", 3, "from rng"),
        ("error.rs", "#[cfg(test)]\nmod tests {\n    use crate::rng::ScriptedRng;\n}", 3, "from rng"),
        ("samplers/mod.rs", "/* a /* nested */ comment */ use crate::stability::mode;", 1, "from stability"),
        ("samplers/mod.rs", "use crate::prelude::*;", 1, "crate::prelude has no layer"),
        ("samplers/mod.rs", "use crate::*;", 1, "crate::* has no layer"),
        ("samplers/mod.rs", "use crate::Noise;", 1, "imports upward from mechanisms"),
        ("helpers.rs", "", 1, "module helpers has no layer"),
    ],
)
def test_forbidden_import(tmp_path, file, text, line, words):
    library = "pub use mechanisms::laplace::Laplace as Noise;\npub mod mechanisms;"
    (violation,) = plant(tmp_path, {core("lib.rs"): library, core(file): text})
    assert (violation.path, violation.line) == (core(file), line)
    assert words in violation.rule


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
    ("files", "place", "circle"),
    [
        ({"a.rs": "use crate::b::f;", "b.rs": "use super::a::g;"}, "a.rs:1", "a -> b -> a"),
        (
            {"a.rs": "\nuse crate::b::f;", "b.rs": "use crate::c;", "c.rs": "fn f() { crate::a::g() }"},
            "a.rs:2",
            "a -> b -> c -> a",
        ),
        (
            {"m/mod.rs": "pub use a::f;", "m/a.rs": "use super::b;", "m/b.rs": "use super::f;"},
            "m/a.rs:1",
            "m::a -> m::b -> m::a",
        ),
        (
            {"m/mod.rs": "fn g() {}\nfn h() { self::a::f() }", "m/a.rs": "use super::g;"},
            "m/a.rs:1",
            "m::a -> m -> m::a",
        ),
        ({"lib.rs": "pub use m::F;", "m.rs": "use crate::n;", "n.rs": "use crate::F;"}, "m.rs:1", "m -> n -> m"),
    ],
)
def test_circle_of_rust_files(tmp_path, files, place, circle):
    (violation,) = plant(tmp_path, {f"rust/kernels/src/{name}": text for name, text in files.items()})
    assert str(violation) == f"rust/kernels/src/{place}: a circle of imports, {circle}: what they share moves down"


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
    (violation,) = plant(tmp_path, {"rust/kernels/src/avx2.rs": text})
    assert "Safety section" in violation.rule


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


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import pyarrow as pa", 1),
        ("import numpy as np\nfrom matplotlib.figure import Figure", 2),
        ("try:\n    import pandas\nexcept ImportError:\n    pandas = None", 2),
        ("class A:\n    import scipy.stats", 2),
        ("if True:\n    from rich import print", 2),
    ],
)
def test_extra_imported_by_the_core_package(tmp_path, text, line):
    (violation,) = plant(tmp_path, {"python/dpnoise/local.py": text})
    assert violation.line == line
    assert "is an extra" in violation.rule


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("local.py", "def to_pandas():\n    import pandas\n    return pandas"),
        ("local.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas"),
        ("local.py", "from . import plots\nimport numpy"),
        ("plots.py", "import matplotlib"),
        ("cli/main.py", "import typer, rich"),
    ],
)
def test_extra_imported_where_it_may_be(tmp_path, file, text):
    assert plant(tmp_path, {f"python/dpnoise/{file}": text}) == []


@pytest.mark.parametrize(
    ("files", "place", "words"),
    [
        ({"a.py": "import dpnoise.b", "b.py": "\nfrom dpnoise.a import f"}, ("a.py", 1), "dpnoise.a -> dpnoise.b -> "),
        (
            {"p/_a.py": "from dpnoise.p import _b", "p/_b.py": "def f():\n    from dpnoise.p._a import g"},
            ("p/_a.py", 1),
            "dpnoise.p._a -> dpnoise.p._b -> dpnoise.p._a",
        ),
        (
            {
                "p/_a.py": "if TYPE_CHECKING:\n    from dpnoise.p._b import B",
                "p/_b.py": "from . import _c",
                "p/_c.py": "from ._a import A as B",
            },
            ("p/_a.py", 2),
            "dpnoise.p._a -> dpnoise.p._b -> dpnoise.p._c -> dpnoise.p._a",
        ),
        (  # through a package's face, and another name
            {
                "p/__init__.py": "from dpnoise.p._a import A as B, other",
                "p/_a.py": "from dpnoise.q import f",
                "q.py": "from dpnoise.p import B",
            },
            ("p/_a.py", 1),
            "dpnoise.p._a -> dpnoise.q -> dpnoise.p._a",
        ),
        (  # the face itself, which brings all that it names
            {"__init__.py": "if TYPE_CHECKING:\n    from dpnoise.a import A as A", "a.py": "import dpnoise"},
            ("__init__.py", 2),
            "dpnoise -> dpnoise.a -> dpnoise",
        ),
    ],
)
def test_circle_of_imports(tmp_path, files, place, words):
    violation, *of_areas = plant(tmp_path, {f"python/dpnoise/{name}": text for name, text in files.items()})
    assert (violation.path, violation.line) == (f"python/dpnoise/{place[0]}", place[1])
    assert "a circle of imports" in violation.rule
    assert words in violation.rule
    assert len(of_areas) == (len({name.split("/")[0] for name in files}) > 1)


def test_circle_of_areas_without_one_of_files(tmp_path):
    files = {"p/_a.py": "from dpnoise.q._a import f", "q/_a.py": "", "q/_b.py": "from dpnoise.p import _a"}
    (violation,) = plant(tmp_path, {f"python/dpnoise/{name}": text for name, text in files.items()})
    assert (violation.path, violation.line) == ("python/dpnoise/p/_a.py", 1)
    assert "dpnoise.p -> dpnoise.q -> dpnoise.p:" in violation.rule


@pytest.mark.parametrize(
    "files",
    [
        {"a.py": "import dpnoise.b\nimport numpy.a", "b.py": "import os", "c.py": "from dpnoise import a, b, _native"},
        {
            "__init__.py": "from dpnoise.a import A\nfrom dpnoise import p",
            "p/_b.py": "from dpnoise import A",
            "a.py": "",
        },
        {"p/__init__.py": "from dpnoise.p._a import A", "p/_a.py": "", "p/_b.py": "from dpnoise.p import A"},
    ],
)
def test_imports_without_a_circle(tmp_path, files):
    assert plant(tmp_path, {f"python/dpnoise/{name}": text for name, text in files.items()}) == []


def test_exit_code_and_message(tmp_path):
    plant(tmp_path, {core("error.rs"): "use crate::rng;"})
    caught = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, check=False)
    assert caught.returncode == 1
    assert caught.stdout.startswith("rust/core/src/error.rs:1: error (leaf) imports upward")
    nothing_to_check = subprocess.run([sys.executable, SCRIPT, tmp_path / "python"], capture_output=True, check=False)
    assert nothing_to_check.returncode == 1


def test_every_test_file_of_the_core_is_compiled():
    # The integration tests are modules of one program: Cargo does not look for files by itself.
    folder = ROOT / "rust/core/tests"
    named = set(re.findall(r"^mod (\w+);", (folder / "all.rs").read_text(), re.MULTILINE))
    assert named == {file.stem for file in folder.glob("*.rs")} - {"all"}
