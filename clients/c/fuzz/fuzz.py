"""Fuzz the C interface, and what reads bytes in Rust. Run by ``make fuzz``; exits with 1 when something is found.

Each is a target, and runs under AddressSanitizer in three steps: the seeds, which must reach every function of the
header, and all that reads bytes; planted faults, each of which must be found; and new inputs for as many seconds as
asked for. In target/fuzz/TARGET, inputs that reached new code are kept in corpus, and those that failed in found, where
the first argument of the fuzzer makes it run one of them again.

The sanitizer is not a stable option of rustc, which is therefore told to accept those that are not. Elsewhere than on
Linux, and without a C++ compiler for libFuzzer, the check says that it is skipped.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "target/fuzz"

FLAGS = [
    "-Zsanitizer=address",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
]

FIND_SECONDS = 60
"""How long a planted fault is looked for."""


class Target(NamedTuple):
    """A fuzzer of `clients/c/fuzz/fuzz_targets`."""

    longest: int
    """The most bytes of an input."""
    source: str
    """The file that declares what seeds must reach with success."""
    declaration: str
    """How the file declares it."""
    planted: dict[str, str]
    """What the fuzzer plants, by way of `clients/c/fuzz/src/planted.rs`, and how it is found."""


TARGETS = {
    "calls": Target(
        1024,
        "clients/c/dpnoise.h",
        r"^dpnoise_status (\w+)\(",
        {
            "double-free": "AddressSanitizer: attempting double-free",
            "read-past": "READ of size 1 at",
            "write-past": "WRITE of size",
            "report-after-error": "a report is left after an error",
            "freed-lives": "a freed handle lives",
        },
    ),
    "bytes": Target(
        4096,
        "clients/c/fuzz/src/bytes.rs",
        r'Kind \{ name: "(\w+)"',
        {
            "probabilities-unchecked": "a specification has two forms",
            "length-believed": "out of range for slice",
            "message-dropped": "messages are counted in another way together",
            "flags-ignored": "a memo has two forms",
            "version-ignored": "a ticket has two forms",
            "width-believed": "bytes take more memory than",
        },
    ),
}


def why_not() -> str | None:
    """Return why this machine cannot fuzz, if it cannot."""
    if sys.platform != "linux":
        return "it needs Linux"
    if shutil.which(os.environ.get("CXX", "c++")) is None:
        return "libFuzzer needs a C++ compiler: 'apt-get install g++' on Debian or Ubuntu"
    libraries = subprocess.run(["rustc", "--print", "target-libdir"], capture_output=True, text=True, check=True)
    if not list(Path(libraries.stdout.strip()).glob("librustc*_rt.asan.a")):
        return "this toolchain has no AddressSanitizer"
    return None


def build() -> Path:
    """Compile the fuzzers, and return their folder."""
    about = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True)
    host = next(line for line in about.stdout.splitlines() if line.startswith("host: ")).removeprefix("host: ")
    # With a target of its own, what runs at compile time is not instrumented.
    command = ["cargo", "build", "--release", "--locked", "--target", host, "--target-dir", str(FOLDER)]
    own = {"RUSTC_BOOTSTRAP": "1", "RUSTFLAGS": " ".join(FLAGS)}
    subprocess.run(command, cwd=Path(__file__).parent, env=os.environ | own, check=True)
    return FOLDER / host / "release"


def run_seeds(fuzzer: Path, seeds: Path, planted: str = "") -> subprocess.CompletedProcess[str]:
    """Run every seed once and, where a fault is planted, changed ones until it is found."""
    with TemporaryDirectory() as scratch:
        most = f"-max_total_time={FIND_SECONDS}" if planted else "-runs=0"
        command = [str(fuzzer), most, "-seed=1", f"-artifact_prefix={scratch}/planted-", scratch, str(seeds)]
        own = {"DPNOISE_FUZZ_PLANT": planted}
        return subprocess.run(
            command, env=os.environ | own, stderr=subprocess.PIPE, text=True, errors="replace", check=False
        )


def calls(output: str) -> dict[str, list[int]]:
    """Return how often each function ended with each status: ok first."""
    lines = [line.split() for line in output.splitlines() if line.startswith("calls: ")]
    return {name: [int(count) for count in counts] for _, name, *counts in lines}


def check_seeds(target: Target, fuzzer: Path, seeds: Path) -> list[str]:
    """Return what is wrong with the seeds, and which planted faults are not found from them."""
    ran = run_seeds(fuzzer, seeds)
    if ran.returncode:
        return [f"the seeds fail:\n{ran.stderr}"]
    source = (ROOT / target.source).read_text(encoding="utf-8")
    reached, declared = calls(ran.stderr), re.findall(target.declaration, source, re.MULTILINE)
    problems = [f"no seed calls {name} with success" for name in declared if reached.get(name, [0])[0] == 0]
    problems += [f"{target.source} does not declare {name}" for name in reached if name not in declared]
    for fault, words in target.planted.items():
        found = run_seeds(fuzzer, seeds, fault)
        if found.returncode == 0 or words not in found.stderr:
            problems.append(f"the planted fault {fault} is not found")
    return problems


def fuzz(target: Target, fuzzer: Path, folder: Path, seconds: int) -> int:
    """Run the fuzzer on new inputs, and return its exit status."""
    corpus, found = folder / "corpus", folder / "found"
    corpus.mkdir(exist_ok=True)
    found.mkdir(exist_ok=True)
    command = [str(fuzzer), f"-max_total_time={seconds}", f"-max_len={target.longest}", "-timeout=60"]
    command += ["-rss_limit_mb=4096", f"-artifact_prefix={found}/", "-print_final_stats=1"]
    with subprocess.Popen(
        [*command, str(corpus), str(folder / "seeds")], stderr=subprocess.PIPE, text=True, errors="replace"
    ) as running:
        for line in running.stderr or []:
            if not re.match(r"#\d+\s+(NEW|REDUCE)|\tNEW_|.*# Uses: ", line):  # thousands of lines
                print(line, end="", flush=True)
    if running.returncode:
        print(f"The input is in {found}: {fuzzer} INPUT runs it again.")
    return running.returncode


def run(name: str, target: Target, fuzzer: Path, seconds: int) -> int:
    """Check the seeds of a target, fuzz it, and return an exit status."""
    folder = FOLDER / name
    seeds = folder / "seeds"
    shutil.rmtree(seeds, ignore_errors=True)
    seeds.mkdir(parents=True)
    subprocess.run([fuzzer], env=os.environ | {"DPNOISE_FUZZ_SEEDS": str(seeds)}, check=True)
    problems = check_seeds(target, fuzzer, seeds)
    found = f"{name}: the seeds reach all that {target.source} declares, {len(target.planted)} planted faults are found"
    print("\n".join(problems) or found, flush=True)
    return 1 if problems else min(fuzz(target, fuzzer, folder, seconds), 1)


def main() -> int:
    """Fuzz each target for the given number of seconds."""
    parser = argparse.ArgumentParser(description="Fuzz the C interface, and what reads bytes in Rust.")
    parser.add_argument("seconds", type=int)
    seconds = parser.parse_args().seconds
    reason = why_not()
    if reason:
        print(f"fuzz: SKIPPED, {reason}")
        return 0
    fuzzers = build()
    return max([run(name, target, fuzzers / name, seconds) for name, target in TARGETS.items()])


if __name__ == "__main__":
    sys.exit(main())
