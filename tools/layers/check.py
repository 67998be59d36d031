"""Check who imports whom in Rust where Cargo does not. Run by ``make lint``; exits with 1 on any violation.

Below rust/core/src a module may use its own layer and the layers below, in unit tests, too; see `LAYERS`. In all crates
no files import each other in a circle, but for unit tests. An ``unsafe fn`` says in a Safety section what its callers
owe, or its trait does: clippy asks for that of public ones only.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

CRATES = ["rust/*", "clients/c", "integrations/prio", "proofs"]

HIGH = 2  # never each other
LAYERS = {
    **dict.fromkeys(["params", "arguments", "error", "instruction_set", "generator"], 0),
    **dict.fromkeys(["rng", "threads", "samplers", "calibration"], 1),
    **dict.fromkeys(["mechanisms", "local", "stability", "sgd"], HIGH),
}

Module = tuple[str, ...]

_OPAQUE = re.compile(
    r"""//[^\n]*|/\*[\s\S]*?\*/|\b[bc]?r(\#*)"[\s\S]*?"\1|"(?:\\[\s\S]|[^"\\])*"|'(?:\\(?:u\{[^}]*\}|x..|.)|[^'\\\n])'"""
)
_TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*(?=\{)")
_USE = re.compile(r"(\bpub(?:\([^)]*\))?\s+)?\buse\s+([^;]*);")
_PATH = re.compile(r"\b(?:crate|super|self)(?:\s*::\s*\w+)+")
_UNSAFE_FN = re.compile(r"\bunsafe\s+(?:extern\s+(?:[^\s{]+\s+)?)?fn\s+\w")


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def code_of(source: str) -> str:
    """Return a Rust file with its comments and literals blanked, every character where it was."""
    return _OPAQUE.sub(_blank, source)


def _end(code: str, brace: int) -> int:
    """Return where the block ends whose brace is there."""
    depth = 0
    for mark in re.compile(r"[{}]").finditer(code, brace):
        depth += 1 if mark[0] == "{" else -1
        if depth == 0:
            return mark.end()
    return len(code)


def _without_tests(code: str) -> str:
    while found := _TESTS.search(code):
        code = code[: found.start()] + code[_end(code, found.end()) :]
    return code


def _branches(tree: str) -> list[str]:
    """Return the paths of a use tree."""
    head, brace, rest = tree.partition("{")
    if not brace:
        return [tree]
    parts, depth = [""], 0
    for letter in rest[: rest.rindex("}")]:
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [branch for part in parts if part.strip() for branch in _branches(head + part)]


def _absolute(path: str, module: Module) -> Module:
    """Return a path of a module from the root of its crate."""
    segments = module
    for word in re.findall(r"\w+|\*", path.partition(" as ")[0]):
        if word in ("crate", "super"):
            segments = () if word == "crate" else segments[:-1]
        elif word not in ("self", "*"):
            segments = (*segments, word)
    return segments


def arrows(source: Path, *, tests: bool) -> dict[Module, set[Module]]:
    """Return which modules of a crate each imports; what one hands on by ``pub use`` is the module's that has it."""
    files: dict[Module, str] = {}
    for file in sorted(source.rglob("*.rs")):
        parts = file.relative_to(source).with_suffix("").parts
        code = code_of(file.read_text(encoding="utf-8"))
        files[parts[:-1] if parts[-1] in ("mod", "lib") else parts] = code if tests else _without_tests(code)
    faces: dict[Module, dict[str, Module]] = {module: {} for module in files}
    for module, code in files.items():
        for handed_on, tree in _USE.findall(code):
            for branch in _branches(tree) if handed_on else []:
                local = branch if re.match(r"\s*(crate|super|self)\b", branch) else f"self::{branch}"
                faces[module][re.findall(r"\w+|\*", branch)[-1]] = _absolute(local, module)

    def home(path: Module) -> Module:
        """Return the module whose file defines what a path names."""
        module = next((path[:end] for end in range(len(path), 0, -1) if path[:end] in files), ())
        handed = faces.get(module, {}).get(path[len(module)]) if len(path) > len(module) else None
        return home((*handed, *path[len(module) + 1 :])) if handed and handed != path else module

    found: dict[Module, set[Module]] = {}
    for module, code in files.items():
        paths = [branch for handed_on, tree in _USE.findall(code) if not handed_on for branch in _branches(tree)]
        paths = [path for path in paths if re.match(r"\s*(crate|super|self)\b", path)] + _PATH.findall(
            _USE.sub("", code)
        )
        found[module] = {home(_absolute(path, module)) for path in paths} - {module}
    return found


def check_layers(root: Path) -> Iterator[str]:
    """Yield the imports that the layers of rust/core/src forbid."""
    for module, imported in arrows(root / "rust/core/src", tests=True).items():
        for area in sorted({one[0] for one in imported if one} | set(module[:1])) if module else ():
            own, other = LAYERS.get(module[0]), LAYERS.get(area)
            if own is None or other is None:
                yield f"{area} has no layer: give it one in tools/layers/check.py"
            elif other > own or (other == own == HIGH and area != module[0]):
                yield f"{'::'.join(module)} imports {area}, upward or sideways: what they share moves down"


def check_circles(root: Path) -> Iterator[str]:
    """Yield a circle of files of each crate that has one."""
    for source in sorted(source for crate in CRATES for source in root.glob(f"{crate}/src")):
        graph = {module: imported - {()} for module, imported in arrows(source, tests=False).items() if module}
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            circle = " <- ".join("::".join(module) for module in error.args[1])
            yield f"{source.relative_to(root).as_posix()}: a circle of imports, {circle}: what they share moves down"


def check_unsafe(root: Path) -> Iterator[str]:
    """Yield every ``unsafe fn`` that does not say what its callers owe."""
    for file in sorted(file for crate in CRATES for file in root.glob(f"{crate}/**/*.rs")):
        source = file.read_text(encoding="utf-8")
        code, lines = code_of(source), source.split("\n")
        for match in _UNSAFE_FN.finditer(code):
            line = code.count("\n", 0, match.start())
            opened = [
                at.start() for at in re.finditer(r"\{", code[: match.start()]) if _end(code, at.start()) > match.end()
            ]
            start = max((code.rfind(mark, 0, opened[-1]) for mark in ";{}"), default=0) + 1 if opened else 0
            header = code[start : opened[-1]] if opened else ""
            trait = re.search(r"\btrait\b", header)
            above = code.count("\n", 0, start + trait.start()) if trait else line
            of_trait = re.search(r"\bimpl\b.*\sfor\s+(?!<)", header, re.DOTALL)  # which is asked where it is
            if not (of_trait or _has_safety_section(lines, line) or _has_safety_section(lines, above)):
                place = f"{file.relative_to(root).as_posix()}:{line + 1}"
                yield f"{place}: unsafe fn without a Safety section of its own or of its trait"


def _has_safety_section(lines: list[str], index: int) -> bool:
    """Return whether the documentation right above a line has a Safety section."""
    while index > 0 and re.match(r"\s*(///|//|#\[)", lines[index - 1]):
        index -= 1
        if re.match(r"\s*///\s*# Safety\b", lines[index]):
            return True
    return False


def main() -> int:
    """Check the tree named on the command line, or the one this script is in."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2])
    if not (root / "rust/core/src").is_dir():
        print(f"{root} has no rust/core/src: not a dpnoise checkout", file=sys.stderr)
        return 1
    violations = [*check_layers(root), *check_circles(root), *check_unsafe(root)]
    print(*violations, sep="\n", end="\n" * bool(violations))
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
