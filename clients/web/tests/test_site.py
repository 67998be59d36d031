"""The site in Chromium and Firefox: formulas fit, words are found, and the playground is right and fits phones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import make_playground
import pytest

from clients.shared.runners import REQUIRED, ROOT
from clients.web.tests.bounds import bounds
from clients.web.tests.browsers import BROWSERS, Site, needs_client

SITE = ROOT / "site"
WIDTHS = {"phone": 390, "desktop": 1440}

SEARCHES = {
    "differencing": "tutorial/definitions",
    "simplex": "tutorial/definitions",
    "membership inference": "uses",
    "A/B test": "uses",
    "trade-off": "uses",
    "moments accountant": "reference/accounting/accountant",
    "Theorem 7.1": "book",
    "Algorithm 13": "book",
    "propose-test-release": "guide/stability",
    "longitudinal": "guide/asking_again",
    "rappor": "guide/asking_again",
    "laplace": "tutorial/laplace",
    "gaussian": "tutorial/gaussian",
    "exponential mechanism": "tutorial/exponential",
    "group by": "guide/tables",
    "group_by": "guide/tables",
    "dedup": "guide/tables",
    "csv": "guide/tables",
    "pandas": "guide/interchange",
    "mobile": "guide/clients",
    "javascript": "guide/browser",
    "spark": "guide/engines",
    "unary_epsilon": "tutorial/unary_encoding",
    "A_dist": "guide/stability",
    "A_samp": "guide/subsample_and_aggregate",
    "Example 7.1": "book",
    "Renyi": "guide/budgets",
    "budget": "guide/budgets",
    "epsilon": "guide/choosing_epsilon",
    "OUE": "guide/choosing_a_protocol",
    "hadamard response": "guide/choosing_a_protocol",
    "subset selection": "guide/choosing_a_protocol",
    "local hashing": "guide/choosing_a_protocol",
    "permute and flip": "guide/selection",
    "sample and threshold": "guide/sample_and_threshold",
    "SVT": "guide/selection",
    "randomized response": "tutorial/randomized_response",
    "survey": "guide/local_dp",
    "count distinct": "guide/queries",
    "average": "guide/queries",
    "histogram": "guide/queries",
    "median": "guide/queries",
    "k-anonymity": "tutorial/definitions",
    "sensitivity": "tutorial/sensitivity",
    "adjacent": "tutorial/sensitivity",
    "delta": "tutorial/gaussian",
    "windows": "platforms",
    "composition": "tutorial/composition",
    "clipping": "guide/sgd",
    "DP-SGD": "guide/sgd",
    "install": "guide/installation",
}
"""The page that is first or second for what a reader looks up."""

SEARCH = """
export default async ([first, ...others]) => {
  const page = document.createElement("iframe");
  page.src = `/site/?q=${encodeURIComponent(first)}`;
  document.body.append(page);
  const all = (what) => [...(page.contentDocument?.querySelectorAll(what) ?? [])];
  const items = () => all(".md-search-result__item");
  const said = () => all(".md-search-result__meta")[0]?.textContent.trim() ?? "";
  const until = async (holds) => { while (!holds()) await new Promise((resolve) => setTimeout(resolve, 20)); };
  const type = (text) => {
    const [query] = all("[data-md-component=search-query]");
    query.value = text;
    query.dispatchEvent(new KeyboardEvent("keyup"));
  };
  const found = {};
  for (const word of [first, ...others]) {
    if (word !== first) {
      type("");
      await until(() => !/document/.test(said()) && !items().length);
      type(word);
    }
    await until(() => /document/.test(said()) && (/^No/.test(said()) || items().length));
    found[word] = items().map((item) => new URL(item.querySelector("a").href).pathname);
  }
  return found;
};
"""

FORMULAS = """
export default async ({ width, paths }) => {
  const page = document.createElement("iframe");
  page.width = width;
  document.body.append(page);
  const found = { formulas: 0, wide: [], problems: [] };
  for (const path of paths) {
    await new Promise((resolve) => { page.onload = resolve; page.src = `/site/${path}`; });
    const { contentDocument: document, contentWindow: window } = page;
    await document.fonts.ready;
    const shown = [...document.querySelectorAll(".katex-display")];
    const wide = shown.filter((one) => one.scrollWidth > one.clientWidth + 1);
    found.wide.push(...wide.map((one) => `${path}: ${one.querySelector("annotation").textContent}`));
    if (document.documentElement.scrollWidth > width) found.wide.push(path);
    found.formulas += [...document.fonts].some((font) => /KaTeX/.test(font.family) && font.status === "loaded")
      ? shown.length : 0;
    found.problems.push(...window.problems);
  }
  return found;
};
"""

NOTHING = b'{"config": {"lang": ["en"], "separator": " ", "pipeline": [], "fields": {}}, "docs": []}'
"""Each page reads the words of all pages, which takes longer than anything else on it."""

STATE = """
const done = (page, was) => new Promise((resolve, reject) => {
  const look = () => {
    const people = page.contentDocument.getElementById("people");
    const { state, run } = people?.dataset ?? {};
    if (state === "failed") reject(new Error(people.textContent));
    // The report of one person comes by itself, before or after the counts.
    else if (state === "done" && run !== was && people.querySelector(".bytes")) resolve(run);
    else setTimeout(look, 20);
  };
  look();
});

