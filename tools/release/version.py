"""Set the version wherever it stands: python tools/release/version.py 0.1.0-rc.1.

A version has a state: in development (0.1.0-dev.0), a candidate (0.1.0-rc.1) or a release (0.1.0). With it change
dates, bounds, and what pages say of installing: in development from a checkout, then from an index.

Where more than a command differs, a page has a text for each state, of which one is shown:

    <!-- version -->
    What is shown.
    <!-- release
    What a release says.
    -->
    <!-- end -->
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
STATES = ("dev", "candidate", "release")


class Version(NamedTuple):
    """A version as Cargo writes it, by SemVer, and what follows from it."""

    semver: str

    @property
    def base(self) -> str:
        """The release that it is, or comes before."""
        return self.semver.partition("-")[0]

    @property
    def state(self) -> str:
        """What it is the version of: one of `STATES`."""
        return "dev" if "-dev." in self.semver else "candidate" if "-rc." in self.semver else "release"

    @property
    def pep440(self) -> str:
        """The version as Python's packages have it."""
        return self.semver.replace("-dev.", ".dev").replace("-rc.", "rc")

    @property
    def maven(self) -> str:
        """The version as Maven sorts it: before the release."""
        return self.semver.replace("-dev.0", "-SNAPSHOT")

    @property
    def compatible(self) -> str:
        """The part that stays while interfaces do: 0.1 of 0.1.2, 1 of 1.2.3."""
        major, minor, _ = self.base.split(".")
        return f"0.{minor}" if major == "0" else major

    @property
    def bounds(self) -> str:
        """What an integration asks of dpnoise."""
        *rest, last = self.compatible.split(".")
        return f">={self.pep440},<{'.'.join([*rest, str(int(last) + 1)])}"

    @property
    def pin(self) -> str:
        """What follows a package in a command: a candidate is asked for by its exact version."""
        return f"=={self.pep440}" if self.state == "candidate" else ""


def parsed(text: str) -> Version:
    """Read a version, or raise an error that names the forms."""
    if not re.fullmatch(r"(?:(?:0|[1-9]\d*)\.){2}(?:0|[1-9]\d*)(?:-dev\.0|-rc\.[1-9]\d*)?", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"version must be like 0.1.0-dev.0, 0.1.0-rc.1 or 0.1.0, got {text!r}")
    return Version(text)


def _dated(version: Version, found: re.Match[str]) -> str:
    """Return the heading of a version in place of those of its development and candidates, or above that of another."""
    heading, named, day = found.groups()
    if version.state == "dev":
        new = f"## [{version.base}] - Unreleased"
    elif named == version.semver and day != "Unreleased":
        return heading
    else:
        new = f"## [{version.semver}] - {datetime.now(UTC):%Y-%m-%d}"
    follows = day != "Unreleased" and Version(named).base != version.base
    return f"{new}\n\n{heading}" if follows else new


def _cited(version: Version, found: re.Match[str]) -> str:
    day = f"\ndate-released: {datetime.now(UTC):%Y-%m-%d}" if version.state != "dev" else ""
    return found[1] if found[2] == version.semver else f"version: {version.semver}{day}"


def _crate(folder: str, version: Version, _: re.Match[str]) -> str:
    return {
        "dev": f'{{ path = "dpnoise/{folder}" }} # in a checkout',
        "candidate": f'"={version.semver}"',
        "release": f'"{version.compatible}"',
    }[version.state]


def _integration(version: Version, found: re.Match[str]) -> str:
    return f". ./integrations/{found[2]}" if version.state == "dev" else f"dpnoise-{found[2]}{version.pin}"


def _shown(version: Version, found: re.Match[str]) -> str:
    """Return the texts of all states with that of the version's shown."""
    shown, *others = re.split(r"<!-- (\w+)\n", found[1])
    texts = {state: text.removesuffix("-->\n") for state, text in zip(others[::2], others[1::2], strict=True)}
    (now,) = set(STATES) - texts.keys()
    texts[now] = shown
    hidden = (f"<!-- {state}\n{texts[state]}-->\n" for state in STATES if state != version.state)
    return "".join([texts[version.state], *hidden])


