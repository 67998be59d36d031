"""Every public name is in the reference, once."""

import ast
import pkgutil
import re
from collections import Counter
from pathlib import Path

import pytest

import dpnoise
from tests.noise_kinds import EXAMPLES

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python/dpnoise"


# A search finds what is written as a reader types it, and no formula.
NUMBERED = ["Definition 7.1", "Definition 7.2", "Definition 7.3", "Proposition 7.2", "Example 7.1", "A_dist", "A_samp"]


@pytest.mark.parametrize("word", NUMBERED)
def test_the_map_of_the_book_has_its_chapter_7_in_plain_text(word):
    text = (ROOT / "docs/book.md").read_text(encoding="utf-8")
    assert word in re.sub(r"\\\(.*?\\\)", "", text, flags=re.DOTALL)


def exported(source):
    """Return the names in ``__all__`` of a module, which need not be importable here."""
    for statement in ast.parse(source.read_text(encoding="utf-8")).body:
        match statement:
            case ast.Assign(targets=[ast.Name("__all__")], value=value):
                return ast.literal_eval(value)
    return []


def public_names():
    """Return the public modules of dpnoise, and the full names of what they export, modules left out."""
    modules, names = set(), set()
    for source in PACKAGE.glob("**/*.py"):
        parts = ["dpnoise", *source.relative_to(PACKAGE).with_suffix("").parts]
        if parts[-1] == "__init__":
            parts.pop()
        if not any(part.startswith("_") for part in parts) and parts[1:2] != ["cli"]:
            modules.add(".".join(parts))
            names |= {f"{'.'.join(parts)}.{name}" for name in exported(source) if not name.startswith("_")}
    return modules, names - modules


def is_same(name, path):
    """Is ``dpnoise.name`` another name of the object that is shown as `path`?"""
    module, _, shown = path.rpartition(".")
    importable = shown == name and module.count(".") == 1 and hasattr(dpnoise, module.removeprefix("dpnoise."))
    return importable and pkgutil.resolve_name(path) is getattr(dpnoise, name)


def missing_or_repeated(shown):
    """Compare the objects that the reference shows with the public ones; where something is wrong, say so."""
    modules, names = public_names()
    # Base classes without a public name may be shown, too. The command line is for shells.
    shown = Counter(path for path in shown if "._" not in path and not path.startswith("dpnoise.cli"))
    # dpnoise.Laplace is the object that is shown as dpnoise.mechanisms.Laplace.
    shorter = {f"dpnoise.{name}" for name in dpnoise.__all__ if any(is_same(name, path) for path in shown)}
    expected = modules - {"dpnoise"} | names - shorter
    return {name: shown[name] for name in expected | shown.keys() if shown[name] != (name in expected)}


def directives():
    text = "\n".join(page.read_text(encoding="utf-8") for page in ROOT.glob("docs/reference/**/*.md"))
    return [name for path in re.findall(r"^::: (\S+)$", text, re.MULTILINE) for name in named(path)]


def named(path):
    """Return the objects that a directive shows: for a private file those that its package exports."""
    package, _, last = path.rpartition(".")
    if not last.startswith("_"):
        return [path]
    names = [f"{package}.{name}" for name in pkgutil.resolve_name(package).__all__]
    return [name for name in names if getattr(pkgutil.resolve_name(name), "__module__", None) == path]


def test_the_reference_has_every_public_name_once():
    assert missing_or_repeated(directives()) == {}


def test_a_missing_a_repeated_and_an_unknown_name_are_noticed():
    shown = directives()
    shown.remove("dpnoise.local.Rappor")
    shown.remove("dpnoise.mechanisms.Laplace")
    assert missing_or_repeated([*shown, "dpnoise.queries.Sum", "dpnoise.queries.Total"]) == {
        "dpnoise.Laplace": 0,
        "dpnoise.local.Rappor": 0,
        "dpnoise.mechanisms.Laplace": 0,
        "dpnoise.queries.Sum": 2,
        "dpnoise.queries.Total": 1,
    }


def test_the_changelog_and_a_guide_have_every_protocol_and_all_noise():
    guides = "\n".join(page.read_text(encoding="utf-8") for page in ROOT.glob("docs/guide/*.md"))
    for text in ((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), guides):
        named = set(re.findall(r"\w+", text))
        assert {family.protocol.__name__ for family in dpnoise.local.FAMILIES.values()} | {*EXAMPLES} <= named
