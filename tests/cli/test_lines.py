"""CSV files: what a row can change, however it is written."""

import csv
import gzip
import io
import itertools
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.shared import Refuse, Run

pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from dpnoise.cli import kinds, lines, tables
from dpnoise.cli.console import InputError

LINE = "its line does not close"
FILE = "is never closed"
MALFORMED = "is not a well-formed CSV file"
ENCODING = "must be UTF-8 text, got another encoding: if it is from Windows in Western Europe, convert it by `iconv "
LIMIT = 1 << 20


def column(path: Path, content: bytes, name: str = "a", **layout: Any) -> list[Any]:
    """Return the texts of a column of a file with this content."""
    path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)
    return values(path, name, kinds.TEXTS, **layout)


def values(path: Path, name: str, kind: kinds.Kind, labels: list[str] | None = None, **layout: Any) -> list[Any]:
    asked = [tables.Column(name, kind, labels)]
    read = tables.open_columns(
        path, asked, strict=True, empty_is_missing=False, layout=tables.Layout(**layout), batch_rows=1 << 18
    )
    return [value for [values], _ in read.batches for value in values.to_pylist()]


# A line between others, of the columns a and b: the rows that it is, as values of a, or why the file is refused.
LINES: list[tuple[str, bytes, list[str] | str]] = [
    ("a quote opens the first field", b'"x,y', LINE),
    ("a quote opens the last field", b'x,"y', LINE),
    ("a quote closes nothing", b'x,y"', ["x"]),
    ("a quote in the middle", b'x"y,z', ['x"y']),
    ("a quoted field", b'"x,y",z', ["x,y"]),
    ("a quote behind a blank", b'x, "y', ["x"]),
    ("text behind the closing quote", b'"x"y,z', ["xy"]),
    ("a quote behind the closing quote", b'"x"y",z', ['xy"']),
    ("two quotes for one", b'"x""y",z', ['x"y']),
    ("two quotes for one, and open", b'"x""y,z', LINE),
    ("two quotes for a field", b'"",z', [""]),
    ("three quotes for a field", b'""",z', LINE),
    ("one open quote behind a literal one", b'x",y","z', LINE),
    ("a carriage return", b"x,y\rz,w", ["x", "z"]),
    ("a carriage return within quotes", b'"x\ry",z', LINE),
    ("a carriage return and a line feed", b"x,y\r", ["x"]),
    ("a line feed within quotes", b'"x\ny",z', LINE),
    ("NUL", b"x\0,y", ["x\0"]),
    ("a byte order mark", b"\xef\xbb\xbfx,y", ["\ufeffx"]),
    ("a quote behind a byte order mark", b'\xef\xbb\xbf"x,y', ['\ufeff"x']),
    ("no UTF-8", b"\xff,y", ENCODING),
    ("a field too few", b"x", MALFORMED),
    ("a field too many", b"x,y,z", MALFORMED),
    ("an empty line", b"", []),
    ("a blank", b" ", MALFORMED),
    ("1 MiB with its end", b"x," + b"y" * (LIMIT - 4), ["x"]),
    ("more than 1 MiB", b"x," + b"y" * (LIMIT - 2), "a row of more than 1 MiB"),
]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b""], ids=["LF", "CRLF", "at the end"])
@pytest.mark.parametrize(("what", "line", "expected"), LINES, ids=[what for what, _, _ in LINES])
def test_what_a_line_changes(tmp_path: Path, what: str, line: bytes, expected: list[str] | str, ending: bytes) -> None:
    """Each line changes its own rows and no others, or the file is refused."""
    before, after = b'1,"b"\n' * 3, b"2,b\n" * 3 if ending else b""
    content = b"a,b\n" + before + line + ending + after
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected):
            column(tmp_path / "in.csv", content)
    else:
        assert column(tmp_path / "in.csv", content) == ["1"] * 3 + expected + ["2"] * (3 if ending else 0)


def of_lines(content: str, width: int, delimiter: str) -> list[str] | None:
    """Read the first fields of lines, each on its own, by Python's rules of CSV; None if one of them is no row."""
    found = []
    parts = re.split("\r\n|\r|\n", content)
    for line in parts[: None if parts[-1] else -1]:
        if line or width == 1:
            rows = list(csv.reader([line + "\n", "x\n"], delimiter=delimiter))
            if len(rows) < 2 or len(rows[0] or [""]) != width:
                return None
            found.append((rows[0] or [""])[0])
    return found


