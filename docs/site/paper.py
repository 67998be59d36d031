"""Check the paper as its journal will, and build it: python docs/site/paper.py FILE.pdf (`make paper`).

JOSS asks for these sections and for 750 to 1750 words; the figures are those of the record of the benchmarks.
"""

import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/paper"
sys.path.insert(0, str(ROOT))

from benches.page import RIVALS, front_parts, number  # noqa: E402
from benches.record import WHOLE, kept  # noqa: E402

SECTIONS = [
    "Summary",
    "Statement of need",
    "State of the field",
    "Software design",
    "Research impact statement",
    "AI usage disclosure",
    "Acknowledgements",
    "References",
]
MOST_PAGES = 3
"""Two of text, and the references."""


def problems(text: str, bibliography: str) -> list[str]:
    """Return what the journal or the record would object to."""
    _, head, body = text.split("---\n", 2)
    found = [
        f"no {key} in the head" for key in ("title", "tags", "authors", "affiliations", "date") if f"{key}:" not in head
    ]
    if re.findall(r"^# (.*)$", body, re.MULTILINE) != SECTIONS:
        found.append(f"the sections are not {', '.join(SECTIONS)}")
    words = len(body.split())
    if not 750 <= words <= 1750:
        found.append(f"{words} words")
    cited, entries = (
        set(re.findall(r"@(\w+)", body)),
        set(re.findall(r"^@\w+\{(\w+),", bibliography, re.MULTILINE)),
    )
    found += [f"{key} is cited, and not in the bibliography" for key in sorted(cited - entries)]
    found += [f"{key} is in the bibliography, and not cited" for key in sorted(entries - cited)]
    record = kept()[WHOLE]
    figures = {f"{ratio} times as fast as {name}" for name, ratio in front_parts(record).items() if name in RIVALS}
    figures.add(f"{number(record.tables['Discrete Laplace'].amounts[record.ours]['10'])} ns per sample")
    plain = " ".join(body.split())
    return found + [f"the record says: {figure}" for figure in sorted(figures) if figure not in plain]


def main(target: str) -> None:
    """Build the paper as a PDF file."""
    import pypandoc
    import typst

    text = (FOLDER / "paper.md").read_text(encoding="utf-8")
    found = problems(text, (FOLDER / "paper.bib").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "paper.typ"
        options = [
            "--citeproc",
            "--standalone",
            "--fail-if-warnings",
            f"--bibliography={FOLDER / 'paper.bib'}",
        ]
        pypandoc.convert_text(
            text,
            "typst",
            format="markdown",
            outputfile=str(source),
            extra_args=options,
        )
        pages = typst.compile(source, format="svg")
        if (count := len(pages) if isinstance(pages, list) else 1) > MOST_PAGES:
            found.append(f"{count} pages")
        if found:
            sys.exit("docs/paper/paper.md: " + "\n".join(found))
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        typst.compile(source, output=target)
    print(f"{target}: {count} pages")


if __name__ == "__main__":
    main(sys.argv[1])
