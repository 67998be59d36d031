"""From the browser to the count: real browsers report, the collector keeps, the command line counts."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fcntl", reason="the collector needs a POSIX system")
pytest.importorskip("typer", reason="the extra `cli` is not installed")

from clients.web.examples import collector
from clients.web.tests.bounds import bounds
from clients.web.tests.browsers import BROWSERS, CLIENT, ROOT, Failed, Site, needs_client
from clients.web.tests.collecting import Collector
from dpnoise import local
from dpnoise.cli import main

pytestmark = needs_client

PROTOCOL = local.OptimizedUnaryEncoding(k=15, epsilon=1.0)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Serve the client, and beside it what a page does with it."""
    shutil.copytree(CLIENT, tmp_path / "page")
    shutil.copy(ROOT / "clients/web/examples/page.mjs", tmp_path / "page")
    with Site({"page": tmp_path / "page"}) as served:
        yield served


CROWD = """
import { Client } from "/page/dpnoise.mjs";

const upload = async (address, body) => {
  const token = crypto.randomUUID().replaceAll("-", "");
  const headers = { "Content-Type": "application/octet-stream", "Upload-Token": token };
  const response = await fetch(address, { method: "POST", headers, body });
  if (response.status !== 204) throw new Error(`${response.status}: ${await response.text()}`);
};

export default async ({ collector, truth, single, most }) => {
  const answers = Int32Array.from(truth.flatMap((people, value) => Array(people).fill(value)));
  const specification = new Uint8Array(await (await fetch(`${collector}/specification`)).arrayBuffer());
  const client = await Client.fromSpecification(specification);
  const times = { making: 0, sending: 0 };
  for (const answer of answers.subarray(0, single)) await upload(`${collector}/message`, client.message(answer));
  const row = client.messageBytes;
  const each = Math.floor(most / (4 + row));
  for (let start = single; start < answers.length; start += each) {
    const began = performance.now();
    const messages = client.messages(answers.subarray(start, start + each));
    times.making += performance.now() - began;
    const n = messages.length / row;
    const body = new Uint8Array(n * (4 + row));
    for (let i = 0; i < n; i++) {
      new DataView(body.buffer).setUint32(i * (4 + row), row, true);
      body.set(messages.subarray(i * row, (i + 1) * row), i * (4 + row) + 4);
    }
    const sent = performance.now();
    await upload(`${collector}/messages`, body);
    times.sending += performance.now() - sent;
  }
  return times;
};
"""


def crowd(n: int) -> list[int]:
    """Say how many people have each answer: half of the rest each time, and nobody the last three."""
    truth = [n >> (value + 1) for value in range(PROTOCOL.k - 3)]
    return [n - sum(truth[1:]), *truth[1:], 0, 0, 0]


def largest_z(truth: list[int], estimates: list[dict[str, Any]]) -> float:
    """Check that all counts are as exact as they must be, and return the largest distance in standard errors."""
    counts = [row["count"] for row in estimates]
    for count, people, bound in zip(counts, truth, bounds(truth, PROTOCOL.p, PROTOCOL.q), strict=True):
        assert abs(count - people) < bound
    errors = [row["standard_error"] for row in estimates]
    return max(abs(count - people) / error for count, people, error in zip(counts, truth, errors, strict=True))


@pytest.mark.parametrize("browser", BROWSERS)
def test_the_command_line_counts_what_a_browser_sent(site: Site, tmp_path: Path, browser: str) -> None:
    truth = crowd(20_000)
    with Collector(tmp_path, PROTOCOL.to_json(), batch=8_000, origin=site.origin) as running:
        site.run(browser, CROWD, {"collector": running.address, "truth": truth, "single": 30, "most": 100_000})
        running.kill()  # and what is in the database is counted all the same
        running.start()
        running.stop()
        assert len(running.files) > 1
        state = tmp_path / "counts.json"
        for _ in range(2):  # the second time all files are known already
            counted = running.estimates("--state", str(state))
            assert (counted["n"], counted["rejected"]) == (20_000, 0)
        largest_z(truth, counted["estimates"])


def test_a_biased_count_is_found() -> None:
    truth = crowd(20_000)
    reports = PROTOCOL.perturb([value for value, people in enumerate(truth) for _ in range(people)])
    found = PROTOCOL.estimate(reports)
    rows = [{"count": c, "standard_error": e} for c, e in zip(found.counts, found.standard_errors, strict=True)]
    largest_z(truth, rows)
    with pytest.raises(AssertionError):
        largest_z([*truth[1:], truth[0]], rows)


@pytest.mark.parametrize("browser", BROWSERS)
def test_a_page_of_another_origin_cannot_report(site: Site, tmp_path: Path, browser: str) -> None:
    module = """
    export default ({ collector }) => fetch(`${collector}/specification`).then(() => "read", () => "not read");
    """
    for origin, outcome in ((site.origin, "read"), ("https://other.example", "not read")):
        with Collector(tmp_path, PROTOCOL.to_json(), origin=origin) as running:
            found = site.run(browser, module, {"collector": running.address}, problems=outcome == "not read")
            assert found == outcome


