"""The collector of examples/clients: what it takes and refuses, and what a kill leaves."""

from __future__ import annotations

import http.client
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fcntl", reason="the collector needs a POSIX system")

from dpnoise import local
from examples.clients import collector
from tests.clients.collecting import Collector

PROTOCOL = local.OptimizedUnaryEncoding(
    k=80, epsilon=1.0
)  # no two reports are equal, but with a probability below 1e-9
MESSAGES = PROTOCOL.messages(PROTOCOL.perturb([value % 80 for value in range(600)]))
TOKEN = "00112233445566778899aabbccddeeff"
BYTES = "application/octet-stream"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Collector]:
    """Start a collector."""
    with Collector(tmp_path, PROTOCOL.to_json(), batch=100) as started:
        yield started


def send(
    running: Collector,
    method: str,
    path: str,
    body: bytes | None = None,
    kind: str | None = BYTES,
    token: str | None = TOKEN,
    **headers: str,
) -> tuple[int, bytes, dict[str, str]]:
    given = {"Content-Type": kind, "Upload-Token": token, **headers}
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    try:
        connection.request(method, path, body, {name: value for name, value in given.items() if value is not None})
        response = connection.getresponse()
        return response.status, response.read(), dict(response.getheaders())
    finally:
        connection.close()


def test_the_specification_is_given_as_it_is(running: Collector) -> None:
    status, content, headers = send(running, "GET", "/specification")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert content == running.specification.read_bytes() == PROTOCOL.to_json().encode()


def test_what_was_accepted_is_counted(running: Collector) -> None:
    assert send(running, "POST", "/message", MESSAGES[0])[0] == 204
    body = b"".join(map(collector.prefixed, MESSAGES[1:300]))
    assert send(running, "POST", "/messages", body, token=TOKEN[::-1])[0] == 204
    running.stop()
    assert running.estimates()["n"] == 300
    expected = PROTOCOL.accumulator()
    expected.add_messages(MESSAGES[:300])
    assert [row["count"] for row in running.estimates()["estimates"]] == expected.estimate().counts.tolist()
    (file,) = running.files
    written = collector.divided(file.read_bytes())
    assert sorted(written) == sorted(MESSAGES[:300])
    assert written != MESSAGES[:300]  # equal by chance with a probability below 1e-60, as most of 300! orders differ


def test_an_upload_that_comes_twice_counts_once(running: Collector) -> None:
    for _ in range(2):
        assert send(running, "POST", "/message", MESSAGES[0])[0] == 204
    running.kill()
    running.start()
    assert send(running, "POST", "/message", MESSAGES[0])[0] == 204
    assert (
        send(running, "POST", "/message", MESSAGES[0], token=TOKEN[::-1])[0] == 204
    )  # the same bytes of another person
    running.stop()
    assert running.estimates()["n"] == 2