const shown = (page) => {
  const { contentDocument: document, contentWindow: window } = page;
  const people = document.getElementById("people");
  const number = (text) => Number(text.replaceAll(",", "").replace("\\u2212", "-"));
  const wide = [...people.querySelectorAll("*")].filter((one) => {
    const box = one.getBoundingClientRect();
    return !one.closest(".scrolling") && (box.right > window.innerWidth + 1 || box.left < -1);
  });
  return {
    rows: [...people.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent))
      .map(([, truth, estimate, interval]) => [truth, estimate, ...interval.split(" to ")].map(number)),
    missed: people.querySelectorAll("tbody .missed").length,
    dataset: { ...people.dataset },
    summary: people.querySelector(".summary").textContent,
    bytes: people.querySelector(".bytes").textContent,
    width: window.innerWidth,
    overflow: [document.documentElement.scrollWidth, ...wide.map((one) => one.outerHTML.slice(0, 80))],
    bars: people.querySelectorAll("svg .truth").length,
    dots: people.querySelectorAll("svg g .estimate").length,
    missing: [...people.querySelectorAll("svg")].filter((svg) => !svg.querySelector("title")?.textContent).length,
    problems: window.problems,
  };
};
"""

HOME = (
    STATE
    + """
export default async ({ width }) => {
  const page = document.createElement("iframe");
  page.width = width;
  page.height = 100;
  page.src = "/site/";
  document.body.append(page);
  await new Promise((resolve) => { page.onload = resolve; });
  for (let i = 0; i < 10; i++) await new Promise(requestAnimationFrame);
  const loaded = page.contentWindow.performance.getEntriesByType("resource").map(({ name }) => name);
  page.contentDocument.getElementById("people").scrollIntoView();
  await done(page);
  return { ...shown(page), loaded, address: page.contentWindow.location.search };
};
"""
)

VISITS = (
    STATE
    + """
export default async ({ width, query, changes }) => {
  const page = document.createElement("iframe");
  page.width = width;
  page.height = 900;
  page.src = `/site/playground/?${query}`;
  document.body.append(page);
  let run = await done(page);
  const outcomes = [shown(page)];
  for (const [name, value] of changes) {
    const control = page.contentDocument.querySelector(`#people [name=${name}]`);
    control.value = value;
    control.dispatchEvent(new page.contentWindow.Event("input", { bubbles: true }));
    run = await done(page, run);
    outcomes.push(shown(page));
  }
  return outcomes;
};
"""
)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Serve the site."""
    if not (SITE / "index.html").is_file():
        (pytest.fail if REQUIRED else pytest.skip)("the site is not built: make docs")
    with Site({"site": SITE}) as served:
        yield served


def chosen(protocol: str, k: int, epsilon: float) -> dict[str, Any]:
    """Return what the playground knows of a choice."""
    known = json.loads(make_playground.FILE.read_text(encoding="ascii"))
    found: dict[str, Any] = known["protocols"][protocol][str(k)][known["epsilons"].index(epsilon)]
    return found


