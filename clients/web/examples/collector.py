"""A small collector: devices and browsers post messages, and files appear that ``dpnoise estimate --messages`` counts.

    python clients/web/examples/collector.py spec.json inbox --origin https://survey.example

GET /specification
    The specification, byte for byte as it is in its file.
POST /message
    One message, and nothing else.
POST /messages
    Messages with their length in 4 bytes before each, as docs/reference/wire_format.md says.

A body is of type application/octet-stream and has at most 1 MiB. An upload has a header ``Upload-Token``, 32 random
hexadecimal digits, which are the same when a device tries again: so an upload whose answer was lost counts once. The
answer 204 comes when the upload is on the disk; a collector that is killed loses no accepted report.

Uploads wait in a journal until there are enough messages, or the program is stopped. Then the messages become a file,
in random order, and the tokens another one, sorted, by which uploads are known that come again. Remove
``tokens-*.journal`` when no device can try again, and not before. No address, time or other header of a device is
stored or printed. TLS, limits per device and a server that forgets addresses as well belong in front of this program.
It needs a POSIX system, and dpnoise.
"""

from __future__ import annotations

import argparse
import base64
import fcntl
import os
import random
import re
import signal
import sys
import threading
import zlib
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from dpnoise import local

LARGEST_BODY = 1 << 20  # bytes


