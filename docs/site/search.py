"""MkDocs hook: the search finds guides before references, both before proofs, and words that no page says.

A page's words here are what readers look it up by. They weigh more than all that pages say, each by itself: a word of
several terms stands only with the page that explains all of them.
"""

from __future__ import annotations

from typing import Any

BOOSTS = {"guide": 8, "tutorial": 8, "reference": 2, "integrations": 0.5, "proofs": 0.5, "benchmarks": 0.5}
"""How much more a page of a folder weighs than one of another."""

WORDS = {
    "guide/asking_again.md": "RAPPOR memoization",
    "guide/auditing.md": "attack verify",
    "guide/browser.md": "JavaScript npm WebAssembly",
    "guide/budgets.md": "budget Renyi RDP zCDP",
    "guide/central.md": "curator",
    "guide/choosing_a_protocol.md": "OUE OLH SUE GRR kRR oracle Hadamard hashing subset",
    "guide/clients.md": "mobile iOS Java Kotlin Go",
    "guide/engines.md": "Spark Dask",
    "guide/interchange.md": "pandas Polars Arrow",
    "guide/local_dp.md": "survey telemetry LDP",
    "guide/queries.md": "distinct average median percentile histogram variance",
    "guide/quantile_errors.md": "median",
    "guide/selection.md": "top argmax SVT permute",
    "guide/sgd.md": "SGD clipping",
    "guide/stability.md": "A_dist",
    "guide/subsample_and_aggregate.md": "A_samp",
    "guide/tables.md": "groupby group_by dedup deduplicate DataFrame CSV SQL",
    "platforms.md": "Windows macOS Linux ARM",
    "tutorial/adult.md": "census",
    "tutorial/composition.md": "composition",
    "tutorial/definitions.md": "anonymity anonymization",
    "tutorial/gaussian.md": "Gaussian normal delta",
    "tutorial/laplace.md": "Laplace",
    "tutorial/randomized_response.md": "Warner",
    "tutorial/sensitivity.md": "sensitivity adjacent neighbouring neighboring",
    "tutorial/sgd.md": "clipping",
    "tutorial/unary_encoding.md": "OUE SUE unary_epsilon",
}


def on_files(files: Any, **_: Any) -> None:
    """Refuse words of a page that is not there."""
    if missing := WORDS.keys() - files.src_uris.keys():
        raise FileNotFoundError(f"docs/site/search.py has words of {', '.join(sorted(missing))}, which is not there")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> None:
    """Tell the theme's search what it should know of a page: its weight and its words, or that it is a record."""
    path = page.file.src_uri
    folder = path.partition("/")[0]
    page.meta["search"] = {"boost": BOOSTS.get(folder, 4), "exclude": folder == "records"}
    page.meta["tags"] = WORDS.get(path, "").split()
