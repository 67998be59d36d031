"""Many files and states: what is counted once, what is left out and named, and what survives an interruption."""

import hashlib
import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.shared import DOMAIN, PROTOCOL, REVERSED, Refuse, Run, write

pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from dpnoise import local
from dpnoise.cli import collect
from dpnoise.cli.reports import report_writer
from dpnoise.cli.sources import reports_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory as an engine leaves it, with 100 + 200 + 300 reports."""
    folder = tmp_path / "reports"
    for day in (1, 2, 3):
        write(folder / f"day={day}" / "part-0.parquet", 100 * day)
    write(folder / "_temporary" / "half.parquet", 7)
    write(folder / "day=1" / ".part-1.parquet", 7)
    (folder / "_SUCCESS").touch()
    (folder / "README.txt").write_text("days", encoding="utf-8")
    return folder


@pytest.fixture
def parts(folder: Path) -> list[Path]:
    """Return the three files of the directory."""
    return [folder / f"day={day}" / "part-0.parquet" for day in (1, 2, 3)]


def estimates(run: Run, *arguments: object) -> Any:
    """Return what is estimated, without the names of files."""
    record = run("estimate", *arguments, "--json").json
    return {key: record[key] for key in ("n", "rejected_reasons", "estimates", "spec_id")}


# --- Files, patterns and directories -------------------------------------------------------------------------------


def test_what_stands_for_files(run: Run, folder: Path, parts: list[Path]) -> None:
    assert reports_files(folder) == parts
    whole = estimates(run, *parts)
    assert whole["n"] == 600
    for sources in ([folder], [folder / "day=*"], [folder / "**" / "part-*.parquet"], [folder / "day=[12]", parts[2]]):
        assert estimates(run, *sources) == whole
    assert estimates(run, folder / "day=[13]")["n"] == 400
    assert run("estimate", folder).out.endswith("600 reports, 0 rejected; epsilon 1.99827\n3 files\n")


def test_a_name_may_look_like_a_pattern(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", 3)
    assert estimates(run, write(tmp_path / "[a].parquet", 5))["n"] == 5


def test_nothing_to_read(refuse: Refuse, folder: Path, tmp_path: Path) -> None:
    pattern, empty = tmp_path / "*.parquet", tmp_path / "empty"
    empty.mkdir()
    assert refuse("estimate", pattern) == f"no file matches '{pattern}'"
    assert refuse("estimate", empty) == f"'{empty}' is a directory without .parquet files"
    assert "must end in .parquet" in refuse("estimate", folder / "README.txt")


def test_a_file_is_counted_once(run: Run, folder: Path, parts: list[Path], tmp_path: Path) -> None:
    whole = estimates(run, folder)
    copy, link = tmp_path / "copy.parquet", tmp_path / "link.parquet"
    shutil.copy(parts[0], copy)
    link.symlink_to(parts[1])
    outcome = run("estimate", folder, copy, link, parts[2])
    assert outcome.code == 0
    assert outcome.err == f"dpnoise: counted before, so skipped this time: '{copy}', '{link}', '{parts[2]}'\n"
    quiet = run("estimate", folder, copy, link, parts[2], "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, outcome.out, "")
    record = run("estimate", folder, copy, "--json").json
    assert (record["n"], record["files"], record["repeated"]) == (600, 3, {str(copy): str(parts[0])})
    assert estimates(run, folder, copy, link) == whole


def test_files_of_the_same_reports_by_chance_are_two(run: Run, tmp_path: Path) -> None:
    sure = local.RandomizedResponse(epsilon=32.0)  # so that the reports are the same
    paths = [tmp_path / f"{i}.parquet" for i in range(2)]
    for path in paths:
        with path.open("wb") as file, report_writer(file, sure) as add:
            add(np.ones((1, 1), np.uint8))
    assert estimates(run, *paths)["n"] == 2


def test_progress_is_shown_on_a_terminal_unless_it_is_to_be_quiet(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for more, shown in ([], True), (["-q"], False), ([], True):
        terminal = io.StringIO()
        terminal.isatty = lambda: True  # type: ignore[method-assign]
        monkeypatch.setattr(sys, "stderr", terminal)
        assert run("estimate", folder, *more).code == 0
        assert ("counting" in terminal.getvalue()) == shown


def test_an_early_interrupt_leaves_the_cursor_visible(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(bar: Any) -> None:
        bar.console.show_cursor(False)
        raise KeyboardInterrupt

    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("rich.progress.Progress.start", interrupted)
    assert run("estimate", folder).code == 130
    written = terminal.getvalue()
    assert 0 <= written.find("\x1b[?25l") < written.rfind("\x1b[?25h")


# --- Bad files among good ones -------------------------------------------------------------------------------------


def cut(path: Path) -> str:
    path.write_bytes(path.read_bytes()[:-100])
    return f"'{path}' is not a Parquet file, or was cut short"


def text(path: Path) -> str:
    path.write_text("colour\nred\n", encoding="utf-8")
    return f"'{path}' is not a Parquet file, or was cut short"


def hole(path: Path) -> str:
    content = path.read_bytes()
    path.write_bytes(content[:4] + bytes(60) + content[64:])
    return f"'{path}' is damaged: "


def bit(path: Path) -> str:
    content, reports = bytearray(path.read_bytes()), pq.read_table(path)["report"].chunk(0).buffers()[1].to_pybytes()
    content[content.index(reports[:200]) + 77] ^= 1
    path.write_bytes(content)
    return f"'{path}' is damaged: could not verify page integrity, CRC checksum verification failed"


def other_protocol(path: Path) -> str:
    write(path, 5, local.OptimizedUnaryEncoding(domain=DOMAIN, epsilon=1.0))
    return f"'{path}' is of another collection than "


def other_domain(path: Path) -> str:
    write(path, 5, REVERSED)
    return f"'{path}' is of another collection than "


def other_column(path: Path) -> str:
    pq.write_table(pa.table({"report": [1.5]}, metadata={"dpnoise.protocol": PROTOCOL.to_json(),
                                                        "dpnoise.domain": json.dumps(DOMAIN)}), path)  # fmt: skip
    return f"'{path}' cannot be used: reports must be a column of type"


def missing(path: Path) -> str:
    path.unlink()
    return f"{path}: No such file or directory"


@pytest.mark.parametrize("spoil", [cut, text, hole, bit, other_protocol, other_domain, other_column, missing])
def test_one_bad_file_among_good_ones(
    run: Run, parts: list[Path], tmp_path: Path, spoil: Callable[[Path], str]
) -> None:
    good, out = estimates(run, parts[0], parts[2]), tmp_path / "out.json"
    message = spoil(parts[1])
    outcome = run("estimate", *parts, "--json", "-o", out)
    assert outcome.code == 3
    lines = outcome.err.splitlines()
    assert lines[0].startswith(f"dpnoise: {message}")
    assert lines[1:] == ["dpnoise: 1 of the files could not be used and is left out"]
    record = outcome.json
    assert {key: record[key] for key in good} == good
    assert (record["files"], list(record["failed"])) == (2, [str(parts[1])])
    assert json.loads(out.read_text(encoding="utf-8"))["failed"] == record["failed"]


def test_a_flipped_bit_shows_in_nothing_but_the_checksum(run: Run, parts: list[Path]) -> None:
    # Positive control: without it the damaged report is as good as any.
    table = pq.read_table(parts[1])
    pq.write_table(table, parts[1], compression="none", use_dictionary=False)
    bit(parts[1])
    assert run("estimate", *parts, "--json").json["n"] == 600


def test_estimates_replace_estimates_alone(refuse: Refuse, run: Run, parts: list[Path], tmp_path: Path) -> None:
    private = tmp_path / "people.csv"
    private.write_text("colour\nred\n", encoding="utf-8")
    notes = tmp_path / "notes.json"
    notes.write_text('{"spec_id": 1}', encoding="utf-8")
    for target in (private, notes, parts[2]):
        before = target.read_bytes()
        message = f"'{target}' is there already and is no estimate, which is all that may be replaced"
        assert refuse("estimate", *parts[:2], "-o", target) == message
        assert target.read_bytes() == before
    for suffix in (".csv", ".json", ".parquet"):
        target = tmp_path / f"estimate{suffix}"
        target.touch()
        assert run("estimate", parts[0], "-o", target).code == 0
        before = target.read_bytes()
        assert run("estimate", parts[1], "-o", target).code == 0
        assert target.read_bytes() != before


def test_damage_in_a_later_row_group_leaves_no_trace(run: Run, parts: list[Path]) -> None:
    good = estimates(run, parts[0], parts[2])
    rows = [row.tobytes() for row in PROTOCOL.perturb(["red"] * 5_000)]
    metadata = {"dpnoise.protocol": PROTOCOL.to_json(), "dpnoise.domain": json.dumps(DOMAIN)}
    table = pa.table({"report": pa.array(rows, pa.binary(1))}, metadata=metadata)
    pq.write_table(table, parts[1], row_group_size=1_000)
    assert estimates(run, *parts)["n"] == 5_400
    content = parts[1].read_bytes()
    last = pq.ParquetFile(parts[1]).metadata.row_group(4).column(0).dictionary_page_offset
    parts[1].write_bytes(content[:last] + bytes(200) + content[last + 200 :])
    assert run("estimate", *parts).code == 3
    assert estimates(run, *parts) == good


def test_only_bad_files(run: Run, tmp_path: Path) -> None:
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    outcome = run("estimate", *paths, "-o", tmp_path / "out.csv", "--state", tmp_path / "state")
    assert (outcome.code, outcome.out) == (2, "")
    assert [line.split(": ")[1] for line in outcome.err.splitlines()[:2]] == [str(path) for path in paths]
    assert list(tmp_path.iterdir()) == []


# --- States --------------------------------------------------------------------------------------------------------


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return where a state may go."""
    return tmp_path / "state.json"


