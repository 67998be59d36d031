"""One HTML page with noisy answers to a question at several epsilons, and nothing else of the data or the network."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

import dpnoise
from dpnoise._display import escaped, rounded
from dpnoise.cli.answers import Record

_STYLE: Final = """\
:root { color-scheme: light dark; --ink: #222; --page: #fff; --quiet: #666; --bar: #77aadd; --line: #222 }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #ddd; --page: #16181d; --quiet: #a0a4ab; --bar: #3d74ad; --line: #fff }
}
* { box-sizing: border-box }
body { color: var(--ink); background: var(--page); font: 16px/1.5 system-ui, sans-serif; margin: 0 auto;
  max-width: 46rem; padding: 1rem; print-color-adjust: exact; -webkit-print-color-adjust: exact }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0.5rem 0; overflow-wrap: anywhere }
h2 { font-size: 1.1rem; margin: 1.8rem 0 0.3rem; break-after: avoid }
p { margin: 0.5rem 0 }
.quiet { color: var(--quiet); font-size: 0.9rem }
table { border-collapse: collapse; table-layout: fixed; width: 100% }
th { font-weight: 400; overflow-wrap: anywhere; padding: 0.15rem 0.5rem 0.15rem 0; text-align: left; width: 26% }
td + td { font-variant-numeric: tabular-nums; padding-left: 0.5rem; text-align: right; width: 28% }
tr { break-inside: avoid }
svg { display: block; height: 1.2rem; overflow: visible; width: 100% }
rect { fill: var(--bar) }
line { stroke: var(--line); stroke-width: 1.5 }
.zero { stroke: var(--quiet); stroke-width: 1 }
.budget { display: flex; gap: 2px; margin: 0.3rem 0 }
.budget span { background: var(--bar); height: 1.5rem }
.budget span:nth-child(1) { opacity: 0.4 } .budget span:nth-child(2) { opacity: 0.7 }
"""


def page(records: Sequence[Record], epsilon: float) -> str:
    """Return the page with answers to one question, whose epsilons add up to this one."""
    title = records[0].title
    whole = _text(f"{title[0].upper()}{title[1:]}, with differential privacy")
    level = records[0].about["level"]
    ends = [end for record in records for end in _ends(record.columns)]
    sections = "".join(_section(record, min(ends), max(ends)) for record in records)
    shares = [record.about["epsilon"] for record in records]
    budget = "".join(f'<span style="width: {100 * one / epsilon:.4g}%"></span>' for one in shares)
    return f"""\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{whole}</title>
<style>
{_STYLE}</style>
<h1>{whole}</h1>
<p>The same question, answered three times. The smaller epsilon is, the less an answer reveals about any one person, and
the more noise it has. A bar is an answer; a line is the interval in which the answer without noise lies with a
probability of {100 * level:g} %, where such an interval is known.</p>
{sections}<h2>The budget: epsilon {epsilon:g} spent in all</h2>
<div class="budget" aria-hidden="true">{budget}</div>
<p>{" + ".join(f"{one:g}" for one in shares)} = {epsilon:g}. Together the three answers reveal no more about a person
than epsilon {epsilon:g} allows, where each row is one person.</p>
<p><strong>Nothing on this page comes from the data but noisy answers</strong>, so it may be shown to others if epsilon
{epsilon:g} is small enough: a large epsilon leaves hardly any noise. Whoever makes the page anew spends epsilon
{epsilon:g} again. Bins, values and bounds must be public, which means chosen without looking at the data.</p>
<p class="quiet">Made by dpnoise {_text(dpnoise.__version__)}.</p>
</html>
"""


def _ends(columns: Mapping[str, Sequence[Any]]) -> list[float]:
    """Return 0 and the ends of all intervals."""
    pairs = zip(columns["answer"], columns["error"], strict=True)
    return [0.0, *(number + sign * (error or 0.0) for number, error in pairs for sign in (-1, 1))]


def _section(record: Record, low: float, high: float) -> str:
    columns = record.columns
    rows = "".join(
        f'<tr><th scope="row">{_text(group)}</th><td>{_bar(number, error, low, high)}</td>'
        f"<td>{_text(shown(number, error))}</td></tr>\n"
        for group, number, error in zip(columns["group"], columns["answer"], columns["error"], strict=True)
    )
    notes = "".join(f'<p class="quiet">{_text(note)}</p>\n' for note in record.notes)
    return f"<h2>epsilon {record.about['epsilon']:g}</h2>\n<table>\n{rows}</table>\n{notes}"


def _bar(number: Any, error: float | None, low: float, high: float) -> str:
    """Draw an answer and its interval in percent of the width, so that it has the same scale on any screen."""
    width = high - low or 1.0

    def place(at: float) -> str:
        return f"{100 * (at - low) / width:.4g}%"

    size = f"{100 * abs(number) / width:.4g}%"
    parts = [f'<rect x="{place(min(number, 0.0))}" y="15%" width="{size}" height="70%"/>']
    if error is not None:
        parts.append(f'<line x1="{place(number - error)}" x2="{place(number + error)}" y1="50%" y2="50%"/>')
    parts.append(f'<line class="zero" x1="{place(0.0)}" x2="{place(0.0)}" y1="0" y2="100%"/>')
    return f'<svg aria-hidden="true">{"".join(parts)}</svg>'


def shown(number: Any, error: float | None) -> str:
    """Return an answer with its error, with the decimals that the error needs."""
    return rounded(number, error) + ("" if error is None else f" ± {rounded(error, error)}")


def _text(text: str) -> str:
    return escape(escaped(text))
