"""``dpnoise perturb``: every kind of input, and every refusal without a private word in it."""

import contextlib
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.shared import Refuse, Run

pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from dpnoise import local

DOMAIN = "red,green,,deep blue"
PLANTED = "xyzzy-7531"


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """Return where the reports go."""
    return tmp_path / "out" / "reports.parquet"


@pytest.fixture(autouse=True)
def _folder(reports: Path) -> None:
    reports.parent.mkdir()


def oue(source: Path, reports: Path, *more: object, domain: str = DOMAIN) -> list[object]:
    return ["perturb", source, "--column", "colour", "--protocol", "oue", "--epsilon", 2, "--domain", domain,
            "-o", reports, *more]  # fmt: skip


def write_csv(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def write_parquet(path: Path, column: pa.Array) -> Path:
    pq.write_table(pa.table({"id": pa.array(range(len(column))), "colour": column}), path)
    return path


def test_reports_file(run: Run, colours_csv: Path, values: list[str], reports: Path) -> None:
    outcome = run(*oue(colours_csv, reports))
    assert outcome.code == 0
    assert outcome.err == ""
    assert f"{len(values):,} reports in {reports}: oue over 4 values, epsilon " in outcome.out
    assert ", 1 byte per report, " in outcome.out
    table = pq.read_table(reports)
    assert table.schema.field("report").type == pa.binary(1)
    assert table.num_rows == len(values)
    assert json.loads(table.schema.metadata[b"dpnoise.domain"]) == ["red", "green", "", "deep blue"]
    assert isinstance(json.loads(table.schema.metadata[b"dpnoise.protocol"]), dict)
    assert [path.name for path in reports.parent.iterdir()] == [reports.name]


def test_json(run: Run, colours_csv: Path, values: list[str], reports: Path) -> None:
    record = run(*oue(colours_csv, reports, "--json", "--threads", 2)).json
    assert record["command"] == "perturb"
    assert record["rows"] == len(values)
    assert record["domain"] == ["red", "green", "", "deep blue"]
    assert record["protocol"] == "oue"
    assert 1.99 < record["epsilon"] <= 2.0
    assert record["report_bytes"] == 1
    assert {"input", "column", "output", "spec_id", "p", "q", "seconds"} <= set(record)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["7", "-1", "7"]),
        pa.array(["7", "-1", "7"], pa.large_string()),
        pa.array(["7", "-1", "7"]).dictionary_encode(),
        pa.array([7, -1, 7], pa.int8()),
        pa.array([7, -1, 7]).dictionary_encode(),
    ],
    ids=lambda column: str(column.type),
)
def test_column_types(run: Run, tmp_path: Path, reports: Path, column: pa.Array) -> None:
    source = write_parquet(tmp_path / "in.parquet", column)
    assert run(*oue(source, reports, "--json", domain="-1,7,8")).json["rows"] == 3


def test_boolean_column(run: Run, tmp_path: Path, reports: Path) -> None:
    source = write_parquet(tmp_path / "in.parquet", pa.array([True, False]))
    record = run("perturb", source, "--column", "colour", "--protocol", "rr", "--epsilon", 1, "--domain", "false,true",
                 "-o", reports, "--json").json  # fmt: skip
    assert record["rows"] == 2


def test_generalized_randomized_response(run: Run, colours_csv: Path, values: list[str], reports: Path) -> None:
    arguments = oue(colours_csv, reports, "--json")
    arguments[arguments.index("oue")] = "grr"
    record = run(*arguments).json
    assert (record["rows"], record["report_bytes"], record["protocol"]) == (len(values), 1, "grr")
    estimates = run("estimate", reports, "--json").json["estimates"]
    for row in estimates:
        assert abs(row["count"] - values.count(row["value"])) < 7 * row["standard_error"]


def test_gzipped_csv_and_domain_file(run: Run, tmp_path: Path, reports: Path) -> None:
    source = tmp_path / "in.csv.gz"
    source.write_bytes(gzip.compress(b'colour,id\n"a, b",1\n,2\n'))
    domain = tmp_path / "domain.txt"
    domain.write_text("a, b\n\nc\n", encoding="utf-8")
    record = run("perturb", source, "--column", "colour", "--protocol", "ue", "--p", 0.75, "--q", 0.25,
                 "--domain-file", domain, "-o", reports, "--json").json  # fmt: skip
    assert record["rows"] == 2
    assert record["domain"] == ["a, b", "", "c"]
    assert record["epsilon"] == pytest.approx(2.197, abs=1e-3)


def test_empty_lines_of_a_single_column_are_rows(run: Run, tmp_path: Path, reports: Path) -> None:
    source = write_csv(tmp_path / "in.csv", "colour\nred\n\n\ngreen\n")
    assert run(*oue(source, reports, "--json")).json["rows"] == 4


