"""`dpnoise collection`: the folder of a new collection, and estimates in it without options."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from cli.shared import Refuse, Run

from dpnoise import local

COLOURS = ["--question", "favourite colour", "--domain", "red,green,other", "--epsilon", 1, "--period", "2026-W48"]


@pytest.fixture
def survey(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    run("collection", "survey", *COLOURS)
    monkeypatch.chdir(tmp_path / "survey")
    return Path()


def send(protocol: Any, values: list[str], path: Path) -> None:
    messages = protocol.messages(protocol.perturb(values))
    path.write_bytes(b"".join(len(message).to_bytes(4, "little") + message for message in messages))


def test_the_lines_of_the_readme_send_what_estimate_counts(run: Run, survey: Path) -> None:
    readme = (survey / "README.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(  # noqa: S102 # the project's own lines
        re.search(r"```python\n(.*?)```", readme, re.DOTALL)[1],  # type: ignore[index]
        names,
    )
    protocol = names["protocol"]
    assert (protocol.question, protocol.period, protocol.domain) == (
        "favourite colour",
        "2026-W48",
        ("red", "green", "other"),
    )
    Path("inbox/one.bin").write_bytes(len(names["message"]).to_bytes(4, "little") + names["message"])
    send(protocol, ["red"] * 999, Path("inbox/more.bin"))
    found = run("estimate", "--json").json
    assert (found["n"], found["rejected"], found["question"], found["period"]) == (
        1000,
        0,
        "favourite colour",
        "2026-W48",
    )
    assert [row["value"] for row in found["estimates"]] == ["red", "green", "other"]
    assert re.search("```sh\ndpnoise estimate\n```", readme)


def test_every_number_of_the_promise_is_rounded_up(survey: Path) -> None:
    protocol = local.protocol_from_json(Path("specifications/2026-W48.json").read_text(encoding="utf-8"))
    readme, ratio = (survey / "README.md").read_text(encoding="utf-8"), math.exp(protocol.epsilon)
    limits = [float(text) for text in re.findall(r"(?:epsilon|Epsilon\(\)|epsilon\(\)) (?:=|>) ([0-9.]+)", readme)]
    assert len(limits) == 4
    assert all(protocol.epsilon <= limit < protocol.epsilon + 1e-3 for limit in limits)
    times = float(re.search(r"more than ([0-9.]+) times", readme)[1])  # type: ignore[index]
    once, twice = map(float, re.findall(r"at\s+most\s+([0-9.]+)\s+%", readme))
    assert ratio <= times < ratio + 0.01
    assert 100 * ratio / (1 + ratio) <= once < 100 * ratio / (1 + ratio) + 0.1
    assert 100 * ratio**2 / (1 + ratio**2) <= twice < 100 * ratio**2 / (1 + ratio**2) + 0.1


def test_late_reports_count_for_their_period(run: Run, survey: Path) -> None:
    first, second = Path("specifications/2026-W48.json"), Path("specifications/2026-W49.json")
    run("specify", "--spec", first, "--period", "2026-W49", "-o", second)
    protocols = [local.protocol_from_json(path.read_text(encoding="utf-8")) for path in (first, second)]
    for name, protocol, n in (("a", protocols[0], 20), ("b", protocols[1], 30), ("c", protocols[0], 1)):
        send(protocol, ["red"] * n, Path(f"inbox/{name}.bin"))
    both = Path("inbox/d.bin")
    both.write_bytes(Path("inbox/a.bin").read_bytes() + Path("inbox/b.bin").read_bytes())
    found = run("estimate", "--json").json["collections"]
    assert [(one["period"], one["n"], one["rejected"]) for one in found] == [("2026-W48", 41, 0), ("2026-W49", 60, 0)]
    printed = run("estimate").out
    assert "41 reports, 0 rejected" in printed
    assert "about favourite colour, 2026-W49" in printed


def test_messages_about_something_else_are_named(run: Run, survey: Path) -> None:
    document = json.loads(Path("specifications/2026-W48.json").read_text(encoding="utf-8"))
    own = local.protocol_from_json(document["dpnoise.protocol"], domain=document["dpnoise.domain"])
    other = own.about(domain=["yes", "no", "unsure"])
    send(own, ["red"] * 10, Path("inbox/own.bin"))
    send(other, ["yes"] * 1000, Path("inbox/other.bin"))
    ran = run("estimate")
    assert "10 reports, 1,000 rejected (wrong header: 1,000)" in ran.out
    assert f"1,000 messages of the specification {other.spec_id}, which is not counted here" in ran.err


def test_files_of_reports_are_counted_too(run: Run, survey: Path) -> None:
    Path("people.csv").write_text("colour\n" + "red\n" * 50)
    run(
        "perturb", "people.csv", "--column", "colour", "--spec", "specifications/2026-W48.json", "-o", "inbox/a.parquet"
    )
    assert run("estimate", "--json").json["n"] == 50
    Path("inbox/a.bin").write_bytes(b"")


def test_a_folder_that_is_not_as_it_should_be(run: Run, refuse: Refuse, survey: Path) -> None:
    assert refuse("estimate").endswith("got 1, 0 and 0 of these files")
    for name in ("a.bin", "a.parquet"):
        Path("inbox", name).write_bytes(b"")
    assert refuse("estimate").endswith("got 1, 1 and 1 of these files")
    Path("inbox/a.parquet").unlink()
    Path("specifications/2026-W48.json").unlink()
    assert refuse("estimate").endswith("got 0, 1 and 0 of these files")


def test_what_is_not_a_collection_is_refused_and_makes_no_folder(refuse: Refuse, tmp_path: Path) -> None:
    folder = tmp_path / "survey"

    def told(**changed: Any) -> str:
        options = dict(zip(*[iter(COLOURS)] * 2, strict=True)) | {f"--{name}": value for name, value in changed.items()}
        words = [word for option in options.items() if option[1] is not None for word in option]
        message = refuse("collection", folder, *words)
        assert not folder.exists()
        return message

    assert told(domain="red") == "the domain must have at least 2 values, got 1"
    assert told(domain=None) == "give the answers with either --domain or --domain-file"
    assert told(domain="red,red").startswith("a value of the domain must occur only once")
    assert told(epsilon=0) == "--epsilon must be between 2**-20 and 32, got 0.0"
    assert told(question="colour ").startswith("--question must be of 1 to 255 bytes of UTF-8")
    assert told(question="cafe\u0301").startswith("--question must be Unicode text in the normal form")
    assert told(period="x" * 64).startswith("--period must be of 1 to 63 bytes")
    assert told(period=None) == "Missing option '--period'."


def test_a_folder_with_something_in_it_is_left_alone(run: Run, refuse: Refuse, tmp_path: Path) -> None:
    (tmp_path / "survey").mkdir()
    run("collection", tmp_path / "survey", *COLOURS)
    before = sorted(tmp_path.rglob("*"))
    assert refuse("collection", tmp_path / "survey", *COLOURS).endswith("is not an empty folder: give another name")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(("period", "name"), [("2026/11", "2026-11"), ("..", "period"), ("été 2026", "été-2026")])
def test_a_period_is_the_name_of_a_file(run: Run, tmp_path: Path, period: str, name: str) -> None:
    options = dict(zip(*[iter(COLOURS)] * 2, strict=True)) | {"--period": period, "--domain": '"x ""y""",$label,é'}
    run("collection", tmp_path / "survey", *(word for option in options.items() for word in option))
    document = tmp_path / f"survey/specifications/{name}.json"
    protocol = local.protocol_from_json(document.read_text(encoding="utf-8"))
    assert (protocol.period, protocol.domain) == (period, ('x "y"', "$label", "é"))


