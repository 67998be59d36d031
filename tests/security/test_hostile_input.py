"""Specifications, metadata, states and messages of others, changed by structure: checksums are right, contents are not.

Whatever they are, a reader raises a `ParameterError`, and the command line names the file in a line, counts the other
files and takes little memory. `make fuzz` does the same for what Rust reads, down to the bytes.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import os
import tracemalloc
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from local_families import EXAMPLES

from dpnoise import ParameterError, local

pytest.importorskip("typer", reason="the extra `cli` is not installed")

import pyarrow as pa
import pyarrow.parquet as pq
from cli.shared import DOMAIN, PROTOCOL, write

from dpnoise.cli import agreement, main
from dpnoise.local import _arrow

FULL = "DPNOISE_TEST_SAMPLES" in os.environ
MOST_MEMORY = 1 << 23

# --- JSON that is not what a reader expects --------------------------------------------------------------------------

RAW = {'"@digits"': "1" * 5000, '"@infinite"': "1e400", '"@deep"': "[" * 3000 + "]" * 3000, '"@twice"': '{"a":1,"a":2}'}
"""What no object of Python is written as."""

NAMES = [raw.strip('"') for raw in RAW]
TEXTS = st.sampled_from(["", "0", "a", "colour", "\ud800", "a" * 300, *NAMES]) | st.text(max_size=4)
NUMBERS = st.sampled_from([0, 1, 2, 3, -1, 2**24, 2**53, 2**64, 10**400, 0.5, -0.0, 5e-324, 1e308, math.inf, math.nan])
SCALARS = st.none() | st.booleans() | NUMBERS | st.integers(0, 9) | TEXTS
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


ABSENT: Any = object()


def text_of(document: Any) -> str:
    """Return a document as specifications are written."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    for name, raw in RAW.items():
        text = text.replace(name, raw)
    return text