@pytest.mark.parametrize("name", ["in.csv", "in.parquet"])
def test_no_rows_are_legal(run: Run, tmp_path: Path, reports: Path, name: str) -> None:
    source = tmp_path / name
    if name == "in.csv":
        write_csv(source, "id,colour\n")
    else:
        write_parquet(source, pa.array([], pa.string()))
    assert run(*oue(source, reports, "--json")).json["rows"] == 0
    assert pq.read_table(reports).num_rows == 0


def test_missing_values_can_be_mapped(run: Run, tmp_path: Path, reports: Path) -> None:
    domain = "red,unknown"
    parquet = write_parquet(tmp_path / "in.parquet", pa.array(["red", None]))
    nothing = write_parquet(tmp_path / "nothing.parquet", pa.array([None, None]))
    text = write_csv(tmp_path / "in.csv", "id,colour\n1,red\n2,\n")
    for source in (parquet, nothing, text):
        assert run(*oue(source, reports, "--missing", "unknown", "--json", "--force", domain=domain)).json["rows"] == 2
    quoted = write_csv(tmp_path / "quoted.csv", 'id,colour\n1,red\n2,""\n')
    assert run(*oue(quoted, reports, "--missing", "unknown", domain=domain)).code == 2


def test_batches_are_joined_in_order(
    run: Run, colours_csv: Path, values: list[str], reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def spy(protocol: Any, values: Any, threads: int | None) -> Any:
        sizes.append(len(values))
        return original(protocol, values, threads=threads)

    original = local.OptimizedUnaryEncoding.perturb
    monkeypatch.setattr(local.OptimizedUnaryEncoding, "perturb", spy)
    monkeypatch.setattr("dpnoise.cli.tables.batch_rows", lambda _bytes: 1_000)
    assert run(*oue(colours_csv, reports)).code == 0
    assert max(sizes) <= 1_000
    assert sum(sizes) == len(values)
    assert pq.ParquetFile(reports).metadata.num_row_groups == len(sizes)


def test_refuses_to_guess_the_domain(refuse: Refuse, colours_csv: Path, reports: Path, tmp_path: Path) -> None:
    arguments = ["perturb", colours_csv, "--column", "colour", "--protocol", "oue", "--epsilon", 1, "-o", reports]
    message = refuse(*arguments)
    assert "--domain or --domain-file" in message
    assert "would reveal which values occur" in message
    domain = write_csv(tmp_path / "domain.txt", "a\nb\n")
    assert "either --domain or --domain-file" in refuse(*arguments, "--domain", "a,b", "--domain-file", domain)
    arguments[arguments.index("oue")] = "rr"
    assert "would reveal which values occur" in refuse(*arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"--protocol": "carrier-pigeon"},
            "'carrier-pigeon' is not one of 'rr', 'sue', 'oue', 'ue', 'grr', 'lh', ",
        ),
        ({"--column": "Colour"}, "has no column 'Colour' (did you mean 'colour'?); its columns are 'id', 'colour', "),
        ({"--epsilon": "0"}, "epsilon must be"),
        ({"--epsilon": "-1"}, "epsilon must be"),
        ({"--epsilon": "nan"}, "epsilon must be"),
        ({"--epsilon": "inf"}, "epsilon must be"),
        ({"--epsilon": None}, "--protocol oue takes --domain and --epsilon"),
        ({"--p": "0.5"}, "--protocol oue takes --domain and --epsilon, and no --p"),
        ({"--protocol": "ue"}, "--protocol ue takes --domain, --p and --q, and no --epsilon"),
        (
            {"--protocol": "ss", "--g": "3"},
            "--protocol ss takes --domain and --epsilon and may take --omega, and no --g",
        ),
        (
            {"--protocol": "ue", "--epsilon": None, "--p": "0.2", "--q": "0.4"},
            "--p must be greater than --q = 0.4",
        ),
        ({"--protocol": "grr", "--epsilon": "0"}, "--epsilon must be"),
        ({"--protocol": "rr"}, "the domain must have 2 values, for no and yes, got 4"),
        ({"--protocol": "lh", "--g": "1"}, "--g must be an integer from 2 to 65536, got 1"),
        ({"--protocol": "lh", "--g": "2.5"}, "'2.5' is not a whole number"),
        ({"--protocol": "pm"}, "--protocol pm takes --epsilon, and no --domain"),
        ({"--k": "4"}, "--protocol oue takes --domain and --epsilon, and no --k"),
        ({"--protocol": None}, "give the protocol with either --protocol or --spec"),
        (
            {"--protocol": "loloha", "--epsilon": None, "--epsilon-permanent": "1", "--epsilon-first": "2"},
            "--epsilon-first must be at least 2**-20 and below --epsilon-permanent = 1.0, got 2.0",
        ),
        ({"--domain": "red"}, "the domain must have at least 2 values, got 1"),
        ({"--domain": ""}, "the domain must have at least 2 values, got 0"),
        ({"--domain": "red,green,red"}, "a value of the domain must occur only once, got more of 'red'"),
        (
            {"--missing": "grey"},
            "--missing must be a value of the domain ('red', 'green', '', 'deep blue'), got 'grey'",
        ),
        ({"--output": "reports.csv"}, "the output must end in .parquet, got 'reports.csv'"),
        ({"--output": "no/such/folder/reports.parquet"}, "the directory 'no/such/folder' does not exist"),
        ({"--domain": None, "--domain-file": "no-such-file.txt"}, "no-such-file.txt: No such file or directory"),
    ],
)
def test_bad_options(
    refuse: Refuse, colours_csv: Path, reports: Path, change: dict[str, str | None], message: str
) -> None:
    options: dict[str, object | None] = {
        "--column": "colour", "--protocol": "oue", "--epsilon": 1, "--domain": DOMAIN, "--output": reports, **change,
    }  # fmt: skip
    given = [word for option, value in options.items() if value is not None for word in (option, value)]
    assert message in refuse("perturb", colours_csv, *given)
    assert list(reports.parent.iterdir()) == []


