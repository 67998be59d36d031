"""The C library as it is installed, and the examples in C and C++."""

from __future__ import annotations

import os
import platform
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clients.shared.runners import BUILT, REQUIRED, ROOT
from dpnoise import local, mechanisms

FFI = ROOT / "target/ffi"
CLIENT = ROOT / "clients/c"
STRICT = ("-O2", "-Wall", "-Wextra", "-Werror", "-pedantic")
HEADER = (CLIENT / "dpnoise.h").read_text(encoding="utf-8")

FLIP = local.DBitFlip(k=1000, d=100, epsilon=1.0)
"""Its reports on a value follow from the memo, and those of two memos are equal with a probability below 1e-100."""

pytestmark = pytest.mark.skipif(
    not REQUIRED and not (FFI / "lib/pkgconfig/dpnoise.pc").exists(),
    reason=f"c: the library is not installed in {FFI}: make build-clients",
)


def run(*command: str | Path, stdin: str = "", **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program."""
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, **options)


def output_of(*command: str | Path) -> str:
    """Run a program that succeeds."""
    done = run(*command)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def example(name: str) -> Path:
    """Give the program of an example."""
    file = BUILT / name
    if not file.exists() and not REQUIRED:
        pytest.skip(f"{file.relative_to(ROOT)} is not there: make build-clients")
    return file


def flags(*which: str) -> list[str]:
    """Ask pkg-config."""
    environment = {**os.environ, "PKG_CONFIG_PATH": str(FFI / "lib/pkgconfig")}
    done = run("pkg-config", *which, "dpnoise", env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def compiled(source: str, to: Path, *more: str, suffix: str = "c") -> Path:
    """Compile a program."""
    file = to.with_suffix(f".{suffix}")
    file.write_text(source, encoding="utf-8")
    compiler = ("cc", "-std=c11") if suffix == "c" else ("c++", "-std=c++17")
    done = run(*compiler, *STRICT, file, "-o", to, *(more or (*flags("--cflags", "--libs"), f"-Wl,-rpath,{FFI}/lib")))
    assert (done.returncode, done.stderr) == (0, "")
    return to


# --- the library -----------------------------------------------------------------------------------------------------


def test_the_soname_is_the_version_of_the_interface() -> None:
    abi = re.search(r"#define DPNOISE_ABI_VERSION (\d+)", HEADER)
    assert abi is not None
    soname = f"libdpnoise.so.{abi[1]}"
    version = flags("--modversion")[0]
    library = FFI / "lib/libdpnoise.so"
    assert f"[{soname}]" in output_of("readelf", "-d", library)
    assert os.readlink(library) == soname
    assert os.readlink(library.with_name(soname)) == f"libdpnoise.so.{version}"
    assert f'\nversion = "{version}"' in (ROOT / "Cargo.toml").read_text(encoding="utf-8")


def test_the_library_has_the_functions_of_the_header_and_no_others() -> None:
    listed = output_of("nm", "--dynamic", "--defined-only", "--format=posix", FFI / "lib/libdpnoise.so")
    exported = {line.split()[0] for line in listed.splitlines()}
    declared = set(re.findall(r"^[\w *]*?\*?(dpnoise_\w+)\(", HEADER, re.MULTILINE))
    of_wasm = {"dpnoise_host_generator", "dpnoise_allocate", "dpnoise_wipe"}
    assert exported == declared - of_wasm
    assert len(exported) > 30


def test_a_program_can_contain_the_library(tmp_path: Path) -> None:
    source = (CLIENT / "example_noise.c").read_text(encoding="utf-8")
    linked = ["-l:libdpnoise.a" if flag == "-ldpnoise" else flag for flag in flags("--cflags", "--libs", "--static")]
    program = compiled(source, tmp_path / "program", *linked)
    assert "libdpnoise" not in output_of("readelf", "-d", program)
    assert "Aachen" in output_of(program)


@pytest.mark.parametrize("suffix", ["c", "cpp"])
def test_the_code_of_the_page_makes_a_message(suffix: str, tmp_path: Path) -> None:
    page = (CLIENT / "README.md").read_text(encoding="utf-8")
    (source,) = re.findall(rf"```{suffix}\n(.*?)```", page, re.DOTALL)
    done = subprocess.run([compiled(source, tmp_path / "program", suffix=suffix)], capture_output=True, check=True)
    protocol = local.HadamardResponse(k=15, epsilon=1.0)
    accumulator = protocol.accumulator()
    accumulator.add_messages([done.stdout])
    assert (accumulator.n, accumulator.rejected) == (1, 0)


def test_the_commands_of_the_page_compile_its_code(tmp_path: Path) -> None:
    page = (CLIENT / "README.md").read_text(encoding="utf-8")
    for suffix in ("c", "cpp"):
        (source,) = re.findall(rf"```{suffix}\n(.*?)```", page, re.DOTALL)
        (tmp_path / f"program.{suffix}").write_text(source, encoding="utf-8")
    environment = {
        **os.environ,
        "PKG_CONFIG_PATH": str((FFI / "lib/pkgconfig").absolute()),
        "LD_LIBRARY_PATH": str((FFI / "lib").absolute()),
    }
    commands = re.findall(r"^c(?:c|\+\+) .*", page, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        done = run("sh", "-ec", f"{command}\n./a.out > message\nrm a.out", cwd=tmp_path, env=environment)
        assert (done.returncode, done.stderr) == (0, "")
        assert (tmp_path / "message").stat().st_size == 13


WATCHED = [
    local.PrefixExtension(epsilon=1.0, bits=63, step=8, rows=10, width=1024),
    local.SquareWave(k=15, epsilon=1.0),
    local.CountMeanSketch(epsilon=1.0, rows=3, width=16),
    FLIP,
]


def left_behind(folder: Path, *faults: tuple[str, str]) -> str:
    """Count the blocks of memory that are given back with private data, of ours, and of planted ones."""
    interface = (CLIENT / "dpnoise.hpp").read_text(encoding="utf-8")
    for right, wrong in faults:
        assert right in interface
        interface = interface.replace(right, wrong)
    (folder / "dpnoise.hpp").write_text(interface, encoding="utf-8")
    source = (CLIENT / "tests/wiping.cpp").read_text(encoding="utf-8")
    linked = (f"-I{folder}", *flags("--cflags", "--libs"), f"-Wl,-rpath,{FFI}/lib")
    program = compiled(source, folder / "program", *linked, suffix="cpp")
    return output_of(program, *(protocol.to_json() for protocol in WATCHED))


@pytest.mark.skipif(sys.platform != "linux" or platform.libc_ver()[0] != "glibc", reason="c: needs glibc's malloc")
def test_private_data_is_wiped(tmp_path: Path) -> None:
    assert left_behind(tmp_path) == "0\n1\n1\n"


@pytest.mark.skipif(sys.platform != "linux" or platform.libc_ver()[0] != "glibc", reason="c: needs glibc's malloc")
@pytest.mark.parametrize(
    "fault",
    [
        ("        wipe(memory, n * sizeof(T));\n", ""),
        ("    SecretBytes bytes;\n", "    Bytes bytes;\n"),
    ],
    ids=["allocator", "texts"],
)
def test_private_data_that_is_not_wiped_is_found(fault: tuple[str, str], tmp_path: Path) -> None:
    """The positive control."""
    blocks, *planted = left_behind(tmp_path, fault).split()
    assert int(blocks) > 0
    assert planted == ["1", "1"]


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("protocol.message(7)", "protocol.message(std::uint64_t{7})", "integers have 64 bits and a sign"),
        ("protocol.message(7)", "dpnoise::Protocol(protocol).message(7)", "use of deleted function"),
    ],
)
def test_the_cpp_interface_refuses_to_compile(right: str, wrong: str, message: str, tmp_path: Path) -> None:
    page = (CLIENT / "README.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"```cpp\n(.*?)```", page, re.DOTALL)
    assert right in source
    file = tmp_path / "program.cpp"
    file.write_text(source.replace(right, wrong), encoding="utf-8")
    done = run("g++", "-std=c++17", "-fsyntax-only", file, *flags("--cflags"))
    assert done.returncode != 0
    assert message in done.stderr


# --- the examples ----------------------------------------------------------------------------------------------------


def test_the_example_of_noise() -> None:
    *rows, last = output_of(example("c/example_noise")).splitlines()
    counts = {"Aachen": 1042, "Bonn": 873, "Celle": 12, "Dresden": 0}
    released = {city: int(count) for city, count in (row.split() for row in rows)}
    assert released.keys() == counts.keys()
    # P(|noise| >= 30) = 2 exp(-30) / (1 + exp(-1)) for each of four: below 6e-13 in all.
    assert all(abs(released[city] - counts[city]) < 30 for city in counts)
    error = mechanisms.DiscreteLaplace(epsilon=1.0).error(0.95)
    assert last == f"Each is off by at most {error:.0f} with a probability of 95 %."


def test_the_example_of_noise_draws_anew() -> None:
    # All four are equal in two runs with a probability below 0.25; in 60 with one below 1e-35.
    assert len({output_of(example("c/example_noise")) for _ in range(60)}) > 1


def test_the_example_of_a_collection() -> None:
    first, *rows = output_of(example("cpp/example_collection")).splitlines()
    assert first == "100000 reports, 2 rejected"
    protocol = local.OptimizedUnaryEncoding(k=4, epsilon=1.0)
    for row, true in zip(rows, (40_000, 30_000, 20_000, 10_000), strict=True):
        count, error = re.fullmatch(r"\d: (-?\d+) \+- (\d+)", row).groups()
        # Bernstein: a sum of so many bits is 8 standard errors off with a probability below 2 exp(-31).
        assert abs(int(count) - true) < 8 * protocol.variance(100_000, true / 100_000) ** 0.5
        assert 500 < int(error) < 800


def reported(folder: Path, program: Path, answer: str = "7\n", **options: Any) -> subprocess.CompletedProcess[str]:
    """Let the example report."""
    (folder / "specification").write_text(FLIP.to_json(), encoding="utf-8")
    return run(program, folder / "specification", folder / "memo", "colour", stdin=answer, **options)


def test_the_example_of_reports_keeps_its_memo(tmp_path: Path) -> None:
    program = example("c/example_report")
    first, second = (reported(tmp_path, program) for _ in range(2))
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == second.stdout
    assert (tmp_path / "memo").stat().st_mode & 0o777 == 0o600
    assert sorted(file.name for file in tmp_path.iterdir()) == ["memo", "specification"]
    memo = local.ClientMemo.from_bytes((tmp_path / "memo").read_bytes())
    assert len((tmp_path / "memo").read_bytes()) == 52 + 64  # and how the question is answered
    report = FLIP.perturb([7], memo, question="colour")
    assert bytes.fromhex(first.stdout) == FLIP.messages(report)[0]


def test_processes_that_start_together_share_a_memo(tmp_path: Path) -> None:
    (tmp_path / "specification").write_text(FLIP.to_json(), encoding="utf-8")
    command = [example("c/example_report"), tmp_path / "specification", tmp_path / "memo", "colour"]
    pipe = subprocess.PIPE
    started = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(8)]
    assert len({process.communicate("7\n")[0] for process in started}) == 1
    assert [process.returncode for process in started] == [0] * 8


def torn(program: Path, folder: Path) -> bool:
    """Say whether a device whose disk is full, in the middle of its memo, is left with a part of it."""

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))

    done = reported(folder, program, preexec_fn=full)
    assert done.returncode != 0
    return (folder / "memo").exists() or done.stdout != ""


def test_a_memo_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    program = example("c/example_report")
    assert not torn(program, tmp_path)
    assert reported(tmp_path, program).returncode == 0


def test_a_memo_that_is_written_in_place_is_found(tmp_path: Path) -> None:
    """The positive control."""
    source = (CLIENT / "example_report.c").read_text(encoding="utf-8")
    assert "mkstemp(unfinished)" in source
    wrong = source.replace("mkstemp(unfinished)", "open(path, O_WRONLY | O_CREAT, 0600)")
    assert torn(compiled(wrong, tmp_path / "program"), tmp_path)


def test_a_device_that_is_killed_loses_no_memo(tmp_path: Path) -> None:
    memo, kept = tmp_path / "memo", None
    (tmp_path / "specification").write_text(FLIP.to_json(), encoding="utf-8")
    command = [example("c/example_report"), tmp_path / "specification", memo, "colour"]
    for attempt in range(40):
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
            for _ in range(attempt * 200):  # lets the process come some way; how far does not matter
                pass
            process.kill()
        if memo.exists():
            local.ClientMemo.from_bytes(memo.read_bytes())
            assert kept in (None, memo.read_bytes()[16:48])
            kept = memo.read_bytes()[16:48]  # the secret
    assert reported(tmp_path, command[0]).returncode == 0


def test_a_question_is_answered_with_one_randomiser(tmp_path: Path) -> None:
    program = example("c/example_report")
    assert reported(tmp_path, program).returncode == 0
    memo = (tmp_path / "memo").read_bytes()
    (tmp_path / "other").write_text(local.DBitFlip(k=1000, d=100, epsilon=1.01).to_json(), encoding="utf-8")
    done = run(program, tmp_path / "other", tmp_path / "memo", "colour", stdin="7\n")
    assert (done.returncode, done.stdout, (tmp_path / "memo").read_bytes()) == (1, "", memo)
    assert done.stderr.startswith("example_report: question: the specification must have the randomiser of earlier")
    (tmp_path / "week").write_text(FLIP.about(period="2026-W48").to_json(), encoding="utf-8")
    done = run(program, tmp_path / "week", tmp_path / "memo", "colour", stdin="7\n")
    assert (done.returncode, (tmp_path / "memo").read_bytes()) == (0, memo)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("987654321\n", "example_report: answer: values must be integers in [0, k) with k = 1000"),
        ("-987654321\n", "example_report: answer: values must be integers in [0, k) with k = 1000"),
        ("98765432109876543210\n", "example_report: answer: it must be an integer"),
        ("987654321 plums\n", "example_report: answer: it must be an integer"),
        ("\n", "example_report: answer: it must be an integer"),
        ("", "example_report: answer: there is none"),
    ],
)
def test_the_example_of_reports_refuses_answers(answer: str, message: str, tmp_path: Path) -> None:
    done = reported(tmp_path, example("c/example_report"), answer)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(message)
    assert "98765" not in done.stderr


def test_the_example_of_reports_refuses_a_damaged_memo(tmp_path: Path) -> None:
    program = example("c/example_report")
    assert reported(tmp_path, program).returncode == 0
    memo = (tmp_path / "memo").read_bytes()
    for damaged in (b"", memo[:-1], memo[:30] + bytes([memo[30] ^ 1]) + memo[31:]):
        (tmp_path / "memo").write_bytes(damaged)
        done = reported(tmp_path, program)
        assert (done.returncode, done.stdout) == (1, "")
        assert "memo" in done.stderr
        assert (tmp_path / "memo").read_bytes() == damaged


def test_the_example_of_reports_refuses_a_large_epsilon(tmp_path: Path) -> None:
    (tmp_path / "other").write_text(local.HadamardResponse(k=15, epsilon=5.0).to_json(), encoding="utf-8")
    done = run(example("c/example_report"), tmp_path / "other", tmp_path / "memo", "colour", stdin="7\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "example_report: specification: its epsilon or its delta is larger than what we promise\n"
