"""Build and try what a release consists of: `make release-check`. On Linux (x86-64); takes half an hour.

All is made in dist/, from an unpacked source distribution, so that this is known to be complete. The end is a table of
what was tried and what could not be; the release workflow tries the rest on machines of its own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import interpreters
from interpreters import Interpreter
from wheels import FREE_THREADED, PLATFORMS, VECTORS, build, build_sources

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
BUILT = [name for name in PLATFORMS if name != "windows-arm64"] + ["linux-x86_64-free-threaded"]
"""Debian has no linker for Windows on arm64."""
UNTRIED = {
    "musl-aarch64": "no CPython for musl on aarch64 here",
    "macos-arm64": "no macOS here",
    "macos-x86_64": "no macOS here",
    "windows-x86_64": "no CPython for Windows here",
}
OLDEST_NUMPY = "numpy==1.26.*"


class Skipped(Exception):
    """What was to be tried cannot be tried on this machine."""


class Report:
    """What was tried, and how it ended."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[str, str]] = []

    def attempt(self, what: str, work: Callable[[], object], tools: Iterable[str] = ()) -> None:
        """Do some work that needs tools. A failure is noted, and the others are tried all the same."""
        print(f"== {what}", flush=True)
        try:
            for tool in tools:
                if not shutil.which(tool):
                    raise Skipped(f"no {tool}")
            outcome = f"passed {work() or ''}"
        except Skipped as skipped:
            outcome = f"SKIPPED, not tried: {skipped}"
        except Exception as error:
            outcome = f"FAILED: {error}"
        print(f"== {what}: {outcome}", flush=True)
        self.outcomes.append((what, outcome))

    def failed(self) -> bool:
        """Say whether something failed, after a table of all."""
        width = max(len(what) for what, _ in self.outcomes)
        print("\n".join(f"{what:{width}}  {outcome}" for what, outcome in self.outcomes))
        return any(outcome.startswith("FAILED") for _, outcome in self.outcomes)


