"""The client for the web in Chromium and in Firefox: it answers there as in node, and the harness notices faults."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.shared import cases
from clients.shared.cases import part_of
from clients.web.tests.browsers import BROWSERS, ROOT, Failed, Site, needs_client

ANSWERS = """
import { answer } from "/clients/web/tests/runner.mjs";
export default async (lines) => {
  const answers = [];
  for (const line of lines) answers.push(await answer(line));
  return answers;
};
"""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Serve the client and its tests."""
    with Site({"clients": ROOT / "clients"}) as served:
        yield served


@needs_client
@pytest.mark.parametrize("browser", BROWSERS)
def test_the_client_answers_as_python_does(site: Site, browser: str) -> None:
    asked = [case for case in [*cases.accepted(), *cases.refused()] if part_of(case.line) != "noise"]
    assert sum(case.name.startswith("messages-") for case in asked) == len(cases.VECTORS)
    answers = site.run(browser, ANSWERS, [case.line for case in asked])
    found = {case.name: cases.problem(case, answer) for case, answer in zip(asked, answers, strict=True)}
    assert {name: problem for name, problem in found.items() if problem is not None} == {}


RANDOMNESS = """
const failures = {
  missing: () => Object.defineProperty(globalThis, "crypto", { value: undefined, configurable: true }),
  throws: () => { crypto.getRandomValues = () => { throw new Error("planted"); }; },
};
export default async ({ specification, fails }) => {
  failures[fails]?.(); // the client takes its randomness when it is loaded
  const { Client } = await import("/clients/web/dist/dpnoise.mjs");
  const client = await Client.fromSpecification(specification);
  try {
    return [...client.message(3)];
  } catch (error) {
    return error.status;
  }
};
"""


@needs_client
@pytest.mark.parametrize("browser", BROWSERS)
@pytest.mark.parametrize("fails", ["nothing", "missing", "throws"])
def test_there_is_no_report_without_randomness(site: Site, browser: str, fails: str) -> None:
    outcome = site.run(browser, RANDOMNESS, {"specification": cases.UNARY, "fails": fails})
    if fails == "nothing":
        assert bytes(outcome[:12]).hex() == "44500103d63975fc79f37bc3"
    else:
        assert outcome == "randomness"


FAULTS = {
    "an error": ("export default () => { throw new Error('planted'); };", "planted"),
    "an error in a callback": (
        "export default () => new Promise((resolve) => { setTimeout(resolve, 50); throwing(); });"
        "function throwing() { setTimeout(() => { throw new Error('planted'); }); }",
        "planted",
    ),
    "a rejection that nobody handles": (
        "export default () => new Promise((resolve) => { setTimeout(resolve, 50); Promise.reject('planted'); });",
        "planted",
    ),
    "a message on the console": ("export default () => { console.error('planted'); };", "planted"),
    "a syntax error": ("export default planted planted", "SyntaxError"),
    "a module that is missing": ("import '/planted.mjs'; export default () => 1;", "TypeError"),
    "eval": ("export default () => eval('1');", "EvalError"),
    "another host": ("export default () => fetch('https://example.org/');", "TypeError"),
}


@pytest.mark.parametrize("browser", BROWSERS)
def test_the_harness_passes_json(site: Site, browser: str) -> None:
    given = {"text": "\N{GRAPES}", "numbers": [1, 2.5], "nothing": None}
    assert site.run(browser, "export default (given) => given;", given) == given


@pytest.mark.parametrize("browser", BROWSERS)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_harness_notices(site: Site, browser: str, fault: str) -> None:
    module, message = FAULTS[fault]
    with pytest.raises(Failed, match=message):
        site.run(browser, module)


@pytest.mark.parametrize("browser", BROWSERS)
def test_the_harness_notices_a_page_that_never_ends(site: Site, browser: str) -> None:
    with pytest.raises(Failed, match=re.escape("nothing was posted in 3")):
        site.run(browser, "export default () => new Promise(() => {});", timeout=3)


def test_the_harness_serves_its_folders_only(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside/page.html").write_text("<head></head>")
    (tmp_path / "secret").write_text("planted")
    with Site({"files": tmp_path / "inside"}) as served:
        assert served.read("/files/page.html") is not None
        assert served.read("/files/../secret") is None
        assert served.read("/files/%2e%2e/secret") is None
        assert served.read("/secret") is None