class Refused(Exception):
    """An upload is not taken; the status and the reason go to the device."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def prefixed(message: bytes) -> bytes:
    """Put the length of a message before it."""
    return len(message).to_bytes(4, "little") + message


def divided(stream: bytes) -> list[bytes]:
    """Divide a stream into its messages."""
    messages, end = [], 0
    while end < len(stream):
        start = end + 4
        end = start + int.from_bytes(stream[end:start], "little")
        if end > len(stream):
            raise Refused(HTTPStatus.BAD_REQUEST, "the last message is cut short")
        messages.append(stream[start:end])
    return messages


def packed(token: str, body: bytes = b"") -> bytes:
    """Write an upload as a line of a journal, with a line end before it, too: so damage to one reaches one upload."""
    upload = f"{token} {base64.b64encode(body).decode()}"
    return f"\n{zlib.crc32(upload.encode()):08x} {upload}\n".encode()


def uploads(journal: Path) -> Iterator[tuple[str, bytes]]:
    """Give the tokens and bodies of a journal, and say which lines are skipped: damaged, or cut short by a kill."""
    skipped = []
    with journal.open("rb") as file:
        for number, line in enumerate(file, 1):
            checksum, _, upload = line.strip(b"\n").partition(b" ")
            if checksum == b"%08x" % zlib.crc32(upload):
                token, _, body = upload.decode().partition(" ")
                yield token, base64.b64decode(body)
            elif line != b"\n":
                skipped.append(str(number))
    if skipped:
        print(f"{journal}: skipped what is not whole, line {', '.join(skipped)}", file=sys.stderr, flush=True)


def write(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file, on the disk when this returns."""
    with path.open("wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())


def to_disk(folder: Path) -> None:
    """Wait until the names of files in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Inbox:
    """A folder with a journal of uploads, and with the files that were made of earlier journals.

    Journal ``uploads-7.journal`` becomes ``messages-7.bin`` and ``tokens-7.journal``, and ``uploads-8.journal`` begins
    before that.
    While the old journal is there, these are made anew; as soon as it is removed, they are what counts. So a program
    that is killed at any time leaves each upload in one of the two.
    """

    def __init__(self, folder: Path, protocol: Any, batch: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.protocol, self.batch = folder, protocol, batch
        self.lock = threading.Lock()
        self.alone = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(self.alone, fcntl.LOCK_EX | fcntl.LOCK_NB)  # two collectors need two folders
        self.hand_over()
        journals, made = self.numbers("uploads"), self.numbers("tokens")
        earlier = (self.path("tokens", number) for number in sorted(made - journals))
        self.tokens = {token for path in earlier for token, _ in uploads(path)}
        self.open(min(journals, default=max(made, default=0) + 1))

    def path(self, kind: str, number: int, suffix: str = "journal") -> Path:
        """Name a file."""
        return self.folder / f"{kind}-{number}.{suffix}"

    def numbers(self, kind: str) -> set[int]:
        """Return which journals there are."""
        found = (path.stem.partition("-")[2] for path in self.folder.glob(f"{kind}-*.journal"))
        return {int(number) for number in found if number.isdigit()}

    def open(self, number: int) -> None:
        """Begin a journal, or go on with it."""
        self.number = number
        self.new: list[str] = []
        self.messages: list[bytes] = []
        self.file = self.path("uploads", number).open("ab", buffering=0)
        for token, body in uploads(self.path("uploads", number)):
            self.keep(token, divided(body))
        os.fsync(self.file.fileno())  # the killed program may not have waited for the last one
        to_disk(self.folder)

    def keep(self, token: str, messages: list[bytes]) -> None:
        """Remember an upload that is in the journal."""
        if token not in self.tokens:
            self.tokens.add(token)
            self.new.append(token)
            self.messages += messages

    def add(self, token: str, messages: list[bytes]) -> None:
        """Keep an upload, on the disk when this returns, unless it is known already."""
        check = self.protocol.accumulator()
        check.add_messages(messages)
        if check.rejected:
            raise Refused(HTTPStatus.BAD_REQUEST, "a message is malformed or of another specification")
        record = packed(token, b"".join(map(prefixed, messages)))
        with self.lock:
            if token in self.tokens:
                return
            if len(self.messages) >= self.batch:
                self.close()
            if self.file.closed:
                self.open(self.number + 1)
            if self.file.write(record) < len(record):
                raise OSError("the disk is full")
            os.fsync(self.file.fileno())
            self.keep(token, messages)

    def close(self) -> None:
        """Make files of the journal, if there is anything in it."""
        if not self.messages:
            return
        random.SystemRandom().shuffle(self.messages)
        write(self.path("messages", self.number, "partial"), map(prefixed, self.messages))
        write(self.path("tokens", self.number), map(packed, sorted(self.new)))
        self.path("uploads", self.number + 1).touch()  # the numbers go on when files are moved away
        to_disk(self.folder)
        self.path("uploads", self.number).unlink()
        self.file.close()
        written, self.messages = len(self.messages), []
        self.hand_over()
        print(f"{self.path('messages', self.number, 'bin')}: {written} messages", flush=True)

    def hand_over(self) -> None:
        """Give messages whose journal is gone the name by which they are counted."""
        to_disk(self.folder)
        for partial in sorted(self.folder.glob("messages-*.partial")):
            if not self.path("uploads", int(partial.stem.partition("-")[2])).exists():
                partial.rename(partial.with_suffix(".bin"))
        to_disk(self.folder)

    def leave(self) -> None:
        """Let go of the folder."""
        self.file.close()
        os.close(self.alone)


class Handler(BaseHTTPRequestHandler):
    """What a device asks, and what it is told."""

    protocol_version = "HTTP/1.1"
    timeout = 30  # seconds for a device that does not go on
    inbox: Inbox
    specification: bytes
    origin: str | None

    def do_GET(self) -> None:
        """Give the specification."""
        if self.path == "/specification":
            self.answer(HTTPStatus.OK, self.specification, "application/json")
        else:
            self.refuse(HTTPStatus.NOT_FOUND, "there is /specification, /message and /messages")

    def do_OPTIONS(self) -> None:
        """Let pages of the allowed origin post: browsers ask before they do."""
        self.answer(HTTPStatus.NO_CONTENT)

    def do_POST(self) -> None:
        """Take an upload."""
        try:
            token, messages = self.upload()
            try:
                self.inbox.add(token, messages)
            except OSError as error:
                print(f"an upload was not stored: {error}", file=sys.stderr, flush=True)
                raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "the upload was not stored; try again later") from error
        except Refused as refused:
            self.refuse(refused.status, str(refused))
        else:
            self.answer(HTTPStatus.NO_CONTENT)

    def upload(self) -> tuple[str, list[bytes]]:
        """Read the token and the messages."""
        body = self.body()
        if self.path not in ("/message", "/messages"):
            raise Refused(HTTPStatus.NOT_FOUND, "uploads go to /message and /messages")
        if self.headers.get_content_type() != "application/octet-stream":
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "uploads are of type application/octet-stream")
        token = self.headers.get("Upload-Token", "")
        if not re.fullmatch("[0-9a-f]{32}", token):
            raise Refused(HTTPStatus.BAD_REQUEST, "Upload-Token must be 32 hexadecimal digits")
        return token, [body] if self.path == "/message" else divided(body)

    def body(self) -> bytes:
        """Read the body."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "Content-Length is missing")
        if len(length) > 9 or int(length) > LARGEST_BODY:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {LARGEST_BODY} bytes")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise Refused(HTTPStatus.BAD_REQUEST, "the body is cut short")
        return body

    def refuse(self, status: HTTPStatus, reason: str) -> None:
        """Answer with an error, and end the connection: there may be more of the body."""
        self.close_connection = True
        self.answer(status, reason.encode(), "text/plain; charset=utf-8")

    def answer(self, status: HTTPStatus, content: bytes = b"", kind: str | None = None) -> None:
        """Send an answer."""
        self.send_response(status)
        if kind is not None:
            self.send_header("Content-Type", kind)
        if status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        if self.origin is not None:
            self.send_header("Access-Control-Allow-Origin", self.origin)
            self.send_header("Access-Control-Allow-Methods", "GET, POST")
            self.send_header("Access-Control-Allow-Headers", "Content-Type, Upload-Token")
            self.send_header("Access-Control-Max-Age", "86400")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: a line would have an address and a time."""


class Server(ThreadingHTTPServer):
    """A thread for each connection."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Print what went wrong, but not for whom; a connection that ends early is nothing to speak of."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            print(f"an upload failed: {type(error).__name__}", file=sys.stderr, flush=True)


def main() -> None:
    """Collect until the program is stopped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specification", type=Path, help="what dpnoise specify wrote")
    parser.add_argument("inbox", type=Path, help="the folder for uploads and for files of messages")
    parser.add_argument("--origin", help="the origin whose pages may post, such as https://survey.example")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--batch", type=int, default=10_000, help="messages in a file, at least")
    given = parser.parse_args()

    content = given.specification.read_bytes()
    Handler.specification, Handler.origin = content, given.origin
    try:
        Handler.inbox = Inbox(given.inbox, local.protocol_from_json(content.decode()), given.batch)
    except BlockingIOError:
        parser.error(f"another collector has the folder {given.inbox}")
    # A signal must not raise an error: it could be raised anywhere, and be printed with the address of a device. Any
    # thread may receive it, so the main thread waits for a pipe and not to be interrupted.
    signalled, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    with Server((given.host, given.port), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(f"collecting on http://{given.host}:{server.server_port}", flush=True)
        os.read(signalled, 1)
        server.shutdown()
    Handler.inbox.lock.acquire()  # for good: an upload that comes now must not begin a journal
    Handler.inbox.close()
    Handler.inbox.leave()


if __name__ == "__main__":
    main()