def run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    """Run a command in the root of the repository and return what it prints."""
    done = subprocess.run(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        print(done.stdout)
        raise RuntimeError(f"{Path(command[0]).name} exits with {done.returncode}")
    return done.stdout


def run_quietly(*command: str | Path) -> None:
    """Run a command whose words say nothing beyond that it passed."""
    run(*command)


def environment(folder: Path, python: str, *packages: str | Path, env: dict[str, str] | None = None) -> Path:
    """Make a virtual environment with packages, and return its interpreter."""
    run(python, "-m", "venv", folder)
    run(folder / "bin/python", "-m", "pip", "install", "--quiet", *packages, env=env)
    return folder / "bin/python"


def unpacked_sources(work: Path) -> Path:
    """Make the source distribution, and those of integrations, and unpack the first."""
    archive = build_sources(DIST)
    with tarfile.open(archive) as sources:
        sources.extractall(work, filter="data")
    return work / archive.name.removesuffix(".tar.gz")


def install_sources_without_git(work: Path) -> str:
    """Install the source distribution as a user does, where git is missing, and nothing else is known, and test it."""
    (archive,) = DIST.glob("dpnoise-*.tar.gz")
    git = work / "without_git/git"
    git.parent.mkdir()
    git.write_text("#!/bin/sh\nexit 127\n")
    git.chmod(0o755)
    bare = {"PATH": f"{git.parent}:{os.environ['PATH']}", "HOME": os.environ["HOME"]}
    python = environment(work / "from_sources", sys.executable, archive, "pytest", "mpmath", env=bare)
    return run(python, "-m", "pytest", *VECTORS).splitlines()[-1].strip("= ")


def build_and_keep(wheels: dict[str, Path], name: str, sources: Path) -> str:
    """Build a wheel, and return its name and size."""
    wheels[name] = build(name, DIST, sources, ROOT / "target/release-check")
    return f"{wheels[name].name}, {wheels[name].stat().st_size / 1e6:.2f} MB"


def build_again(name: str, out: Path) -> str:
    """Build from the checkout what is not compiled, and a wheel that was built elsewhere, and compare all bytes."""
    build_sources(out)
    build(name, out, ROOT, out / "target")
    again = [path for path in sorted(out.iterdir()) if path.is_file()]
    if differ := [path.name for path in again if path.read_bytes() != (DIST / path.name).read_bytes()]:
        raise RuntimeError(f"another build made other bytes: {', '.join(differ)}")
    return f"{len(again)} files are the same"


def check_contents(wheels: list[Path], sources: Path) -> None:
    """Compare the files of each wheel with the sources, and look for an inventory and for paths of this machine."""
    package = {
        str(path.relative_to(sources / "python")) for path in sources.glob("python/dpnoise/**/*") if path.is_file()
    }
    for path in wheels:
        with zipfile.ZipFile(path) as wheel:
            files = {name for name in wheel.namelist() if name.startswith("dpnoise/")}
            native = {name for name in files if name.startswith("dpnoise/_native.") and not name.endswith(".pyi")}
            if files - native != package or len(native) != 1:
                raise RuntimeError(f"{path.name} has other files than the sources: {(files - native) ^ package}")
            (inventory,) = (name for name in wheel.namelist() if name.endswith(".cyclonedx.json"))
            names = {component["name"] for component in json.loads(wheel.read(inventory))["components"]}
            if not {"dpnoise-core", "dpnoise-kernels", "pyo3", "getrandom"} <= names or "syn" in names:
                raise RuntimeError(f"{path.name}: its inventory is not of what is linked: {sorted(names)}")
            if f"{Path.home()}/".encode() in wheel.read(native.pop()):
                raise RuntimeError(f"{path.name} names a folder of this machine")


def check_integrations() -> str:
    """Check what the distribution of each integration holds."""
    checked = []
    for path in sorted(DIST.glob("dpnoise_*.whl")):
        with zipfile.ZipFile(path) as wheel:
            names = {name.rpartition("/")[2] for name in wheel.namelist()}
        if not {"py.typed", "LICENSE-APACHE", "LICENSE-MIT"} <= names:
            raise RuntimeError(f"{path.name} lacks its types or a licence: {sorted(names)}")
        checked.append(path.name.partition("-")[0])
    return ", ".join(checked)


def install_integration(wheel: Path, work: Path) -> str:
    """Install one integration beside the wheel of dpnoise, as both will be on an index, and import it."""
    first = min(DIST.glob("dpnoise_*.whl"))
    package = first.name.partition("-")[0]
    python = environment(work / "integration", sys.executable, wheel, first)
    return run(python, "-c", f"import {package}; print({package}.__name__, {package}.__all__)").strip()


def check_platform_tags(wheels: list[Path]) -> None:
    """Let auditwheel find for itself which systems the wheels for glibc need; those for musl it knows on musl only."""
    for path in wheels:
        tag = path.stem.rsplit("-", 1)[1]
        if "manylinux" in tag and f'"{tag}"' not in run("auditwheel", "show", path).replace("\n", " "):
            raise RuntimeError(f"auditwheel does not find {path.name} consistent with {tag}")


def test_on(python: str, wheels: dict[str, Path], name: str, work: Path, *packages: str) -> str:
    """Test a wheel with an interpreter of this machine."""
    if subprocess.run([python, "--version"], capture_output=True, check=False).returncode:
        raise Skipped(f"{python} does not start")
    inside = environment(work / python, python, wheels[name], "pytest", "mpmath", *packages)
    run(inside, "-m", "pytest", *VECTORS)
    return run(
        inside, "-c", "import sys, numpy; print(sys.version.split()[0], 'with NumPy', numpy.__version__)"
    ).strip()


def test_all(wheel: Path, work: Path) -> str:
    """Run the short forms of all tests against an installed wheel."""
    python = environment(work / "all", sys.executable, f"dpnoise[test] @ {wheel.as_uri()}")
    output = run(python, "-m", "pytest", "-m", "not long", "--ignore=tests/engines", "--numprocesses", "auto")
    return output.splitlines()[-1].strip("= ")


def test_elsewhere(find: Callable[[Path], Interpreter], wheels: dict[str, Path], name: str, folder: Path) -> str:
    """Test a wheel with an interpreter of another platform, which is made in a folder."""
    interpreter, site = find(folder), folder / "site"
    interpreter.prepare(wheels[name], ("pytest", "mpmath"), site)
    settings = interpreter.environment(site)
    run(*interpreter.command, "-m", "pytest", "-p", "no:cacheprovider", *VECTORS, env=settings)
    which = "import sys, platform; print('on', sys.version.split()[0], platform.machine(), *platform.libc_ver())"
    return run(*interpreter.command, "-c", which, env=settings).strip()


def test_windows(work: Path) -> str:
    """Run the unit tests of the crates for Windows."""
    # Debian's Wine lacks this library, from which the random words come; Windows has it.
    (work / "prng.c").write_text(
        "#include <windows.h>\n#include <ntsecapi.h>\n"
        "__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) { return RtlGenRandom(data, size); }\n"
    )
    linker = "x86_64-w64-mingw32-gcc"
    run(linker, "-shared", "-o", work / "bcryptprimitives.dll", work / "prng.c", "-ladvapi32")
    target = "x86_64-pc-windows-gnu"
    run("rustup", "target", "add", target)
    variable = f"CARGO_TARGET_{target.replace('-', '_').upper()}"
    wine = {"WINEDEBUG": "-all", "WINEPREFIX": str(work / "wine"), "WINEPATH": str(work)}
    settings = {**os.environ, f"{variable}_LINKER": linker, f"{variable}_RUNNER": "wine", **wine}
    crates = ["--package", "dpnoise-kernels", "--package", "dpnoise-core", "--lib"]
    output = run("cargo", "test", *crates, "--locked", "--target", target, env=settings)
    return " and ".join(re.findall(r"(\d+) passed", output)) + " tests"


def main() -> int:
    """Build, check and try; 1 if anything failed."""
    if (sys.platform, os.uname().machine) != ("linux", "x86_64"):
        print("SKIPPED, nothing was tried: runs on Linux (x86-64) only")
        return 0
    shutil.rmtree(DIST, ignore_errors=True)
    report = Report()
    attempt = report.attempt
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        work.chmod(0o755)  # a test goes on as another user
        sources = unpacked_sources(work)
        attempt("sources, installed without git", lambda: install_sources_without_git(work))
        wheels: dict[str, Path] = {}
        for name in BUILT:
            attempt(f"{name}, built", partial(build_and_keep, wheels, name, sources))
        attempt("linux-x86_64 and sources, built again", lambda: build_again("linux-x86_64", work / "again"))
        built = sorted(wheels.values())
        attempt("contents of the wheels", lambda: check_contents(built, sources))
        attempt("platform tags", lambda: check_platform_tags(built))
        attempt(
            "stable ABI", lambda: run_quietly("abi3audit", "--strict", *(path for path in built if "abi3" in path.name))
        )
        attempt("contents of the integrations", check_integrations)
        attempt("metadata", lambda: run_quietly("twine", "check", "--strict", *DIST.iterdir()))
        attempt("workflows", lambda: run_quietly("zizmor", "--offline", "--persona=pedantic", ".github"))
        attempt("crates", lambda: run_quietly("make", "crate"))

        name = "linux-x86_64"
        for minor in range(11, 16):
            python = f"python3.{minor}"
            oldest = [OLDEST_NUMPY] if minor == 11 else []
            attempt(f"{name}, {python}", partial(test_on, python, wheels, name, work, *oldest), [python])
        attempt(f"{name}, an integration beside it", lambda: install_integration(wheels[name], work))
        attempt(f"{name}, all tests", lambda: test_all(wheels[name], work))
        free = f"{name}-free-threaded"
        attempt(f"{free}, imported", partial(test_on, FREE_THREADED, wheels, free, work), [FREE_THREADED])
        for name, find, tools in (
            ("linux-aarch64", interpreters.aarch64, ["qemu-aarch64", "apt-get", "dpkg-deb"]),
            ("musl-x86_64", interpreters.musl, ["musl-gcc", "make", "apt-get"]),
        ):
            attempt(f"{name}, imported", partial(test_elsewhere, find, wheels, name, work / name), tools)
        attempt("unit tests for Windows, in Wine", lambda: test_windows(work), ["x86_64-w64-mingw32-gcc", "wine"])
    report.outcomes += [(f"{name}, imported", f"SKIPPED, not tried: {reason}") for name, reason in UNTRIED.items()]
    return int(report.failed())


if __name__ == "__main__":
    sys.exit(main())
