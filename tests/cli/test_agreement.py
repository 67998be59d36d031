"""Of which protocol and domain the files are that are counted: most of them, or those that are asked for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.shared import DOMAIN, PROTOCOL, Refuse, Run, write

pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from dpnoise import local

OTHER = local.OptimizedUnaryEncoding(k=4, epsilon=1.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with three files of a kind, before and behind which there are others."""
    folder = tmp_path / "reports"
    folder.mkdir()
    write(folder / "0-stranger.parquet", 7, OTHER)
    for number in (1, 2, 3):
        write(folder / f"{number}.parquet", 100 * number)
    write(folder / "4-stranger.parquet", 9, domain=DOMAIN[::-1])
    return folder


@pytest.fixture
def specification(tmp_path: Path) -> Callable[[Any], Path]:
    """Return a function that writes the specification of a protocol."""

    def make(protocol: Any) -> Path:
        path = tmp_path / "specification.json"
        path.write_text(protocol.to_json(), encoding="utf-8")
        return path

    return make


@pytest.fixture
def domain_file(tmp_path: Path) -> Path:
    """Return a file with the domain, the other way round."""
    path = tmp_path / "domain.txt"
    path.write_text("\n".join(DOMAIN[::-1]) + "\n", encoding="utf-8")
    return path


def test_most_files_decide(run: Run, folder: Path) -> None:
    first, last = folder / "0-stranger.parquet", folder / "4-stranger.parquet"
    outcome = run("estimate", folder, "--json")
    assert outcome.code == 3
    record = outcome.json
    assert (record["n"], record["spec_id"], list(record["failed"])) == (600, PROTOCOL.spec_id, [str(first), str(last)])
    assert outcome.err.splitlines() == [
        f"dpnoise: '{first}' is of another protocol than 3 of the 5 files: {OTHER!r}, not {PROTOCOL!r}",
        f"dpnoise: '{last}' has another domain than 3 of the 5 files",
        "dpnoise: 2 of the files could not be used and are left out",
    ]


def test_a_tie_is_refused(run: Run, refuse: Refuse, folder: Path, tmp_path: Path, specification: Any) -> None:
    first, second = folder / "0-stranger.parquet", folder / "1.parquet"
    state = tmp_path / "state.json"
    message = (
        f"as many files are like '{first}' as like '{second}', which differ in protocol or domain: say which ones to "
        f"count with --spec or --domain-file"
    )
    assert refuse("estimate", first, second, "--state", state) == message
    assert not state.exists()
    assert run("estimate", first, second, "--spec", specification(OTHER), "--json").json["n"] == 7
    run("estimate", second, "--state", state)
    assert run("estimate", first, second, "--state", state, "--json").json["n"] == 100


def test_a_specification_decides(run: Run, folder: Path, specification: Any) -> None:
    outcome = run("estimate", folder, "--spec", specification(OTHER), "--json")
    assert (outcome.code, outcome.json["n"], len(outcome.json["failed"])) == (3, 7, 4)
    message = f"'{folder / '1.parquet'}' is of another protocol than --spec: {PROTOCOL!r}, not {OTHER!r}"
    assert outcome.err.splitlines()[0] == f"dpnoise: {message}"
    # Between the files that it leaves, most of them decide.
    outcome = run("estimate", folder, "--spec", specification(PROTOCOL), "--json")
    assert (outcome.code, outcome.json["n"]) == (3, 600)
    assert "4-stranger.parquet' has another domain than 3 of the 4 files" in outcome.err


def test_counters_have_a_limit(run: Run, refuse: Refuse, folder: Path, specification: Any) -> None:
    needed = PROTOCOL.counter_bytes
    fits = run("estimate", folder, "--spec", specification(PROTOCOL), "--limit", needed, "--json")
    assert fits.json["n"] == run("estimate", folder, "--spec", specification(PROTOCOL), "--json").json["n"]
    size = f"{needed}, the bytes of the counters of {PROTOCOL!r}"
    message = f"--spec needs a --limit of at least {size}, got {needed - 1}"
    assert refuse("estimate", folder, "--spec", specification(PROTOCOL), "--limit", needed - 1) == message
    # Without --spec, the metadata of files name what is counted.
    assert "needs a --limit of at least" in refuse("estimate", folder / "1.parquet", "--limit", 7)


