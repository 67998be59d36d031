"""Check that time and addresses do not depend on secrets, and say what was checked. Run by ``make constant-time``.

1. rust/core/tests/constant_time and integrations/prio/tests/constant_time.rs run under valgrind with their secrets
   poisoned, once for each instruction set that valgrind has.
2. The machine code of the AVX-512 kernels in the first program is followed, and that of the NEON kernels, compiled for
   AArch64, by the package machine_code.

Exits with 1 when something depends on a secret, and when a planted fault is not found.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from machine_code import flow, listing, sources
from machine_code.aarch64 import AArch64
from machine_code.x86_64 import X86_64

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "rust/kernels/src/arch"
TARGET = ROOT / "target" / "constant-time"
SUPPRESSIONS = ROOT / "rust/core/tests/constant_time/valgrind.supp"
AARCH64_TARGET = "aarch64-unknown-linux-gnu"
INSTRUCTION_SETS = ("portable", "avx2")
LOG_LINES = 60


def build(flags: str, *options: str) -> list[dict[str, Any]]:
    """Compile as the library is compiled for release, with line numbers, and return cargo's artifacts."""
    command = ["cargo", *options, "--release", "--locked", f"--target-dir={TARGET}"]
    command.append("--message-format=json-render-diagnostics")
    variables = {
        "RUSTFLAGS": f"--cfg dpnoise_secrecy {flags}",
        "CARGO_PROFILE_RELEASE_DEBUG": "line-tables-only",
        "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER": "aarch64-linux-gnu-gcc",
    }
    environment = os.environ | variables
    built = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        sys.exit("the program does not compile")
    messages = map(json.loads, built.stdout.splitlines())
    return [message for message in messages if message["reason"] == "compiler-artifact"]


def build_checks() -> list[Path]:
    """Compile the programs of the checks, and return where they are: that of dpnoise-core first."""
    artifacts = build("", "build", "--package=dpnoise-core", "--package=dpnoise-prio", "--test=constant_time")
    programs = [artifact for artifact in artifacts if artifact["target"]["name"] == "constant_time"]
    return [Path(one["executable"]) for one in sorted(programs, key=lambda one: "dpnoise-prio" in one["package_id"])]


def build_for_aarch64() -> Path:
    """Compile the kernels for AArch64, and return where they are."""
    # The linker would leave out the kernels, which nothing calls.
    flags = "-C link-arg=-Wl,--no-gc-sections"
    kernels = ["--package=dpnoise-kernels", "--lib", "--crate-type=cdylib"]
    return Path(build(flags, "rustc", *kernels, f"--target={AARCH64_TARGET}")[-1]["filenames"][0])


def missing_for_aarch64() -> str | None:
    """Return what is missing to compile for AArch64 and to disassemble that, but for what rustup can install."""
    if not shutil.which("aarch64-linux-gnu-gcc"):
        return "no aarch64-linux-gnu-gcc (Debian: gcc-aarch64-linux-gnu libc6-dev-arm64-cross)"
    if not shutil.which("aarch64-linux-gnu-objdump"):
        return "no aarch64-linux-gnu-objdump (Debian: binutils-aarch64-linux-gnu)"
    command = ["rustc", "--print=target-libdir", f"--target={AARCH64_TARGET}"]
    library = Path(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip())
    if not library.is_dir() and shutil.which("rustup"):
        subprocess.run(["rustup", "target", "add", AARCH64_TARGET], check=False)
    return None if library.is_dir() else f"no Rust standard library for {AARCH64_TARGET}"