READMES = ["README*.md", "rust/*/README.md", "integrations/*/*.md"]
"""What indexes show: pages whose links name a tag, since the files change and the pages of a release do not."""
PAGES = [*READMES, "clients/*/README.md", "docs/[!r]*.md", "docs/*/**/*.md"]
"""All pages but releasing.md, which tries a release from its index."""
SOURCES = ["clients/web/examples/*.py", "docs/site/notebooks.py"]

PLACES: list[tuple[list[str], str, Callable[[Version, re.Match[str]], str]]] = [
    (["Cargo.toml"], r'^version = "(.*)"', lambda version, _: version.semver),
    (["Cargo.toml"], r'^dpnoise-\w+ = .* version = "=?(.*)" }', lambda version, _: version.semver),
    (
        ["Cargo.lock", "clients/c/fuzz/Cargo.lock"],
        r'^name = "dpnoise-\w+"\nversion = "(.*)"',  # but for the fuzzer's own package
        lambda version, _: version.semver,
    ),
    (["clients/web/package.json"], r'^  "version": "(.*)"', lambda version, _: version.semver),
    (["clients/java/pom.xml"], r"^  <version>(.*)</version>", lambda version, _: version.maven),
    (["CITATION.cff"], r"^(version: (.*)(?:\ndate-released: .*)?)$", _cited),
    (["CHANGELOG.md"], r"\A(?:(?!## \[).*\n)*(## \[(.*)\] - (.*))", _dated),
    (["integrations/*/pyproject.toml"], r'^version = "(.*)"', lambda version, _: version.pep440),
    (["integrations/*/pyproject.toml"], r'"dpnoise(>=.*?)"', lambda version, _: version.bounds),
    (["rust/core/README.md"], r"^dpnoise-core = (.*)$", partial(_crate, "rust/core")),
    (["integrations/prio/README.md"], r"^dpnoise-prio = (.*)$", partial(_crate, "integrations/prio")),
    (
        [*READMES, "docs/guide/installation.md"],
        r"//(?:github\.com/dpnoise/dpnoise/(?:blob|tree|raw)|raw\.githubusercontent\.com/dpnoise/dpnoise)/([^/]+)/",
        lambda version, _: "main" if version.state == "dev" else f"v{version.semver}",
    ),
    # Commands: pip install '.[plot]' in a checkout, and 'dpnoise[plot]' from an index.
    ([*PAGES, *SOURCES], r"pip install ((?:\. \./integrations/|dpnoise-)(\w+)(?:==[\w.]*\w)?)", _integration),
    (
        [*PAGES, *SOURCES],
        r"pip install ((?:\.|dpnoise)(?:==[\w.]*\w)?)(?=[\s`])(?! \./)",
        lambda version, _: "." if version.state == "dev" else f"dpnoise{version.pin}",
    ),
    (
        [*PAGES, *SOURCES],
        r"'((?:\.|dpnoise)(\[[a-z,]+\])(?:==[\w.]+)?)'",
        lambda version, found: f".{found[2]}" if version.state == "dev" else f"dpnoise{found[2]}{version.pin}",
    ),
    (PAGES, r"(?s)^<!-- version -->\n(.*?)^<!-- end -->", _shown),
]
"""Where versions stand: files, what is found in them, whose first group is replaced, and by what."""


def changes(root: Path, version: Version) -> dict[Path, str]:
    """Return the files that a version changes below a folder, with their new texts."""
    texts: dict[Path, str] = {}
    for globs, pattern, value in PLACES:
        paths = [path for glob in globs for path in sorted(root.glob(glob))]
        count = 0
        for path in paths:
            text = texts[path] if path in texts else path.read_text(encoding="utf-8")
            parts, end = [], 0
            for found in re.finditer(pattern, text, re.MULTILINE):
                parts += [text[end : found.start(1)], value(version, found)]
                end, count = found.end(1), count + 1
            texts[path] = "".join([*parts, text[end:]])
        if not count:
            raise RuntimeError(f"there is no version in {', '.join(globs)}: {pattern}")
    return {path: text for path, text in texts.items() if text != path.read_text(encoding="utf-8")}


def main() -> None:
    """Write what a version changes, and print the names of the files."""
    parser = argparse.ArgumentParser(description="Set the version wherever it stands, and print which files changed.")
    parser.add_argument("version", type=parsed, help="0.1.0-dev.0 in development, 0.1.0-rc.1 or 0.1.0")
    for path, text in changes(ROOT, parser.parse_args().version).items():
        path.write_text(text, encoding="utf-8", newline="")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
