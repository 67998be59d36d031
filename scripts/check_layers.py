"""Check who imports whom where Cargo does not. Run by ``make lint``; exits with 1 on any violation.

Rust, below rust/core/src: a module may use its own layer and the layers below, where

    high    mechanisms, local, stability, sgd    never each other
    mid     rng, threads, samplers
    leaves  params, error, instruction_set

Rust, everywhere: no files import each other in a circle; unit tests may. An ``unsafe fn`` says in a Safety section what
its callers owe, or its trait does. (The compiler keeps ``unsafe`` in its places, and clippy asks for SAFETY comments.)
Python: only the command line, the plots and the backends import packages other than NumPy at module level.
No files import each other in a circle, and no areas (what stands right below dpnoise) do. Every import counts, also one
for type checkers or within a function. A name that a package takes from a module of its own is that module's.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

LAYERS = {
    **dict.fromkeys(["params", "error", "instruction_set"], 0),
    **dict.fromkeys(["rng", "threads", "samplers"], 1),
    **dict.fromkeys(["mechanisms", "local", "stability", "sgd"], 2),
}
NAMES = ["leaf", "mid", "high"]
HIGH = 2

CORE = {*sys.stdlib_module_names, "numpy", "dpnoise"}
EXTRAS_ALLOWED = ("python/dpnoise/cli/", "python/dpnoise/plots.py", "python/dpnoise/backends/")


class Violation(NamedTuple):
    """One broken rule and where it is."""

    path: str
    line: int
    rule: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}"


# --- Rust source, lexed just enough ------------------------------------------------------------------------------

_OPAQUE = re.compile(
    r"""
      //[^\n]*
    | (?P<block>/\*)
    | (?P<raw>\b[bc]?r(?P<hashes>\#*)"[\s\S]*?"(?P=hashes))
    | (?:\b[bc]?"(?:\\[\s\S]|[^"\\])*"|"(?:\\[\s\S]|[^"\\])*")
    | (?:'(?:\\(?:u\{[^}]*\}|x..|.)|[^'\\\n])')   # a lifetime has no closing quote
    """,
    re.VERBOSE,
)


def _end_of_block_comment(source: str, start: int) -> int:
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(source, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(source)


def code_of(source: str) -> str:
    """Return a Rust file with its comments and literals blanked, every line where it was."""
    code, position = [], 0
    while match := _OPAQUE.search(source, position):
        end = _end_of_block_comment(source, match.start()) if match["block"] else match.end()
        code += [source[position : match.start()], re.sub(r"[^\n]", " ", source[match.start() : end])]
        position = end
    return "".join([*code, source[position:]])


def _line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


_WORD = re.compile(r"[A-Za-z_]\w*|::|\S")


class CratePath(NamedTuple):
    """A path as written in the source, made absolute within the crate."""

    segments: tuple[str, ...]
    alias: str
    line: int


def crate_paths(code: str, module: tuple[str, ...]) -> Iterator[CratePath]:
    """Yield every path of `code` that starts with ``crate`` or ``super``, made absolute; `module` is the file's own."""
    words = [(match[0], match.start()) for match in _WORD.finditer(code)]
    words += [("", len(code))] * 3
    nested: list[str | None] = []  # one entry per open brace: the module it opens, if it opens one
    index = 0

    def tree(prefix: tuple[str, ...]) -> Iterator[CratePath]:
        """Read one use tree, or a plain path, from `index` on."""
        nonlocal index
        segments, start = prefix, words[index][1]
        while True:
            word = words[index][0]
            if word == "{":
                index += 1
                while words[index][0] not in ("}", ""):
                    yield from tree(segments)
                    index += words[index][0] == ","
                index += 1
                return
            index += 1
            if word == "crate":
                segments = ()
            elif word == "super":
                segments = segments[:-1]
            elif word != "self":
                segments = (*segments, word)
            if words[index][0] != "::" or not re.match(r"\w|[{*]", words[index + 1][0]):
                break
            index += 1
        alias = segments[-1] if segments else ""
        if words[index][0] == "as":
            alias, index = words[index + 1][0], index + 2
        yield CratePath(segments, alias, _line_of(code, start))

    while index < len(words) - 3:
        word, following = words[index][0], words[index + 1][0]
        if word == "mod" and words[index + 2][0] == "{":
            nested.append(following)
            index += 3
        elif word in ("crate", "super", "self") and following == "::":
            yield from tree((*module, *(name for name in nested if name)))
        else:
            if word == "{":
                nested.append(None)
            elif word == "}" and nested:
                nested.pop()
            index += 1


# --- the rules ---------------------------------------------------------------------------------------------------


def module_of(relative: Path) -> tuple[str, ...]:
    """Return the module path of a file, given relative to the crate's src folder."""
    parts = relative.with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib") else parts


def import_rule(importer: str, imported: str) -> str | None:
    """Return the rule that `importer` breaks by using `imported`, if any."""
    if imported == importer:
        return None
    if imported not in LAYERS:
        return f"crate::{imported} has no layer: name its module, or give it a layer in scripts/check_layers.py"
    own, other = LAYERS[importer], LAYERS[imported]
    if other > own:
        return f"{importer} ({NAMES[own]}) imports upward from {imported} ({NAMES[other]})"
    if other == own == HIGH:
        return f"{importer} imports sideways from {imported}: what two high modules share moves down"
    return None


def check_imports(root: Path) -> Iterator[Violation]:
    """Yield every import that the layers of rust/core/src forbid."""
    source = root / "rust/core/src"
    library = source / "lib.rs"
    reexports = {}
    if library.exists():
        code = code_of(library.read_text(encoding="utf-8"))
        # `pub use error::Error` makes crate::Error a name of the module `error`.
        code = re.sub(r"\buse\s+(?!crate\b|self\b|super\b|::)", "use self::", code)
        reexports = {path.alias: path.segments[0] for path in crate_paths(code, ()) if len(path.segments) > 1}
    for file in sorted(source.rglob("*.rs")):
        module = module_of(file.relative_to(source))
        if not module:
            continue  # the crate root sees every layer
        name = str(file.relative_to(root))
        if module[0] not in LAYERS:
            yield Violation(name, 1, f"module {module[0]} has no layer: give it one in scripts/check_layers.py")
            continue
        code = code_of(file.read_text(encoding="utf-8"))
        for path in crate_paths(code, module):
            imported = path.segments[0] if path.segments else "*"
            rule = import_rule(module[0], reexports.get(imported, imported))
            if rule:
                yield Violation(name, path.line, rule)


Arrows = dict[str, dict[str, tuple[str, int]]]
"""By the names of two modules, the first of which imports the second: the file and line that do."""


def rust_arrows(source: Path, root: Path) -> Arrows:
    """Return which modules of a crate each imports, but for tests; what is handed on is the module's that has it."""
    files = {module_of(file.relative_to(source)): file for file in sorted(source.rglob("*.rs"))}
    codes = {module: _without_tests(code_of(file.read_text(encoding="utf-8"))) for module, file in files.items()}
    faces = {module: dict(_handed_on(codes[module], module)) for module in files}

    def home(segments: tuple[str, ...]) -> tuple[str, ...]:
        """Return the module whose file defines what `segments` name."""
        module = next((segments[:end] for end in range(len(segments), 0, -1) if segments[:end] in files), ())
        rest = segments[len(module) :]
        handed = faces.get(module, {}).get(rest[0]) if rest else None
        return home((*handed, *rest[1:])) if handed and handed != segments else module

    arrows: Arrows = {"::".join(module): {} for module in files}
    for module, file in files.items():
        for path in crate_paths(_PUB_USE.sub(_blank, codes[module]), module):
            imported = home(path.segments)
            if imported in files and imported != module:
                place = (file.relative_to(root).as_posix(), path.line)
                arrows["::".join(module)].setdefault("::".join(imported), place)
    return arrows


def _blank(found: re.Match[str]) -> str:
    """Return as many lines without anything in them."""
    return re.sub(r"[^\n]", " ", found[0])


_PUB_USE = re.compile(r"\bpub(?:\([^)]*\))?\s+use\b[^;]*;")


def _handed_on(code: str, module: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the names that a file hands on by ``pub use``, and what they stand for."""
    for use in _PUB_USE.findall(code):
        local = re.sub(r"\buse\s+(?!crate\b|self\b|super\b|::)", "use self::", use)
        yield from ((path.alias, path.segments) for path in crate_paths(local, module))


def _without_tests(code: str) -> str:
    """Return blanked code without its test modules."""
    while found := re.search(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{", code):
        depth, end = 1, found.end()
        while depth and end < len(code):
            depth += (code[end] == "{") - (code[end] == "}")
            end += 1
        code = code[: found.start()] + re.sub(r"[^\n]", " ", code[found.start() : end]) + code[end:]
    return code


_UNSAFE_FN = re.compile(r"\bunsafe\s+(?:extern\s+(?:[^\s{]+\s+)?)?fn\s+\w")


def _enclosing_header(code: str, position: int) -> tuple[str, int]:
    """Return what stands before the brace that `position` is in, and where that text starts."""
    depth = 0
    for brace in range(position - 1, -1, -1):
        depth += (code[brace] == "}") - (code[brace] == "{")
        if depth < 0:
            start = max(code.rfind(mark, 0, brace) for mark in ";{}") + 1
            return code[start:brace], start
    return "", 0


def _has_safety_section(lines: list[str], index: int) -> bool:
    """Return whether the documentation right above line `index` has a Safety section."""
    while index > 0 and re.match(r"\s*(///|//|#\[)", lines[index - 1]):
        index -= 1
        if re.match(r"\s*///\s*# Safety\b", lines[index]):
            return True
    return False


def _has_contract(code: str, lines: list[str], position: int) -> bool:
    """Return whether the ``unsafe fn`` at `position`, or its trait, says what its callers owe."""
    if _has_safety_section(lines, _line_of(code, position) - 1):
        return True
    header, start = _enclosing_header(code, position)
    if re.search(r"\bimpl\b.*\sfor\s+(?!<)", header, re.DOTALL):
        return True  # the contract is the trait's, and is asked for there
    trait = re.search(r"\btrait\b", header)
    return trait is not None and _has_safety_section(lines, _line_of(code, start + trait.start()) - 1)


def check_unsafe(root: Path) -> Iterator[Violation]:
    """Yield every ``unsafe fn`` that does not say what its callers owe; clippy asks for that of public ones only."""
    for file in sorted((root / "rust").rglob("*.rs")):
        source = file.read_text(encoding="utf-8")
        code, lines = code_of(source), source.split("\n")
        for match in _UNSAFE_FN.finditer(code):
            if not _has_contract(code, lines, match.start()):
                name, line = file.relative_to(root).as_posix(), _line_of(code, match.start())
                yield Violation(name, line, "unsafe fn without a Safety section of its own or of its trait")


def _at_module_level(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run when the module is imported."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            continue
        yield child
        yield from _at_module_level(child)


def check_extras(root: Path) -> Iterator[Violation]:
    """Yield every import of an optional package that would make the core package need it."""
    for file in sorted((root / "python/dpnoise").rglob("*.py")):
        name = file.relative_to(root).as_posix()
        if name.startswith(EXTRAS_ALLOWED):
            continue
        for node in _at_module_level(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                imported = [node.module or ""]
            else:
                continue
            for package in sorted({target.split(".")[0] for target in imported} - CORE):
                yield Violation(name, node.lineno, f"{package} is an extra: import it inside the function that uses it")


def python_arrows(root: Path) -> Arrows:
    """Return which modules of the package each of its modules imports."""
    source = root / "python"
    files = {}
    for file in sorted(source.glob("dpnoise/**/*.py*")):
        if file.suffix in (".py", ".pyi"):
            parts = file.relative_to(source).with_suffix("").parts
            files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file

    imports: dict[str, list[tuple[str, str, str, int]]] = {}  # from where, which name, called what here, in which line
    for module, file in files.items():
        package = module if file.stem == "__init__" else module.rpartition(".")[0]
        imports[module] = []
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imports[module] += [(alias.name, "*", "*", node.lineno) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                origin = resolve_name("." * node.level + (node.module or ""), package)
                imports[module] += [(origin, name.name, name.asname or name.name, node.lineno) for name in node.names]

    def home(module: str, name: str) -> str:
        """Return the module that ``from module import name`` is about."""
        if f"{module}.{name}" in files:
            return f"{module}.{name}"
        if name != "*" and module in files and files[module].stem == "__init__":
            for origin, original, here, _ in imports[module]:
                if here == name and origin != module:
                    return home(origin, original)
        return module

    arrows: Arrows = {module: {} for module in files}
    for module, file in files.items():
        for origin, name, _, line in imports[module]:
            imported = home(origin, name)
            if imported in files and imported != module:
                arrows[module].setdefault(imported, (file.relative_to(root).as_posix(), line))
    return arrows


def circles(arrows: Arrows) -> Iterator[list[str]]:
    """Yield a shortest circle through each module that is in one, but for those in a circle that came before."""
    found: set[str] = set()
    for start in arrows:
        ways = [[start]]
        seen: set[str] = set()
        for way in ways:  # which grows meanwhile
            if way[-1] in found:
                continue
            if start in arrows[way[-1]]:
                found.update(way)
                yield [*way, start]
                break
            ways += [[*way, module] for module in arrows[way[-1]] if module not in seen]
            seen.update(arrows[way[-1]])


def check_circles(root: Path) -> Iterator[Violation]:
    """Yield the circles of files and those of Python's areas, each by its first import."""
    crates = [rust_arrows(source, root) for source in sorted(root.glob("rust/*/src"))]
    modules = python_arrows(root)
    areas: Arrows = {}
    for module, imported in modules.items():
        own, *others = (".".join(name.split(".")[:2]) for name in [module, *imported])
        known = areas.setdefault(own, {})
        for area, place in zip(others, imported.values(), strict=True):
            if area != own:
                known.setdefault(area, place)
    for arrows in (*crates, modules, areas):
        for circle in circles(arrows):
            path, line = arrows[circle[0]][circle[1]]
            yield Violation(path, line, f"a circle of imports, {' -> '.join(circle)}: what they share moves down")


def check(root: Path) -> list[Violation]:
    """Return every violation below `root`."""
    return [*check_imports(root), *check_circles(root), *check_unsafe(root), *check_extras(root)]


def main() -> int:
    """Check the tree named on the command line, or the one this script is in."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
    if not (root / "rust/core/src").is_dir():
        print(f"{root} has no rust/core/src: not a dpnoise checkout", file=sys.stderr)
        return 1
    violations = check(root)
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