@pytest.mark.parametrize(
    ("width", "block", "longest", "delimiter"),
    [(1, LIMIT, 3, ","), (2, LIMIT, 4, ","), (1, 6, 3, ","), (2, 6, 3, ","), (2, 6, 3, ";"), (2, 6, 3, "\t")],
)
def test_every_small_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int, block: int, longest: int, delimiter: str
) -> None:
    """A line of any small file is read as it would be if there were no other, or the file is refused."""
    monkeypatch.setattr(lines, "_BLOCK", block)
    refused = 0
    for size in range(longest + 1):
        for parts in itertools.product(f'a{delimiter}"\n\r', repeat=size):
            body = "".join(parts)
            try:
                found = column(tmp_path / "in.csv", (f"a{delimiter}b"[: 2 * width - 1] + "\n" + body).encode())
            except InputError:
                found = None
                refused += 1
            assert found == of_lines(body, width, delimiter), body
    assert 5**longest // 5 < refused < 5**longest


def test_the_parser_alone_would_merge_lines() -> None:
    # Positive control: told that fields do not cross lines, it lets them.
    options = pa.csv.ParseOptions(newlines_in_values=False)
    rows = pa.csv.read_csv(io.BytesIO(b'a,b\n1,"x\n2,y\n3,z\n'), parse_options=options)
    assert rows.num_rows == 1


@pytest.mark.parametrize("quoted_lines", [False, True])
@pytest.mark.parametrize("start", [0, 1, LIMIT // 2, LIMIT - 1])
@pytest.mark.parametrize("ending", [b"\n", b"\r"])
def test_the_longest_row(tmp_path: Path, quoted_lines: bool, start: int, ending: bytes) -> None:
    """The limit is one of a row, wherever it begins."""

    def blocks(length: int) -> list[bytes]:
        content = b"a" * 7 + ending + b"b" * start + ending + b'"' + b"c" * (length - 2) + b'"' + ending + b"d\n"
        read = io.BytesIO(content).read
        found = list(lines.row_blocks(read, tmp_path, delimiter=",", quoted_lines=quoted_lines))
        assert b"".join(found) == content
        return found

    assert blocks(LIMIT - 1)[0] == b"a" * 7 + ending
    with pytest.raises(InputError, match="has a row of more than 1 MiB"):
        blocks(LIMIT)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_rows_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    """What a value is does not depend on where blocks end; a byte order mark is one only at the start of a file."""
    monkeypatch.setattr(lines, "_BLOCK", 64)
    values = [f'\ufeff{i}", "{i}\r' for i in range(500)]
    text = io.StringIO(newline="")
    csv.writer(text).writerows([("b", "a"), *((i, value) for i, value in enumerate(values))])
    content = "\ufeff" + text.getvalue()
    assert column(tmp_path / f"in{suffix}", content.encode(), quoted_lines=True) == values
    assert column(tmp_path / f"in{suffix}", b"\xef\xbb\xbf\n\r\n" + content[1:].encode(), quoted_lines=True) == values


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b'"a","b,"', None),
        (b'"a', LINE),
        (b'a,"b', LINE),
        (b"a,b", "has no column 'b,'"),
        (b"", "has no column 'b,'"),
        (b"\xff", ENCODING),
    ],
)
def test_a_line_of_names(tmp_path: Path, head: bytes, said: str | None) -> None:
    content = head + b"\n" + b"1,2\n" * 3
    if said is None:
        assert column(tmp_path / "in.csv", content, "b,") == ["2"] * 3
    else:
        with pytest.raises(InputError, match=said):
            column(tmp_path / "in.csv", content, "b,")


