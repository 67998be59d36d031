"""Files of a few kilobytes that ask for gigabytes, or are nested: each is named, costs little, and ends no run."""

import base64
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.shared import DOMAIN, PROTOCOL, Refuse, Run, write

pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from dpnoise import ParameterError, _parquet, local
from dpnoise.cli import completion

NESTED = "[" * 3000 + "]" * 3000
MANY = local.OptimizedUnaryEncoding(k=2**24, epsilon=2.0)
LARGE = local.Sampled(attributes={f"attribute {i}": MANY for i in range(16)})
SMALL = local.Split(attributes={"colour": PROTOCOL, "size": PROTOCOL})
MEAN = local.DuchiMean(epsilon=1.0)


def hostile(path: Path, *, column: Any = None, protocol: Any = PROTOCOL, options: Any = None, **metadata: str) -> Path:
    """Write a file of one report, or of a column, with these metadata beside the specification."""
    column = pa.array([bytes(protocol.report_bytes)], pa.binary(protocol.report_bytes)) if column is None else column
    schema = pa.schema(
        [pa.field("report", column.type, nullable=column.null_count > 0)],
        metadata={"dpnoise.protocol": protocol.to_json(), **{f"dpnoise.{key}": text for key, text in metadata.items()}},
    )
    pq.write_table(pa.table([column], schema=schema), path, compression="zstd", **(options or {}))
    return path