def test_a_domain_decides(run: Run, folder: Path, domain_file: Path, specification: Any) -> None:
    outcome = run("estimate", folder, "--domain-file", domain_file, "--json")
    assert (outcome.code, outcome.json["n"]) == (3, 9)
    assert [row["value"] for row in outcome.json["estimates"]] == DOMAIN[::-1]
    assert f"'{folder / '1.parquet'}' has another domain than --domain-file" in outcome.err
    # It is that of files that do not say.
    table = pq.read_table(folder / "1.parquet")
    metadata = {key: value for key, value in table.schema.metadata.items() if key != b"dpnoise.domain"}
    bare = folder / "5.parquet"
    pq.write_table(table.replace_schema_metadata(metadata), bare)
    arguments = [folder, "--domain-file", domain_file, "--spec", specification(PROTOCOL)]
    assert run("estimate", *arguments, "--json").json["n"] == 109


def test_a_state_decides(run: Run, refuse: Refuse, folder: Path, tmp_path: Path, specification: Any) -> None:
    state = tmp_path / "state.json"
    run("estimate", folder / "0-stranger.parquet", "--state", state)
    outcome = run("estimate", folder, "--state", state, "--json")
    assert (outcome.code, outcome.json["n"], len(outcome.json["failed"])) == (3, 7, 4)
    message = f"--spec is of another protocol than '{state}': {PROTOCOL!r}, not {OTHER!r}"
    assert refuse("estimate", folder, "--state", state, "--spec", specification(PROTOCOL)) == message


def test_a_domain_and_a_state(refuse: Refuse, run: Run, folder: Path, tmp_path: Path, domain_file: Path) -> None:
    state = tmp_path / "state.json"
    run("estimate", folder, "--state", state)
    message = f"--domain-file has another domain than '{state}'"
    assert refuse("estimate", folder, "--state", state, "--domain-file", domain_file) == message


def test_what_is_no_specification(refuse: Refuse, folder: Path, tmp_path: Path, domain_file: Path) -> None:
    path = tmp_path / "specification.json"
    assert refuse("estimate", folder, "--spec", path) == f"{path}: No such file or directory"
    for content in (b"", b"{}", b"\xff", b"[]"):
        path.write_bytes(content)
        message = f"'{path}' is not the specification of a protocol: "
        assert refuse("estimate", folder, "--spec", path).startswith(message)
    path.write_text(local.DuchiMean(epsilon=1.0).to_json(), encoding="utf-8")
    message = "--spec has reports of DuchiMean, which are not about values that --domain-file lists"
    assert refuse("estimate", folder, "--spec", path, "--domain-file", domain_file) == message
    path.write_text(local.OptimizedUnaryEncoding(k=5, epsilon=1.0).to_json(), encoding="utf-8")
    message = "--spec has reports about 5 values, and --domain-file lists 4"
    assert refuse("estimate", folder, "--spec", path, "--domain-file", domain_file) == message


def test_no_estimate_replaces_what_decides(refuse: Refuse, folder: Path, specification: Any) -> None:
    path = specification(PROTOCOL)
    assert "is also an input" in refuse("estimate", folder, "--spec", path, "-o", path)


def test_a_file_without_a_domain_of_another_size(run: Run, folder: Path, domain_file: Path) -> None:
    path = write(folder / "9.parquet", 5, local.OptimizedUnaryEncoding(k=3, epsilon=2.0), ["a", "b", "c"])
    table = pq.read_table(path)
    metadata = {key: value for key, value in table.schema.metadata.items() if key != b"dpnoise.domain"}
    pq.write_table(pa.table({"report": table["report"]}, metadata=metadata), path)
    outcome = run("estimate", path, folder / "4-stranger.parquet", "--domain-file", domain_file)
    assert outcome.code == 3
    assert f"'{path}' has reports about 3 values, and --domain-file lists 4" in outcome.err
