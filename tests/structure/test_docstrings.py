"""Docstrings stand alone: each parameter of each public callable has a line of its own, which says what is true.

They follow the numpydoc conventions. The package numpydoc itself would bring Sphinx and 21 other distributions, so
`described` reads the sections.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from inspect import Parameter
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import dpnoise

ROOT = Path(__file__).parents[2]
ELSEWHERE = re.compile(r"\bas everywhere\b|\b[Aa]s for `| : as\b")
STARS = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}


def docstrings_of(source: str) -> list[str]:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = (ast.get_docstring(node) for node in ast.walk(ast.parse(source)) if isinstance(node, documented))
    return [docstring for docstring in found if docstring]


def docstrings() -> dict[str, list[str]]:
    files = [*ROOT.glob("python/dpnoise/**/*.py"), *ROOT.glob("integrations/*/src/**/*.py")]
    return {path.relative_to(ROOT).as_posix(): docstrings_of(path.read_text(encoding="utf-8")) for path in files}


def begin_with_give(texts: list[str]) -> list[str]:
    return [text.partition("\n")[0] for text in texts if re.match(r"Gives?\b", text)]


def elsewhere(texts: list[str]) -> list[str]:
    """List the lines that leave to another docstring or page what they should say."""
    return [line.strip() for text in texts for line in text.splitlines() if ELSEWHERE.search(line)]


class Call(NamedTuple):
    """A public function, constructor or method: its parameters, without self, and the docstring that describes them."""

    parameters: list[Parameter]
    docstring: str
    is_record: bool = False
    """Whether it makes a record, which may have its parameters as attributes: users get it rather than make it."""


def public_modules() -> Iterator[ModuleType]:
    yield dpnoise
    for found in pkgutil.walk_packages(dpnoise.__path__, "dpnoise."):
        if "._" not in found.name and not found.name.startswith("dpnoise.cli"):  # which is for shells
            yield import_module(found.name)


def public_calls(module: ModuleType) -> dict[str, Call]:
    found: dict[str, Call] = {}
    for exported in (getattr(module, name) for name in module.__all__):
        if isinstance(exported, type):
            found |= calls_of(exported)
        elif inspect.isroutine(exported):
            found |= call_of(exported, inspect.getdoc(exported))
    return found


def calls_of(of: type) -> dict[str, Call]:
    """Return the constructor of a class, which its own docstring describes, and its methods, inherited ones too."""
    is_record = is_dataclass(of) or issubclass(of, tuple)
    makes = is_record or of.__init__ is not object.__init__
    found = call_of(of, inspect.cleandoc(of.__doc__ or ""), is_record) if makes else {}
    for name in dir(of):
        method = getattr(of, name)
        package = (getattr(method, "__module__", None) or "").partition(".")[0]
        if not name.startswith("_") and callable(method) and package == of.__module__.partition(".")[0]:
            found |= call_of(method, inspect.getdoc(method))
    return found


def call_of(function: Callable[..., Any], docstring: str | None, is_record: bool = False) -> dict[str, Call]:
    try:
        signature = inspect.signature(function)
    except ValueError:  # a native function without a signature
        return {}
    given = [one for one in signature.parameters.values() if one.name != "self" and one.name[0] != "_"]
    return {f"{function.__module__}.{function.__qualname__}": Call(given, docstring or "", is_record)}


def described(docstring: str, section: str) -> dict[str, tuple[str, str]]:
    """Return the type and the description of each parameter of a section."""
    found: dict[str, tuple[str, str]] = {}
    for entries in re.findall(rf"(?ms)^{section}\n-+\n(.*?)(?=^\S[^\n]*\n-{{3}}|\Z)", docstring):
        for names, kind, text in re.findall(r"(?m)^(\S.*?)(?: : (.*))?$((?:\n(?:[ \t].*)?$)*)", entries):
            found |= {name: (kind, text.strip()) for name in names.split(", ")}
    return found


def ending(default: Any) -> str:
    """Return what ends the type of a parameter with this default."""
    if default is Parameter.empty:
        return ""
    if default is None:
        return ", optional"
    shown = f"{default.__module__}.{default.__qualname__}" if callable(default) else repr(default).replace("'", '"')
    return f", default {shown}"


def faults(call: Call) -> list[str]:
    known = described(call.docstring, "Parameters")
    is_record = call.is_record and not known
    if is_record:
        known = described(call.docstring, "Attributes")
    needed = {STARS.get(one.kind, "") + one.name: one.default for one in call.parameters}
    found = [f"{name}: not documented" for name in needed if name not in known]
    in_signature = [name for name in known if name in needed]
    if in_signature != [name for name in needed if name in known]:
        found.append(f"{', '.join(in_signature)}: not in the order of the signature")
    for name, (kind, text) in known.items():
        if name not in needed:
            found += [] if is_record else [f"{name}: not in the signature"]
            continue
        documented = re.search(r", (optional|default .*)$|$", kind)[0]
        if kind == documented:
            found.append(f"{name}: no type")
        if not text:
            found.append(f"{name}: no description")
        if not is_record and documented != ending(needed[name]):
            found.append(f"{name}: {documented!r} should be {ending(needed[name])!r}")
        first = re.match(r"\{([^,}]+)", kind)
        if first and not is_record and ending(needed[name]) != f", default {first[1]}":
            found.append(f"{name}: the first choice in braces, {first[1]}, is not the default")
    return found


def floats_alone(call: Call) -> list[str]:
    """List the parameters that checkers refuse other numbers for; those of records are attributes, which are floats."""
    return [one.name for one in call.parameters if not call.is_record and str(one.annotation).startswith("float")]


@pytest.mark.parametrize("module", list(public_modules()), ids=lambda module: module.__name__)
def test_every_parameter_is_documented(module: ModuleType) -> None:
    found = {name: faults(call) + floats_alone(call) for name, call in public_calls(module).items()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_no_docstring_leaves_a_description_to_another() -> None:
    found = {path: elsewhere(texts) for path, texts in docstrings().items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_no_docstring_begins_with_give() -> None:
    found = {path: begin_with_give(texts) for path, texts in docstrings().items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_functions_constructors_and_inherited_methods_are_read() -> None:
    found = public_calls(dpnoise.stability).keys()
    assert found >= {
        "dpnoise.stability._distances.mode_distance",
        "dpnoise.stability._median_and_mode.StableMode",
        "dpnoise.mechanisms._mechanism.Mechanism.error",
    }


# --- planted faults ------------------------------------------------------------------------------------------------

GOOD = """Draw.