def test_bad_files(refuse: Refuse, tmp_path: Path, reports: Path) -> None:
    missing = tmp_path / "missing.csv"
    assert refuse(*oue(missing, reports)) == f"{missing}: No such file or directory"
    assert "must end in .parquet or .csv or .csv.gz" in refuse(*oue(tmp_path / "in.xlsx", reports))
    folder = tmp_path / "folder.parquet"
    folder.mkdir()
    assert refuse(*oue(folder, reports)) == f"{folder}: Is a directory"
    text = write_csv(tmp_path / "text.parquet", f"colour\n{PLANTED}\n")
    assert refuse(*oue(text, reports)) == f"{str(text)!r} is not a Parquet file"
    empty = write_csv(tmp_path / "empty.csv", "")
    assert "is empty: a CSV file starts with a line of column names" in refuse(*oue(empty, reports))
    twice = write_csv(tmp_path / "twice.csv", "colour,colour\nred,red\n")
    assert "has more than one column 'colour'" in refuse(*oue(twice, reports))
    raw = write_parquet(tmp_path / "raw.parquet", pa.array([b"red"]))
    assert "column 'colour' has the type binary; it must be text, number" in refuse(*oue(raw, reports))
    domain = tmp_path / "domain.bin"
    domain.write_bytes(b"\xff\xfer\0e\0d\0")
    arguments = ["perturb", empty, "--column", "c", "--protocol", "oue", "--epsilon", 1, "-o", reports]
    assert f"{str(domain)!r} must be UTF-8 text, got UTF-16: " in refuse(*arguments, "--domain-file", domain)
    whole = write_parquet(tmp_path / "whole.parquet", pa.array(["red"] * 1000))
    damaged = tmp_path / "damaged.parquet"
    data = bytearray(whole.read_bytes())
    chunk = pq.read_metadata(whole).row_group(0).column(1)
    data[chunk.dictionary_page_offset : chunk.data_page_offset] = b"\xff" * (
        chunk.data_page_offset - chunk.dictionary_page_offset
    )
    damaged.write_bytes(data)
    assert "is not a well-formed Parquet file" in refuse(*oue(damaged, reports))
    assert list(reports.parent.iterdir()) == []


def test_output_may_not_replace_the_input(refuse: Refuse, tmp_path: Path) -> None:
    source = write_parquet(tmp_path / "in.parquet", pa.array(["red"]))
    before = source.read_bytes()
    assert "is also an input, or another output, and would be overwritten" in refuse(*oue(source, source))
    assert source.read_bytes() == before


def test_reports_are_not_replaced_unless_that_is_asked_for(
    run: Run, refuse: Refuse, colours_csv: Path, reports: Path
) -> None:
    reports.touch()  # as mktemp makes it: nothing is lost
    assert run(*oue(colours_csv, reports)).code == 0
    before = reports.read_bytes()
    assert refuse(*oue(colours_csv, reports)) == (
        f"'{reports}' is there already: its reports have cost everybody in it epsilon, and new ones would cost it "
        f"again; give another name, or --force to replace it"
    )
    assert reports.read_bytes() == before
    assert run(*oue(colours_csv, reports, "--force")).code == 0
    assert reports.read_bytes() != before
    assert list(reports.parent.iterdir()) == [reports]


