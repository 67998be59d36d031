"""Find in the sources which kernels there are, and which of their arguments point to public memory."""

from __future__ import annotations

import re
from pathlib import Path

from .listing import Undescribed

PUBLIC_TYPES = {"Tables", "[Digit]", "[Table]"}
"""What an argument of such a type points to is public."""


def declared(root: Path) -> list[tuple[str, frozenset[int]]]:
    """Return the kernels that sources below `root` declare by dispatch!, and their pointers to public memory.

    These are numbers of argument registers, from 0. A kernel with a type parameter comes twice: there are two types, or
    it would not have one. Those of tests are not counted.
    """
    kernels: list[tuple[str, frozenset[int]]] = []
    for file in sorted(root.rglob("*.rs")):
        source = file.read_text(encoding="utf-8").split("\nmod tests")[0]
        for call in re.finditer(r"dispatch!\(\s*\w+,\s*\w+(<\w+: \w+>)?\(([^()]*)\)\s*\);", source):
            function = re.findall(r"\bfn (\w+)", source[: call.start()])[-1]
            module = "::".join(part for part in file.relative_to(root).with_suffix("").parts if part != "mod")
            types = [argument.split(":", 1)[1].strip() for argument in call[2].split(",") if ":" in argument]
            kernels += (2 if call[1] else 1) * [(f"{module}::{function}", _pointers_to_public(types))]
    return kernels


def _pointers_to_public(types: list[str]) -> frozenset[int]:
    found: list[int] = []
    used = 0
    for kind in types:
        reference = re.fullmatch(r"&(?:mut )?(.+)", kind)
        if reference and reference[1] in PUBLIC_TYPES:
            found.append(used)
        elif not reference and not re.fullmatch(r"bool|usize|[iuf](8|16|32|64)", kind):
            raise Undescribed(f"an argument of type {kind}")
        # A slice takes two registers, and floating point has registers of its own.
        is_slice = reference and re.fullmatch(r"\[([^;\[\]]|\[[^\[\]]*\])*\]", reference[1])
        used += 0 if kind.startswith("f") else 2 if is_slice else 1
    return frozenset(found)


def planted(file: Path, architecture: str) -> dict[str, str]:
    """Return the kernels with planted faults that exist on an architecture, and why each must be refused."""
    pattern = r"/// (.+)\n(?: +#\[cfg\(target_arch = \"(\w+)\"\)\]\n)? +fn (\w+)"
    found = re.findall(pattern, file.read_text(encoding="utf-8"))
    return {name: reason for reason, condition, name in found if condition in ("", architecture)}