def test_a_damaged_file_of_one_collection_is_not_hidden_by_the_others(run: Run, survey: Path) -> None:
    first, second = Path("specifications/2026-W48.json"), Path("specifications/2026-W49.json")
    run("specify", "--spec", first, "--period", "2026-W49", "-o", second)
    for name, spec in (("a", first), ("b", second)):
        Path("people.csv").write_text("colour\n" + "red\n" * 50)
        run("perturb", "people.csv", "--column", "colour", "--spec", spec, "-o", f"inbox/{name}.parquet")
    damaged = Path("inbox/a.parquet")
    content = bytearray(damaged.read_bytes())
    content[60] ^= 1
    damaged.write_bytes(content)
    found = run("estimate", "--json")
    assert found.code == 3
    assert list(found.json["failed"]) == ["inbox/a.parquet"]
    assert [one["n"] for one in found.json["collections"]] == [50]


def test_what_the_specification_alone_does_not_say_comes_from_the_other_side(run: Run, tmp_path: Path) -> None:
    bare, document, reports, state = (tmp_path / name for name in ("bare.json", "spec.json", "r.parquet", "state.json"))
    run("specify", "--protocol", "duchi", "--epsilon", 4, "--bounds", 0, 100, "-o", document)
    bare.write_text(local.Specification.from_json(document.read_text()).to_json())
    ages = tmp_path / "ages.csv"
    ages.write_text("age\n" + "80\n" * 2000)
    asked = ["perturb", ages, "--column", "age", "-o", reports, "--spec"]
    assert "the bounds of the mean must be known" in run(*asked, bare).err
    run(*asked, document)
    for specification in (bare, document):
        found = run("estimate", reports, "--spec", specification, "--json").json
        assert 70 < found["estimates"][0]["mean"] < 90
    run("estimate", reports, "--spec", bare, "--state", state)
    assert 70 < run("estimate", "--state", state, "--json").json["estimates"][0]["mean"] < 90
    inbox = tmp_path / "inbox.bin"
    protocol = local.Specification.from_json(document.read_text())
    inbox.write_bytes(
        b"".join(len(one).to_bytes(4, "little") + one for one in protocol.messages(protocol.perturb([80] * 2000)))
    )
    counted = ["estimate", inbox, "--messages", "length-prefixed", "--spec"]
    refused = run(*counted, bare)
    assert (refused.code, refused.out) == (2, "")
    assert "the bounds of the mean must be known" in refused.err
    assert 70 < run(*counted, document, "--json").json["estimates"][0]["mean"] < 90
