"""The wheels of a release, and how each is built.

    python tools/release/wheels.py linux-x86_64 dist

builds one from the sources in the working directory: a checkout, or an unpacked source distribution. The release
workflow builds each on a machine of its own system. On Linux most can be built: for Linux and macOS by zig, whose
linker knows older C libraries, and for Windows (x86-64) by MinGW-w64, to see that the sources compile and link there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

FREE_THREADED = "python3.14t"
"""The stable ABI of CPython 3.10 does not cover free-threaded interpreters: each version needs wheels of its own. From
3.15 on there is a stable ABI for both (abi3t, PEP 803), for which PyO3, maturin and the crate numpy can build."""


class Wheel(NamedTuple):
    """A wheel: Rust's name of its platform, and the platform's tag in the file's name."""

    target: str
    tag: str
    interpreter: str | None = None

    @property
    def prefix(self) -> str:
        """The tags of the interpreter, as in the file's name."""
        return "cp310-abi3" if self.interpreter is None else "cp314-cp314t"


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


def build(name: str, out: Path, sources: Path = Path(), cache: Path | None = None) -> Path:
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
    subprocess.run(command, cwd=sources, env={**os.environ, "RUSTFLAGS": remapped}, check=True)
    (built,) = out.glob(f"dpnoise-*-{wheel.prefix}-{wheel.tag}.whl")
    return built


if __name__ == "__main__":
    print(build(sys.argv[1], Path(sys.argv[2])))
