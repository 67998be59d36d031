"""Tests in headless Chromium and Firefox: a page runs a module, and posts the result to the server that it came from.

There is no driver: the browser is a child process, and the server a thread. A browser has a profile of its own, reaches
loopback only, and loads the page anew for each module. It is killed when its server ends, when a page has not posted in
time, and, with a profile that is kept, when its page has posted.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pytest

from clients.shared.runners import REQUIRED, ROOT

CLIENT: Final = ROOT / "clients/web/dist"
TIMEOUT: Final = 300.0  # seconds: for a browser that shares a slow machine with others
_STARTING: Final = 60.0  # seconds in which a browser asks for its page; after that it is started again
_ATTEMPTS: Final = 3

PROGRAMS: Final = {"chromium": ("chromium", "chromium-browser", "google-chrome"), "firefox": ("firefox-esr", "firefox")}

TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript",
    ".json": "application/json",
    ".mjs": "text/javascript",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".woff2": "font/woff2",
}

# What a page needs to use the client: no inline script, no eval, only the compilation of WebAssembly.
POLICY: Final = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'"

PAGE: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>test</title>
<script src="/problems.js"></script><script type="module" src="/run.mjs"></script></head><body></body></html>
"""

# Errors of scripts and of resources, in the order in which they happen.
PROBLEMS: Final = """
window.problems = [];
addEventListener("error", (event) => {
  if (["next", "prev"].includes(event.target.rel)) return; // pages that Firefox fetches in case they are wanted
  window.problems.push(event.message ?? `${event.target.src ?? event.target.href} was not loaded`);
}, true);
addEventListener("unhandledrejection", (event) => window.problems.push(String(event.reason)));
for (const level of ["error", "warn"]) {
  const print = console[level];
  console[level] = (...what) => {
    window.problems.push(what.join(" "));
    print.apply(console, what);
  };
}
"""

RUN: Final = """
const send = fetch.bind(window); // a module may replace fetch
const post = (outcome) => send("/outcome", {
  method: "POST", body: JSON.stringify({ problems: window.problems, ...outcome }),
});
const reload = location.reload.bind(location);
try {
  const { default: main } = await import("/module.mjs");
  await post({ result: await main(await (await fetch("/given.json")).json()) ?? null });
} catch (error) {
  await post({ error: `${error}\\n${error.stack}` });
}
await send(`/next${location.search}`); // which is answered when there is another module
reload();
"""

# Neither browser may look for updates, or ask anything outside of this machine.
CHROMIUM: Final = (
    "--headless=new",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-crash-reporter",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--no-default-browser-check",
    "--no-first-run",
)
FIREFOX: Final = {
    "app.normandy.enabled": False,
    "app.update.enabled": False,
    "browser.aboutwelcome.enabled": False,
    # For a thumbnail Firefox would load a page that is visited often a second time, with storage of its own.
    "browser.pagethumbnails.capturing_disabled": True,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.proxy.allow_hijacking_localhost": False,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.no_proxies_on": "127.0.0.1",
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "network.proxy.type": 1,
    "toolkit.startup.max_resumed_crashes": -1,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}


def program(browser: str) -> str | None:
    """Return the path of a browser, if it is installed."""
    return next(filter(None, map(shutil.which, PROGRAMS[browser])), None)


def skipped(is_there: bool, reason: str) -> pytest.MarkDecorator:
    """Skip tests of what is not there, unless it must be: then they fail."""
    return pytest.mark.skipif(not is_there and not REQUIRED, reason=reason)


BROWSERS: Final = [
    pytest.param(name, marks=skipped(program(name) is not None, f"{name} is not installed")) for name in PROGRAMS
]
_WASM: Final = CLIENT / "dpnoise-collector.wasm"
needs_client = skipped(_WASM.is_file(), "the client for the web is not there: make web")


class Failed(Exception):
    """A page did not do what it was asked to."""


