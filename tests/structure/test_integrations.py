"""Each integration stands in its folder: what it has, what tenants import, and what other places say of it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from benches.hosts import CRATES, FOLDERS, HOSTS, Host, project
from benches.page import number
from benches.record import Record, kept

ROOT = Path(__file__).parents[2]
PACKAGES = {folder: f"dpnoise_{folder.name}" for folder in FOLDERS}
INDEX = (ROOT / "docs/integrations/index.md").read_text(encoding="utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
CARGO = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
of_each = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
of_each_host = pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)


# --- what a folder has -----------------------------------------------------------------------------------------------


def lacks(folder: Path) -> set[str]:
    """List what a folder lacks, or has otherwise than all others."""
    source = f"src/{PACKAGES[folder]}"
    patterns = [f"{source}/__init__.py", f"{source}/py.typed", "Makefile", "README.md", "bench_*.py", "record.json"]
    patterns += ["tests/test_distributions.py", "tests/test_[!d]*.py"]
    found = {pattern for pattern in patterns if not list(folder.glob(pattern))}
    given = project(folder)
    expected = {
        "include ../integration.mk": "Makefile" in found
        or (folder / "Makefile").read_text(encoding="utf-8").endswith("include ../integration.mk\n"),
        f'name = "dpnoise-{folder.name}"': given["project"]["name"] == f"dpnoise-{folder.name}",
        "dpnoise>=": any(one.startswith("dpnoise>=") for one in given["project"]["dependencies"]),
        "groups test and bench": {"test", "bench"} <= given["dependency-groups"].keys(),
    }
    return found | {name for name, is_there in expected.items() if not is_there}


@of_each
def test_a_folder_is_complete(folder: Path) -> None:
    assert lacks(folder) == set()


def test_what_a_folder_lacks_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "host"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "host"\ndependencies = []\n[dependency-groups]\ntest = []\n'
    )
    monkeypatch.setitem(PACKAGES, folder, "dpnoise_host")
    assert len(lacks(folder)) == 11


def code(page: Path) -> list[str]:
    blocks: list[str] = re.findall(r"(?ms)^```python\n(.*?)^```", page.read_text(encoding="utf-8"))
    return blocks


@of_each_host
def test_code_of_the_page_fits_80_columns(host: Host) -> None:
    assert code(host.folder / host.page)
    lines = [line for block in code(host.folder / host.page) for line in block.splitlines()]
    assert [line for line in lines if len(line) > 80] == []


# --- what it imports -------------------------------------------------------------------------------------------------


def private(source: str, packages: set[str]) -> list[str]:
    """List the private names of dpnoise, and all of other integrations, that a file uses."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                used = [f"{module}.{one.name}" for one in names]
            case ast.Import(names=names):
                used = [one.name for one in names]
            case ast.Attribute():
                used = [ast.unparse(node)]
            case _:
                continue
        for name in used:
            top, *parts = name.split(".")
            if top in packages or (top == "dpnoise" and any(re.match("_(?!_)", part) for part in parts)):
                found.append(name)
    return found


@pytest.mark.parametrize(
    "folder", [*FOLDERS, *(ROOT / name for name in ("clients", "proofs", "tools"))], ids=lambda folder: folder.name
)
def test_a_tenant_uses_public_names_only(folder: Path) -> None:
    others = {package for place, package in PACKAGES.items() if place != folder}
    files = [path for path in folder.glob("**/*.py") if not {".venv", "node_modules"} & {*path.parts}]
    assert files
    found = {path: private(path.read_text(encoding="utf-8"), others) for path in files}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "line",
    [
        "from dpnoise._errors import require",
        "from dpnoise.sgd import _gradients",
        "import dpnoise.sgd._gradients",
        "def f():\n    from dpnoise import _native",
        "import dpnoise\ndpnoise._errors.require",
        "from dpnoise_other import make",
    ],
)
def test_a_private_name_is_noticed(line: str) -> None:
    assert len(private(line, {"dpnoise_other"})) >= 1
    assert private("from dpnoise import __version__, sgd\nimport dpnoise_own", {"dpnoise_other"}) == []


# --- what the other places say ---------------------------------------------------------------------------------------


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def row_of(host: Host, index: str) -> re.Match[str] | None:
    return re.search(rf"(?m)^\| \[{re.escape(host.title)}\]\({host.name}\.md\), (\S+) \|.*\| (.+) \| (.+) \|$", index)


