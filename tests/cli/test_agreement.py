"""Of which specification the files are that are counted: that of most of them, or those that are asked for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.shared import DOMAIN, PROTOCOL, REVERSED, Refuse, Run, write

pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")

from dpnoise import local

OTHER = local.OptimizedUnaryEncoding(domain=DOMAIN, epsilon=1.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with three files of a kind, before and behind which there are others."""
    folder = tmp_path / "reports"
    folder.mkdir()
    write(folder / "0-stranger.parquet", 7, OTHER)
    for number in (1, 2, 3):
        write(folder / f"{number}.parquet", 100 * number)
    write(folder / "4-stranger.parquet", 9, REVERSED)
    return folder


@pytest.fixture
def specification(tmp_path: Path) -> Callable[[Any], Path]:
    """Return a function that writes the document of a protocol, or its specification alone."""

    def make(protocol: Any, *, alone: bool = False) -> Path:
        path = tmp_path / f"{protocol.spec_id}.json"
        path.write_text(protocol.to_json() if alone else protocol.to_document(), encoding="utf-8")
        return path

    return make


def test_most_files_decide(run: Run, folder: Path) -> None:
    first, last = folder / "0-stranger.parquet", folder / "4-stranger.parquet"
    outcome = run("estimate", folder, "--json")
    assert outcome.code == 3
    record = outcome.json
    assert (record["n"], record["spec_id"], list(record["failed"])) == (600, PROTOCOL.spec_id, [str(first), str(last)])
    assert outcome.err.splitlines() == [
        f"dpnoise: '{first}' is of another collection than 3 of the 5 files: {OTHER!r}, not {PROTOCOL!r}",
        f"dpnoise: '{last}' is of another collection than 3 of the 5 files: {REVERSED!r}, not {PROTOCOL!r}",
        "dpnoise: 2 of the files could not be used and are left out",
    ]


def test_a_tie_is_refused(run: Run, refuse: Refuse, folder: Path, tmp_path: Path, specification: Any) -> None:
    first, second = folder / "0-stranger.parquet", folder / "1.parquet"
    state = tmp_path / "state.json"
    message = (
        f"as many files are like '{first}' as like '{second}', which differ in their specification: say which ones "
        f"to count with --spec"
    )
    assert refuse("estimate", first, second, "--state", state) == message
    assert not state.exists()
    assert run("estimate", first, second, "--spec", specification(OTHER), "--json").json["n"] == 7
    run("estimate", second, "--state", state)
    assert run("estimate", first, second, "--state", state, "--json").json["n"] == 100


def test_a_specification_decides(run: Run, folder: Path, specification: Any) -> None:
    outcome = run("estimate", folder, "--spec", specification(OTHER), "--json")
    assert (outcome.code, outcome.json["n"], len(outcome.json["failed"])) == (3, 7, 4)
    message = f"'{folder / '1.parquet'}' is of another collection than --spec: {PROTOCOL!r}, not {OTHER!r}"
    assert outcome.err.splitlines()[0] == f"dpnoise: {message}"
    outcome = run("estimate", folder, "--spec", specification(REVERSED), "--json")
    assert (outcome.code, outcome.json["n"]) == (3, 9)
    assert [row["value"] for row in outcome.json["estimates"]] == DOMAIN[::-1]


def test_a_specification_without_labels_decides_by_its_digest(run: Run, folder: Path, specification: Any) -> None:
    outcome = run("estimate", folder, "--spec", specification(PROTOCOL, alone=True), "--json")
    assert (outcome.code, outcome.json["n"]) == (3, 600)
    assert [row["value"] for row in outcome.json["estimates"]] == list(PROTOCOL.domain)  # as the files know them


def test_several_specifications_are_counted_each_by_itself(
    run: Run, refuse: Refuse, folder: Path, specification: Any, tmp_path: Path
) -> None:
    specs = [word for one in (PROTOCOL, OTHER) for word in ("--spec", specification(one))]
    outcome = run("estimate", folder, *specs, "--json")
    assert [one["n"] for one in outcome.json["collections"]] == [600, 7]
    assert outcome.code == 3  # of one file
    assert [one["failed"].keys() for one in outcome.json["collections"]] == 2 * [{str(folder / "4-stranger.parquet")}]
    whole = run("estimate", folder, *specs, "--spec", specification(REVERSED), "--json")
    assert (whole.code, [one["n"] for one in whole.json["collections"]]) == (0, [600, 7, 9])
    assert "must be of different collections" in refuse("estimate", folder, *specs, *specs[:2])
    alone = run("estimate", folder / "1.parquet", *specs, "--json")  # of the other one nothing has come yet
    assert (alone.code, [one["n"] for one in alone.json["collections"]]) == (0, [100])
    assert alone.err == f"dpnoise: no reports of {OTHER!r}\n"
    nothing = run("estimate", folder / "4-stranger.parquet", *specs)
    assert (nothing.code, nothing.out) == (2, "")
    for more in (["-o", tmp_path / "out.csv"], ["--state", tmp_path / "state"], ["--plot", tmp_path / "chart.png"]):
        assert "several of --spec go with files alone" in refuse("estimate", folder, *specs, *more)


def test_counters_have_a_limit(run: Run, refuse: Refuse, folder: Path, specification: Any) -> None:
    needed = PROTOCOL.counter_bytes
    fits = run("estimate", folder, "--spec", specification(PROTOCOL), "--limit", needed, "--json")
    assert fits.json["n"] == run("estimate", folder, "--spec", specification(PROTOCOL), "--json").json["n"]
    size = f"{needed}, the bytes of the counters of {PROTOCOL!r}"
    message = f"--spec needs a --limit of at least {size}, got {needed - 1}"
    assert refuse("estimate", folder, "--spec", specification(PROTOCOL), "--limit", needed - 1) == message
    # Without --spec, the metadata of files name what is counted.
    assert "needs a --limit of at least" in refuse("estimate", folder / "1.parquet", "--limit", 7)


def test_a_state_decides(run: Run, refuse: Refuse, folder: Path, tmp_path: Path, specification: Any) -> None:
    state = tmp_path / "state.json"
    run("estimate", folder / "0-stranger.parquet", "--state", state)
    outcome = run("estimate", folder, "--state", state, "--json")
    assert (outcome.code, outcome.json["n"], len(outcome.json["failed"])) == (3, 7, 4)
    message = f"--spec is of another collection than '{state}': {PROTOCOL!r}, not {OTHER!r}"
    assert refuse("estimate", folder, "--state", state, "--spec", specification(PROTOCOL)) == message


def test_what_is_no_specification(refuse: Refuse, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "specification.json"
    assert refuse("estimate", folder, "--spec", path) == f"{path}: No such file or directory"
    document = PROTOCOL.to_document().encode()
    for content in (b"", b"{}", b"\xff", b"[]", document.replace(b"red", b"rad"), document[:-1]):
        path.write_bytes(content)
        message = f"'{path}' is not the specification of a protocol: "
        assert refuse("estimate", folder, "--spec", path).startswith(message)


def test_no_estimate_replaces_what_decides(refuse: Refuse, folder: Path, specification: Any) -> None:
    path = specification(PROTOCOL)
    assert "is also an input" in refuse("estimate", folder, "--spec", path, "-o", path)
