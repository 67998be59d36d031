"""The distributions of a release, and how each is built and tested.

    python tools/release/wheels.py build linux-x86_64 dist
    python tools/release/wheels.py test linux-x86_64 dist

builds one wheel from the checkout; installs it for the Python that is running, and tests it. `sources` in place of the
wheel builds all that is not compiled, and tests the source distribution of dpnoise. The release workflow does both on a
machine of each system. On Linux most can be built: for Linux and macOS by zig, whose linker knows older C libraries,
and for Windows (x86-64) by MinGW-w64, to see that the sources compile and link there. Two builds of one commit are the
same bytes, in whatever folder, if rustc, maturin and the linker are of the same versions.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from third_party import inventory

ROOT = Path(__file__).resolve().parents[2]
FREE_THREADED = "python3.14t"
"""The stable ABI of CPython 3.11 does not cover free-threaded interpreters: each version needs wheels of its own. From
3.15 on there is a stable ABI for both (abi3t, PEP 803), for which PyO3, maturin and the crate numpy can build."""


class Wheel(NamedTuple):
    """A wheel: Rust's name of its platform, and the platform's tag in the file's name."""

    target: str
    tag: str
    interpreter: str | None = None

    @property
    def prefix(self) -> str:
        """The tags of the interpreter, as in the file's name."""
        return "cp311-abi3" if self.interpreter is None else "cp314-cp314t"

    @property
    def pattern(self) -> str:
        """The file's name, of any version."""
        return f"dpnoise-*-{self.prefix}-{self.tag}.whl"


PLATFORMS = {
    "linux-x86_64": Wheel("x86_64-unknown-linux-gnu", "manylinux_2_28_x86_64"),
    "linux-aarch64": Wheel("aarch64-unknown-linux-gnu", "manylinux_2_28_aarch64"),
    "musl-x86_64": Wheel("x86_64-unknown-linux-musl", "musllinux_1_2_x86_64"),
    "musl-aarch64": Wheel("aarch64-unknown-linux-musl", "musllinux_1_2_aarch64"),
    "macos-arm64": Wheel("aarch64-apple-darwin", "macosx_11_0_arm64"),
    "macos-x86_64": Wheel("x86_64-apple-darwin", "macosx_10_12_x86_64"),
    "windows-x86_64": Wheel("x86_64-pc-windows-msvc", "win_amd64"),
    "windows-arm64": Wheel("aarch64-pc-windows-msvc", "win_arm64"),
}
WHEELS = {
    **PLATFORMS,
    **{f"{name}-free-threaded": wheel._replace(interpreter=FREE_THREADED) for name, wheel in PLATFORMS.items()},
}
SOURCES = "sources"
TOOLS = ROOT / "tools/release/requirements.txt"
MUSL_IMAGES = "2026.09.05-1"
"""The version of the images with musl in which wheels for it are tested: they have all interpreters."""
VECTORS = ["tests/vectors/test_key_stream.py", "tests/vectors/test_local.py"]
"""What an implementation in Python predicts to the bit; needs no subprocesses, which an emulator cannot start."""


def commit_time() -> str:
    """Return when the last commit was made, in seconds since 1970: the time that builds take theirs to be."""
    return subprocess.check_output(["git", "log", "-1", "--format=%ct"], cwd=ROOT, text=True).strip()


def build_sources(out: Path) -> Path:
    """Build what is not compiled: the source distribution, whose path is returned, and those of the integrations."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": commit_time()}
    subprocess.run(["maturin", "sdist", "--out", out.resolve()], cwd=ROOT, env=environment, check=True)
    for project in sorted(ROOT.glob("integrations/*/pyproject.toml")):
        command = ["uv", "build", "--no-create-gitignore", "--build-constraints", TOOLS, "--require-hashes"]
        subprocess.run([*command, "--out-dir", out, project.parent], env=environment, check=True)
    (built,) = out.glob("dpnoise-*.tar.gz")
    return built


def build(name: str, out: Path, sources: Path = ROOT, cache: Path | None = None) -> Path:
    """Build a wheel from sources and return its path; `cache` keeps compiled crates for the next wheel."""
    wheel = WHEELS[name]
    on_linux = sys.platform == "linux"
    target = wheel.target.replace("-msvc", "-gnu") if on_linux else wheel.target
    if target not in subprocess.check_output(["rustup", "target", "list", "--installed"], text=True).split():
        subprocess.run(["rustup", "target", "add", target], check=True)
    command = ["maturin", "build", "--release", "--target", target, "--out", str(out.resolve())]
    if on_linux and "windows" not in target:
        command += ["--zig"]
    if "linux" in wheel.tag:
        command += ["--compatibility", wheel.tag.rsplit("_", 1 if wheel.tag.endswith("aarch64") else 2)[0]]
    if wheel.interpreter:
        command += ["--interpreter", wheel.interpreter]
    if cache:
        command += ["--target-dir", str(cache.resolve())]
    # Without these the messages of panics name folders of the machine that compiled the wheel.
    crates = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "registry" / "src"
    remapped = f"--remap-path-prefix={crates}=/crates --remap-path-prefix={sources.resolve()}=/dpnoise"
    seconds = commit_time()
    environment = {**os.environ, "RUSTFLAGS": remapped, "SOURCE_DATE_EPOCH": seconds}
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder, "dpnoise.cyclonedx.json")
        listed.write_text(inventory(wheel.target, sources, int(seconds)), encoding="utf-8")
        subprocess.run([*command, "--sbom-include", listed], cwd=sources, env=environment, check=True)
    (built,) = out.glob(wheel.pattern)
    return built


def test(name: str, out: Path) -> None:
    """Install what was built for the Python that is running, or for one of an image with musl, and test it."""
    wheel = WHEELS.get(name)
    (built,) = out.glob(wheel.pattern if wheel else "dpnoise-*.tar.gz")
    image: list[str] = []
    python = shlex.quote(Path(sys.executable).as_posix())
    if wheel and "musl" in wheel.tag:
        image = ["docker", "run", "--rm", f"--volume={ROOT}:/sources:ro", "--workdir=/sources"]
        image += [f"quay.io/pypa/{wheel.tag}:{MUSL_IMAGES}"]
        python = f"/opt/python/{wheel.prefix if wheel.interpreter else 'cp313-cp313'}/bin/python"
    install = f"{python} -m pip install {Path(os.path.relpath(built, ROOT)).as_posix()} pytest mpmath"
    script = f"{install} && {python} -m pytest -p no:cacheprovider {' '.join(VECTORS)}"
    subprocess.run([*image, "sh", "-c", script], cwd=ROOT, check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build a distribution, or test it.")
    parser.add_argument("action", choices=["build", "test"])
    parser.add_argument("name", choices=[SOURCES, *WHEELS])
    parser.add_argument("out", type=Path, help="the folder of what is built")
    action, name, out = vars(parser.parse_args()).values()
    if action == "test":
        test(name, out)
    else:
        print(build_sources(out) if name == SOURCES else build(name, out))
