"""A small collector: devices post messages, and files appear that ``dpnoise estimate --messages`` counts.

    pip install . waitress; python collector.py inbox week-48.json week-49.json --origin https://survey.example

GET /specification gives the last file as it is. POST /message takes one message, POST /messages several of one
specification, each behind its length in 4 bytes. ``Upload-Token``, 32 random hexadecimal digits, stays the same when a
device tries again: an upload counts once. 204 says that it is on the disk, 410 that its specification is closed: it is
no longer given, and its tokens are deleted. /status, at a port for the operator, has how many messages came each day.
Nothing else is stored or printed about devices. It needs a POSIX system, and a web server in front.
"""

import argparse
import logging
import os
import queue
import re
import secrets
import signal
import sqlite3
import threading
from pathlib import Path

import waitress

from dpnoise import local

LARGEST_BODY, PATIENCE, THREADS = 1 << 20, 30, 64  # bytes, seconds, and how many uploads wait for the disk together
SCHEMA = """
PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON;
CREATE TABLE IF NOT EXISTS tokens (spec TEXT, token TEXT, PRIMARY KEY (spec, token)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS messages (place INTEGER PRIMARY KEY, spec TEXT, message BLOB);
CREATE TABLE IF NOT EXISTS days (day TEXT, spec TEXT, n INTEGER, PRIMARY KEY (day, spec));
"""
COUNT = "INSERT INTO days VALUES (date('now'), ?, ?) ON CONFLICT (day, spec) DO UPDATE SET n = n + excluded.n"
TAKEN, MALFORMED, CLOSED, FAILED = "204 No Content", "400 Bad Request", "410 Gone", "503 Service Unavailable"


def divided(stream: bytes) -> list[bytes]:
    """Divide a stream into its messages; there are none if the last one is cut short."""
    messages, end = [], 0
    while end < len(stream):
        start, end = end + 4, end + 4 + int.from_bytes(stream[end : end + 4], "little")
        messages.append(stream[start:end])
    return messages if end == len(stream) else []