def check(outcome: dict[str, Any], protocol: str, k: int, n: int, epsilon: float) -> None:
    """Check the numbers of a page, which must not be off by more than chance allows."""
    one = chosen(protocol, k, epsilon)
    truth = [row[0] for row in outcome["rows"]]
    assert (sum(truth), len(truth), outcome["bars"], outcome["dots"]) == (n, k, k, k)
    assert truth == sorted(truth, reverse=True)
    assert truth[0] > 2 * truth[2]
    errors = [abs(row[1] - row[0]) for row in outcome["rows"]]
    for error, bound in zip(errors, bounds(truth, one["p"], one["q"]), strict=True):
        assert error <= bound + 0.5  # numbers are rounded
    assert abs(float(outcome["dataset"]["largestError"]) - max(errors)) <= 0.5
    assert f"of {n:,} people" in outcome["summary"]
    for people, estimate, lower, upper in outcome["rows"]:
        # The page knows the variance from the estimate only.
        p, q = one["p"], one["q"]
        variance = (people * p * (1 - p) + (n - people) * q * (1 - q)) / (p - q) ** 2
        assert abs((upper - lower) / 2 - 1.96 * variance**0.5) <= 0.1 * 1.96 * variance**0.5 + 1
        assert abs((upper + lower) / 2 - estimate) <= 1
        assert lower <= estimate <= upper
        assert people >= 0
    missed = sum(not lower <= people <= upper for people, _, lower, upper in outcome["rows"])
    at_an_end = sum(people in (lower, upper) for people, _, lower, upper in outcome["rows"])  # which is rounded
    assert missed <= outcome["missed"] <= missed + at_an_end, outcome["rows"]
    message = bytes.fromhex(outcome["bytes"].replace(" ", ""))
    assert message[:2] == b"DP"
    assert message[4:12] == sha256(one["specification"].encode()).digest()[:8]
    assert len(message) == 12 + int(outcome["dataset"]["reportBytes"])


@pytest.mark.parametrize("browser", BROWSERS)
def test_formulas_fit_the_page(site: Site, browser: str) -> None:
    folder = site.folders["site"]
    pages = [page for page in folder.glob("**/index.html") if "katex-display" in page.read_text(encoding="utf-8")]
    paths = [f"{page.parent.relative_to(folder)}/" for page in pages]
    with site.instead("/site/search/search_index.json", NOTHING):
        found = site.run(browser, FORMULAS, {"width": WIDTHS["desktop"], "paths": paths})
        assert found["wide"] == []
        assert found["problems"] == []
        assert found["formulas"] > 100
        # The positive control: a phone is narrower than some formulas.
        assert site.run(browser, FORMULAS, {"width": WIDTHS["phone"], "paths": ["tutorial/laplace/"]})["wide"] != []


@pytest.mark.parametrize("browser", BROWSERS)
def test_the_search_finds_the_words_of_the_field(site: Site, browser: str) -> None:
    found = site.run(browser, SEARCH, [*SEARCHES, "xyzzy"])
    assert found.pop("xyzzy") == []
    assert {word: page for word, page in SEARCHES.items() if f"/site/{page}/" not in found[word][:2]} == {}


@needs_client
@pytest.mark.parametrize("browser", BROWSERS)
@pytest.mark.parametrize("screen", WIDTHS)
def test_the_playground_is_right_and_fits(site: Site, browser: str, screen: str) -> None:
    # The values of the slider are the places of 0.5 and 4 on the grid.
    places = [str(make_playground.EPSILONS.index(epsilon)) for epsilon in (0.5, 4.0)]
    changes = [("epsilon", places[1]), ("protocol", "local_hashing"), ("people", "1000000"), ("k", "64")]
    given = {"width": WIDTHS[screen], "query": "epsilon=0.5&k=16&protocol=subset_selection", "changes": changes}
    found = site.run(browser, VISITS, given)
    check(found[0], "subset_selection", 16, 100_000, 0.5)
    check(found[1], "subset_selection", 16, 100_000, 4.0)
    check(found[2], "local_hashing", 16, 100_000, 4.0)
    check(found[3], "local_hashing", 16, 1_000_000, 4.0)
    check(found[4], "local_hashing", 64, 1_000_000, 4.0)
    # The margins of these two are 14 standard errors apart.
    assert float(found[1]["dataset"]["largestError"]) < float(found[0]["dataset"]["largestError"])
    for outcome in found:
        assert outcome["problems"] == []
        assert outcome["missing"] == 0
        assert outcome["width"] == WIDTHS[screen]
        assert outcome["overflow"][0] <= WIDTHS[screen]
        assert outcome["overflow"][1:] == []
    assert site.missing == []


