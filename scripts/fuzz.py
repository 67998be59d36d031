"""Fuzz the C interface under AddressSanitizer. Run by ``make fuzz``; exits with 1 when something is found.

Three steps: the seeds, which must reach every function of the header; planted faults, each of which must be found; and
new inputs for as many seconds as asked for. Inputs that reached new code are kept in target/fuzz/corpus, and those that
failed in target/fuzz/found, where the first argument of the fuzzer makes it run one of them again.

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

ROOT = Path(__file__).parent.parent
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

PLANTED = {
    "double-free": "AddressSanitizer: attempting double-free",
    "read-past": "READ of size 1 at",
    "write-past": "WRITE of size",
    "report-after-error": "a report is left after an error",
    "freed-lives": "a freed handle lives",
}
"""What `rust/ffi/fuzz/src/planted.rs` plants, and how it is found."""


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
    """Compile the fuzzer, and return it."""
    about = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True)
    host = next(line for line in about.stdout.splitlines() if line.startswith("host: ")).removeprefix("host: ")
    # With a target of its own, what runs at compile time is not instrumented.
    command = ["cargo", "build", "--release", "--locked", "--target", host, "--target-dir", str(FOLDER)]
    own = {"RUSTC_BOOTSTRAP": "1", "RUSTFLAGS": " ".join(FLAGS)}
    subprocess.run(command, cwd=ROOT / "rust/ffi/fuzz", env=os.environ | own, check=True)
    return FOLDER / host / "release/calls"


def run_seeds(fuzzer: Path, seeds: Path, planted: str = "") -> subprocess.CompletedProcess[str]:
    """Run every seed once."""
    command = [str(fuzzer), "-runs=0", f"-artifact_prefix={FOLDER}/planted-", str(seeds)]
    own = {"DPNOISE_FUZZ_PLANT": planted}
    return subprocess.run(command, env=os.environ | own, stderr=subprocess.PIPE, text=True, check=False)


def calls(output: str) -> dict[str, list[int]]:
    """Return how often each function ended with each status: ok first."""
    lines = [line.split() for line in output.splitlines() if line.startswith("calls: ")]
    return {name: [int(count) for count in counts] for _, name, *counts in lines}


def check_seeds(fuzzer: Path, seeds: Path) -> list[str]:
    """Return what is wrong with the seeds, and which planted faults they do not find."""
    ran = run_seeds(fuzzer, seeds)
    if ran.returncode:
        return [f"the seeds fail:\n{ran.stderr}"]
    header = (ROOT / "clients/c/dpnoise.h").read_text(encoding="utf-8")
    reached = calls(ran.stderr)
    declared = re.findall(r"^dpnoise_status (\w+)\(", header, re.MULTILINE)
    problems = [f"no seed calls {name} with success" for name in declared if reached.get(name, [0])[0] == 0]
    if len(declared) < 20:
        problems.append(f"the header declares only {len(declared)} functions")
    for fault, words in PLANTED.items():
        found = run_seeds(fuzzer, seeds, fault)
        if found.returncode == 0 or words not in found.stderr:
            problems.append(f"the planted fault {fault} is not found")
    return problems


def fuzz(fuzzer: Path, seeds: Path, seconds: int) -> int:
    """Run the fuzzer on new inputs, and return its exit status."""
    corpus, found = FOLDER / "corpus", FOLDER / "found"
    corpus.mkdir(exist_ok=True)
    found.mkdir(exist_ok=True)
    command = [str(fuzzer), f"-max_total_time={seconds}", "-max_len=1024", "-timeout=60", "-rss_limit_mb=4096"]
    command += [f"-artifact_prefix={found}/", "-print_final_stats=1", str(corpus), str(seeds)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") as running:
        for line in running.stderr or []:
            if not re.match(r"#\d+\s+(NEW|REDUCE)|\tNEW_|.*# Uses: ", line):  # thousands of lines
                print(line, end="", flush=True)
    if running.returncode:
        print(f"The input is in {found}: {fuzzer} INPUT runs it again.")
    return running.returncode


def main() -> int:
    """Fuzz for the given number of seconds."""
    parser = argparse.ArgumentParser(description="Fuzz the C interface under AddressSanitizer.")
    parser.add_argument("seconds", type=int)
    seconds = parser.parse_args().seconds
    reason = why_not()
    if reason:
        print(f"fuzz: SKIPPED, {reason}")
        return 0
    fuzzer = build()
    seeds = FOLDER / "seeds"
    shutil.rmtree(seeds, ignore_errors=True)
    seeds.mkdir()
    subprocess.run([fuzzer], env=os.environ | {"DPNOISE_FUZZ_SEEDS": str(seeds)}, check=True)
    problems = check_seeds(fuzzer, seeds)
    print("\n".join(problems) or f"the seeds reach every function and find {len(PLANTED)} planted faults")
    return 1 if problems else min(fuzz(fuzzer, seeds, seconds), 1)


if __name__ == "__main__":
    sys.exit(main())