def run_poisoned(program: Path, instructions: str) -> bool:
    """Run the program under valgrind; it reports itself. Return whether all is well."""
    log = TARGET / f"valgrind-{program.name}-{instructions}.log"
    options = ["--quiet", "--error-limit=no", f"--suppressions={SUPPRESSIONS}", f"--log-file={log}"]
    command = ["valgrind", *options, str(program)]
    ran = subprocess.run(
        command,
        env=os.environ | {"DPNOISE_INSTRUCTION_SET": instructions},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if "unset or an instruction set of this CPU" in ran.stderr:
        print(f"{instructions}: skipped: this CPU does not have it", flush=True)
        return True
    if ran.returncode != 0:
        lines = log.read_text(encoding="utf-8").splitlines()
        print(ran.stderr, f"The beginning of {log}:", *lines[:LOG_LINES], sep="\n", flush=True)
    return ran.returncode == 0


def follow_kernels(program: Path, instruction_set: str, architecture: type[flow.Step], *objdump: str) -> bool:
    """Follow the kernels in machine code, and print what they do. Return whether all is well."""
    command = [*objdump, "--disassemble", "--demangle", "--no-show-raw-insn", str(program)]
    listed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    declared = sources.declared(KERNELS)
    faults = sources.planted(KERNELS / "planted.rs", architecture.NAME)
    kernels, planted = [], []
    for symbol, lines in listing.functions(listed):
        if name := re.fullmatch(rf"dpnoise_kernels::arch::(.+)::{instruction_set}", symbol):
            tables = [pointers for kernel, pointers in declared if kernel == name[1]]
            public = frozenset.intersection(*tables) if tables else frozenset()
            kernels.append(flow.Kernel(name[1], listing.instructions(lines), architecture, public).follow())
        elif name := re.fullmatch(r"dpnoise_kernels::arch::planted::(.+)", symbol):
            planted.append(flow.Kernel(name[1], listing.instructions(lines), architecture).follow())

    print(f"{instruction_set}: {len(kernels)} kernels in whose machine code no secret may decide a jump or an address")
    for kernel in kernels:
        verdict = "REFUSED" if kernel.refused else "accepted"
        print(f"  {kernel.name}: {len(kernel.instructions)} instructions, {len(kernel.jumps)} jumps, {verdict}")
        print_list("jumps on", sorted(set(kernel.jumps.values())))
        print_list("calls that end the program", sorted(kernel.calls))
        start = kernel.instructions[0].at
        print_list("declassified at", [f"+{at - start:#x}" for at in sorted(kernel.declassified)])
        print_list("refused", kernel.refused.values())
    caught = {
        kernel.name
        for kernel in planted
        if any(reason.endswith(faults.get(kernel.name, "not planted")) for reason in kernel.refused.values())
    }
    print(f"{instruction_set}: {len(faults)} planted faults that must be refused")
    for kernel in planted:
        print(f"  {kernel.name}: {'refused' if kernel.name in caught else 'NOT REFUSED for its fault'}")
        print_list("", kernel.refused.values())

    # A kernel with a type parameter may be compiled for the same type in several crates.
    wanted, found = Counter(name for name, _ in declared), Counter(kernel.name for kernel in kernels)
    difference = wanted.keys() != found.keys() or not wanted <= found
    if difference:
        print(f"  DECLARED by dispatch! are other kernels: {', '.join(name for name, _ in declared)}")
    leaking, missed = sum(bool(kernel.refused) for kernel in kernels), faults.keys() - caught
    verdict = f"{instruction_set}: {leaking} kernels refused, {len(missed)} planted faults missed"
    print(verdict, *sorted(missed), flush=True)
    return bool(faults) and not (difference or leaking or missed)


def print_list(title: str, items: Iterable[str]) -> None:
    """Print items in a paragraph of their own, if there are any."""
    text = f"{title} {'; '.join(items)}".strip()
    if text != title:
        print(textwrap.fill(text, 118, initial_indent=" " * 6, subsequent_indent=" " * 8))


def main() -> int:
    """Run everything."""
    if platform.machine() not in ("x86_64", "AMD64"):
        print(f"skipped: valgrind follows secrets on x86-64 alone, and this is {platform.machine()}")
        return 0
    program, *others = build_checks()
    results = [run_poisoned(one, instructions) for one in (program, *others) for instructions in INSTRUCTION_SETS]
    print("avx512: not run, since valgrind cannot; see the machine code", flush=True)
    results.append(follow_kernels(program, "avx512", X86_64, "objdump", "--disassembler-options=intel"))
    if missing := missing_for_aarch64():
        print(f"neon: SKIPPED, nothing was checked: {missing}")
    else:
        results.append(follow_kernels(build_for_aarch64(), "neon", AArch64, "aarch64-linux-gnu-objdump"))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