@contextmanager
def browsing(browser: str, url: str, profile: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Show a page in a browser, which is killed at the end of the block, with all its processes."""
    found = program(browser)
    assert found is not None, f"{browser} is not installed"
    profile.mkdir(parents=True, exist_ok=True)
    if browser == "chromium":
        command = [found, *CHROMIUM, f"--user-data-dir={profile}"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.append("--no-sandbox")  # Chromium's sandbox refuses root, as in containers
    else:
        settings = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in FIREFOX.items()]
        (profile / "user.js").write_text("\n".join(settings), encoding="ascii")
        command = [found, "--headless", "--no-remote", "--profile", str(profile)]
    if setpriv := shutil.which("setpriv"):  # then the browser ends even if the tests are killed
        command = [setpriv, "--pdeathsig", "KILL", *command]
    with (profile / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            [*command, url],
            env={**os.environ, "HOME": str(profile), "MOZ_CRASHREPORTER_DISABLE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print what went wrong, unless the browser was killed while it was connected."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Site:
    """Folders served on loopback, and modules run in a page of the same origin.

    `folders` has the folder of each first part of a path: `/client/x` is file `x` of `folders["client"]`. In pages of
    these folders `window.problems` lists errors.
    """

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self.missing: list[str] = []
        """The paths that were asked for in vain."""
        self.folders = {name: folder.resolve() for name, folder in folders.items()}
        self._made: dict[str, tuple[str, bytes]] = {
            "/run.html": (TYPES[".html"], PAGE.encode()),
            "/run.mjs": (TYPES[".mjs"], RUN.encode()),
            "/problems.js": (TYPES[".js"], PROBLEMS.encode()),
        }
        self._asked = threading.Event()
        self._open: dict[str, tuple[Path, ExitStack]] = {}
        self._next: dict[str, threading.Semaphore] = {}
        self._outcomes: queue.Queue[Any] = queue.Queue()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self.origin = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Site:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for browser in [*self._open]:
            self._close(browser)
        self._server.shutdown()
        self._server.server_close()

    def run(
        self,
        browser: str,
        module: str,
        given: object = None,
        *,
        profile: Path | None = None,
        timeout: float = TIMEOUT,
        problems: bool = False,
    ) -> Any:
        """Return what the default function of a module makes of `given`, both as JSON.

        `profile` is what the browser keeps from one run to the next: then it is killed by SIGKILL as soon as it has
        posted. Raises `Failed` for an error of the module, and for `window.problems` unless there may be some.
        """
        self._made["/module.mjs"] = (TYPES[".mjs"], module.encode())
        self._made["/given.json"] = (TYPES[".json"], json.dumps(given).encode())
        try:
            outcome = self._outcome(browser, profile, timeout)
        except Failed:
            self._close(browser)
            raise
        if profile is not None:
            self._close(browser)
        if "error" in outcome:
            raise Failed(f"{browser}: {outcome['error']}")
        if outcome["problems"] and not problems:
            raise Failed(f"{browser}: {outcome['problems']}")
        return outcome["result"]

    def _outcome(self, browser: str, profile: Path | None, timeout: float) -> Any:
        output = ""
        for _ in range(_ATTEMPTS):
            self._asked.clear()
            self._show(browser, profile)
            if self._asked.wait(_STARTING):
                try:
                    return self._outcomes.get(timeout=timeout)
                except queue.Empty:
                    raise Failed(f"{browser}: nothing was posted in {timeout} s") from None
            output = (self._open[browser][0] / "output.txt").read_text(encoding="utf-8", errors="replace")
            self._close(browser)
        raise Failed(f"{browser} did not open the page:\n{output[-2000:]}")

    def _show(self, browser: str, profile: Path | None) -> None:
        """Let a browser load the page, again if it is open."""
        if profile is None and browser in self._open:
            self._next[browser].release()
            return
        self._close(browser)
        self._next[browser] = threading.Semaphore(0)
        with ExitStack() as stack:
            if profile is None:
                profile = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
            stack.enter_context(browsing(browser, f"{self.origin}/run.html?{browser}", profile))
            self._open[browser] = (profile, stack.pop_all())

    def _close(self, browser: str) -> None:
        """Kill a browser, if it is open."""
        if browser in self._open:
            self._open.pop(browser)[1].close()

    @contextmanager
    def instead(self, path: str, content: bytes) -> Iterator[None]:
        """Serve other JSON at a path for so long."""
        self._made[path] = (TYPES[".json"], content)
        try:
            yield
        finally:
            del self._made[path]

    def read(self, path: str) -> tuple[str, bytes] | None:
        """Return the type and the content of what is served at a path."""
        if path in self._made:
            return self._made[path]
        first, _, rest = unquote(path).lstrip("/").partition("/")
        if first not in self.folders:
            return None
        file = (self.folders[first] / rest).resolve()
        if not file.is_relative_to(self.folders[first]):
            return None
        if file.is_dir():
            file /= "index.html"
        if not file.is_file():
            return None
        content, kind = file.read_bytes(), TYPES.get(file.suffix, "application/octet-stream")
        if file.suffix == ".html":
            content = content.replace(b"<head>", b'<head><script src="/problems.js"></script>', 1)
        return kind, content

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path, browser = urlsplit(self.path)[2:4]
                if path == "/next":
                    site._next[browser].acquire()
                    self.send_response(204)
                    self.end_headers()
                    return
                if path == "/run.html":
                    site._asked.set()
                found = site.read(path)
                if found is None:
                    if path != "/favicon.ico":
                        site.missing.append(path)
                    self.send_error(404)
                    return
                kind, content = found
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Cache-Control", "no-store")
                if path in site._made:
                    self.send_header("Content-Security-Policy", f"{POLICY}; connect-src http://127.0.0.1:*")
                self.end_headers()
                self.wfile.write(content)

            def do_POST(self) -> None:
                outcome = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(204)
                self.end_headers()
                site._outcomes.put(outcome)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        return Handler