FILES: dict[str, tuple[dict[str, Any], str]] = {
    "16 attributes": ({"protocol": LARGE, "column": pa.array([], pa.binary(LARGE.report_bytes))}, "needs a --limit of"),
    "many values": ({"protocol": MANY}, "needs a --limit of at least 134217728, the bytes of the counters of"),
    "nested labels": ({"domain": NESTED}, "cannot be used: the metadata 'dpnoise.domain' cannot be used: "),
    "nested labels of attributes": (
        {"protocol": SMALL, "domain": f'{{"colour":{NESTED}}}'},
        "cannot be used: the metadata 'dpnoise.domain' cannot be used: ",
    ),
    "nested bounds": (
        {"protocol": MEAN, "domain": NESTED},
        "cannot be used: the metadata 'dpnoise.domain' cannot be used: ",
    ),
    "long number": (
        {"protocol": SMALL, "domain": "1" * 5000},
        "cannot be used: the metadata 'dpnoise.domain' cannot be used: ",
    ),
    "twice": (
        {"protocol": SMALL, "domain": '{"size":null,"size":null}'},
        "cannot be used: the metadata 'dpnoise.domain'",
    ),
    "no number": (
        {"protocol": MEAN, "domain": "[NaN,1]"},
        "cannot be used: the metadata 'dpnoise.domain' cannot be used: ",
    ),
    "large page": (
        {"column": pa.array([bytes(_parquet.LARGEST)]), "domain": json.dumps(DOMAIN)},
        "cannot be used: it must have pages of at most 67108864 bytes and 16777216 values, got 671088",
    ),
    "values with a common start": (
        {
            "column": pa.array([bytes(9)] * 9),
            "domain": json.dumps(DOMAIN),
            "options": {"column_encoding": "DELTA_BYTE_ARRAY", "use_dictionary": False},
        },
        "cannot be used: it must have values that are written plainly or with a dictionary, got encoding 7",
    ),
    "nested column": (
        {"column": pa.array([[1]]), "domain": json.dumps(DOMAIN)},
        "cannot be used: its column 'report' must not be nested, got list<element: int64>",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_ends_no_run(run: Run, tmp_path: Path, name: str) -> None:
    about, message = FILES[name]
    good = [write(tmp_path / f"{i}.parquet", 100) for i in range(2)]
    bad = hostile(tmp_path / "bad.parquet", **about)
    assert bad.stat().st_size < 20_000
    outcome = run("estimate", good[0], bad, good[1], "--json")
    assert (outcome.code, outcome.json["n"], list(outcome.json["failed"])) == (3, 200, [str(bad)])
    assert outcome.err.splitlines()[0].startswith(f"dpnoise: '{bad}' {message}")
    assert len(outcome.err.splitlines()) == 2


def test_a_file_without_memory_ends_no_run(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = [write(tmp_path / f"{i}.parquet", 100) for i in range(3)]
    real = local.Accumulator.add

    def full(self: Any, reports: Any, **options: Any) -> None:
        if len(reports) == 100 and full.calls == 1:  # type: ignore[attr-defined]
            full.calls += 1  # type: ignore[attr-defined]
            raise MemoryError
        full.calls += 1  # type: ignore[attr-defined]
        real(self, reports, **options)

    full.calls = 0  # type: ignore[attr-defined]
    monkeypatch.setattr(local.Accumulator, "add", full)
    outcome = run("estimate", *good, "--json")
    assert (outcome.code, outcome.json["n"]) == (3, 200)
    assert outcome.err.splitlines()[0] == f"dpnoise: {good[1]}: there is not enough memory for it"


def test_a_file_that_lost_its_labels_is_counted(run: Run, tmp_path: Path) -> None:
    """Of both orders: the specification has a digest of the labels."""
    listed = write(tmp_path / "0.parquet", 100)
    not_listed = hostile(tmp_path / "1.parquet")
    for i, paths in enumerate(([listed, not_listed], [not_listed, listed])):
        state = tmp_path / f"state {i}"
        outcome = run("estimate", *paths, "--state", state, "--json")
        assert (outcome.code, outcome.json["n"]) == (0, 101)
        assert json.loads(state.read_text())["domain"] == ([] if i else DOMAIN)
        assert run("estimate", not_listed, "--state", state, "--json").json["n"] == 101


def test_a_name_that_is_no_text(refuse: Refuse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "names.parquet"
    pq.write_table(pa.table({"name": [b"a"]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"name", b"n\xffme"))
    assert refuse("estimate", path) == f"'{path}' is not a Parquet file, or was cut short"
    monkeypatch.setenv("_DPNOISE_COMPLETE", "complete")
    monkeypatch.setenv("COMP_WORDS", f"dpnoise perturb {path} --column")
    assert completion.columns("") == []


# --- States --------------------------------------------------------------------------------------------------------


def test_a_hostile_state_is_refused_in_a_line(refuse: Refuse, run: Run, tmp_path: Path) -> None:
    state, whole = tmp_path / "state", tmp_path / "whole"
    run("estimate", write(tmp_path / "0.parquet", 100), "--state", state)
    run("estimate", write(tmp_path / "1.parquet", 100), "--state", whole)
    document = {key: value for key, value in json.loads(state.read_text()).items() if key != "checksum"}
    mean = base64.b64encode(MEAN.accumulator().to_bytes()).decode()
    changes: list[dict[str, Any]] = [
        {"domain": [1.5, {}, None, "a"]},
        {"domain": DOMAIN[:3]},
        {"domain": ["a", "b", "c", "a"]},
        {"domain": {"colour": DOMAIN}},
        {"accumulator": mean, "domain": ["a", "b"]},
        {"accumulator": mean, "domain": [1, 2, 3]},
        {"sources": [{"sha256": "0", "path": []}]},
        {"sources": [{"sha256": 0, "path": "a"}]},
        {"sources": {"a": 1}},
    ]
    for change in changes:
        canonical = json.dumps({**document, **change}, sort_keys=True, separators=(",", ":"))
        checksum = hashlib.sha256(canonical.encode()).hexdigest()
        state.write_text(json.dumps({**document, **change, "checksum": checksum}))
        for words in (["estimate", "--state", state], ["merge", whole, state, "-o", tmp_path / "merged"]):
            assert refuse(*words).startswith(f"'{state}' is damaged: ")
    for content in (
        NESTED,
        "1" * 5000,
        '{"format":NaN}',
        f'{{"format":"dpnoise state","version":{NESTED}}}',
        "\ufeff{}",
    ):
        state.write_text(content)
        assert refuse("merge", whole, state, "-o", tmp_path / "merged").startswith(f"'{state}' is not a state that ")


def test_a_nested_estimate_is_not_replaced(refuse: Refuse, tmp_path: Path) -> None:
    target = tmp_path / "estimate.json"
    target.write_text(NESTED)
    assert "is no estimate" in refuse("estimate", write(tmp_path / "0.parquet", 100), "-o", target)
    assert target.read_text() == NESTED


# --- Memory --------------------------------------------------------------------------------------------------------

MEASURED = """
import sys
from dpnoise.cli import main
from dpnoise.local import _arrow, _parquet

_arrow.BLOCK_BYTES = 1 << 20


def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

main(["estimate", sys.argv[1]])
before = peak()
for path in sys.argv[2:]:
    main(["estimate", path, "--quiet"])
print("grown by", peak() - before)
"""


def grown(*paths: Path, code: str = MEASURED) -> int:
    """Return by how many KiB the memory of a process grows that estimates from files, each alone."""
    words = [sys.executable, "-c", code, *map(str, paths)]
    ran = subprocess.run(words, capture_output=True, text=True, check=True, timeout=100)
    return int(ran.stdout.split()[-1])


BOMBS: dict[str, Callable[[], dict[str, Any]]] = {
    "attributes": lambda: FILES["16 attributes"][0],
    "values": lambda: FILES["many values"][0],
    "one value in all rows": lambda: {"column": pa.array([bytes(1 << 16)] * 1000)},
    "width": lambda: {"column": pa.nulls(10**5, pa.binary(1 << 9))},
}


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux")
def test_small_files_take_little_memory(tmp_path: Path) -> None:
    good = write(tmp_path / "good.parquet", 100)
    bombs = [hostile(tmp_path / f"{i}.parquet", **make()) for i, make in enumerate(BOMBS.values())]
    assert max(path.stat().st_size for path in bombs) < 8000
    assert grown(good, *bombs) < 25 << 10
    # Positive control: where rows may be of any size, they take what the file asks for.
    unchecked = MEASURED.replace("1 << 20", "1 << 40")
    assert grown(good, bombs[2], code=unchecked) > 50 << 10


# --- Pages ---------------------------------------------------------------------------------------------------------


def rows(path: Path, size: int = 1 << 24) -> int:
    with pq.ParquetFile(path) as file:
        return _parquet.rows_at_a_time(file, path, "report", size)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_the_rows_of_pages(tmp_path: Path, version: str, compression: str, dictionary: bool) -> None:
    path = tmp_path / "pages.parquet"
    values = [bytes([i % 256, i // 256]) * 100 for i in range(1000)]
    table = pa.table({"other": range(1000), "report": values})
    options = {"data_page_version": version, "use_dictionary": dictionary, "compression": compression}
    pq.write_table(table, path, row_group_size=300, data_page_size=3000, write_page_checksum=True, **options)
    found = rows(path)
    # With a dictionary each row might have all of it: 300 values with their lengths. Otherwise a row has 204 bytes.
    assert found == (1 << 24) // (300 * 204) if dictionary else (1 << 24) // 220 < found <= (1 << 24) // 204


def test_headers_that_cannot_be_read(tmp_path: Path) -> None:
    path = hostile(tmp_path / "pages.parquet", column=pa.array([b"a"] * 100), options={"use_dictionary": False})
    whole = path.read_bytes()
    with pq.ParquetFile(path) as file:
        for spoilt in (
            0x00,
            0x05,
            0x19,
            0x1C,
            0x55,
            0xFF,
        ):  # an end, a number that follows, a list, a structure, others
            path.write_bytes(whole[:4] + bytes([spoilt] * 12) + whole[16:])
            with pytest.raises(ParameterError, match="is damaged: the header of a page cannot be read"):
                _parquet.rows_at_a_time(file, path, "report", 1)
        path.write_bytes(whole[:10])
        with pytest.raises(ParameterError, match="is damaged"):
            _parquet.rows_at_a_time(file, path, "report", 1)