@pytest.mark.parametrize(
    ("name", "content", "given", "expected"),
    [
        ("in.csv", 'a;b\n"1;2";3,4\n', None, ["1;2"]),
        ("in.csv", "a\tb\n1\t2,5;6\n", None, ["1"]),
        ("in.csv", "a;b,c\n1;2\n", None, ["1"]),  # by commas there is no column a
        ("in.csv", "a,b;c\n1,2\n", None, ["1"]),
        ("in.csv", '"a";"b,a"\n1;2\n', None, ["1"]),
        ("in.csv", "a\n1;2\t3\n", None, ["1;2\t3"]),
        ("in.csv", "a|b\n1|2,3\n", None, "has no column 'a'"),
        ("in.csv", "a|b\n1|2,3\n", "|", ["1"]),
        ("in.csv", "a;b\n1;2\n", ",", "has no column 'a'"),
        ("in.tsv", "a,x\ta\n0\t1\n", None, ["1"]),
        ("in.tsv.gz", "b\ta\n0\t1\n", None, ["1"]),
        ("in.tsv", "a;b\n1;2\n", None, "has no column 'a'"),
        ("in.tsv", "a;b\n1;2\n", ";", ["1"]),
    ],
)
def test_what_separates_fields(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: str, given: str | None, expected: Any
) -> None:
    """The line of names tells, and the name of the column in it; never a row."""
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected):
            column(tmp_path / name, content.encode(), delimiter=given)
        return
    assert column(tmp_path / name, content.encode(), delimiter=given) == expected
    found = given is None and ".tsv" not in name and not content.startswith(("a,", "a\n"))
    separated = "tabs" if "a\t" in content else "semicolons"
    said = f"dpnoise: the fields of {str(tmp_path / name)!r} are separated by {separated}, as its names are\n"
    assert capsys.readouterr().err == (said if found else "")


def test_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    for kind, content, expected in (
        (kinds.NUMBERS, "a;b\n1,5;x\n -2;x\n1e3;x\n;x\n", [1.5, -2, 1000, None]),
        (kinds.INTEGERS, "a;b\n1,0;x\n2;x\n", [1, 2]),
        (kinds.TEXTS, "a;b\n1,5;x\n1.5;x\n", ["1,5", "1.5"]),
        (kinds.NUMBERS, 'a,b\n"1,5",x\n', [1.5]),
    ):
        path.write_text(content, encoding="utf-8")
        assert values(path, "a", kind, decimal=",") == expected
    needed = "is no number; which one is private; decimal commas need `--decimal ,`; words"
    other = "is private; words"
    for wrong, decimal, said in (("1,5", ".", needed), ("1.5", ",", other), ("1.000,5", ",", other)):
        path.write_text(f"a;b\n{wrong};x\n", encoding="utf-8")
        with pytest.raises(InputError, match=said):
            values(path, "a", kinds.NUMBERS, decimal=decimal)
    with pytest.raises(InputError, match=r"labels must be as in the file, where --decimal says .*, got '2\.25'"):
        values(path, "a", kinds.LABELS, ["1,5", "2.25"], decimal=",")


@pytest.mark.parametrize(("text", "read"), [(";", ";"), ("|", "|"), ("tab", "\t"), (r"\t", "\t"), ("\t", "\t")])
def test_an_option_for_the_delimiter(run: Run, refuse: Refuse, tmp_path: Path, text: str, read: str) -> None:
    path = tmp_path / "in.csv"
    path.write_text(f"a{read}b\n1{read}2\n", encoding="utf-8")
    asked = ("release", path, "--column", "a", *RELEASE, "--delimiter")
    assert run(*asked, text).json["answers"][0]["answer"] == 1
    for wrong in ("", ";;", '"', "\n", "\u00a7"):
        assert f"'--delimiter': {wrong!r} is not one ASCII character, such as ';', or tab." in refuse(*asked, wrong)


@pytest.mark.parametrize("ends", [b"\n", b""])
def test_stdin(run: Run, refuse: Refuse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: bytes) -> None:
    def given(content: bytes, act: Callable[..., Any], *words: object) -> Any:
        reader, writer = os.pipe()  # which has no end that could be sought, and no size
        os.write(writer, content)
        os.close(writer)
        with os.fdopen(reader) as file:
            monkeypatch.setattr(sys, "stdin", file)
            return act(*words)

    asked = ("release", "-", "--column", "a", *RELEASE)
    found = given(b"\xef\xbb\xbfb;a\n1;x\n2;" + ends, run, *asked)
    assert (found.json["answers"][0]["answer"], found.json["input"]) == (1, "-")
    assert found.err == "dpnoise: the fields of '-' are separated by semicolons, as its names are\n"
    several = ("--column", "a", "--domain", "0,1", "--column", "b", "--domain", "x,y", "--protocol", "grr")
    reports = ("--epsilon", 1, "-o", tmp_path / "reports.parquet", "--json")
    outcome = given(b"a,b\n" + b"1,x\n0,y\n" * 100 + ends, run, "perturb", "-", *several, *reports)
    assert outcome.json["rows"] == 200
    for content, said in (
        (b"", "'-' is empty"),
        (b"b,c\n", "'-' has no column 'a'"),
        (b"PAR1\x15", "'-' is a Parquet file: name it .parquet, which stdin cannot be"),
        (gzip.compress(b"a\n"), "'-' is compressed by gzip"),
        (b'a\n"x', "'-' has a quoted field that its line does not close"),
    ):
        assert said in given(content, refuse, *asked)
    monkeypatch.setattr(sys, "stdin", None)
    assert refuse(*asked) == "stdin is closed"


