"""MkDocs hook and Griffe extension: the reference has tables of its objects, and shows inherited members once.

The pages in docs/reference name their objects themselves, in lines such as ``::: dpnoise.local.Rappor``. This file adds

- for a line ``::: dpnoise.local._categories``, of a private file, such a line for each of the names that it defines and
  ``dpnoise.local`` exports, in the order of the file;
- for a line ``<!-- objects of rappor.md -->`` a table of that page's objects, with the first lines of their docstrings;
- to a class the members of its base classes, where no page shows the base class; where one does, links to them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import griffe

ROOT = Path(__file__).parents[2]
_DIRECTIVE = re.compile(r"^::: ([\w.]+)((?:\n    .*)*)", re.MULTILINE)
_FILE = re.compile(r"^::: ((?:\w+\.)+)(_\w+)$", re.MULTILINE)
_TABLE = re.compile(r"^<!-- objects of (\S+) -->$", re.MULTILINE)


def shown(markdown: str) -> list[tuple[str, bool]]:
    """List the objects that a page shows, and whether they have a heading of the page's instead of their name."""
    return [(path, "heading:" in options) for path, options in _DIRECTIVE.findall(expanded(markdown))]


def expanded(markdown: str) -> str:
    """Replace a line of a private file by lines of what it defines and its package exports."""

    def lines(line: re.Match[str]) -> str:
        package = ROOT / "python" / line[1].replace(".", "/")
        exports, file = ((package / f"{name}.py").read_text(encoding="utf-8") for name in ("__init__", line[2]))
        defined = re.findall(r"^(?:class|def) (\w+)", file, re.MULTILINE)
        return "\n\n".join(f"::: {line[1]}{name}" for name in defined if f'"{name}",' in exports)

    return _FILE.sub(lines, markdown)


def on_config(config: Any) -> None:
    """Read the sources of all packages anew for each build."""
    global _modules
    folders = [ROOT / "python", *ROOT.glob("integrations/*/src")]
    loader = griffe.GriffeLoader(search_paths=folders, allow_inspection=False)
    for package in [path.parent.name for folder in folders for path in folder.glob("*/__init__.py")]:
        loader.load(package)
    _modules = loader.modules_collection


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Replace the lines of private files, and those that ask for a table."""
    folder = Path(page.file.abs_src_path or ROOT / "docs" / page.file.src_uri).parent  # None where a hook made the page

    def table(line: re.Match[str]) -> str:
        source = folder / line[1]
        named = [path for path, has_heading in shown(source.read_text(encoding="utf-8")) if not has_heading]
        objects = [(path, _find(path)) for path in named]
        rows = [
            f"| [`{found.name}`][{path}] | {_first_line(found)} |" for path, found in objects if not found.is_module
        ]
        return "\n".join(["| Name | Description |", "| --- | --- |", *rows])

    return _TABLE.sub(table, expanded(markdown))


def _find(path: str, modules: Any = None) -> griffe.Object:
    found = (modules or _modules)[path]
    return found.final_target if found.is_alias else found


def _first_line(documented: griffe.Object) -> str:
    assert documented.docstring, documented.path  # noqa: S101
    return documented.docstring.value.partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")


class InheritedOnce(griffe.Extension):
    """Add to each shown class the members that no shown base class has, and the names of the other inherited ones."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Complete the classes that pages show: those that files name, and all that an integration exports."""
        if pkg.path == "dpnoise":
            pages = (ROOT / "docs/reference").glob("**/*.md")
            paths = [path for page in pages for path, _ in shown(page.read_text(encoding="utf-8"))]
        else:
            modules = [pkg, *pkg.modules.values()]
            paths = [f"{module.path}.{name}" for module in modules for name in module.exports or ()]
        found = [_find(path, pkg.modules_collection) for path in paths]
        classes = {target.path: target for target in found if target.is_class}
        for shown_class in classes.values():
            self._complete(shown_class, classes)

    def _complete(self, shown_class: griffe.Class, classes: dict[str, griffe.Class]) -> None:
        bases = [base for base in reversed(shown_class.mro()) if base.path in classes]
        elsewhere = {}
        for name, member in shown_class.inherited_members.items():
            if name.startswith("_") or not member.has_docstring:
                continue
            origin = member.final_target.parent
            base = next((base for base in bases if origin in [base, *base.mro()]), None)
            if base is None:
                shown_class.set_member(name, griffe.Alias(name, member.final_target, parent=shown_class))
            else:
                elsewhere[name] = f"{base.path}.{name}"
        shown_class.extra["dpnoise"]["elsewhere"] = elsewhere
