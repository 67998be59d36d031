"""Print the figures of the layout: what readers meet, and what changes touch. Run by ``make figures``; Python 3.11.

They are of the tracked files of this checkout, or of another one. Nothing of it is built or imported.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

Tree = dict[str, str]  # the text of each tracked file that has text, by its path
Definition = ast.ClassDef | ast.FunctionDef

CORE = ("core", "audit", "engines", "benchmarks")
LEFT_OUT = re.compile(r"(.*/)?(Cargo\.lock|LICENSE[\w-]*)")
# Where a file belongs: the first line that matches its whole path decides. {} is what the first group has matched.
LAYOUT = [
    ("integrations/{}", r"integrations/(\w+)/.*"),
    ("integrations/shared", r"integrations/.*|docs/(integrations/.*|(proofs/|adding_an_)integrations?\.md)"),
    ("integrations/shared", r"benches/hosts\.py"),
    ("clients/{}", r"clients/(\w+)/.*"),
    ("clients/shared", r"clients/.*|docs/guide/clients\.md"),
    ("clients/web", r"docs/guide/browser\.md"),
    ("proofs", r"proofs/.*|docs/proofs/proved\.md"),
    ("constant time", r"tools/constant_time/.*|docs/constant_time\.md"),
    ("figures", r"tools/figures/.*"),  # whose tests plant private names
    ("tools", r"tools/.*|docs/releasing\.md"),
    ("command line", r"python/dpnoise/(cli/.*|__main__\.py)|tests/cli/.*|docs/reference/cli\.md"),
    ("audit", r"python/dpnoise/audit/.*|tests/\w+/test_audit\.py|docs/(reference/audit/.*|guide/auditing\.md)"),
    ("engines", r"python/dpnoise/engines/.*|tests/engines/.*|docs/(guide|reference)/engines\.md"),
    ("site", r"mkdocs\.yml|docs/(katex|playground|site|stylesheets)/.*|docs/(ruff\.toml|playground\.md|\w+\.svg)"),
    ("site", r"tests/(structure/test_(front_page|pictures|reference)|test_notebooks)\.py"),
    ("benchmarks", r"(rust/)?benches/.*|docs/(benchmarks|records)(/.*|\.md)|tests/structure/test_\w*benches\.py"),
    ("examples", r"(docs/)?examples/.*"),
    ("core", r"rust/(kernels|core|python)/.*|python/dpnoise/.*|docs/(guide|proofs|reference|tutorial)/.*|docs/\w+\.md"),
    ("core", r"tests/(api|interchange|security|statistical|tables|vectors)/.*|tests/\w+\.py"),
    ("the project", r"[^/]+|\.(ci|github)/.*|tests/structure/.*|docs/paper/.*"),
    ("UNCLASSIFIED", r".*"),
]


class Figure(NamedTuple):
    """A row of the table, and the places that it counts."""

    name: str
    value: str
    places: list[str]


def read(checkout: Path) -> Tree:
    """Return the tracked files that have text."""
    listed = subprocess.run(["git", "-C", str(checkout), "ls-files", "-z"], capture_output=True, text=True, check=True)
    paths = [path for path in listed.stdout.split("\0") if (checkout / path).is_file()]  # deleted ones are listed, too
    contents = {path: (checkout / path).read_bytes() for path in paths}
    return {path: content.decode() for path, content in contents.items() if b"\0" not in content}


def group_of(path: str) -> str:
    """Return the tenant that a file belongs to, or the part of the rest."""
    group, found = next((group, found) for group, pattern in LAYOUT if (found := re.fullmatch(pattern, path)))
    return group.format(*found.groups()) if "{}" in group else group


def integrations(tree: Tree) -> dict[str, str]:
    """Return the names of the Python integrations with the beginnings of the paths of their own files."""
    own = re.compile(r"(integrations/(\w+)/)pyproject\.toml")
    return {found[2]: found[1] for found in map(own.fullmatch, tree) if found}


def places_of_integrations(tree: Tree) -> Figure:
    """Count the files outside of its folder that adding an integration touches, and removing it.

    To add one: files that name each, in whatever way. To remove one: these, and files that name it as ours, by its
    import, distribution, folder or page. A file that names
    the host alone, as a comparison does, can stay.
    """
    names = integrations(tree)
    left_out = re.compile(rf"{LEFT_OUT.pattern}|tools/figures/.*")
    files = {path: f"{path}\n{text}" for path, text in tree.items() if not left_out.fullmatch(path)}
    named_by: Counter[str] = Counter()
    of_one: dict[str, set[str]] = {}
    for name, own in names.items():
        word = name.replace("_", "[-_]")
        any_way = re.compile(rf"(?i)(?<![a-z]){word}(?![a-z])")
        ours = re.compile(
            rf"""(?x) \bintegrations/{word}(?![a-z]) | \bdpnoise[-_]{word}\b | [("']{word}(\.md|/README\.md)\b"""
        )
        naming = [path for path, text in files.items() if not path.startswith(own) and any_way.search(text)]
        named_by.update(any_way.sub("{}", path) for path in naming)
        of_one[name] = {path for path in naming if ours.search(files[path])}
    to_add = sorted(path for path, count in named_by.items() if count == len(names))
    for name, places in of_one.items():
        places |= {path.format(name) for path in to_add}
    listed = [f"to add: {path}" for path in to_add]
    listed += [f"to remove {name}, {len(places)}: {' '.join(sorted(places))}" for name, places in of_one.items()]
    most = max(map(len, of_one.values()), default=0)
    title = "places of an integration outside its folder, to add / to remove (most)"
    return Figure(title, f"{len(to_add)} / {most}", listed)


def files_that_name_all(tree: Tree, definition: str) -> list[str]:
    """Return the files that name, in any spelling, each thing that Rust defines so, and one file that each has.

    Pages of what was measured stay as they are.
    """
    names = {name for path, text in tree.items() if path.endswith(".rs") for name in re.findall(definition, text)}
    if len(names) < 2:
        message = f"nothing in Rust is defined as {definition}: tools/figures/figures.py counts by that"
        raise ValueError(message)
    words = [re.split(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", name) for name in sorted(names)]
    spellings = [re.compile(r"(?i)(?<![a-z])" + "[-_ ]?".join(parts) + "(?![a-z])") for parts in words]
    naming = (path for path, text in tree.items() if all(word.search(text) for word in spellings))
    return ["a file of its own", *(path for path in naming if not path.startswith("docs/benchmarks/"))]


def files_of_one(tree: Tree) -> Figure:
    """Count the files that a new protocol or noise touches for certain: those that name all others, and its own."""
    protocol = files_that_name_all(tree, r"\bimpl Family for (\w+)")
    noise = files_that_name_all(tree, r"\bpub type (\w+) = Additive<")
    places = [f"protocol: {path}" for path in protocol] + [f"noise: {path}" for path in noise]
    return Figure("files of a protocol / of a noise", f"{len(protocol)} / {len(noise)}", places)


class Package:
    """The modules of the Python package without its tenants, and what their names stand for."""

    def __init__(self, tree: Tree) -> None:
        own = re.compile(r"python/(dpnoise/.*?)(/__init__)?\.py")
        files = {found[1]: found[0] for found in map(own.fullmatch, tree) if found and group_of(found[0]) in CORE}
        self.modules = {name.replace("/", "."): ast.parse(tree[path]) for name, path in files.items()}
        self.names: dict[str, dict[str, Definition | tuple[str, str]]] = {}
        for module, parsed in self.modules.items():
            names = self.names[module] = {}
            for node in ast.walk(parsed):
                if isinstance(node, ast.ImportFrom) and node.module != module:
                    names |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
            names |= {node.name: node for node in parsed.body if isinstance(node, Definition)}

    def find(self, module: str, name: str) -> tuple[str, Definition] | None:
        """Find the class or function that a name of a module stands for, with the module that defines it."""
        found = self.names.get(module, {}).get(name)
        return self.find(*found) if isinstance(found, tuple) else found and (module, found)

    def line(self, module: str, cls: ast.ClassDef) -> dict[str, ast.ClassDef]:
        """Return a class and the classes of the package above it, by their full names."""
        line = {f"{module}.{cls.name}": cls}
        for base in cls.bases:
            if found := self.find(module, ast.unparse(base).split("[")[0]):
                line |= self.line(*found)
        return line

    def public(self) -> dict[str, tuple[ast.FunctionDef, str]]:
        """Return the functions, constructors and public methods that modules export, with their docstrings.

        The docstring of a class describes its constructor. An inherited method is that of the class that documents it.
        """
        public = {}
        for module, parsed in self.modules.items():
            exports = [node for node in parsed.body if isinstance(node, ast.Assign) and "'__all__'" in ast.dump(node)]
            for name in ast.literal_eval(exports[0].value) if exports else []:
                origin, node = self.find(module, name) or (module, None)
                if isinstance(node, ast.FunctionDef):
                    public[f"{origin}.{name}"] = node, ast.get_docstring(node) or ""
                elif node:
                    public |= methods(f"{origin}.{name}", node, self.line(origin, node))
        return public


def methods(name: str, of: ast.ClassDef, line: dict[str, ast.ClassDef]) -> dict[str, tuple[ast.FunctionDef, str]]:
    """Return the constructor of a class, and the public methods of its line, with their docstrings."""
    found = {}
    for owner, cls in line.items():
        for node in cls.body:
            if not isinstance(node, ast.FunctionDef) or any(
                re.search("overload|property|setter", ast.unparse(decorator)) for decorator in node.decorator_list
            ):
                continue
            if node.name == "__init__":
                found.setdefault(f"{name}.__init__", (node, ast.get_docstring(of) or ""))
            elif not node.name.startswith("_") and (docstring := ast.get_docstring(node)):
                found[f"{owner}.{node.name}"] = node, docstring
    return found


def base_classes(tree: Tree) -> Figure:
    """Count the classes of the package above a plain protocol."""
    package, name = Package(tree), "OptimizedUnaryEncoding"
    _, *above = package.line(*package.find("dpnoise.local", name))
    return Figure(f"base classes above {name}", str(len(above)), above)


def private_names(tree: Tree) -> Figure:
    """Count the names dpnoise._x in the Python of tenants, with tests and benchmarks, that are not the tenant's own.

    The command line is a part of the package: what it alone imports is only listed.
    """
    users: dict[str, set[str]] = {}
    for path, text in tree.items():
        group = group_of(path)
        if not path.endswith(".py") or group in (*CORE, "site", "examples", "the project", "figures"):
            continue
        names = set(re.findall(r"\bdpnoise\w*(?:\.\w+)*\._[a-z]\w*", re.sub(r"(?m)^\s*from .*", "", text)))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dpnoise"):
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
        for name in names:
            package = name.split(".")[0]
            own = package.replace("dpnoise_", "integrations/")
            owner = group_of(f"python/{name.replace('.', '/')}.py") if package == "dpnoise" else own
            if re.search(r"\._[a-z]", name) and owner != group:
                users.setdefault(name, set()).add(group)
    listed = {name: f"{name} <- {', '.join(sorted(groups))}" for name, groups in sorted(users.items())}
    counted = [text for name, text in listed.items() if users[name] != {"command line"}]
    others = [f"not counted: {text}" for text in listed.values() if text not in counted]
    return Figure("private names imported by integrations, clients and tools", str(len(counted)), counted + others)


def described(docstring: str) -> dict[str, tuple[str, str]]:
    """Return the type and the description of each parameter in a docstring of the numpydoc conventions."""
    found: dict[str, tuple[str, str]] = {}
    for section in re.findall(r"(?ms)^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3}|\Z)", docstring):
        for names, kind, text in re.findall(r"(?m)^(\S.*?)(?: : (.*))?$((?:\n(?:[ \t].*)?$)*)", section):
            found |= {name.strip("* "): (kind, text.strip()) for name in names.split(",")}
    return found


def parameters(tree: Tree) -> Figure:
    """Count parameters of public functions, constructors and methods without a type or a description of their own.

    "as everywhere" and "as for `X`" are neither. Native functions are not seen.
    """
    missing = []
    for name, (function, docstring) in Package(tree).public().items():
        given, known = function.args, described(docstring)
        for each in [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]:
            nothing = each and each.annotation and ast.unparse(each.annotation) == "NoReturn"  # no call may give any
            if each and each.arg not in ("self", "cls") and not nothing:
                kind, text = known.get(each.arg, ("", ""))
                elsewhere = any(re.match(r"(?i)as (everywhere|for|in)\b", words) for words in (kind, text))
                if not kind or not text or elsewhere:
                    missing.append(f"{name}: {each.arg}")
    return Figure("public parameters without type or sentence", str(len(missing)), missing)


def installed(tree: Tree) -> Figure:
    """Count the distributions that the extra or group ``test`` of pyproject.toml names, or includes by other names."""
    project = tomllib.loads(tree["pyproject.toml"])
    extras = project["project"]["optional-dependencies"] | project.get("dependency-groups", {})
    requirements, included = list(project["project"]["dependencies"]), ["test"]
    for extra in included:
        for requirement in extras[extra]:
            if isinstance(requirement, dict):
                included.append(requirement["include-group"])
            elif found := re.match(r"dpnoise\[(.*)\]", requirement):
                included += re.split(r", *", found[1])
            else:
                requirements.append(requirement)
    names, hosts = distributions(requirements), set()
    for name in integrations(tree):
        hosts |= distributions(tomllib.loads(tree[f"integrations/{name}/pyproject.toml"])["project"]["dependencies"])
    hosts -= {"dpnoise", "numpy", "scikit-learn"}  # of diffprivlib, and of our examples
    places = [f"{name}{' (host)' * (name in hosts)}" for name in sorted(names)]
    return Figure("distributions that `make test` installs / hosts", f"{len(names)} / {len(names & hosts)}", places)


def distributions(requirements: list[str]) -> set[str]:
    """Return the names in requirements."""
    return {re.match(r"[\w.-]+", requirement)[0] for requirement in requirements}


def code_lines(source: str) -> int:
    """Return the number of lines of Python that are not blank, comment or docstring."""
    ignored = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in ignored:
            found |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | Definition) and ast.get_docstring(node) is not None:
            found -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    texts = source.splitlines()
    return sum(bool(texts[line - 1].strip()) for line in found)


def lines(tree: Tree) -> Iterator[Figure]:
    """Count lines of the whole tree, of the API in Python, of the core, and of each group."""
    groups: dict[str, dict[str, int]] = {}
    for path, text in tree.items():
        if not LEFT_OUT.fullmatch(path):
            groups.setdefault(group_of(path), {})[path] = text.count("\n")
    code = {path: code_lines(tree[path]) for path in tree if re.match(r"python/dpnoise/(?!cli/).*\.py$", path)}
    core = {path: count for group in CORE for path, count in groups.get(group, {}).items()}
    for name, files in {
        "whole tree, lock files and licences left out": {path: n for of in groups.values() for path, n in of.items()},
        "code of the Python API without the command line": code,
        f"core as a whole, with its tests, benches and pages ({', '.join(CORE)})": core,
        **{group: groups[group] for group in sorted(groups, key=lambda group: (group not in CORE, group))},
    }.items():
        yield Figure(
            f"lines: {name}", f"{sum(files.values()):,}", [f"{count:,} {path}" for path, count in files.items()]
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", nargs="?", type=Path, default=Path(__file__).parents[2])
    parser.add_argument("--list", metavar="WORDS", help="what the figures count that have these words in their names")
    given = parser.parse_args()
    tree = read(given.checkout)
    counts = [places_of_integrations, files_of_one, base_classes, private_names, parameters, installed]
    for figure in [*(count(tree) for count in counts), *lines(tree)]:
        print(f"| {figure.name} | {figure.value} |")
        if given.list and given.list in figure.name:
            print(*figure.places, sep="\n")


if __name__ == "__main__":
    main()