def test_words_for_missing_values(run: Run, refuse: Refuse, tmp_path: Path) -> None:
    path, reports = tmp_path / "in.csv", tmp_path / "reports.parquet"
    words = ["", "NA", "N/A", "NaN", "null", "NULL", "None", "-", "<NA>", "#N/A"]
    path.write_text("\n".join(["a,b", *(f"{word},x" for word in words), '"NA",x', "Oslo,x", ""]), encoding="utf-8")
    asked = ("release", path, "--column", "a", *RELEASE)
    for given, count in (((), 11), (("--na", "usual"), 2), (("--na", "NA, null"), 9), (("--na", ""), 11)):
        assert run(*asked, *given).json["answers"][0]["answer"] == count
    of_texts = ("perturb", path, "--column", "a", "--protocol", "oue", "--epsilon", 9, "-o", reports, "--na", "usual")
    assert "has a missing value; name one of the domain" in refuse(*of_texts, "--domain", "Oslo,NA")
    assert run(*of_texts, "--domain", "Oslo,NA", "--missing", "Oslo").code == 0  # the quoted NA is a text
    path.write_text("a,b\n1,x\nNA,x\n,x\n", encoding="utf-8")
    asked = ("release", path, "--column", "a", "--query", "sum", "--bounds", 0, 2, "--epsilon", 1e9, "--json")
    assert refuse(*asked) == (
        "column 'a' has a value that is no number; which one is private; words such as NA for missing values need --na"
    )
    assert run(*asked, "--na", "NA").json["answers"][0]["answer"] == pytest.approx(1, abs=1e-3)
    assert "--na must be texts separated by commas as in CSV, got '\"'" in refuse(*asked, "--na", '"')


def test_layouts_are_of_csv_alone(refuse: Refuse, tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    for option in (["--delimiter", ";"], ["--decimal", ","], ["--na", "NA"], ["--quoted-lines"]):
        message = refuse("release", path, "--column", "a", *RELEASE, *option)
        assert message == (
            f"{str(path)!r} is no CSV file: --delimiter, --decimal, --na and --quoted-lines are for those alone"
        )


PLAIN = "a,b\r\n1,Z\u00fcrich\r\n2,b\r\n"
WINDOWS = "iconv -f WINDOWS-1252 -t UTF-8 IN > OUT"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (PLAIN.encode("utf-8-sig"), None),
        (PLAIN.encode("utf-16"), "got UTF-16: convert it by `iconv -f UTF-16 -t UTF-8 IN > OUT`"),
        (PLAIN.encode("utf-16-le"), "got UTF-16LE: convert it by `iconv -f UTF-16LE -t UTF-8 IN > OUT`"),
        (PLAIN.encode("utf-16-be"), "got UTF-16BE: "),
        (b"\xfe\xff" + PLAIN.encode("utf-16-be"), "got UTF-16: "),
        (PLAIN.encode("utf-32"), "got UTF-32: "),
        (PLAIN.encode("latin-1"), WINDOWS),
        (PLAIN.replace("b", "\u00fc").encode("cp1252"), WINDOWS),
        (b"PK\x03\x04" + bytes(99), "is a spreadsheet or another archive: save it as CSV in UTF-8"),
        (gzip.compress(PLAIN.encode(), mtime=0), "is compressed by gzip: name it .csv.gz"),
        (b"PAR1\x15\x04", "is a Parquet file: name it .parquet"),
    ],
)
def test_what_is_no_utf8_is_named_with_the_remedy(tmp_path: Path, content: bytes, said: str | None) -> None:
    """By the first line and by the fact that a value is not: which one, and what it is, is not said."""
    if said is None:
        assert column(tmp_path / "in.csv", content, PLAIN[2]) == ["Z\u00fcrich", "b"]
        return
    with pytest.raises(InputError, match=re.escape(said)) as caught:
        column(tmp_path / "in.csv", content, PLAIN[2])
    assert "rich" not in str(caught.value)
    assert column(tmp_path / "a.csv", PLAIN.encode("latin-1")) == ["1", "2"], "other columns are not decoded"


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("Age,city", " (did you mean 'Age'?); its columns are 'Age', 'city'"),
        ("age_years,ages,city", " (did you mean 'ages' or 'age_years'?); its columns are 'age_years', 'ages', 'city'"),
        ("aGe", " (did you mean 'aGe'?); its columns are 'aGe'"),
        ("agen,city", None),
        ("name,city", None),
        ("Alice,Oslo", None),
        ("Alice", None),
        *((f"Agen,{x}", None) for x in ("31", "2020-01-31", "", "-", " 5", "a@b.c", "true", "NA", "Agen", "x" * 65)),
    ],
)
def test_names_are_shown_and_rows_are_not(tmp_path: Path, first: str, said: str | None) -> None:
    """The first line of a file without names is a person's row."""
    path = tmp_path / "in.csv"
    fields = 1 + first.count(",")
    shown_as = f"{fields} field{'s'[: fields - 1]}"
    row = f"; its first line, of {shown_as}, may be a row and is not shown: a CSV file starts with a line of names, "
    with pytest.raises(InputError, match=re.escape(f"{str(path)!r} has no column 'age'{said or row}")) as caught:
        column(path, f"{first}\n{'Rome,' * (fields - 1)}Oslo\n".encode(), "age")
    shown = str(caught.value).removeprefix(repr(str(path)))
    assert not any(word in shown for word in ("Rome", "Oslo", "Alice", "Agen"))


