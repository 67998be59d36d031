"""What the client for the web must do beyond what all clients must, in node; its types; and its package."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from clients.web.tests.browsers import needs_client
from dpnoise import local

ROOT = Path(__file__).parents[3]
CLIENT = ROOT / "clients/web"
DIST = CLIENT / "dist"
TESTS = CLIENT / "tests"


def needs(program: str) -> pytest.MarkDecorator:
    """Skip a test where a program is missing."""
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


def in_node(folder: Path, test: str = "", right: str = "", wrong: str = "") -> subprocess.CompletedProcess[str]:
    """Run all tests of node, or one, on a copy of the client in `folder`, in which something is wrong."""
    for part, source in (("clients/web/dist", DIST), ("clients/web/tests", TESTS)):
        shutil.copytree(source, folder / part)
    (folder / "tests/vectors").mkdir(parents=True)
    shutil.copy(ROOT / "tests/vectors/local.json", folder / "tests/vectors")
    module = (CLIENT / "dpnoise.mjs").read_text(encoding="utf-8")
    assert not right or module.count(right) == 1, right
    (folder / "clients/web/dist/dpnoise.mjs").write_text(
        module.replace(right, wrong) if right else module, encoding="utf-8"
    )
    chosen = [f"--test-name-pattern=^{re.escape(test)}$"] if test else []
    command = ["node", "--expose-gc", "--test", *chosen, str(folder / "clients/web/tests/client.test.mjs")]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@needs_client
@needs("node")
def test_the_client_in_node(tmp_path: Path) -> None:
    done = in_node(tmp_path)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    assert "# skipped 0" in done.stdout


LOADED = "randomness is the platform's, whatever other scripts do after the client is loaded"

FAULTS = {
    "a value is shown": (
        "values that are of no use are refused, and not shown",
        "throw this.#wrongInteger();\n        view.setInt32",
        "throw new DpnoiseError('data', value);\n        view.setInt32",
    ),
    "a value stays in memory": (
        "nothing private stays in the module",
        'areas.forEach((area) => this.#run("wipe", ...area))',
        "void areas",
    ),
    "memory is lost": (
        "no memory is lost",
        'areas.forEach((area) => this.#run("wipe", ...area))',
        "areas.forEach((a) => this.bytes(...a).fill(0))",
    ),
    "a failing generator is ignored": (
        "there is no report without randomness",
        "      this.#cause = error;\n      return 1;",
        "      return 0;",
    ),
    "the system's generator is not used": (
        "the system's randomness gives different reports",
        "          getRandomValues(piece);",
        "          void piece;",
    ),
    "the system's generator is looked up at each call": (
        LOADED,
        "          getRandomValues(piece);",
        "          globalThis.crypto.getRandomValues(piece);",
    ),
    "inherited options count": (LOADED, "limit } = onlyOwn(options);", "limit } = options ?? {};"),
    "inherited texts count": (LOADED, 'period = "" } = onlyOwn(options);', 'period = "" } = options ?? {};'),
    "inherited generators are freed": (LOADED, "const own = onlyOwn(holding);", "const own = holding;"),
    "half a surrogate pair is replaced": (
        "texts are well-formed without String.isWellFormed, too",
        "!isWellFormed(text)",
        "false",
    ),
    "a question has several spellings": (
        "memos of no use are refused",
        'text !== text.normalize("NFC")',
        "false",
    ),
    "large bigints wrap around": (
        "values that are of no use are refused, and not shown",
        "BigInt.asIntN(64, value) !== value",
        "false",
    ),
    "the upper half of integers is lost": (
        "large integers are exact",
        "Math.floor(value / 2 ** 32)",
        "value < 0 ? -1 : 0",
    ),
    "what is forgotten is never freed": ("what is forgotten is freed", "forgotten.register(this, own, this);", ""),
    "clients share a generator": (
        "two clients do not share a generator",
        "const number = ++this.#lastGenerator;",
        "const number = 1;",
    ),
}
"""The test that must find each fault, and what is replaced by it."""


@needs_client
@needs("node")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, tmp_path: Path) -> None:
    done = in_node(tmp_path, *FAULTS[fault])
    assert "\n# fail 1\n" in done.stdout, done.stdout[-2000:]


def checked(use: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the types of a program that uses the package."""
    package = folder / "node_modules/@dpnoise/client"
    shutil.copytree(DIST, package)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "use.ts").write_text(use, encoding="utf-8")
    options = "--strict --noEmit --module node16 --moduleResolution node16 --target es2022 --lib es2022,dom"
    return subprocess.run(
        ["tsc", *options.split(), "use.ts"], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )


@needs_client
@needs("tsc")
def test_types(tmp_path: Path) -> None:
    use = (TESTS / "types.ts").read_text(encoding="utf-8")
    (tmp_path / "right").mkdir()
    done = checked(use, tmp_path / "right")
    assert done.returncode == 0, done.stdout
    # What is refused: each line but one is expected to be an error, and this one is none.
    (tmp_path / "wrong").mkdir()
    done = checked(use + "\n// @ts-expect-error this is right\nexport const right: number = 1;\n", tmp_path / "wrong")
    assert done.returncode != 0
    assert "Unused '@ts-expect-error'" in done.stdout


@needs_client
def test_the_package_has_all_that_it_names() -> None:
    package = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    named = [*package["files"], package["types"], *package["exports"]["."].values()]
    named += [path for path in package["exports"].values() if isinstance(path, str)]
    assert [name for name in named if not (DIST / name).is_file()] == []
    cargo = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{package["version"]}"\n' in cargo


@needs_client
@needs("node")
def test_the_code_of_the_readme(tmp_path: Path) -> None:
    blocks = re.findall(r"```js\n(.*?)```", (CLIENT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    example = (
        (CLIENT / "examples/memo.mjs").read_text(encoding="utf-8").replace("../dist/dpnoise.mjs", "@dpnoise/client")
    )
    (tmp_path / "node_modules/@dpnoise").mkdir(parents=True)
    (tmp_path / "node_modules/@dpnoise/client").symlink_to(DIST)
    printed = []
    for block in blocks:
        if block == example:  # which needs a browser
            continue
        (tmp_path / "block.mjs").write_text(block, encoding="utf-8")
        done = subprocess.run(
            ["node", "block.mjs"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.split())
    assert printed == [["14", "3"], ["1000", "15", "15"]]
    assert example in blocks


@needs_client
@needs("node")
def test_the_example_for_node(tmp_path: Path) -> None:
    vectors = json.loads((ROOT / "tests/vectors/local.json").read_text(encoding="utf-8"))
    specification = next(vector["specification"] for vector in vectors if "hadamard_r" in vector["specification"])
    (tmp_path / "specification.json").write_text(specification)
    command = ["node", str(CLIENT / "examples/report.mjs"), str(tmp_path / "specification.json")]
    done = subprocess.run(command, input="3\n14\n", capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    accumulator = local.protocol_from_json(specification).accumulator()
    accumulator.add_messages([bytes.fromhex(line) for line in done.stdout.split()])
    assert accumulator.n == 2
    done = subprocess.run(command, input="15\n", capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert done.stdout == ""