def changed(document: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return the document with up to two entries replaced, added or left out."""
    changes = st.dictionaries(st.sampled_from([*document, "more"]), st.just(ABSENT) | JSON, max_size=2)
    whole = changes.map(lambda some: {**document, **some})
    return whole.map(lambda some: {name: value for name, value in some.items() if value is not ABSENT})


MANY = [local.OptimizedUnaryEncoding(k=2**24, epsilon=2.0), local.GeneralizedRandomizedResponse(k=2**24, epsilon=1.0)]
SEVERAL = [
    local.Split(attributes={"colour": PROTOCOL, "size": local.RandomizedResponse(epsilon=1.0)}),
    local.Sampled(attributes={f"{i}": MANY[0] for i in range(16)}),
    local.Sampled(attributes={"mood": local.DuchiMean(epsilon=1.0), "colour": PROTOCOL}),
]
# To check the delta of a GaussianMean takes a thousand times as long as to read the others.
PROTOCOLS = [PROTOCOL, *MANY, *SEVERAL, *(one for name, one in EXAMPLES.items() if name != "gaussian_mean")]

ABOUT = [PROTOCOL, SEVERAL[2], local.DuchiMean(epsilon=1.0).about(question="age", period="2026", bounds=(0, 100))]
PROTOCOLS += [one.about(question="colour", period="2026-W48") for one in ABOUT]

LARGE = st.sampled_from([one.to_json() for one in (*MANY, *SEVERAL)])
SPECIFICATIONS = (
    LARGE
    | st.sampled_from([one.to_json() for one in PROTOCOLS])
    | st.sampled_from([json.loads(one.to_json()) for one in PROTOCOLS]).flatmap(changed).map(text_of)
    | st.sampled_from([json.loads(one.to_document()) for one in ABOUT]).flatmap(changed).map(text_of)
    | JSON.map(text_of)
    | TEXTS
)

LABELS = st.just(json.dumps(DOMAIN)) | JSON.map(text_of) | st.lists(SCALARS, min_size=2, max_size=4).map(text_of)
DOMAINS = LABELS | st.dictionaries(st.sampled_from(["colour", "size", "mood"]), st.just(DOMAIN) | JSON).map(text_of)
METADATA = st.fixed_dictionaries(
    {"dpnoise.protocol": st.just(PROTOCOL.to_json()) | SPECIFICATIONS},
    optional={"dpnoise.domain": DOMAINS},
)


def examples(most: int, few: int = 200) -> settings:
    return settings(
        max_examples=most if FULL else few,
        derandomize=not FULL,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )


# --- What reads them -------------------------------------------------------------------------------------------------


def read(*readers: Any) -> None:
    """Call readers, each of which may refuse what it reads."""
    for reader in readers:
        with suppress(ParameterError):
            reader()


def read_specification(text: str) -> None:
    classes = [
        local.Specification,
        local.Protocol,
        local.OptimizedUnaryEncoding,
        local.Sampled,
        local.Split,
        local.AttributesProtocol,
    ]
    read(lambda: local.protocol_from_json(text), *(lambda kind=kind: kind.from_json(text) for kind in classes))


@examples(25_000)
@given(SPECIFICATIONS)
def test_specifications(text: str) -> None:
    read_specification(text)


def crc32c(data: bytes) -> int:
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ 0x82F63B78 * (remainder & 1)
    return remainder ^ 0xFFFFFFFF


def state_of(text: str, counters: bytes) -> bytes:
    """Return the state of an accumulator of this specification, with the right lengths, id and checksum."""
    specification = text.encode(errors="surrogatepass")
    kind = 2 if text.startswith('{"attributes"') else 1
    after = len(specification).to_bytes(4, "little") + specification + hashlib.sha256(specification).digest()[:8]
    length = 16 + len(after) + len(counters) + 4
    body = b"DPNA" + bytes([kind, kind, 0, 0]) + length.to_bytes(8, "little") + after + counters
    return body + crc32c(body).to_bytes(4, "little")


STATES = st.builds(
    state_of,
    SPECIFICATIONS.filter(lambda text: len(text) < 2000),
    st.binary(max_size=100) | st.integers(0, 12).map(lambda n: bytes(8) + (4).to_bytes(4, "little") + bytes(8 * n)),
)


@examples(10_000)
@given(STATES)
def test_states_of_accumulators(content: bytes) -> None:
    read(lambda: local.Accumulator.from_bytes(content), lambda: local.AttributesAccumulator.from_bytes(content))


def test_a_state_that_is_right_is_read() -> None:
    counters = bytes(8) + (4).to_bytes(4, "little") + bytes(8 * 8)
    content = state_of(PROTOCOL.to_json(), counters)
    assert content == PROTOCOL.accumulator().to_bytes()


@examples(10_000)
@given(st.lists(st.dictionaries(st.just("message") | TEXTS, JSON, max_size=2) | JSON, max_size=3))
def test_streams_of_messages(lines: list[Any]) -> None:
    stream = io.BytesIO("\n".join(map(text_of, lines)).encode())
    read(lambda: PROTOCOL.accumulator().add_messages(local.read_messages(stream, "json-lines", PROTOCOL)))


def write_reports(path: Path, metadata: dict[str, str], row: bytes) -> None:
    encoded = {key: text.encode(errors="surrogatepass") for key, text in metadata.items()}
    schema = pa.schema([pa.field("report", pa.binary(len(row)), nullable=False)], metadata=encoded)
    pq.write_table(pa.table([pa.array([row], pa.binary(len(row)))], schema=schema), path)


@examples(10_000, 100)
@given(metadata=METADATA)
def test_metadata(tmp_path_factory: Any, metadata: dict[str, str]) -> None:
    path = tmp_path_factory.getbasetemp() / "metadata.parquet"
    write_reports(path, metadata, b"\0")
    read(lambda: local.open_reports(path), lambda: PROTOCOL.accumulator().add_parquet(path))
    table = pq.read_table(path)
    read(lambda: PROTOCOL.accumulator().add(table), lambda: _arrow.protocol_of(table.schema.metadata))


# --- The command line ------------------------------------------------------------------------------------------------


def run(*words: object, traced: bool = FULL) -> tuple[int, str, list[str]]:
    """Run the command line, which must take little memory if it is traced; return its status, output and errors."""
    out, err = io.StringIO(), io.StringIO()
    if traced:
        tracemalloc.start()
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = main(list(map(str, words)))
        assert not traced or tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    finally:
        tracemalloc.stop()
    return code, out.getvalue(), err.getvalue().splitlines()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("good")
    return [write(folder / f"{number}.parquet", 100) for number in range(2)]


def estimate_beside(good: list[Path], metadata: dict[str, str], wide: bool, traced: bool = FULL) -> None:
    path = good[0].with_name("bad.parquet")
    protocol = next((one for one in PROTOCOLS if one.to_json() == metadata["dpnoise.protocol"]), PROTOCOL)
    write_reports(path, metadata, bytes(protocol.report_bytes if wide and protocol.report_bytes < 1 << 16 else 1))
    code, out, err = run("estimate", good[0], path, good[1], "--json", traced=traced)
    record = json.loads(out)
    if code:
        assert (code, record["n"], list(record["failed"])) == (3, 200, [str(path)])
        assert len(err) == 2
        assert json.loads(err[0])["message"].startswith(repr(str(path)))
    else:
        assert record["n"] + record["rejected"] == 201


@examples(3_000, 40)
@given(metadata=METADATA, wide=st.booleans())
def test_a_file_among_good_ones(good: list[Path], metadata: dict[str, str], wide: bool) -> None:
    estimate_beside(good, metadata, wide)


def document_of(counted: Any, domain: Any) -> dict[str, Any]:
    accumulator = base64.b64encode(counted.accumulator().to_bytes()).decode()
    sources = [{"path": "a", "sha256": "0"}]
    return {"format": "dpnoise state", "version": 1, "domain": domain, "sources": sources, "accumulator": accumulator}


DOCUMENTS = st.sampled_from(
    [
        document_of(PROTOCOL, DOMAIN),
        document_of(SEVERAL[0], {"colour": DOMAIN}),
        document_of(ABOUT[2], [0, 100]),
        document_of(local.HierarchicalRange(k=4, epsilon=1.0), []),
    ]
).flatmap(changed)


def read_state(folder: Path, document: dict[str, Any], traced: bool = FULL) -> None:
    path = folder / "state"
    text = text_of(document)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(text[:-1] + f'{"," if document else ""}"checksum":"{checksum}"}}')
    for words in (["estimate", "--state", path, "--json"], ["merge", path, "-o", folder / "merged"]):
        code, _, err = run(*words, traced=traced)
        assert (code, len(err)) == (0, 0) or code == 2
        assert len(err) < 3
    (folder / "merged").unlink(missing_ok=True)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Import what the commands use, which takes more memory than any document."""
    folder = tmp_path_factory.mktemp("imported")
    for document in ({}, document_of(PROTOCOL, DOMAIN)):
        read_state(folder, document, traced=False)


@examples(3_000, 30)
@given(DOCUMENTS)
def test_states_of_the_command_line(imported: None, tmp_path_factory: Any, document: dict[str, Any]) -> None:
    read_state(tmp_path_factory.getbasetemp(), document)


# --- Positive controls -----------------------------------------------------------------------------------------------


def finds(strategy: Any, check: Any, error: type[BaseException] | tuple[type[BaseException], ...]) -> None:
    """Expect that the check meets the error within as many examples as `make test` makes."""
    quick = settings(examples(10_000), max_examples=200, derandomize=True, phases=[Phase.generate])
    with pytest.raises(error):
        quick(given(strategy)(check))()


def test_json_that_is_read_without_limits_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_arrow, "read_json", json.loads)
    named = {_arrow.PROTOCOL_KEY: PROTOCOL.to_json().encode()}
    finds(DOMAINS, lambda text: read(lambda: _arrow.protocol_of({**named, _arrow.DOMAIN_KEY: text})), RecursionError)


def test_a_reader_of_any_text_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpnoise.local._specification.check_text", lambda text, name: None)
    finds(SPECIFICATIONS, read_specification, UnicodeEncodeError)


def test_a_state_of_any_domain_is_found(imported: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(local.Protocol, "_meant", lambda self, domain: self._of(self._native, domain))
    finds(DOCUMENTS, lambda document: read_state(tmp_path, document), (TypeError, AttributeError))


def test_labels_before_the_limit_are_found(monkeypatch: pytest.MonkeyPatch, good: list[Path]) -> None:
    few = range(1 << 18)  # the file asks for more
    labels = lambda self, protocol, name: list(map(str, few[: protocol.counter_bytes // 8])).clear()  # noqa: E731
    monkeypatch.setattr(agreement.Agreement, "check_limit", labels)
    metadata = st.fixed_dictionaries({"dpnoise.protocol": LARGE}, optional={"dpnoise.domain": DOMAINS})
    finds(metadata, lambda metadata: estimate_beside(good, metadata, True, True), AssertionError)