class Collector:
    """A folder with a database, which one thread writes, and with files of messages, in the order of random places."""

    def __init__(self, folder: Path, texts: list[bytes], batch: int, origin: str | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.descriptor, self.batch, self.origin = folder, os.open(folder, os.O_RDONLY), batch, origin
        self.specification, self.operators_port, self.waiting = texts[-1], None, queue.Queue(THREADS)
        self.checks = {p.spec_id: p.accumulator() for p in map(local.protocol_from_json, map(bytes.decode, texts))}
        self.sql = sqlite3.connect(folder / "inbox.sqlite", 1, isolation_level=None, check_same_thread=False)
        self.sql.executescript(SCHEMA)  # "database is locked" where another collector has the folder
        self.hand_over(batch)
        self.sql.execute("DELETE FROM tokens WHERE instr(?, spec) = 0", [" ".join(self.checks)])

    def add(self, token: str, messages: list[bytes]) -> str:
        """Return the answer to an upload when it is on the disk, or refused."""
        header = re.match(rb"DP\x01.(.{8})", b"".join(messages[:1]), re.DOTALL)
        if not header or not re.fullmatch("[0-9a-f]{32}", token):
            return MALFORMED
        if (spec := header[1].hex()) not in self.checks:
            return CLOSED
        self.waiting.put((spec, token, messages, answers := queue.SimpleQueue()), timeout=PATIENCE)
        return answers.get(timeout=PATIENCE)

    def write(self) -> None:
        """Store uploads until there is None. All that wait become one transaction, and share its wait for the disk."""
        uploads = []
        while None not in uploads:
            uploads = [self.waiting.get(), *(self.waiting.get() for _ in range(self.waiting.qsize()))]
            try:
                with self.sql:
                    self.sql.execute("BEGIN")
                    for spec, token, messages, answers in filter(None, uploads):
                        before = self.checks[spec].rejected
                        self.checks[spec].add_messages(messages)  # by one thread: there may be 10^6 counters
                        if self.checks[spec].rejected != before:
                            answers.put(MALFORMED)  # the first answer counts
                        elif self.sql.execute("INSERT OR IGNORE INTO tokens VALUES (?, ?)", [spec, token]).rowcount:
                            rows = sorted((secrets.randbits(63), spec, message) for message in messages)
                            self.sql.executemany("INSERT INTO messages VALUES (?, ?, ?)", rows)
                            self.sql.execute(COUNT, [spec, len(rows)])
                            self.held += len(rows)
                for *_, answers in filter(None, uploads):
                    answers.put(TAKEN)
                if None in uploads or self.held >= self.batch:
                    self.hand_over(1 if None in uploads else self.batch)
            except Exception as error:
                logging.error("not stored: %s", error)
                for *_, answers in filter(None, uploads):
                    answers.put(FAILED)
        self.sql.close()

    def hand_over(self, least: int) -> None:
        """Make files of at least so many messages, and of all whose specification is closed."""
        for path in self.folder.glob("messages-*-*.partial"):  # a kill or a full disk left it
            messages = self.sql.execute("SELECT 1 FROM messages WHERE place = ?", [int(path.stem[-16:], 16)])
            path.unlink() if messages.fetchone() else path.rename(path.with_suffix(".bin"))
        for spec, n, first in self.sql.execute("SELECT spec, COUNT(*), MIN(place) FROM messages GROUP BY 1").fetchall():
            if n >= least or spec not in self.checks:
                path = self.folder / f"messages-{spec}-{first:016x}.partial"
                with open(path, "wb") as file:
                    rows = self.sql.execute("SELECT message FROM messages WHERE spec = ? ORDER BY place", [spec])
                    file.writelines(len(message).to_bytes(4, "little") + message for (message,) in rows)
                    file.flush()
                    os.fsync(file.fileno())
                os.fsync(self.descriptor)
                self.sql.execute("DELETE FROM messages WHERE spec = ?", [spec])  # from now on the file is what counts
                path.rename(path.with_suffix(".bin"))
                self.sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the log shows in which order messages came
        self.held = 0

    def answer(self, environ: dict, start_response):
        """Answer a request, as WSGI has it."""
        request, kind, content = (environ["REQUEST_METHOD"], environ["PATH_INFO"]), "text/plain", b""
        try:
            if request == ("GET", "/specification"):
                status, kind, content = "200 OK", "application/json", self.specification
            elif request == ("GET", "/status") and environ["SERVER_PORT"] == self.operators_port:
                rows = self.sql.execute("SELECT day || ' ' || spec || ' ' || n FROM days ORDER BY 1").fetchall()
                status, content = "200 OK", "\n".join(row for (row,) in rows).encode()
            elif request in (("POST", "/message"), ("POST", "/messages")):
                body, token = environ["wsgi.input"].read(), environ.get("HTTP_UPLOAD_TOKEN", "")
                status = self.add(token, [body] if request[1] == "/message" else divided(body))
            else:
                status = TAKEN if request[0] == "OPTIONS" else "404 Not Found"
        except Exception as error:
            logging.error("an upload failed: %s", type(error).__name__)
            status = FAILED
        allowed = [("Access-Control-Allow-Origin", self.origin), ("Access-Control-Allow-Headers", "*")]
        start_response(status, [("Content-Type", kind), *(allowed if self.origin else [])])
        yield content or status.encode()  # of unknown length: waitress ends the connection, with all it brought


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("inbox", type=Path, help="the folder for the database and for files of messages")
    parser.add_argument("specifications", type=Path, nargs="+", help="what dpnoise specify wrote, the newest one last")
    parser.add_argument("--origin", help="the origin whose pages may post, such as https://survey.example")
    parser.add_argument("--ports", type=int, nargs=2, default=[8000, 8001], help="of devices, and of the operator")
    parser.add_argument("--batch", type=int, default=10_000, help="messages in a file, at least")
    given = parser.parse_args()
    logging.getLogger("waitress").setLevel(logging.CRITICAL + 1)  # a line may have an address
    collector = Collector(given.inbox, [path.read_bytes() for path in given.specifications], given.batch, given.origin)
    limits = {"threads": THREADS, "connection_limit": os.sysconf("SC_OPEN_MAX") - 99, "channel_timeout": PATIENCE}
    limits |= {"max_request_body_size": LARGEST_BODY + 1, "inbuf_overflow": LARGEST_BODY + 1, "asyncore_use_poll": True}
    server = waitress.create_server(collector.answer, listen="127.0.0.1:{} 127.0.0.1:{}".format(*given.ports), **limits)
    (_, port), (_, collector.operators_port) = server.effective_listen
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: parser.exit())
    try:
        threading.Thread(target=collector.write).start()
        print(f"collecting on http://127.0.0.1:{port}, /status at port {collector.operators_port}", flush=True)
        server.run()  # until a signal; then it answers uploads that wait
    finally:
        collector.waiting.put(None)
