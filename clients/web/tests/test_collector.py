"""The collector of the examples: what it takes and refuses, and what a kill leaves."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import os
import queue
import re
import secrets
import shutil
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

pytest.importorskip("fcntl", reason="the collector needs a POSIX system")

from clients.web.examples import collector
from clients.web.tests.collecting import Collector
from dpnoise import local

PROTOCOL = local.OptimizedUnaryEncoding(k=80, epsilon=1.0)
MESSAGES = PROTOCOL.messages(PROTOCOL.perturb([value % 80 for value in range(600)]))
OTHER = local.OptimizedUnaryEncoding(k=80, epsilon=2.0)
(OF_OTHER,) = OTHER.messages(OTHER.perturb([3]))
TOKEN = "00112233445566778899aabbccddeeff"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Collector]:
    """Start a collector."""
    with Collector(tmp_path, PROTOCOL.to_json(), batch=100) as started:
        yield started


def prefixed(*messages: bytes) -> bytes:
    """Put the length of each message before it."""
    return b"".join(len(message).to_bytes(4, "little") + message for message in messages)


def send(
    running: Collector, method: str, path: str, body: bytes | None = None, token: str | None = TOKEN, **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    given = {"Upload-Token": token, **headers}
    connection = http.client.HTTPConnection("127.0.0.1", running.ports[path == "/status"], timeout=60)
    try:
        connection.request(method, path, body, {name: value for name, value in given.items() if value is not None})
        response = connection.getresponse()
        assert response.headers["Connection"] == "close"
        return response.status, response.read(), dict(response.getheaders())
    finally:
        connection.close()


def test_the_specification_is_given_as_it_is(running: Collector) -> None:
    status, content, headers = send(running, "GET", "/specification")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert content == running.specifications[0].read_bytes() == PROTOCOL.to_json().encode()


def test_what_was_accepted_is_counted(running: Collector) -> None:
    assert send(running, "POST", "/message", MESSAGES[0])[0] == 204
    body = prefixed(*MESSAGES[1:300])
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


REFUSED: dict[str, tuple[int, dict[str, Any]]] = {
    "another path": (404, {"path": "/", "body": MESSAGES[0]}),
    "no token": (400, {"path": "/message", "body": MESSAGES[0], "token": None}),
    "a short token": (400, {"path": "/message", "body": MESSAGES[0], "token": TOKEN[:-1]}),
    "two tokens": (400, {"path": "/message", "body": MESSAGES[0], "token": f"{TOKEN}, {TOKEN}"}),
    "an empty body": (400, {"path": "/message", "body": b""}),
    "no messages": (400, {"path": "/messages", "body": b""}),
    "a message cut short": (400, {"path": "/message", "body": MESSAGES[0][:-1]}),
    "a header cut short": (400, {"path": "/message", "body": MESSAGES[0][:11]}),
    "another kind": (400, {"path": "/message", "body": b"DP\1\0" + MESSAGES[0][4:]}),
    "another specification": (410, {"path": "/message", "body": OF_OTHER}),
    "one wrong of two": (400, {"path": "/messages", "body": prefixed(MESSAGES[0], b"DP")}),
    "two specifications": (400, {"path": "/messages", "body": prefixed(MESSAGES[0], OF_OTHER)}),
    "a stream cut short": (400, {"path": "/messages", "body": prefixed(MESSAGES[0])[:-1]}),
    "a length cut short": (400, {"path": "/messages", "body": b"\1\0"}),
    "a body too large": (413, {"path": "/messages", "body": None, "Content-Length": str(collector.LARGEST_BODY + 1)}),
    "a wrong length": (400, {"path": "/messages", "body": None, "Content-Length": "-1"}),
    "no length": (400, {"path": "/messages", "body": None}),
}


def test_what_is_refused_leaves_nothing(running: Collector) -> None:
    answers = {what: send(running, "POST", **request) for what, (_, request) in REFUSED.items()}
    assert {what: status for what, (status, *_) in answers.items()} == {what: REFUSED[what][0] for what in REFUSED}
    assert all(reason for _, reason, _ in answers.values())
    running.stop()
    assert running.files == []


def test_unused_bits_are_refused(tmp_path: Path) -> None:
    """And the uploads that wait with the malformed one are taken."""
    protocol = local.OptimizedUnaryEncoding(k=9, epsilon=1.0)
    (good,) = protocol.messages(protocol.perturb([3]))
    inbox = collector.Collector(tmp_path, [protocol.to_json().encode()], 10)
    answers = [queue.SimpleQueue() for _ in range(3)]
    for number, (message, answer) in enumerate(zip([good, good[:-1] + b"\xff", good], answers, strict=True)):
        inbox.waiting.put((protocol.spec_id, f"{number:032x}", [message], answer))
    inbox.waiting.put(None)
    inbox.write()
    assert [answer.get_nowait()[:3] for answer in answers] == ["204", "400", "204"]
    (file,) = tmp_path.glob("*.bin")
    assert collector.divided(file.read_bytes()) == [good] * 2


UPLOAD = b"POST /message HTTP/1.1\r\nHost: x\r\nUpload-Token: %s\r\nContent-Length: %d\r\n\r\n%s"
UPLOAD %= (TOKEN.encode(), len(MESSAGES[0]), MESSAGES[0])
HIDDEN = {
    "behind GET": b"GET /specification HTTP/1.1\r\nContent-Length: SIZE\r\n\r\nUPLOAD",
    "behind OPTIONS": b"OPTIONS /message HTTP/1.1\r\nContent-Length: SIZE\r\n\r\nUPLOAD",
    "in a chunk": b"GET /specification HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\nUPLOAD\r\n0\r\n\r\n"
    % len(UPLOAD),
    "behind chunks": b"GET / HTTP/1.1\r\nContent-Length: 1000\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nUPLOAD",
    "behind no chunk": b"GET / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\nUPLOAD",
    "another encoding": b"GET /specification HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\nUPLOAD",
    "two lengths": b"POST /message HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: SIZE\r\n\r\nUPLOAD",
    "two lengths in one": b"GET /specification HTTP/1.1\r\nContent-Length: SIZE, SIZE\r\n\r\nUPLOAD",
    "a length with a sign": b"GET /specification HTTP/1.1\r\nContent-Length: +SIZE\r\n\r\nUPLOAD",
    "a length behind a space": b"GET /specification HTTP/1.1\r\nContent-Length : SIZE\r\n\r\nUPLOAD",
    "a folded length": b"GET /specification HTTP/1.1\r\nX: y\r\n Content-Length: SIZE\r\n\r\nUPLOAD",
    "an endless length": b"GET /specification HTTP/1.1\r\nContent-Length: %s\r\n\r\nUPLOAD" % (b"9" * 5000),
    "a second request": b"GET /specification HTTP/1.1\r\n\r\nUPLOAD",
}


def test_no_upload_hides_in_another_request(running: Collector) -> None:
    answers = {}
    for where, request in HIDDEN.items():
        with socket.create_connection(("127.0.0.1", running.ports[0]), timeout=60) as connection:
            connection.sendall(request.replace(b"SIZE", b"%d" % len(UPLOAD)).replace(b"UPLOAD", UPLOAD))
            answers[where] = b""
            with contextlib.suppress(ConnectionResetError):  # it is closed before all is read
                while part := connection.recv(10_000):
                    answers[where] += part
    assert {where: answer for where, answer in answers.items() if answer.count(b"HTTP/1.") > 1} == {}
    assert send(running, "POST", "/message", MESSAGES[1], token=TOKEN[::-1])[0] == 204
    running.stop()
    assert running.messages() == MESSAGES[1:2]


def test_a_body_cut_short_leaves_nothing(running: Collector) -> None:
    with socket.create_connection(("127.0.0.1", running.ports[0])) as connection:
        connection.sendall(UPLOAD[:-1])
    assert send(running, "POST", "/message", MESSAGES[1])[0] == 204
    running.stop()
    assert running.messages() == MESSAGES[1:2]


def test_many_send_at_once_and_some_do_not_go_on(running: Collector) -> None:
    connections = [socket.create_connection(("127.0.0.1", running.ports[0]), timeout=60) for _ in range(600)]
    for number, connection in enumerate(connections):
        request = UPLOAD.replace(TOKEN.encode(), b"%032x" % number)
        connection.sendall(request if number % 2 else request[: number % len(request)])
    for connection in connections[1::2]:
        assert connection.recv(12) == b"HTTP/1.1 204"
    for connection in connections:
        connection.close()
    running.stop()
    assert running.messages() == MESSAGES[:1] * 300
    assert running.output.count(b"\n") == 1, running.output  # waitress would say how many wait


def test_a_closed_specification(tmp_path: Path) -> None:
    """Its messages become a file and its tokens go; what comes again is refused, and counts once."""
    texts = PROTOCOL.to_json(), OTHER.to_json()
    tokens = [TOKEN, TOKEN[::-1]]
    with Collector(tmp_path, *texts) as running:
        assert send(running, "GET", "/specification")[1] == texts[1].encode()
        for message, token in ((MESSAGES[0], tokens[0]), (OF_OTHER, tokens[0]), (OF_OTHER, tokens[1])):
            assert send(running, "POST", "/message", message, token=token)[0] == 204
        running.kill()
        assert sorted(running.column("token", "tokens")) == sorted([tokens[0], *tokens])
        del running.specifications[0]
        running.start()
        (file,) = running.files
        assert file.name.startswith(f"messages-{PROTOCOL.spec_id}-")
        assert collector.divided(file.read_bytes()) == MESSAGES[:1]
        assert sorted(running.column("token", "tokens")) == sorted(tokens)
        assert send(running, "POST", "/message", MESSAGES[0], token=tokens[0])[0] == 410
        assert send(running, "POST", "/message", OF_OTHER, token=tokens[0])[0] == 204
        running.stop()
        assert sorted(running.messages()) == sorted([MESSAGES[0], OF_OTHER, OF_OTHER])
        assert len(running.files) == 2


def test_the_operator_sees_how_many_came(tmp_path: Path) -> None:
    with Collector(tmp_path, PROTOCOL.to_json(), OTHER.to_json()) as running:
        for start in range(3):
            for _ in range(2):
                body = prefixed(*MESSAGES[10 * start : 10 * start + 10])
                assert send(running, "POST", "/messages", body, token=f"{start:032x}")[0] == 204
        send(running, "POST", "/message", OF_OTHER)
        send(running, "POST", "/message", OF_OTHER[:-1])
        running.kill()
        running.start()
        status, page, _ = send(running, "GET", "/status")
        assert status == 200
        found: dict[str, int] = {}
        for line in page.decode().splitlines():  # midnight may make two lines of one
            day, spec, n = line.split()
            assert re.fullmatch(r"\d{4}-\d\d-\d\d", day)
            found[spec] = found.get(spec, 0) + int(n)
        assert found == {PROTOCOL.spec_id: 30, OTHER.spec_id: 1}
        running.ports.reverse()
        assert send(running, "GET", "/status")[0] == 404  # devices do not
        running.ports.reverse()


def test_pages_of_one_origin_may_post(tmp_path: Path) -> None:
    asked = {"Origin": "https://survey.example", "Access-Control-Request-Method": "POST"}
    with Collector(tmp_path, PROTOCOL.to_json(), origin="https://survey.example") as running:
        status, _, headers = send(running, "OPTIONS", "/message", **asked)
        assert (status, headers["Access-Control-Allow-Origin"]) == (204, "https://survey.example")
        assert headers["Access-Control-Allow-Headers"] == "*"
        headers = send(running, "POST", "/message", MESSAGES[0])[2]
        assert headers["Access-Control-Allow-Origin"] == "https://survey.example"


def test_without_an_origin_no_page_may_post(running: Collector) -> None:
    for method, path, body in (("OPTIONS", "/message", None), ("POST", "/message", MESSAGES[0])):
        assert not [name for name in send(running, method, path, body)[2] if name.startswith("Access-Control")]


def test_nothing_is_said_of_devices(running: Collector) -> None:
    send(running, "POST", "/message", MESSAGES[0], **{"User-Agent": "planted"})
    send(running, "POST", "/planted", MESSAGES[0])
    with socket.create_connection(("127.0.0.1", running.ports[0])) as cut:
        cut.sendall(b"POST /message HTTP/1.1\r\nContent-Length: 100\r\n\r\nplanted")
    running.stop()
    stored = b"".join(path.read_bytes() for path in running.inbox.iterdir()) + running.output
    assert stored.count(b"127.0.0.1") == 1  # where it collects
    assert b"planted" not in stored


def test_messages_of_a_file_leave_the_database(running: Collector) -> None:
    """The database and its log could say in which order messages came, and with which tokens."""
    for number in range(3):
        send(running, "POST", "/messages", prefixed(*MESSAGES[100 * number : 100 * number + 100]), f"{number:032x}")
    send(running, "POST", "/message", MESSAGES[300])  # which is answered after the files are written
    database = b"".join(path.read_bytes() for path in running.inbox.glob("inbox.sqlite*"))
    assert len(running.files) == 3
    assert [number for number, message in enumerate(MESSAGES) if message in database] == [300]


@pytest.mark.parametrize("batch", [100, 10**9])
@pytest.mark.parametrize("end", [Collector.kill, Collector.stop])
def test_a_collector_that_ends_counts_every_upload_once(
    tmp_path: Path, batch: int, end: Callable[[Collector], None]
) -> None:
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
            end(running)
            for thread in threads:
                thread.join()
            assert len(accepted) >= most // 3
            running.start()
            kept = running.messages()
            assert all(kept.count(MESSAGES[number]) == 1 for number in accepted)
        for number, message in enumerate(MESSAGES):  # whether it was accepted before or not
            assert send(running, "POST", "/message", message, token=tokens[number])[0] == 204
        running.stop()
        assert len(running.files) > 1 if end is Collector.stop or batch < len(MESSAGES) else len(running.files) == 1
        assert sorted(running.messages()) == sorted(MESSAGES)


def post_until_killed(running: Collector, tokens: list[str], numbers: range, accepted: list[int]) -> None:
    for number in numbers:
        try:
            status = send(running, "POST", "/message", MESSAGES[number], token=tokens[number])[0]
        except (OSError, http.client.HTTPException):
            return
        assert status == 204
        accepted.append(number)


@pytest.mark.long
def test_200_kills_with_retries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The collector is killed whenever it likes, while it starts as well; devices go on until they are answered."""
    tokens: dict[str, bytes] = {}
    retries, stopping = [0] * 4, threading.Event()
    reports = iter(PROTOCOL.messages(PROTOCOL.perturb([0] * 1_000_000)))

    def device(number: int) -> None:
        while not stopping.is_set():
            token = secrets.token_hex(16)
            tokens[token] = next(reports)
            while True:
                try:
                    assert send(running, "POST", "/message", tokens[token], token=token)[0] == 204
                    break
                except (OSError, http.client.HTTPException):
                    retries[number] += 1
                    time.sleep(0.01)

    with Collector(tmp_path, PROTOCOL.to_json(), batch=30) as running:
        started = time.monotonic()
        running.kill()
        running.start()
        longest = 3 * (time.monotonic() - started)
        devices = [threading.Thread(target=device, args=(number,)) for number in range(len(retries))]
        for thread in devices:
            thread.start()
        for _ in range(200):
            time.sleep(longest * secrets.randbelow(1000) / 1000)
            running.kill()
            running.start(until_it_listens=False)
        stopping.set()
        for thread in devices:
            thread.join()
        running.stop()
        assert running.estimates()["n"] == len(tokens)
        assert sorted(running.messages()) == sorted(tokens.values())
        assert b"not stored" not in running.output
    with capsys.disabled():
        print(f"\n200 kills: {len(tokens)} uploads counted once each, after {sum(retries)} retries")


