"""Read objdump's listing of x86-64 machine code. Used by kernel_flow.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_WIDTHS = {"BYTE": 1, "WORD": 2, "DWORD": 4, "QWORD": 8, "XMMWORD": 16, "YMMWORD": 32, "ZMMWORD": 64}
_OLD = {"ax": "rax", "bx": "rbx", "cx": "rcx", "dx": "rdx", "si": "rsi", "di": "rdi", "bp": "rbp", "sp": "rsp"}
_SIZES = (("", 8), ("d", 4), ("w", 2), ("b", 1))
REGISTERS = {
    **{size + name: (full, width) for name, full in _OLD.items() for size, width in (("r", 8), ("e", 4), ("", 2))},
    **{name[0] + part: (full, 1) for name, full in _OLD.items() if name[1] == "x" for part in "lh"},
    **{name + "l": (full, 1) for name, full in _OLD.items() if name[1] != "x"},
    **{f"r{n}{size}": (f"r{n}", width) for n in range(8, 16) for size, width in _SIZES},
    **{f"{size}mm{n}": (f"mm{n}", width) for n in range(32) for size, width in (("x", 16), ("y", 32), ("z", 64))},
    **{f"k{n}": (f"k{n}", 8) for n in range(8)},
}
"""What each name of a register stands for: the whole register, and how many bytes of it."""

_NUMBER = r"0x[0-9a-f]+|[0-9]+"


class Undescribed(ValueError):
    """Something that these scripts do not describe, and therefore do not let pass."""


@dataclass(frozen=True)
class Operand:
    """A register, a place in memory, or a number."""

    text: str
    register: str | None = None
    address: tuple[str, ...] | None = None  # the registers that make it
    offset: int = 0  # the number, or what is added to the address
    width: int = 0  # in bytes; 0 if the listing does not tell
    mask: str | None = None
    keeps: bool = False  # what the mask leaves out

    @classmethod
    def parse(cls, text: str) -> Operand:
        """Read an operand in Intel syntax."""
        bare, *decorations = re.split(r"(?=\{)", text)
        mask = next((mark[1:-1] for mark in decorations if mark.startswith("{k")), None)
        keeps = mask is not None and "{z}" not in decorations
        if bare in REGISTERS:
            register, width = REGISTERS[bare]
            return cls(text, register, width=width, mask=mask, keeps=keeps)
        if memory := re.fullmatch(r"(?:(\w+) (?:PTR|BCST) )?\[(.+)\]", bare):
            registers: list[str] = []
            offset = 0
            for sign, term in re.findall(r"([+-]?)([^+-]+)", memory[2]):
                if re.fullmatch(_NUMBER, term):
                    offset += int(sign + term, 16)
                elif term == "rip":
                    registers.append(term)
                else:
                    registers.append(cls.parse(term.split("*")[0]).register or "")
            width = _WIDTHS.get(memory[1], 0)
            return cls(text, None, tuple(registers), _signed(offset), width, mask, keeps)
        if bare and not re.fullmatch(_NUMBER, bare):
            raise Undescribed(f"the operand {text}")
        return cls(text, offset=_signed(int(bare or "0", 16)))  # without a number it says how to round

    @property
    def is_number(self) -> bool:
        """Whether it is neither a register nor in memory."""
        return self.register is None and self.address is None


def _signed(number: int) -> int:
    """Return what a number stands for that the listing gives modulo 2^64."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


@dataclass(frozen=True)
class Instruction:
    """A line of the listing."""

    at: int
    mnemonic: str
    operands: tuple[str, ...]
    symbol: str = ""  # what a jump leads to, or an address relative to the program counter

    def __str__(self) -> str:
        return f"{self.mnemonic} {', '.join(self.operands)}".strip()


_LINE = re.compile(r"^ *([0-9a-f]+):\t([^#\n]*)(?:# [0-9a-f]+ (<.+>))?$", re.MULTILINE)


def functions(listing: str) -> Iterator[tuple[str, list[Instruction]]]:
    """Yield the functions in the output of ``objdump -d -C -M intel --no-show-raw-insn``."""
    for part in re.split(r"\n(?=[0-9a-f]+ <)", listing):
        header = re.match(r"[0-9a-f]+ <(.+)>:\n", part)
        if header:
            yield header[1], [_instruction(int(at, 16), text.strip(), name) for at, text, name in _LINE.findall(part)]


def _instruction(at: int, text: str, symbol: str) -> Instruction:
    if re.match(r"(data16 |cs |ds |es )*nop\b|xchg +(\w+),\2$", text):
        return Instruction(at, "nop", ())
    mnemonic, _, operands = text.partition(" ")
    target, is_direct, name = operands.strip().partition(" <")
    if is_direct:
        return Instruction(at, mnemonic, (target,), _name("<" + name))
    parts = re.findall(r"(?:[^,\[{]|\[[^]]*\]|\{[^}]*\})+", operands.strip())
    return Instruction(at, mnemonic, tuple(parts), _name(symbol))


def _name(symbol: str) -> str:
    """Return the name in ``<name@VERSION+0x10>``."""
    return re.sub(r"(@[\w.]+)?(\+0x[0-9a-f]+)?>$", "", symbol.removeprefix("<"))
