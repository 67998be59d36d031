"""Interpreters of other platforms, on which wheels are tried: Debian's for aarch64, and one for musl.

Each needs packages of Debian, and no rights: the archives are unpacked in a folder, and nothing is installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

VERSION = "3.11"  # of Debian 12
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Interpreter(NamedTuple):
    """How an interpreter is started, and which wheels it takes."""

    command: tuple[str, ...]
    platforms: tuple[str, ...]
    numpy: str = "numpy"

    def prepare(self, wheel: Path, packages: tuple[str, ...], site: Path) -> None:
        """Install a wheel, NumPy and packages with their dependencies into a folder."""
        choice = ["--only-binary", ":all:", "--python-version", VERSION]
        for platform in self.platforms:
            choice += ["--platform", platform]
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--target",
                site,
                *choice,
                wheel,
                self.numpy,
                *packages,
            ],
            check=True,
        )

    def environment(self, site: Path) -> dict[str, str]:
        """Return the environment in which the interpreter finds a folder of packages."""
        return {**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}


def _apt(folder: Path, architecture: str, kind: str) -> list[str]:
    """Return an apt-get with lists, caches and a state of its own."""
    for path in ("state/lists/partial", "cache/archives/partial", "etc"):
        (folder / path).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    archives = subprocess.check_output(
        [
            "apt-get",
            "indextargets",
            "--format",
            "$(REPO_URI) $(RELEASE) $(COMPONENT)",
            "Origin: Debian",
            "Created-By: Packages",
        ],
        text=True,
    )
    # Mirrors may lack the newest updates, which are suites of their own, such as bookworm-security.
    stable = sorted({archive for archive in archives.splitlines() if "-" not in archive.split()[1]})
    lines = [f"{kind} [signed-by={KEYS}] {archive}\n" for archive in stable]
    (folder / "etc/sources.list").write_text("".join(lines))
    settings = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Install-Recommends": "0",
        "APT::Sandbox::User": "root",  # may write into the folder
        "Debug::NoLocking": "1",
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::SourceList": folder / "etc/sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
    }
    command = [
        "apt-get",
        "--quiet=2",
        *(part for name, value in settings.items() for part in ("-o", f"{name}={value}")),
    ]
    subprocess.run([*command, "update"], check=True)
    return command


def aarch64(folder: Path) -> Interpreter:
    """Return Debian's interpreter for aarch64, emulated."""
    root = folder / "root"
    apt = _apt(folder, "arm64", "deb")
    subprocess.run([*apt, "install", "--download-only", "--yes", "python3", "libstdc++6"], check=True)
    for archive in (folder / "cache/archives").glob("*.deb"):
        subprocess.run(["dpkg-deb", "--extract", archive, root], check=True)
    return Interpreter(
        ("qemu-aarch64", "-L", str(root), str(root / f"usr/bin/python{VERSION}")),
        ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux2014_aarch64"),
    )


def musl(folder: Path) -> Interpreter:
    """Return an interpreter for musl, compiled from Debian's sources of CPython."""
    prefix = folder / "musl"
    apt = _apt(folder, "amd64", "deb-src")
    subprocess.run([*apt, "source", "--download-only", f"python{VERSION}"], cwd=folder, check=True)
    (archive,) = folder.glob(f"python{VERSION}_*.orig.tar.*")
    with tarfile.open(archive) as sources:
        sources.extractall(folder, filter="data")
    (unpacked,) = folder.glob("Python-*")
    # musl-gcc knows no headers of Linux, which are those of any C library, and names the system's folders for glibc's.
    headers, compiler = folder / "headers", folder / "cc"
    headers.mkdir()
    for name in ("linux", "asm-generic", "x86_64-linux-gnu/asm"):
        (headers / Path(name).name).symlink_to(f"/usr/include/{name}")
    compiler.write_text(
        f"""#!/bin/sh
case "$*" in
    *-print-multiarch) echo x86_64-linux-musl ;;
    *) exec musl-gcc -idirafter {headers} "$@" ;;
esac
"""
    )
    compiler.chmod(0o755)
    environment = {**os.environ, "PKG_CONFIG_LIBDIR": str(folder)}  # libraries of glibc are not to be found
    options = [f"--prefix={prefix}", "--disable-test-modules", "--disable-ipv6", "--without-ensurepip"]
    for command in (["./configure", f"CC={compiler}", *options], ["make", f"-j{os.cpu_count()}"], ["make", "install"]):
        done = subprocess.run(
            command,
            cwd=unpacked,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{command[0]} exits with {done.returncode}: {done.stdout[-2000:]}")
    # The libraries in the wheels of NumPy 2 crash on musl 1.2.3, which Debian 12 has.
    platforms = ("musllinux_1_2_x86_64", "musllinux_1_1_x86_64")
    return Interpreter((str(prefix / f"bin/python{VERSION}"),), platforms, "numpy==1.26.*")