SPECIFICATION = PROTOCOL.to_json().encode()
UPLOADS = [(f"{number:032x}", MESSAGES[2 * number : 2 * number + 1 + number % 2]) for number in range(5)]


class Device:
    """It sends uploads to a collector of this process, the next one when the last one was answered."""

    def __init__(
        self,
        inbox: collector.Collector,
        uploads: list[tuple[str, list[bytes]]],
        then: Callable[[], object] = lambda: None,
    ) -> None:
        self.inbox, self.uploads, self.then = inbox, iter(uploads), then
        self.answers: list[str] = []
        self.send()

    def send(self) -> None:
        upload = next(self.uploads, None)
        self.inbox.waiting.put(upload and (PROTOCOL.spec_id, *upload, self))

    def put(self, answer: str) -> None:
        self.answers.append(answer)
        self.then()
        self.send()


def killed_at(step: int, folder: Path, uploads: list[tuple[str, list[bytes]]]) -> tuple[bool, int]:
    """Collect in a process that is killed before the `step`-th line of the collector; return how many it accepted."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        lines = itertools.count()

        def trace(frame: FrameType, event: str, _: object) -> Any:
            if frame.f_code.co_filename != collector.__file__:
                return None
            if event == "line" and next(lines) == step:
                os._exit(1)
            return trace

        try:
            sys.settrace(trace)
            inbox = collector.Collector(folder, [SPECIFICATION], 2)
            device = Device(inbox, uploads, lambda: os.write(writing, b"+"))
            inbox.write()
            os._exit(0 if {*device.answers} <= {"204 No Content"} else 3)
        finally:
            os._exit(2)
    os.close(writing)
    with open(reading, "rb") as accepted:
        number = len(accepted.read())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 1)
    return code == 1, number


def collect(folder: Path, uploads: list[tuple[str, list[bytes]]]) -> None:
    """Collect uploads in this process."""
    inbox = collector.Collector(folder, [SPECIFICATION], 2)
    device = Device(inbox, uploads)
    inbox.write()
    os.close(inbox.descriptor)
    assert device.answers == ["204 No Content"] * len(uploads)


def kill_everywhere(folder: Path, uploads: list[tuple[str, list[bytes]]], kills: int) -> Iterator[Path]:
    """Kill the collector everywhere, `kills` times in a row; devices try again what was not accepted."""
    for step in itertools.count():
        part = folder.with_name(f"{folder.name}-{step}")
        if folder.exists():
            shutil.copytree(folder, part)
        killed, accepted = killed_at(step, part, uploads)
        for counted in part.glob("*.bin"):  # are moved away
            counted.rename(counted.with_suffix(f".counted-{kills}"))
        if killed and kills > 1:
            yield from kill_everywhere(part, uploads[accepted:], kills - 1)
        else:
            collect(part, uploads[accepted:])
            yield part
        shutil.rmtree(part, ignore_errors=True)  # which the collector may not have made
        if not killed:
            return


@pytest.mark.parametrize(("kills", "n"), [(1, 5), pytest.param(2, 1, marks=pytest.mark.long)])
def test_a_kill_at_any_line(memory_path: Path, kills: int, n: int) -> None:
    number = 0
    for folder in kill_everywhere(memory_path / "inbox", UPLOADS[:n], kills):
        number += 1
        counted = [*folder.glob("*.counted-*"), *folder.glob("*.bin")]
        written = [message for path in counted for message in collector.divided(path.read_bytes())]
        assert sorted(written) == sorted(message for _, messages in UPLOADS[:n] for message in messages)
    assert number > 1000 if kills > 1 else number > 100


def test_a_log_cut_short_has_whole_uploads(memory_path: Path) -> None:
    """A power failure may cut the log anywhere behind what was accepted."""
    folder, whole = memory_path / "inbox", {}
    inbox = collector.Collector(folder, [SPECIFICATION], 100)
    assert inbox.sql.execute("PRAGMA synchronous").fetchone() == (2,)  # each transaction waits for the disk
    inbox.sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    Device(inbox, UPLOADS, lambda: whole.update({path.name: path.read_bytes() for path in folder.iterdir()}))
    inbox.write()
    os.close(inbox.descriptor)
    found = []
    for size in range(0, len(whole["inbox.sqlite-wal"]) + 331, 331):
        part = memory_path / f"part-{size}"
        part.mkdir()
        (part / "inbox.sqlite").write_bytes(whole["inbox.sqlite"])
        (part / "inbox.sqlite-wal").write_bytes(whole["inbox.sqlite-wal"][:size])
        collect(part, [])
        found.append(sorted(message for path in part.glob("*.bin") for message in collector.divided(path.read_bytes())))
        shutil.rmtree(part)
    prefixes = [sorted(message for _, messages in UPLOADS[:n] for message in messages) for n in range(6)]
    assert [messages for messages, _ in itertools.groupby(found)] == prefixes


def test_a_folder_has_one_collector(running: Collector) -> None:
    with pytest.raises(sqlite3.OperationalError, match="database is locked"):
        collector.Collector(running.inbox, [SPECIFICATION], 2)


def test_a_full_disk_loses_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    inbox = collector.Collector(tmp_path, [SPECIFICATION], 4)
    pages = iter([1, 10**6, 10**6])
    tokens = [f"{number:032x}" for number in (0, 1, 1)]
    uploads = list(zip(tokens, [MESSAGES[:1], MESSAGES[1:500], MESSAGES[1:500]], strict=True))
    device = Device(inbox, uploads, lambda: inbox.sql.execute(f"PRAGMA max_page_count = {next(pages)}"))
    inbox.write()
    os.close(inbox.descriptor)
    assert [answer[:3] for answer in device.answers] == ["204", "503", "204"]
    assert caplog.messages == ["not stored: database or disk is full"]
    (file,) = tmp_path.glob("messages-*")
    assert sorted(collector.divided(file.read_bytes())) == sorted(MESSAGES[:500])


def test_a_file_that_is_not_written_whole_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = collector.Collector(tmp_path, [SPECIFICATION], 1)

    def full(_: int) -> None:
        monkeypatch.undo()
        raise OSError("full")

    monkeypatch.setattr(os, "fsync", full)
    device = Device(inbox, UPLOADS[:2])
    inbox.write()
    os.close(inbox.descriptor)
    assert [answer[:3] for answer in device.answers] == [
        "204",
        "503",
        "204",
    ]  # of which the first device sees the first
    (file,) = tmp_path.glob("messages-*")
    assert sorted(collector.divided(file.read_bytes())) == sorted([MESSAGES[0], *MESSAGES[2:4]])


@pytest.mark.long
def test_a_million_values_take_no_memory_for_each_device(tmp_path: Path) -> None:
    protocol = local.OptimizedUnaryEncoding(k=10**6, epsilon=1.0)
    messages = protocol.messages(protocol.perturb(list(range(64))))
    with Collector(tmp_path, protocol.to_json()) as running:
        threads = [
            threading.Thread(target=send, args=(running, "POST", "/message", message, f"{number:032x}"))
            for number, message in enumerate(messages)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        peak = running.peak_memory()
        running.stop()
        assert sorted(running.messages()) == sorted(messages)
    assert peak < 200 << 20  # 64 times 5 counters of 8 bytes would be 2.5 GB
