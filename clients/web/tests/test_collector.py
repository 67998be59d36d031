"""The collector of the examples: what it takes and refuses, and what a kill leaves."""

from __future__ import annotations

import http.client
import itertools
import os
import secrets
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

pytest.importorskip("fcntl", reason="the collector needs a POSIX system")

from clients.web.examples import collector
from clients.web.tests.collecting import Collector
from dpnoise import local
from dpnoise.hazmat import SeededRng

PROTOCOL = local.OptimizedUnaryEncoding(k=80, epsilon=1.0)
# From a seed, because a checksum of 32 bits finds damage to most messages, and not to all.
MESSAGES = PROTOCOL.messages(PROTOCOL.perturb([value % 80 for value in range(600)], rng=SeededRng(1)))
assert len(set(MESSAGES)) == 600
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
    assert all(path.name.startswith("tokens-") for path in running.inbox.iterdir() if TOKEN in path.read_text("latin1"))


@pytest.mark.parametrize("batch", [100, 10**9])
def test_a_killed_collector_counts_every_upload_once(tmp_path: Path, batch: int) -> None:
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
            assert all(kept.count(MESSAGES[number]) == 1 for number in accepted)
            running.start()
        for number, message in enumerate(MESSAGES):  # whether it was accepted before or not
            assert send(running, "POST", "/message", message, token=tokens[number])[0] == 204
        running.stop()
        assert len(running.files) == 1 if batch > len(MESSAGES) else len(running.files) > 1
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
        assert b"skipped" not in b"".join(line for line in running.output.splitlines() if b"uploads" not in line)
    with capsys.disabled():
        print(f"\n200 kills: {len(tokens)} uploads counted once each, after {sum(retries)} retries")


UPLOADS = [(f"{number:032x}", MESSAGES[2 * number : 2 * number + 1 + number % 2]) for number in range(5)]


def killed_at(step: int, folder: Path, uploads: list[tuple[str, list[bytes]]]) -> tuple[bool, list[int]]:
    """Collect in a process that is killed before the `step`-th line of the collector; return what it accepted."""
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
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.settrace(trace)
            inbox = collector.Inbox(folder, PROTOCOL, 2)
            for number, upload in enumerate(uploads):
                inbox.add(*upload)
                os.write(writing, bytes([number]))
            inbox.close()
            os._exit(0)
        finally:
            os._exit(2)
    os.close(writing)
    with open(reading, "rb") as accepted:
        numbers = list(accepted.read())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 1)
    return code == 1, numbers


def kill_everywhere(folder: Path, uploads: list[tuple[str, list[bytes]]], kills: int) -> Iterator[Path]:
    """Kill the collector everywhere, `kills` times in a row; devices try again what was not accepted."""
    for step in itertools.count():
        part = folder.with_name(f"{folder.name}-{step}")
        if folder.exists():
            shutil.copytree(folder, part)
        killed, accepted = killed_at(step, part, uploads)
        for counted in part.glob("*.bin"):  # are moved away
            counted.rename(counted.with_suffix(f".counted-{kills}"))
        rest = [upload for number, upload in enumerate(uploads) if number not in accepted]
        if killed and kills > 1:
            yield from kill_everywhere(part, rest, kills - 1)
        else:
            inbox = collector.Inbox(part, PROTOCOL, 2)
            for upload in rest:
                inbox.add(*upload)
            inbox.close()
            inbox.leave()
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
    assert number > 1000 if kills > 1 else number > 200


def stored(folder: Path) -> list[bytes]:
    """Return the messages that a collector finds when it starts."""
    inbox = collector.Inbox(folder, PROTOCOL, 100)
    inbox.leave()
    return inbox.messages


@pytest.mark.parametrize("every_byte", [False, pytest.param(True, marks=pytest.mark.long)])
def test_damage_reaches_one_upload(memory_path: Path, capsys: pytest.CaptureFixture[str], every_byte: bool) -> None:
    """Each bit of a journal is flipped, and each byte is lost; the long form replaces each byte by each other one."""
    inbox = collector.Inbox(memory_path, PROTOCOL, 100)
    for upload in UPLOADS:
        inbox.add(*upload)
    inbox.leave()
    journal = memory_path / "uploads-1.journal"
    whole = journal.read_bytes()
    flips = range(1, 256) if every_byte else [1 << bit for bit in range(8)]
    without = [[message for upload in UPLOADS if upload != lost for message in upload[1]] for lost in UPLOADS]
    every = [message for upload in UPLOADS for message in upload[1]]
    harmless = 0
    capsys.readouterr()
    for place, byte in enumerate(whole):
        for other in (b"", b"\n\0\n\n" * 10, *(bytes([byte ^ flip]) for flip in flips)):
            journal.write_bytes(whole[:place] + other + whole[place + 1 :])
            kept, said = stored(memory_path), capsys.readouterr().err
            if kept == every:
                harmless += 1
            else:
                assert kept in without
                assert said.startswith(f"{journal}: skipped ")
    assert harmless < 0.03 * len(whole) * len(flips)  # at line ends only


def test_an_upload_that_is_not_whole_is_skipped(running: Collector) -> None:
    assert send(running, "POST", "/message", MESSAGES[0])[0] == 204
    for number, tail in enumerate([b"\1", bytes(100), b"\xff" * 100, collector.packed(TOKEN, b"planted")[:-2]], 1):
        running.kill()
        (journal,) = running.inbox.glob("*.journal")
        with journal.open("ab") as file:
            file.write(tail)
        running.start()
        assert f"{journal}: skipped".encode() in running.output
        assert send(running, "POST", "/message", MESSAGES[number], token=f"{number:032x}")[0] == 204
    running.stop()
    assert sorted(running.messages()) == sorted(MESSAGES[:5])


def test_an_upload_that_comes_after_its_file_counts_once(tmp_path: Path) -> None:
    for start in range(2):
        inbox = collector.Inbox(tmp_path, PROTOCOL, 2)
        for upload in UPLOADS:
            inbox.add(*upload)
            inbox.add(*upload)
        inbox.close()
        inbox.leave()
        assert len(list(tmp_path.glob("messages-*.bin"))) == 3 * (1 - start)
        assert [path.name for path in tmp_path.glob("uploads-*")] == ["uploads-4.journal"]
        for path in tmp_path.glob("messages-*"):
            path.rename(tmp_path / f"counted-{path.stem}")
    for path in tmp_path.glob("tokens-*"):
        tokens = [token for token, body in collector.uploads(path)]
        assert tokens == sorted(tokens)
        path.unlink()
    inbox = collector.Inbox(tmp_path, PROTOCOL, 2)
    inbox.add(*UPLOADS[0])
    inbox.close()
    inbox.leave()
    assert len(list(tmp_path.glob("messages-4.bin"))) == 1  # the numbers go on


def test_a_folder_has_one_collector(running: Collector) -> None:
    with pytest.raises(BlockingIOError):
        collector.Inbox(running.inbox, PROTOCOL, 2)


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = collector.Inbox(tmp_path, PROTOCOL, 100)
    inbox.add(TOKEN, MESSAGES[:1])
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            inbox.add(TOKEN[::-1], MESSAGES[1:2])
    inbox.add(TOKEN[::-1], MESSAGES[1:2])
    inbox.leave()
    assert stored(tmp_path) == MESSAGES[:2]