@pytest.mark.long
def test_a_million_reports_of_chromium(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = crowd(1_000_000)
    with Collector(tmp_path, PROTOCOL.to_json(), batch=10_000, origin=site.origin) as running:
        times = site.run(
            "chromium",
            CROWD,
            {"collector": running.address, "truth": truth, "single": 0, "most": collector.LARGEST_BODY},
        )
        running.stop()
        started = time.perf_counter()
        counted = running.estimates()
        counting = time.perf_counter() - started
    assert (counted["n"], counted["rejected"]) == (1_000_000, 0)
    z = largest_z(truth, counted["estimates"])
    with capsys.disabled():
        print(
            f"\n10^6 reports: made in {times['making'] / 1e3:.2f} s, sent and kept in {times['sending'] / 1e3:.2f} s, "
            f"counted by the command line in {counting:.2f} s; largest z {z:.2f}"
        )


VISIT = """
export default async () => {
  const page = document.createElement("iframe");
  page.src = "/page/index.html";
  document.body.append(page);
  await new Promise((resolve) => { page.onload = resolve; });
  const form = page.contentDocument.getElementById("question");
  form.querySelector("[value='2']").click();
  while (form.textContent !== "Thank you.") await new Promise((resolve) => { setTimeout(resolve, 20); });
  return page.contentWindow.problems;
};
"""


@pytest.mark.parametrize("browser", BROWSERS)
def test_the_page_of_the_guide_reports(site: Site, tmp_path: Path, browser: str) -> None:
    guide = (ROOT / "docs/guide/browser.md").read_text(encoding="utf-8")
    html, script = (
        re.findall(f"^```{kind}\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE) for kind in ("html", "javascript")
    )
    assert (len(html), len(script)) == (1, 1)
    (specify,) = re.findall("^dpnoise (specify .*)$", guide, re.MULTILINE)
    assert main(specify.replace("spec.json", str(tmp_path / "spec.json")).split()) == 0
    with Collector(tmp_path, (tmp_path / "spec.json").read_text(encoding="ascii"), origin=site.origin) as running:
        (tmp_path / "page/index.html").write_text(f"<!DOCTYPE html><html><head></head><body>{html[0]}</body></html>")
        (tmp_path / "page/question.mjs").write_text(script[0].replace("https://collector.example", running.address))
        assert site.run(browser, VISIT) == []
        assert len(running.messages()) == 1


ASKED = """
import { clientFor, report } from "/page/page.mjs";
export default async ({ collector, question, period, value, hang }) => {
  const client = await clientFor(collector, question);
  if (hang) globalThis.fetch = () => new Promise((never) => { setTimeout(() => done("killed while sending"), 100); });
  let done;
  const killed = new Promise((resolve) => { done = resolve; });
  return Promise.race([killed, report(collector, client, period, value)]);
};
"""


@pytest.mark.parametrize("browser", BROWSERS)
def test_a_browser_that_is_killed_reports_once_and_keeps_its_memo(site: Site, tmp_path: Path, browser: str) -> None:
    """The browser is killed after each run, and once between storing a report and sending it."""
    # Two memos give the same report with a probability below 2^-60.
    protocol = local.DBitFlip(k=64, d=64, epsilon=1.0)
    given = {"question": "colour", "period": "monday", "value": 3}
    profile, other = tmp_path / "profile", tmp_path / "other"
    with Collector(tmp_path, protocol.to_json(), origin=site.origin) as running:
        given["collector"] = running.address

        def ask(folder: Path = profile, **changes: Any) -> list[bytes]:
            site.run(browser, ASKED, {**given, **changes}, profile=folder)
            return running.messages()

        assert ask(hang=True) == []
        first = ask()
        assert len(first) == 1
        assert ask() == first  # once in a period
        assert ask(value=5) == first
        tuesday = ask(period="tuesday")
        assert tuesday == first * 2  # the same answer again
        assert len(set(ask(period="wednesday", question="shape"))) == 2
        assert len(set(ask(other))) == 3


@pytest.mark.parametrize("browser", BROWSERS)
def test_a_question_has_one_randomiser_and_one_period(site: Site, tmp_path: Path, browser: str) -> None:
    first = local.DBitFlip(k=64, d=64, epsilon=1.0).about(question="colour", period="2026-W48")
    again = local.DBitFlip(k=64, d=64, epsilon=0.99).about(question="colour", period="2026-W49")
    refusals = [
        (first, {}, None),
        (again, {"period": "2026-W49"}, "costs epsilon again"),
        (first.about(period="2026-W49"), {}, "the specification is of another period"),
        (first, {"question": "shape"}, "the specification is of another question"),
    ]
    for index, (protocol, changes, problem) in enumerate(refusals):
        folder = tmp_path / str(index)
        folder.mkdir()
        with Collector(folder, protocol.to_json(), origin=site.origin) as running:
            given = {"collector": running.address, "question": "colour", "period": "2026-W48", "value": 3} | changes
            if problem is None:
                site.run(browser, ASKED, given, profile=tmp_path / "profile")
            else:
                with pytest.raises(Failed, match=problem):
                    site.run(browser, ASKED, given, profile=tmp_path / "profile")
            assert len(running.messages()) == (problem is None)


@pytest.mark.parametrize("browser", BROWSERS)
def test_the_page_refuses_more_epsilon_than_was_promised(site: Site, tmp_path: Path, browser: str) -> None:
    with Collector(tmp_path, local.OptimizedUnaryEncoding(k=15, epsilon=1.01).to_json(), origin=site.origin) as running:
        given = {"collector": running.address, "question": "colour", "period": "monday", "value": 3}
        with pytest.raises(Failed, match="asks for too large an epsilon"):
            site.run(browser, ASKED, given)
        assert running.messages() == []
