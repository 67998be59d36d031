"""Check that time and addresses do not depend on secrets, and say what was checked. Run by ``make constant-time``.

1. rust/core/tests/constant_time runs under valgrind with its secrets poisoned, once for each instruction set that
   valgrind has.
2. The machine code of the AVX-512 kernels in that program is followed by kernel_flow.py.

Exits with 1 when something depends on a secret, and when a planted fault is not found.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import kernel_flow
import machine_code

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "target" / "constant-time"
SUPPRESSIONS = ROOT / "rust/core/tests/constant_time/valgrind.supp"
INSTRUCTION_SETS = ("portable", "avx2")
LOG_LINES = 60


def build() -> Path:
    """Compile the program as the library is compiled for release, with line numbers, and return where it is."""
    command = ["cargo", "build", "--release", "--locked", "--package=dpnoise-core", "--test=constant_time"]
    command += [f"--target-dir={TARGET}", "--message-format=json-render-diagnostics"]
    options = {"RUSTFLAGS": "--cfg dpnoise_secrecy", "CARGO_PROFILE_RELEASE_DEBUG": "line-tables-only"}
    built = subprocess.run(command, cwd=ROOT, env=os.environ | options, stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        sys.exit("the program does not compile")
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    (program,) = (message["executable"] for message in messages if message.get("executable"))
    return Path(program)


def run_poisoned(program: Path, instructions: str) -> bool:
    """Run the program under valgrind; it reports itself. Return whether all is well."""
    log = TARGET / f"valgrind-{instructions}.log"
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


def follow_kernels(program: Path) -> bool:
    """Follow the kernels in the program's machine code, and print what they do. Return whether all is well."""
    options = ["--disassemble", "--demangle", "--no-show-raw-insn", "--disassembler-options=intel"]
    command = ["objdump", *options, str(program)]
    listing = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    declared = kernel_flow.declared(ROOT / "rust/kernels/src/arch")
    kernels, planted = [], []
    for symbol, instructions in machine_code.functions(listing):
        if name := re.fullmatch(r"dpnoise_kernels::arch::(.+)::avx512", symbol):
            tables = [pointers for kernel, pointers in declared if kernel == name[1]]
            public = frozenset.intersection(*tables) if tables else frozenset()
            kernels.append(kernel_flow.Kernel(name[1], instructions, public).follow())
        elif name := re.fullmatch(r"dpnoise_kernels::arch::planted::(.+)", symbol):
            planted.append(kernel_flow.Kernel(name[1], instructions).follow())

    print(f"machine code: {len(kernels)} AVX-512 kernels in which no secret may decide a jump or an address")
    for kernel in kernels:
        verdict = "REFUSED" if kernel.refused else "accepted"
        print(f"  {kernel.name}: {len(kernel.instructions)} instructions, {len(kernel.jumps)} jumps, {verdict}")
        print_list("jumps on", sorted(set(kernel.jumps.values())))
        print_list("calls that end the program", sorted(kernel.calls))
        print_list("declassified", kernel_flow.DECLASSIFIED.get(kernel.name, ()))
        print_list("refused", kernel.refused.values())
    print(f"machine code: {len(planted)} planted faults that must be refused")
    for kernel in planted:
        print(f"  {kernel.name}: {'refused' if caught(kernel) else 'NOT REFUSED for its fault'}")
        print_list("", kernel.refused.values())

    # A kernel with a type parameter may be compiled for the same type in several crates.
    wanted, found = Counter(name for name, _ in declared), Counter(kernel.name for kernel in kernels)
    difference = wanted.keys() != found.keys() or not wanted <= found
    if difference:
        print(f"  DECLARED by dispatch! are other kernels: {', '.join(name for name, _ in declared)}")
    leaking = sum(bool(kernel.refused) for kernel in kernels)
    missed = sum(not caught(kernel) for kernel in planted)
    print(f"machine code: {leaking} kernels refused, {missed} planted faults missed")
    return bool(planted) and not (difference or leaking or missed)


def caught(kernel: kernel_flow.Kernel) -> bool:
    """Return whether a kernel is refused for what it does, rather than for being written in unknown instructions."""
    return any("not described" not in reason for reason in kernel.refused.values())


def print_list(title: str, items: Iterable[str]) -> None:
    """Print items in a paragraph of their own, if there are any."""
    text = f"{title} {'; '.join(items)}".strip()
    if text != title:
        print(textwrap.fill(text, 118, initial_indent=" " * 6, subsequent_indent=" " * 8))


def main() -> int:
    """Run everything."""
    if platform.machine() not in ("x86_64", "AMD64"):
        print(f"skipped: the secrets are marked, and the kernels written, for x86-64, and this is {platform.machine()}")
        return 0
    program = build()
    results = [run_poisoned(program, instructions) for instructions in INSTRUCTION_SETS]
    print("avx512: not run, since valgrind cannot; see the machine code", flush=True)
    results.append(follow_kernels(program))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