OTHER = local.OptimizedUnaryEncoding(k=80, epsilon=2.0)
REFUSED: dict[str, tuple[int, dict[str, Any]]] = {
    "another path": (404, {"path": "/", "body": MESSAGES[0]}),
    "another type": (415, {"path": "/message", "body": MESSAGES[0], "kind": "application/json"}),
    "no type": (415, {"path": "/message", "body": MESSAGES[0], "kind": None}),
    "no token": (400, {"path": "/message", "body": MESSAGES[0], "token": None}),
    "a short token": (400, {"path": "/message", "body": MESSAGES[0], "token": TOKEN[:-1]}),
    "an empty message": (400, {"path": "/message", "body": b""}),
    "a message cut short": (400, {"path": "/message", "body": MESSAGES[0][:-1]}),
    "another specification": (400, {"path": "/message", "body": OTHER.messages(OTHER.perturb([3]))[0]}),
    "one wrong of two": (400, {"path": "/messages", "body": b"".join(map(collector.prefixed, [MESSAGES[0], b"DP"]))}),
    "a stream cut short": (400, {"path": "/messages", "body": collector.prefixed(MESSAGES[0])[:-1]}),
    "a length cut short": (400, {"path": "/messages", "body": b"\1\0"}),
    "a body too large": (413, {"path": "/messages", "body": None, "Content-Length": str(collector.LARGEST_BODY + 1)}),
    "an endless length": (413, {"path": "/messages", "body": None, "Content-Length": "9" * 5000}),
    "a wrong length": (411, {"path": "/messages", "body": None, "Content-Length": "-1"}),
    "no length": (411, {"path": "/messages", "body": None, "Transfer-Encoding": "chunked"}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_leaves_nothing(running: Collector, what: str) -> None:
    status, request = REFUSED[what]
    found, reason, headers = send(running, "POST", **request)
    assert (found, headers["Connection"]) == (status, "close")
    assert reason
    running.stop()
    assert running.files == []


def test_pages_of_one_origin_may_post(tmp_path: Path) -> None:
    asked = {"Origin": "https://survey.example", "Access-Control-Request-Method": "POST"}
    with Collector(tmp_path, PROTOCOL.to_json(), origin="https://survey.example") as running:
        status, _, headers = send(running, "OPTIONS", "/message", **asked)
        assert (status, headers["Access-Control-Allow-Origin"]) == (204, "https://survey.example")
        assert headers["Access-Control-Allow-Headers"] == "Content-Type, Upload-Token"
        assert "POST" in headers["Access-Control-Allow-Methods"]
        headers = send(running, "POST", "/message", MESSAGES[0])[2]
        assert headers["Access-Control-Allow-Origin"] == "https://survey.example"


def test_without_an_origin_no_page_may_post(running: Collector) -> None:
    for method, path, body in (("OPTIONS", "/message", None), ("POST", "/message", MESSAGES[0])):
        assert not [name for name in send(running, method, path, body)[2] if name.startswith("Access-Control")]


def test_nothing_is_said_of_devices(running: Collector) -> None:
    send(running, "POST", "/message", MESSAGES[0], **{"User-Agent": "planted"})
    send(running, "POST", "/planted", MESSAGES[0])
    with socket.create_connection(("127.0.0.1", running.port)) as cut:
        cut.sendall(b"POST /message HTTP/1.1\r\nContent-Length: 100\r\n\r\nplanted")
    running.stop()
    stored = b"".join(path.read_bytes() for path in running.inbox.iterdir()) + running.output
    assert b"127.0.0.1" not in stored.replace(f"collecting on http://127.0.0.1:{running.port}".encode(), b"")
    assert b"planted" not in stored
    assert bytes.fromhex(TOKEN) not in stored
    assert TOKEN.encode() not in stored


@pytest.mark.parametrize("batch", [100, 10**9])
def test_a_killed_collector_loses_no_accepted_report(tmp_path: Path, batch: int) -> None:
    tokens = [secrets.token_hex(16) for _ in MESSAGES]
    with Collector(tmp_path, PROTOCOL.to_json(), batch=batch) as running:
        for most in (150, 300, 450, 600):
            accepted: list[int] = []
            threads = [
                threading.Thread(target=post_until_killed, args=(running, tokens, range(part, most, 4), accepted))
                for part in range(4)
            ]
            for thread in threads:
                thread.start()
            while len(accepted) < most // 3 and any(thread.is_alive() for thread in threads):
                time.sleep(0.001)
            running.kill()
            for thread in threads:
                thread.join()
            assert len(accepted) >= most // 3
            kept = running.messages()
            assert all(kept.count(MESSAGES[number]) >= 1 for number in accepted)
            running.start()
        for number, message in enumerate(MESSAGES):
            assert send(running, "POST", "/message", message, token=tokens[number])[0] == 204
        running.stop()
        if batch > len(MESSAGES):
            assert sorted(running.messages()) == sorted(MESSAGES)
        else:  # tokens are forgotten with their file: an upload that is sent again after that is another one
            assert len(running.files) > 1
            assert set(running.messages()) == set(MESSAGES)


def post_until_killed(running: Collector, tokens: list[str], numbers: range, accepted: list[int]) -> None:
    for number in numbers:
        try:
            status = send(running, "POST", "/message", MESSAGES[number], token=tokens[number])[0]
        except (OSError, http.client.HTTPException):
            return
        assert status == 204
        accepted.append(number)


@pytest.mark.parametrize("tail", [b"\1", bytes(100), b"\xff" * 100, collector.packed(bytes(16), b"planted")[:-1]])
def test_an_upload_that_is_not_whole_goes(running: Collector, tail: bytes) -> None:
    assert send(running, "POST", "/message", MESSAGES[0])[0] == 204
    running.kill()
    (journal,) = running.inbox.glob("*.journal")
    with journal.open("ab") as file:
        file.write(tail)
    running.start()
    assert send(running, "POST", "/message", MESSAGES[1], token=TOKEN[::-1])[0] == 204
    running.kill()  # what stands behind such an upload would be lost now
    running.start()
    running.stop()
    assert sorted(running.messages()) == sorted(MESSAGES[:2])


@pytest.mark.parametrize("moved", [False, True])
def test_files_are_made_once(tmp_path: Path, moved: bool) -> None:
    """A kill right after a file got its name leaves the journal, and the next start removes it."""
    inbox = collector.Inbox(tmp_path, PROTOCOL, 2)
    inbox.add(bytes(16), MESSAGES[:2])
    journal = (tmp_path / "uploads-1.journal").read_bytes()
    inbox.add(bytes(15) + b"\1", MESSAGES[2:3])
    assert {path.name for path in tmp_path.glob("*-*")} == {"messages-1.bin", "uploads-2.journal"}
    inbox.leave()
    if moved:
        (tmp_path / "messages-1.bin").rename(tmp_path / "counted")
    else:
        (tmp_path / "uploads-1.journal").write_bytes(journal)
    again = collector.Inbox(tmp_path, PROTOCOL, 2)
    again.close()
    again.leave()
    assert (tmp_path / "messages-2.bin").read_bytes() == collector.prefixed(MESSAGES[2])
    assert [path.name for path in tmp_path.glob("*.journal")] == ["uploads-3.journal"]


def test_a_folder_has_one_collector(running: Collector) -> None:
    with pytest.raises(BlockingIOError):
        collector.Inbox(running.inbox, PROTOCOL, 2)


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = collector.Inbox(tmp_path, PROTOCOL, 100)
    inbox.add(bytes(16), MESSAGES[:1])
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            inbox.add(bytes(15) + b"\1", MESSAGES[1:2])
    inbox.add(bytes(15) + b"\1", MESSAGES[1:2])
    inbox.leave()
    again = collector.Inbox(tmp_path, PROTOCOL, 100)
    assert again.messages == MESSAGES[:2]
    again.leave()