def test_a_state_goes_on(run: Run, parts: list[Path], state: Path) -> None:
    whole = estimates(run, *parts)
    for i, path in enumerate(parts):
        record = run("estimate", path, "--state", state, "--json").json
        assert (record["files"], record["files_added"], record["state"]) == (i + 1, 1, str(state))
    before = state.read_bytes()
    assert estimates(run, "--state", state) == whole
    # What has been counted is not counted again, whatever its name.
    parts[1].rename(parts[1].with_name("renamed.parquet"))
    outcome = run("estimate", parts[1].with_name("renamed.parquet"), parts[0], "--state", state)
    assert outcome.code == 0
    assert "counted before, so skipped" in outcome.err
    assert state.read_bytes() == before
    assert run("estimate", "--state", state).out.endswith("\n3 files\n")


def test_a_state_can_be_read_by_other_programs(run: Run, parts: list[Path], state: Path) -> None:
    run("estimate", *parts, "--state", state)
    document = json.loads(state.read_text(encoding="utf-8"))
    assert document["domain"] == DOMAIN
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in parts]
    assert document["sources"] == [
        {"path": str(path), "sha256": digest} for path, digest in zip(parts, digests, strict=True)
    ]
    checksum = document.pop("checksum")
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    assert hashlib.sha256(canonical.encode()).hexdigest() == checksum