Parameters
----------
scale : float
    Positive.
kind : {"a", "b"}, default "a"
    Which.
n, k : int, default 1
    Two sizes.
*more : int
    Others.
out : ndarray, optional
    Filled.
**options : object
    Passed on.

Returns
-------
int
    One.
"""


class Drawn:
    """Without a constructor of its own."""

    def draw(self, scale, kind="a", n=1, k=1, *more, out=None, **options):
        pass

    draw.__doc__ = GOOD


@dataclass
class Record:
    """Two numbers.

    Attributes
    ----------
    first : int
        One.
    second : int or None
        Two.
    total : int
        Their sum, which is a property.
    """

    first: int
    second: int | None = None


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("", "", []),
        ("scale : float\n    Positive.\n", "", ["scale: not documented"]),
        ("*more", "more", ["*more: not documented", "more: not in the signature"]),
        ("\nReturns", "luck : int\n    Bad.\n\nReturns", ["luck: not in the signature"]),
        ("n, k", "k, n", ["scale, kind, k, n, *more, out, **options: not in the order of the signature"]),
        ("scale : float", "scale", ["scale: no type"]),
        ("ndarray, optional", ", optional", ["out: no type"]),
        ("    Which.\n", "", ["kind: no description"]),
        (', default "a"', "", ["kind: '' should be ', default \"a\"'"]),
        (', default "a"', ', default "b"', ["kind: ', default \"b\"' should be ', default \"a\"'"]),
        ("int, default 1", "int, default 1.0", [f"{name}: ', default 1.0' should be ', default 1'" for name in "nk"]),
        ("ndarray, optional", "ndarray", ["out: '' should be ', optional'"]),
        ("ndarray, optional", "ndarray, default None", ["out: ', default None' should be ', optional'"]),
        ("scale : float", "scale : float, optional", ["scale: ', optional' should be ''"]),
        ('{"a", "b"}', '{"b", "a"}', ['kind: the first choice in braces, "b", is not the default']),
        ("scale : float", "scale : {1, 2}", ["scale: the first choice in braces, 1, is not the default"]),
    ],
)
def test_planted_faults_are_noticed(old: str, new: str, fault: list[str]) -> None:
    ((_, call),) = calls_of(Drawn).items()
    assert faults(call._replace(docstring=GOOD.replace(old, new, 1))) == fault


def test_a_number_that_must_be_a_float_is_noticed() -> None:
    def draw(scale: float | None, size: int) -> float:
        return 0.0

    ((_, call),) = call_of(draw, GOOD).items()
    assert floats_alone(call) == ["scale"]
    assert floats_alone(call._replace(is_record=True)) == []


def test_records_may_have_attributes() -> None:
    ((_, call),) = calls_of(Record).items()
    assert faults(call) == []
    assert faults(call._replace(docstring=call.docstring.replace("first :", "1st :"))) == ["first: not documented"]
    assert faults(call._replace(is_record=False)) == ["first: not documented", "second: not documented"]


@pytest.mark.parametrize("line", ["rng : as everywhere", "n, luck : as for `f`", "As for `f`.", "x : as in SciPy"])
def test_what_is_left_to_others_is_noticed(line: str) -> None:
    assert elsewhere(docstrings_of(f'def f():\n    """Draw.\n\n    {line}\n    """')) == [line]


@pytest.mark.parametrize("first", ["Give the sum.", "Gives the sum."])
def test_a_docstring_that_begins_with_give_is_noticed(first: str) -> None:
    assert begin_with_give(docstrings_of(f'def f():\n    """{first}"""')) == [first]