@pytest.mark.parametrize("content", [b"", b"\n\r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_file_without_names(tmp_path: Path, content: bytes, suffix: str) -> None:
    with pytest.raises(InputError, match="is empty: a CSV file starts with a line of column names"):
        column(tmp_path / f"in{suffix}", content)


def test_files_that_are_cut(tmp_path: Path) -> None:
    whole = b'a,b\n1,x\n2,"y"\n'
    assert column(tmp_path / "in.csv", whole[:-1]) == ["1", "2"]
    for quoted_lines, said in ((False, LINE), (True, FILE)):
        with pytest.raises(InputError, match=said):
            column(tmp_path / "in.csv", whole[:-2], quoted_lines=quoted_lines)
    path = tmp_path / "in.csv.gz"
    column(path, whole * 1000)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=MALFORMED):
        values(path, "a", kinds.TEXTS)


RELEASE = ("--query", "count", "--epsilon", 1e9, "--json")
PERTURB = ("--protocol", "cms", "--rows", 4, "--width", 16, "--epsilon", 1, "--json", "--force")


@pytest.mark.parametrize(("command", "options"), [("release", RELEASE), ("perturb", PERTURB)])
def test_fields_of_several_lines_are_asked_for(
    run: Run, refuse: Refuse, tmp_path: Path, command: str, options: tuple[object, ...]
) -> None:
    def count(document: Any) -> int:
        return document["rows"] if command == "perturb" else document["answers"][0]["answer"]

    path = tmp_path / "people.csv"
    asked = [command, path, "--column", "city", *options]
    if command == "perturb":
        asked += ["-o", tmp_path / "reports.parquet"]
    rows = [f"{20 + i % 50},town{i % 7}" for i in range(1000)]
    path.write_text("\n".join(["age,city", *rows]) + "\n", encoding="utf-8")
    assert count(run(*asked).json) == 1000
    rows[9] = '29,"town2'
    path.write_text("\n".join(["age,city", *rows]) + "\n", encoding="utf-8")
    assert refuse(*asked) == (
        f"{str(path)!r} has a quoted field that its line does not close; where is private. Let fields cross lines by "
        f"--quoted-lines, if they are meant to"
    )
    assert (
        refuse(*asked, "--quoted-lines") == f"{str(path)!r} has a quoted field that is never closed; where is private"
    )
    rows[9] = '29,"town\n2"'
    path.write_text("\n".join(["age,city", *rows]) + "\n", encoding="utf-8")
    assert LINE in refuse(*asked)
    assert count(run(*asked, "--quoted-lines").json) == 1000
