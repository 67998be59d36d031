"""Read what ``objdump -d -C -M intel --no-show-raw-insn`` prints of machine code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


class Undescribed(ValueError):
    """Something that these scripts do not describe, and therefore do not let pass."""


@dataclass(frozen=True)
class Instruction:
    """A line of the listing."""

    at: int
    mnemonic: str
    operands: tuple[str, ...]
    symbol: str = ""  # what a jump leads to, or an address relative to the program counter

    def __str__(self) -> str:
        return f"{self.mnemonic} {', '.join(self.operands)}".strip()


# After an instruction comes a comment: `# 40 <TABLE>` for x86-64, `// #16` for AArch64.
_LINE = re.compile(r"^ *([0-9a-f]+):\t(.+?)(?:\s+# [0-9a-f]+ <(.+)>)?(?:\s+//.*)?$", re.MULTILINE)


def functions(listing: str) -> Iterator[tuple[str, str]]:
    """Yield the symbols of a listing, each with its lines."""
    for part in re.split(r"\n(?=[0-9a-f]+ <)", listing):
        header = re.match(r"[0-9a-f]+ <(.+)>:\n", part)
        if header:
            yield header[1], part


def instructions(lines: str) -> list[Instruction]:
    """Return the instructions of a function."""
    return [_instruction(int(at, 16), text.strip(), name) for at, text, name in _LINE.findall(lines)]


def _instruction(at: int, text: str, symbol: str) -> Instruction:
    mnemonic, operands = re.fullmatch(r"(\S+)\s*(.*)", text).groups()
    operands, is_direct, target = operands.partition(" <")
    parts = re.findall(r"(?:[^,\[{]|\[[^]]*\]|\{[^}]*\})+", operands)
    return Instruction(at, mnemonic, tuple(map(str.strip, parts)), _name(target[:-1] if is_direct else symbol))


def _name(symbol: str) -> str:
    """Return the name in ``name@VERSION+0x10``."""
    return re.sub(r"(@[\w.]+)?(\+0x[0-9a-f]+)?$", "", symbol)