LEAKS = {
    "outside.csv": f"id,colour\n1,red\n2,{PLANTED}\n",
    "ragged.csv": f"id,colour\n1,red\n2,{PLANTED},3\n",
    "late.csv": "id,colour\n" + "1,red\n" * 5_000 + f"2,{PLANTED}\n",
    "quote.csv": f'id,colour\n1,red\n2,"{PLANTED}\n',
    "encoding.csv": f"id,colour\n1,red\n2,{PLANTED}\udcff\n",
}


@pytest.mark.parametrize("name", LEAKS)
@pytest.mark.parametrize("old", [None, b"an older file of reports"])
def test_no_message_shows_a_private_value_and_nothing_is_left(
    run: Run, tmp_path: Path, reports: Path, monkeypatch: pytest.MonkeyPatch, name: str, old: bytes | None
) -> None:
    monkeypatch.setattr(
        "dpnoise.cli.tables.batch_rows", lambda _bytes: 100
    )  # so that batches are written before the error
    source = tmp_path / name
    source.write_text(LEAKS[name], encoding="utf-8", errors="surrogateescape")
    if old is not None:
        reports.write_bytes(old)
    for more in (["--force"], ["--force", "--json"]):
        outcome = run(*oue(source, reports, *more))
        assert outcome.code == 2
        assert PLANTED not in outcome.out + outcome.err
        assert not any(position in outcome.err for position in ("row", "#", "5001", "5002"))
        assert outcome.err.count("\n") == 1
    assert list(reports.parent.iterdir()) == ([] if old is None else [reports])
    assert old is None or reports.read_bytes() == old


def test_the_leak_test_can_fail(tmp_path: Path) -> None:
    # Positive control: Arrow's own message does quote the row, so passing it on would have been caught.
    source = write_csv(tmp_path / "ragged.csv", LEAKS["ragged.csv"])
    with pytest.raises(pa.ArrowInvalid, match=PLANTED):
        pa.csv.open_csv(source).read_all()


@pytest.mark.parametrize(
    "column", [pa.array(["red", PLANTED]), pa.array(["red", PLANTED]).dictionary_encode(), pa.array([3, 7531])]
)
def test_value_outside_the_domain(refuse: Refuse, tmp_path: Path, reports: Path, column: pa.Array) -> None:
    source = write_parquet(tmp_path / "in.parquet", column)
    message = refuse(*oue(source, reports, domain="red,3"))
    assert message == (
        "the values of column 'colour' must all be in the domain ('red', '3'); which value is not, and where, is "
        "private and not shown; for empty fields of CSV --missing names a value"
    )
    assert list(reports.parent.iterdir()) == []


def test_missing_value(refuse: Refuse, tmp_path: Path, reports: Path) -> None:
    source = write_parquet(tmp_path / "in.parquet", pa.array(["red", None]).dictionary_encode())
    message = refuse(*oue(source, reports, domain="red,3"))
    assert message == (
        "column 'colour' has a missing value; name one of the domain ('red', '3') to stand for it with --missing"
    )


def test_a_long_domain_is_not_spelled_out(refuse: Refuse, tmp_path: Path, reports: Path) -> None:
    source = write_csv(tmp_path / "in.csv", f"id,colour\n1,{PLANTED}\n")
    message = refuse(*oue(source, reports, domain=",".join(f"v{i}" for i in range(500))))
    assert "'v19', ... (500 in all)" in message


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_progress_has_an_end(
    run: Run, tmp_path: Path, reports: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    source = tmp_path / f"in{suffix}"
    rows = ["red", "green"] * 2_000
    if suffix == ".parquet":
        write_parquet(source, pa.array(rows))
    else:
        content = ("colour\n" + "\n".join(rows) + "\n").encode()
        source.write_bytes(gzip.compress(content, 1) if suffix == ".csv.gz" else content)
    amounts: list[float] = []
    ends: list[tuple[float | None, str]] = []

    @contextlib.contextmanager
    def recorded(_: str, total: float | None, unit: str) -> Iterator[Callable[[float], None]]:
        ends.append((total, unit))
        yield amounts.append

    monkeypatch.setattr("dpnoise.cli.perturb.progress", recorded)
    monkeypatch.setattr("dpnoise.cli.lines._BLOCK", 1_000)
    assert run(*oue(source, reports)).code == 0
    assert ends == [(4_000, "rows")] if suffix == ".parquet" else [(source.stat().st_size, "bytes")]
    assert sum(amounts) == ends[0][0]
    assert suffix != ".csv" or max(amounts) <= 1_000  # although Arrow has read the whole file before its first batch


def test_interruption_leaves_nothing(
    run: Run, colours_csv: Path, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(local.OptimizedUnaryEncoding, "perturb", interrupt)
    outcome = run(*oue(colours_csv, reports))
    assert (outcome.code, outcome.out, outcome.err) == (
        130,
        "",
        "dpnoise: stopped by SIGINT; no incomplete file is left\n",
    )
    assert list(reports.parent.iterdir()) == []