@needs_client
@pytest.mark.parametrize("browser", BROWSERS)
@pytest.mark.parametrize("screen", WIDTHS)
def test_the_playground_of_the_home_page_waits_to_be_seen(site: Site, browser: str, screen: str) -> None:
    found = site.run(browser, HOME, {"width": WIDTHS[screen]})
    check(found, "optimized_unary_encoding", 8, 10_000, 1.0)
    assert any(name.endswith("playground.mjs") for name in found["loaded"])
    assert not any(name.endswith(("specifications.json", "worker.mjs", ".wasm")) for name in found["loaded"])
    assert (found["address"], found["problems"], found["missing"]) == ("", [], 0)
    assert found["overflow"][0] <= WIDTHS[screen]
    assert found["overflow"][1:] == []


@needs_client
@pytest.mark.parametrize("browser", BROWSERS)
@pytest.mark.parametrize("protocol", [kind for kind in json.loads(make_playground.specifications())["protocols"]])
def test_each_protocol_of_the_playground(site: Site, browser: str, protocol: str) -> None:
    query = f"epsilon=2&k=8&people=10000&protocol={protocol}"
    (found,) = site.run(browser, VISITS, {"width": 700, "query": query, "changes": []})
    check(found, protocol, 8, 10_000, 2.0)
    assert found["problems"] == []


@needs_client
@pytest.mark.parametrize("browser", BROWSERS)
def test_wrong_addresses_do_no_harm(site: Site, browser: str) -> None:
    query = "epsilon=7.77&k=9&people=-1&protocol=%3Cb%3E"
    (found,) = site.run(browser, VISITS, {"width": 700, "query": query, "changes": []})
    check(found, "optimized_unary_encoding", 16, 100_000, 1.0)


def test_wrong_numbers_are_found() -> None:
    """The positive control of `check`: estimates of other answers, and intervals that are too short."""
    one = chosen("optimized_unary_encoding", 4, 2.0)
    truth = [6000, 2500, 1000, 500]
    p, q = one["p"], one["q"]
    halves = [1.96 * (m * p * (1 - p) + (10_000 - m) * q * (1 - q)) ** 0.5 / (p - q) for m in truth]
    rows = [[m, m + 1, m + 1 - half, m + 1 + half] for m, half in zip(truth, halves, strict=True)]
    good = {
        "rows": rows,
        "missed": 0,
        "bars": 4,
        "dots": 4,
        "summary": "of 10,000 people",
        "bytes": f"44500103{sha256(one['specification'].encode()).hexdigest()[:16]}00",
        "dataset": {"largestError": "1", "reportBytes": "1"},
    }
    check(good, "optimized_unary_encoding", 4, 10_000, 2.0)
    shifted = [[m, *row[1:]] for m, row in zip(truth, rows[::-1], strict=True)]
    short = [[people, people + 1, people, people + 2] for people in truth]
    for wrong in ({"rows": shifted}, {"rows": short}, {"bars": 3}, {"bytes": "4450"}, {"missed": 4}):
        with pytest.raises(AssertionError):
            check({**good, **wrong}, "optimized_unary_encoding", 4, 10_000, 2.0)


def test_the_specifications_are_those_of_the_library() -> None:
    text = make_playground.FILE.read_text(encoding="ascii")
    assert text == make_playground.specifications(), "run python docs/site/make_playground.py"


def test_the_site_says_that_the_playground_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mkdocs", reason="mkdocs, which builds the site, is not installed: make docs")
    import playground

    page = (ROOT / "docs/playground.md").read_text(encoding="utf-8")
    front = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    monkeypatch.setattr(playground, "CLIENT", tmp_path)
    config = SimpleNamespace(nav=[{"Start": ["index.md"]}, {"Playground": "playground.md"}])
    playground.on_config(config)
    assert config.nav == [{"Start": ["index.md"]}]
    assert "playground" not in playground.on_page_markdown(front)
    files: list[Any] = []
    playground.on_files(files, config=None)
    assert files == []
    assert "is left out" in playground.on_page_markdown(page)
    assert "<script" not in playground.on_page_markdown(page)
    for name in playground.FILES:
        (tmp_path / name).touch()
    assert "is left out" not in playground.on_page_markdown(page)
    assert "<script" in playground.on_page_markdown(page)
    assert "playground.md" in playground.on_page_markdown(front)