def wrong(host: Host, index: str = INDEX, changelog: str = CHANGELOG) -> set[str]:
    """Say what contradicts the folder: its pins, its page, its record, the table of integrations, CHANGELOG.md."""
    pinned = [
        re.match(rf"{host.package}>=([\d.]+),<([\d.]+)", one) for one in project(host.folder)["project"]["dependencies"]
    ]
    bounds = [(found[1], found[2]) for found in pinned if found]
    page = (host.folder / host.page).read_text(encoding="utf-8")
    record, row = kept().get(host.folder.name), row_of(host, index)
    found = set()
    if not any(numbers(low) <= numbers(host.tested) < numbers(high) for low, high in bounds):
        found.add("pin")
    if host.tested not in page:
        found.add("page")
    counts = re.search(r"(?m)^\| .* \| of (\d+) \|\n\| -.*\n\| pass .* \| (\d+) \|\n\| pass .* \| (\d+)\b", page)
    if host.suite and (not counts or host.passed != f"{counts[2]} of {counts[1]} / {counts[3]} of {counts[1]}"):
        found.add("tests")
    if record is None or record.versions.get(host.package) != host.tested:
        found.add("record")
    if row is None or (row[1], row[2]) != (host.tested, host.passed):
        found.add("row")
    if row is not None and (record is None or row[3] not in measured(record, host.package)):
        found.add("times")
    if host.imported not in changelog:
        found.add("changelog")
    return found


def measured(record: Record, host: str) -> set[str]:
    return {
        f"{number(amounts[column])} / {number(table.amounts[record.ours][column])}"
        for table in record.tables.values()
        for entrant, amounts in table.amounts.items()
        if entrant.startswith(host) and record.ours in table.amounts
        for column in amounts
    }


@of_each_host
def test_the_other_places_say_what_the_folder_says(host: Host) -> None:
    assert wrong(host) == set()


def test_each_row_of_the_table_has_a_folder() -> None:
    rows = set(re.findall(r"(?m)^\| \[.*?\]\((\w+)\.md\), ", INDEX))
    assert rows == {host.name for host in HOSTS + CRATES}


@of_each_host
def test_what_is_out_of_date_is_noticed(host: Host) -> None:
    if wrong(host):
        pytest.skip("the folder and the other places are to agree first")
    assert wrong(host, changelog="") == {"changelog"}
    assert wrong(host, index="") == {"row"}
    assert wrong(host, INDEX.replace(f", {host.tested} |", ", 0.0.1 |")) == {"row"}
    assert wrong(host, re.sub(r"\| [^|]+ \|$", "| 5 / 4 |", INDEX, flags=re.MULTILINE)) == {"times"}
    assert wrong(host._replace(tested="99.0")) == {"pin", "page", "record", "row"}
    assert {"row"} <= wrong(host._replace(passed="1 of 2 / 3 of 4")) <= {"row", "tests"}


def wrong_crate(host: Host, index: str = INDEX) -> set[str]:
    """Say what contradicts the folder of a crate, whose page has the times: pin, page, table, CHANGELOG.md."""
    page = (host.folder / host.page).read_text(encoding="utf-8")
    version, passed, times = found.groups() if (found := row_of(host, index)) else ("", "", "0 / 0")
    theirs, ours = times.split(" / ")
    holds = {
        "pin": f'\n{host.package} = {{ version = "{host.tested}"' in CARGO,
        "page": host.tested in page,
        "row": (version, passed) == (host.tested, host.passed),
        "times": f" | {int(theirs):,} | {ours} | " in page,
        "changelog": f"`dpnoise-{host.folder.name}`" in CHANGELOG,
    }
    return {place for place in holds if not holds[place]}


@pytest.mark.parametrize("host", CRATES, ids=lambda host: host.name)
def test_the_other_places_say_what_the_folder_of_a_crate_says(host: Host) -> None:
    assert wrong_crate(host) == set()
    assert wrong_crate(host, index="") == {"row", "times"}
    assert wrong_crate(host, INDEX.replace("3029 / 15.7", "3029 / 15.6")) == {"times"}
    assert wrong_crate(host._replace(tested="0.99.0")) == {"pin", "page", "row"}
    assert wrong_crate(host._replace(passed="1 of 2 / 1 of 2")) == {"row"}