def test_a_state_and_bad_files(run: Run, parts: list[Path], state: Path) -> None:
    run("estimate", parts[0], "--state", state)
    before = state.read_bytes()
    text(parts[1])
    outcome = run("estimate", parts[1], "--state", state, "--json")
    assert (outcome.code, outcome.json["n"]) == (3, 100)
    assert state.read_bytes() == before
    other_protocol(parts[1])
    outcome = run("estimate", parts[1], parts[2], "--state", state, "--json")
    assert (outcome.code, outcome.json["n"]) == (3, 400)
    assert f"'{parts[1]}' is of another collection than '{state}': " in outcome.err


def test_an_interrupted_run_keeps_what_it_has_done(
    run: Run, parts: list[Path], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = collect.sha256

    def interrupted(path: Path) -> str:
        if path == parts[2]:
            raise KeyboardInterrupt
        return real(path)

    whole = estimates(run, *parts)
    with monkeypatch.context() as patch:
        patch.setattr(collect, "sha256", interrupted)
        outcome = run("estimate", *parts, "--state", state)
        assert run("estimate", *parts).err == "dpnoise: stopped by SIGINT; no incomplete file is left\n"
    assert (outcome.code, outcome.out) == (130, "")
    assert "of this run's files it has 2 now, and the same command goes on with the others" in outcome.err
    assert estimates(run, "--state", state)["n"] == 300
    assert estimates(run, *parts, "--state", state) == whole


def test_an_interrupted_merge_counts_nothing_twice(
    run: Run, parts: list[Path], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = local.Accumulator.merge

    def interrupted(self: local.Accumulator, other: local.Accumulator) -> None:
        counted = other.n
        real(self, other)
        if counted:
            raise KeyboardInterrupt

    whole = estimates(run, *parts)
    with monkeypatch.context() as patch:
        patch.setattr(local.Accumulator, "merge", interrupted)
        assert run("estimate", *parts, "--state", state).code == 130
    assert estimates(run, "--state", state)["n"] == 100
    assert estimates(run, *parts, "--state", state) == whole


@pytest.mark.parametrize("pattern", [False, True])
def test_no_report_is_overwritten(refuse: Refuse, folder: Path, parts: list[Path], pattern: bool) -> None:
    source = f"{folder}/**/*.parquet" if pattern else folder
    before = parts[1].read_bytes()
    assert "is also an input" in refuse("estimate", source, "-o", parts[1])
    assert "is also an input" in refuse("estimate", source, "--state", parts[1])
    assert parts[1].read_bytes() == before


def test_a_state_is_not_overwritten_by_the_estimates(refuse: Refuse, parts: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "new.json"
    assert "or another output, and would be overwritten" in refuse("estimate", *parts, "--state", target, "-o", target)
    assert not target.exists()


def test_long_work_is_saved_now_and_then(
    run: Run, parts: list[Path], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    real = collect._take_in

    def watched(path: Path, *arguments: Any) -> None:
        sizes.append(len(json.loads(state.read_text(encoding="utf-8"))["sources"]) if state.exists() else 0)
        real(path, *arguments)

    monkeypatch.setattr(collect, "_take_in", watched)
    monkeypatch.setattr(collect, "_SAVE_SECONDS", -1)
    run("estimate", *parts, "--state", state)
    assert sizes == [0, 1, 2]


def test_a_state_that_another_program_writes(
    run: Run, parts: list[Path], state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.json"
    run("estimate", parts[0], "--state", state)
    run("estimate", *parts[:2], "--state", other)
    real = collect._take_in

    def meanwhile(*arguments: Any) -> None:
        shutil.copy(other, state)  # by a program that does not ask for the lock
        real(*arguments)

    monkeypatch.setattr(collect, "_take_in", meanwhile)
    outcome = run("estimate", parts[2], "--state", state)
    message = f"dpnoise: '{state}' was changed by another program meanwhile, and is left as it is\n"
    assert (outcome.code, outcome.err) == (5, message)
    assert "reports, 0 rejected; epsilon" in outcome.out, "what was counted is shown"
    assert estimates(run, "--state", state)["n"] == 300


def test_a_failed_write_leaves_the_older_state(
    run: Run, parts: list[Path], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    run("estimate", parts[0], "--state", state)
    before = sorted(state.parent.iterdir()), state.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", fail)
        outcome = run("estimate", parts[1], "--state", state)
    assert (outcome.code, outcome.err) == (5, f"dpnoise: '{state}' could not be written: No space left on device\n")
    assert outcome.out.endswith("300 reports, 0 rejected; epsilon 1.99827\n2 files\n")
    assert (sorted(state.parent.iterdir()), state.read_bytes()) == before


def test_what_is_no_state(run: Run, refuse: Refuse, parts: list[Path], state: Path) -> None:
    assert "give files of reports, or with --state" in refuse("estimate", "--state", state)
    for content in ("", "[]", "{}", "\x00", '{"format": "dpnoise state"'):
        state.write_text(content, encoding="utf-8")
        message = f"'{state}' is not a state that dpnoise wrote, or was cut short"
        assert refuse("estimate", *parts, "--state", state) == message
        assert state.read_text(encoding="utf-8") == content
    assert "is also an input" in refuse("estimate", parts[0], "--state", parts[0])
    table = state.with_suffix(".csv")
    run("estimate", *parts, "--state", table)
    assert (
        refuse("estimate", "--state", table, "-o", table)
        == f"'{table}' is also an input, or another output, and would be overwritten"
    )


def test_a_damaged_state(run: Run, refuse: Refuse, parts: list[Path], state: Path) -> None:
    run("estimate", parts[0], "--state", state)
    document = json.loads(state.read_text(encoding="utf-8"))
    for change in ({"domain": DOMAIN[::-1]}, {"sources": []}, {"accumulator": ""}, {"checksum": "0"}, {"more": 1}):
        state.write_text(json.dumps({**document, **change}), encoding="utf-8")
        assert refuse("estimate", "--state", state) == f"'{state}' is damaged: its checksum is wrong"
    state.write_text(json.dumps({**document, "version": 2}), encoding="utf-8")
    assert refuse("estimate", "--state", state) == f"'{state}' has version 2; this release reads 1: upgrade dpnoise"
    # Somebody who writes a checksum of his own gets no further than the state of the accumulator.
    for change in ({"accumulator": "AAAA"}, {"accumulator": None}, {"sources": [3]}, {"domain": 3}):
        altered = {key: value for key, value in {**document, **change}.items() if key != "checksum"}
        canonical = json.dumps(altered, sort_keys=True, separators=(",", ":"))
        altered["checksum"] = hashlib.sha256(canonical.encode()).hexdigest()
        state.write_text(json.dumps(altered), encoding="utf-8")
        assert refuse("estimate", "--state", state).startswith(f"'{state}' is damaged: ")


# --- Merging -------------------------------------------------------------------------------------------------------


def test_merging_states(run: Run, parts: list[Path], tmp_path: Path) -> None:
    whole = estimates(run, *parts)
    states = [tmp_path / f"{i}.json" for i in range(3)]
    for path, state in zip(parts, states, strict=True):
        run("estimate", path, "--state", state)
    merged = tmp_path / "merged.json"
    record = run("merge", *states, "-o", merged, "--json").json
    assert (record["command"], record["files"], record["n"], record["rejected"]) == ("merge", 3, 600, 0)
    assert estimates(run, "--state", merged) == whole
    assert run("merge", states[0], "-o", merged).out == (f"1 state in {merged}: 100 reports of 1 file, 0 rejected\n")
    pattern = run("merge", tmp_path / "[0-9].json", "-o", tmp_path / "pattern.json", "--json").json
    assert pattern == {**record, "output": str(tmp_path / "pattern.json")}
    outcome = run("merge", *states[::-1], "-o", merged)
    assert outcome.out == f"3 states in {merged}: 600 reports of 3 files, 0 rejected\n"
    assert estimates(run, "--state", merged) == whole


def test_states_that_do_not_go_together(run: Run, refuse: Refuse, parts: list[Path], tmp_path: Path) -> None:
    one, two, out = tmp_path / "one.json", tmp_path / "two.json", tmp_path / "out.json"
    run("estimate", *parts[:2], "--state", one)
    run("estimate", *parts[1:], "--state", two)
    counted = "which has been counted before: merging would count the reports twice"
    assert refuse("merge", one, two, "-o", out) == f"'{two}' holds '{parts[1]}', {counted}"
    assert refuse("merge", one, one, "-o", out) == f"'{one}' holds '{parts[0]}' and 1 more, {counted}"
    for spoil in (other_protocol, other_domain):
        spoil(parts[2])
        two.unlink()
        run("estimate", parts[2], "--state", two)
        assert refuse("merge", one, two, "-o", out).startswith(f"'{two}' is of another collection than '{one}': ")
    assert not out.exists()
    assert "is also an input" in refuse("merge", one, two, "-o", one)
    assert "no file matches " in refuse("merge", tmp_path / "t?o", "-o", out)
    assert "is not a state" in refuse("merge", one, parts[0], "-o", out)
    out.write_text("precious", encoding="utf-8")
    assert "is not a state" in refuse("merge", one, "-o", out)
    assert out.read_text(encoding="utf-8") == "precious"
