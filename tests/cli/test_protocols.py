"""All local protocols on the command line: from values to reports to estimates, and what is refused."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.shared import Refuse, Run

pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from dpnoise import local
from dpnoise.cli.perturb import perturb
from dpnoise.cli.protocols import MEANS, PROTOCOLS
from dpnoise.cli.reports import report_writer

PAGE = Path(__file__).parents[2] / "docs/reference/cli.md"
N = 4_000
WORDS = [["apple"], ["apple"], ["pear"], ["fig"]] * (N // 4)
SIZES = {"rows": 64, "width": 256, "bits": 2, "k": 4, "num_bloombits": 64, "num_cohorts": 32}
"""Where those of the examples are too small for these people."""


def options(family: local.Family) -> list[Any]:
    """Return the parameters of a protocol as options."""
    given = {one.name: SIZES.get(one.name, one.example) for one in family.parameters if one.required}
    return [word for name, value in given.items() for word in ("--" + name.replace("_", "-"), value)]


def column(family: local.Family) -> list[Any]:
    """Return the options that say what is randomised, with the domain if there is one."""
    protocol = family.protocol
    if protocol is local.RandomizedResponse:
        return ["--column", "flag", "--domain", "false,true", *options(family)]
    if issubclass(protocol, local.FrequencyProtocol):
        return ["--column", "word", "--domain", "apple,pear,fig", *options(family)[2:]]  # instead of k
    numbers = issubclass(protocol, local.MeanProtocol | local.SquareWave)
    texts = issubclass(protocol, local.CountMeanSketch | local.HadamardCountMeanSketch)
    return ["--column", "number" if numbers else "word" if texts else "age", *options(family)]


FAMILIES = local.FAMILIES.values()
HOW = {family.abbreviation: column(family) for family in FAMILIES if not family.keeps_memo}
KEEPING = {family.abbreviation: options(family) for family in FAMILIES if family.keeps_memo}


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Return a file with a column for every kind of protocol."""
    path = tmp_path / "people.parquet"
    columns = {
        "word": pa.array(np.ravel(WORDS)),
        "flag": pa.array([True, False, False, False] * (N // 4)),
        "age": pa.array([0, 0, 2, 3] * (N // 4)),
        "number": pa.array([0.0, 0.0, 0.5, 0.75] * (N // 4)),
    }
    pq.write_table(pa.table(columns), path)
    return path


def test_the_help_says_what_a_column_must_hold_for_each(run: Run) -> None:
    words = re.findall(r"[\w-]+", run("perturb", "-h").out)
    assert [family.abbreviation for family in FAMILIES if family.abbreviation not in words] == []
    columns = re.findall(r"\w+", str(perturb.__doc__).partition("all others")[0])
    assert [name for name in HOW if "--domain" not in HOW[name] and name not in columns] == []
    specified = re.findall(r"[\w-]+", run("specify", "-h").out)
    assert [name for name in KEEPING if name not in specified] == []
    assert "--epsilon-permanent" not in words  # of protocols that perturb refuses
    assert "--epsilon-permanent" in specified


def test_the_page_says_what_a_column_must_hold_for_each() -> None:
    names = re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8").partition("## Protocols")[2].partition("```")[0])
    assert [name for name in (*HOW, *KEEPING) if "--domain" not in HOW.get(name, []) and name not in names] == []


@pytest.mark.parametrize(
    ("name", "suffix"),
    [*((name, ".parquet") for name in HOW), *((name, ".csv") for name in ("rr", "hierarchical", "pm", "cms"))],
)
def test_from_values_to_estimates(run: Run, people: Path, tmp_path: Path, name: str, suffix: str) -> None:
    if suffix == ".csv":
        pa.csv.write_csv(pq.read_table(people), people.with_suffix(".csv"))
    reports = tmp_path / "reports.parquet"
    record = run("perturb", people.with_suffix(suffix), "--protocol", name, *HOW[name], "-o", reports, "--json").json
    assert (record["rows"], record["protocol"]) == (N, name)
    more = ["--candidates", "apple,pear,fig"] if name in ("cms", "hcms") else []
    record = run("estimate", reports, *more, "--json").json
    assert (record["n"], record["protocol"]) == (N, name)
    rows = record["estimates"]
    if name == "sw":
        assert [row["lower"] for row in rows] == [0.0, 0.25, 0.5, 0.75]
        assert sum(row["probability"] for row in rows) == pytest.approx(1)
        assert rows[0]["probability"] > rows[1]["probability"]
    elif name in ("duchi", "pm", "hm", "laplace", "gaussian"):
        [row] = rows
        assert abs(row["mean"] - 0.3125) < 8 * row["standard_error"]
    else:
        truth = {
            "apple": 2_000,
            "pear": 1_000,
            "fig": 1_000,
            "false": 3_000,
            "true": 1_000,
            0: 2_000,
            2: 1_000,
            3: 1_000,
        }
        for row in rows:
            assert abs(row["count"] - truth.get(row["value"], 0)) < 8 * row.get("standard_error", 84)
        assert len(rows) >= 2


@pytest.mark.parametrize("name", KEEPING)
def test_protocols_whose_clients_keep_something(
    run: Run, refuse: Refuse, people: Path, tmp_path: Path, name: str
) -> None:
    reports = tmp_path / "reports.parquet"
    kind = PROTOCOLS[name].__name__
    message = (
        f"{name} needs a secret that each person keeps from one report to the next, and a file of rows does not say "
        f"whose row is whose: use {kind} and ClientMemo from Python"
    )
    arguments = ["--column", "age", "--protocol", name, *KEEPING[name], "-o", reports]
    assert refuse("perturb", people, *arguments) == message
    # Reports that were made elsewhere are counted as any others.
    parameters = {
        str(option)[2:].replace("-", "_"): value for option, value in zip(*[iter(KEEPING[name])] * 2, strict=True)
    }
    protocol: Any = PROTOCOLS[name](**parameters)
    words = name == "rappor"
    if words:
        pytest.importorskip("scipy", reason="the extra `decode` is not installed")
    values = np.ravel(WORDS).tolist() if words else np.arange(N) % 4
    made = protocol.perturb(values, local.ClientMemo.generate(N), question="fruit")
    with reports.open("wb") as file, report_writer(file, protocol) as write:
        write(made)
    record = run("estimate", reports, *(["--candidates", "apple,pear,fig,plum"] if words else []), "--json").json
    assert (record["n"], record["protocol"]) == (N, name)
    truth = {"apple": 2_000, "pear": 1_000, "fig": 1_000} | dict.fromkeys(range(4), 1_000)
    for row in record["estimates"]:
        assert abs(row["count"] - truth.get(row["value"], 0)) < 8 * row["standard_error"]


@pytest.fixture
def collected(run: Run, people: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that gives a file of reports of a protocol."""

    def make(name: str) -> Path:
        path = tmp_path / f"{name}.parquet"
        assert run("perturb", people, "--protocol", name, *HOW[name], "-o", path).code == 0
        return path

    return make


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("cms", [], "reports of CountMeanSketch are about texts: say which to look for with --candidates or --candid"),
        ("oue", ["--candidates", "apple"], "--candidates does not apply to reports of OptimizedUnaryEncoding"),
        ("pm", ["--post", "norm"], "--post does not apply to reports of PiecewiseMean"),
        ("sw", ["--level", "0.9"], "--level does not apply to reports of SquareWave"),
        ("oue", ["--no-smoothing"], "--no-smoothing does not apply to reports of OptimizedUnaryEncoding"),
        ("oue", ["--ranges", "0:1"], "--ranges applies to reports of HierarchicalRange alone"),
        ("hierarchical", ["--ranges", "1:4"], "last must be an integer from 1 to 3, got 4"),
        ("hierarchical", ["--ranges", "1-4"], "'1-4' is not a list of ranges, such as 0:17,18:64."),
        (
            "oue",
            ["--post", "magic"],
            "'magic' is not one of 'base-cut', 'norm', 'norm-mul', 'norm-sub', 'norm-cut', 's",
        ),
    ],
)
def test_options_of_other_protocols(refuse: Refuse, collected: Any, name: str, more: list[str], message: str) -> None:
    assert message in refuse("estimate", collected(name), *more)


def test_ranges(run: Run, collected: Any, tmp_path: Path) -> None:
    out = tmp_path / "ranges.csv"
    arguments = ["estimate", collected("hierarchical"), "--ranges", "0:1,2:3", "-o", out]
    rows = run(*arguments, "--json").json["estimates"]
    assert [row["range"] for row in rows] == ["0:1", "2:3"]
    for row in rows:
        assert abs(row["count"] - 2_000) < 8 * row["standard_error"]
    assert run(*arguments).code == 0  # it replaces the estimate


@pytest.mark.parametrize("name", MEANS)
def test_a_mean_within_bounds(run: Run, people: Path, tmp_path: Path, name: str) -> None:
    reports, state = tmp_path / "reports.parquet", tmp_path / "state.json"
    family = next(one for one in FAMILIES if one.abbreviation == name)
    given = [*options(family)[:-1], 8] if options(family)[-2] == "--epsilon" else options(family)
    asked = ["perturb", people, "--column", "age", "--protocol", name, *given, "--bounds", -1, 2.5, "-o", reports]
    record = run(*asked, "--json").json
    assert (record["bounds"], record["domain"]) == ([-1.0, 2.5], None)
    first = run("estimate", reports, "--state", state, "--json").json["estimates"]
    [row] = run("estimate", "--state", state, "--json").json["estimates"]
    assert first == [row]
    truth = (0 + 0 + 2 + 2.5) / 4  # 3 is clamped
    assert abs(row["mean"] - truth) < 8 * row["standard_error"] < 0.7
    assert row["lower"] < row["mean"] < row["upper"]
    # The interval is in the unit of the column, too.
    assert (row["upper"] - row["lower"]) / 2 == pytest.approx(1.959964 * row["standard_error"])


def test_reports_within_other_bounds_are_not_counted_together(
    run: Run, refuse: Refuse, people: Path, tmp_path: Path
) -> None:
    asked = ["perturb", people, "--column", "age", "--protocol", "hm", "--epsilon", 1]
    first, second = tmp_path / "1.parquet", tmp_path / "2.parquet"
    for path, upper in ((first, 3), (second, 4)):
        assert run(*asked, "--bounds", 0, upper, "-o", path).code == 0
    assert "which differ in their specification" in refuse("estimate", first, second)
    message = "bounds must be two finite numbers, the lower one first, got (3.0, 0.0)"
    assert refuse(*asked, "--bounds", 3, 0, "-o", tmp_path / "3.parquet") == message
    message = "Invalid value for '--bounds': it takes two numbers, got '0', '-o'."
    assert refuse(*asked, "--bounds", 0, "-o", "x.parquet") == message
    table, message = pq.read_table(first), "cannot be used: the metadata 'dpnoise.domain' cannot be used: "
    for damage in (b"[", b"[1]", b"[1, 0]", b'["a", "b"]', b"[0.0, 4.0]", b"{}"):
        pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"dpnoise.domain": damage}), first)
        assert refuse("estimate", first).startswith(f"'{first}' {message}")


def test_labels_in_a_file_of_reports_that_are_not_about_values(refuse: Refuse, collected: Any) -> None:
    path = collected("pm")
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"dpnoise.domain": b'["a","b"]'}), path)
    assert "the metadata 'dpnoise.domain' cannot be used: bounds must be two numbers" in refuse("estimate", path)


def test_post_processing(run: Run, collected: Any) -> None:
    record = run("estimate", collected("oue"), "--post", "simplex", "--json").json
    assert record["post"] == "simplex"
    assert sum(row["count"] for row in record["estimates"]) == pytest.approx(N)


def test_values_without_labels(run: Run, refuse: Refuse, people: Path, tmp_path: Path) -> None:
    reports = tmp_path / "reports.parquet"
    asked = ["perturb", people, "--protocol", "oue", "--epsilon", 2, "-o", reports]
    assert (
        refuse(*asked, "--k", 3, "--column", "age")
        == "the values of column 'age' must be integers in [0, k) with k = 3"
    )
    assert run(*asked, "--k", 4, "--column", "age").code == 0
    assert [row["value"] for row in run("estimate", reports, "--json").json["estimates"]] == [0, 1, 2, 3]


@pytest.mark.parametrize("column", [["0.5", "xyzzy-7531"], ["0.5", None], ["0.5", "7.5"]])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_no_message_shows_a_number(run: Run, tmp_path: Path, column: list[Any], suffix: str) -> None:
    path, out = tmp_path / f"people{suffix}", tmp_path / "out.parquet"
    if suffix == ".csv":
        path.write_text("number,id\n" + "".join(f"{value or ''},1\n" for value in column), encoding="utf-8")
    else:
        pq.write_table(
            pa.table({"number": [None if value is None else float(value.strip("xyz-")) for value in column]}), path
        )
    outcome = run("perturb", path, "--protocol", "pm", "--epsilon", 1, "--column", "number", "-o", out)
    assert (outcome.code, outcome.out) == (2, "")
    assert not any(value in outcome.err for value in ("7531", "xyzzy", "7.5"))
    assert not out.exists()
    if column[1] is None:
        assert "column 'number' has a missing value; name a value to stand for it with --missing" in outcome.err
        arguments = ["perturb", path, "--protocol", "pm", "--epsilon", 1, "--column", "number", "-o", out]
        assert run(*arguments, "--missing", "0").code == 0
        assert "a value that is no number" in run(*arguments, "--missing", "none", "--force").err


# --- Specifications ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rr", "oue", "cms", "sw", "loloha", "rappor"])
def test_a_specification_is_the_canonical_bytes(run: Run, tmp_path: Path, name: str) -> None:
    given = KEEPING.get(name) or HOW[name]
    options = dict(zip(*[iter(given)] * 2, strict=True))
    if options.pop("--domain", None) and name != "rr":
        options["--k"] = 3
    options.pop("--column", None)
    path = tmp_path / "spec.json"
    words = [word for option in options.items() for word in option]
    record = run("specify", "--protocol", name, *words, "-o", path, "--json").json
    protocol = local.protocol_from_json(path.read_text(encoding="ascii"))
    assert type(protocol) is PROTOCOLS[name]
    assert path.read_bytes() == protocol.to_json().encode()
    assert (record["spec_id"], record["report_bytes"]) == (protocol.spec_id, protocol.report_bytes)


def test_an_announced_specification_is_not_replaced(run: Run, refuse: Refuse, tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    arguments = ["specify", "--protocol", "duchi", "-o", path, "--epsilon"]
    for _ in range(2):  # the same again is no change
        assert ": DuchiMean(epsilon=1.0), epsilon 0.999484 (achieved), 1 byte per report, id " in run(*arguments, 1).out
    before = path.read_bytes()
    assert refuse(*arguments, 2) == f"'{path}' is there already and is something else: give another name"
    assert path.read_bytes() == before
    assert (
        refuse("specify", "--protocol", "oue", "--epsilon", 1, "-o", path) == "--protocol oue takes --epsilon and --k"
    )
    assert refuse("specify", "--epsilon", 1, "-o", path) == "give the protocol with either --protocol or --spec"


def test_a_delta_is_named(run: Run, refuse: Refuse, people: Path, tmp_path: Path) -> None:
    spec, reports = tmp_path / "spec.json", tmp_path / "reports.parquet"
    gaussian = ["--protocol", "gaussian", "--epsilon", 1]
    assert "epsilon 1, delta 1e-06 (achieved)" in run("specify", *gaussian, "--delta", 1e-6, "-o", spec).out
    arguments = ["perturb", people, "--column", "number", "-o", reports]
    assert "epsilon 1, delta 1e-06 (achieved)" in run(*arguments, "--spec", spec).out
    assert run("estimate", reports).out.endswith("epsilon 1, delta 1e-06\n")
    assert run("estimate", reports, "--json").json["delta"] == 1e-6
    assert refuse(*arguments, *gaussian) == "--protocol gaussian takes --delta and --epsilon"
    message = refuse("specify", *gaussian, "--delta", 1, "-o", tmp_path / "other.json")
    assert message == "--delta must be at least 2**-64 and below 1, got 1.0"
    message = refuse("specify", "--protocol", "laplace", "--epsilon", 1, "--delta", 0.1, "-o", tmp_path / "other.json")
    assert message == "--protocol laplace takes --epsilon, and no --delta"


@pytest.mark.parametrize("name", ["rr", "oue", "cms"])
def test_a_specification_says_all_of_the_protocol(run: Run, people: Path, tmp_path: Path, name: str) -> None:
    spec, reports = tmp_path / "spec.json", tmp_path / "reports.parquet"
    options = dict(zip(*[iter(HOW[name])] * 2, strict=True))
    column = options.pop("--column")
    words = [word for option in options.items() for word in option]
    assert run("specify", "--protocol", name, *words, "-o", spec).code == 0
    record = run("perturb", people, "--column", column, "--spec", spec, "-o", reports, "--json").json
    assert record["protocol"] == name
    protocol = local.protocol_from_json(spec.read_text(encoding="utf-8"))
    assert (protocol.spec_id, protocol.to_document()) == (record["spec_id"], spec.read_text(encoding="utf-8"))
    metadata = pq.read_schema(reports).metadata
    assert metadata[b"dpnoise.protocol"] == protocol.to_json().encode()
    assert (b"dpnoise.domain" in metadata) == (name != "cms")
    more = ["--candidates", "apple"] if name == "cms" else []
    assert run("estimate", reports, "--spec", spec, *more, "--json").json["spec_id"] == record["spec_id"]


def test_a_specification_and_what_contradicts_it(run: Run, refuse: Refuse, people: Path, tmp_path: Path) -> None:
    spec, reports = tmp_path / "spec.json", tmp_path / "reports.parquet"
    run("specify", "--protocol", "oue", "--domain", "apple,pear,fig", "--epsilon", 1, "-o", spec)
    asked = ["perturb", people, "--column", "word", "--spec", spec, "-o", reports]
    shown = "OptimizedUnaryEncoding(domain=('apple', 'pear', 'fig'), epsilon=1.0)"
    for other in ("a,b", "a,b,c", "pear,apple,fig"):
        assert refuse(*asked, "--domain", other) == f"the domain must be that of '{spec}', which is {shown}"
    assert refuse(*asked, "--epsilon", 1) == "--spec says all of the protocol, so it goes with no --epsilon"
    assert refuse(*asked, "--protocol", "oue") == "give the protocol with either --protocol or --spec"
    spec.rename(reports)
    asked[asked.index(spec)] = reports
    assert "is also an input" in refuse(*asked, "--domain", "apple,pear,fig")


@pytest.mark.parametrize("family", local.FAMILIES.values(), ids=lambda family: family.abbreviation)
def test_a_protocol_goes_by_all_its_names(run: Run, tmp_path: Path, family: local.Family) -> None:
    names = (family.abbreviation, family.abbreviation.upper(), family.name, family.protocol.__name__)
    for name in names:
        asked = ["specify", "--protocol", name, *options(family), "-o", tmp_path / "spec.json", "--json"]
        assert run(*asked).json["protocol"] == family.abbreviation


def test_a_message_has_one_name_of_each_protocol(refuse: Refuse) -> None:
    message = refuse("specify", "--protocol", "Optimized", "--k", 3, "--epsilon", 1, "-o", "new")
    assert re.findall(r"'(\w+)'", message) == ["Optimized", *PROTOCOLS]
