"""What the instructions of x86-64 do, with AVX-512, in Intel syntax."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .flow import MARK, PUBLIC, SECRET, TABLE, Step, Value, combined, either
from .listing import Undescribed

_WIDTHS = {"BYTE": 1, "WORD": 2, "DWORD": 4, "QWORD": 8, "XMMWORD": 16, "YMMWORD": 32, "ZMMWORD": 64}
_OLD = {"ax": "rax", "bx": "rbx", "cx": "rcx", "dx": "rdx", "si": "rsi", "di": "rdi", "bp": "rbp", "sp": "rsp"}
_SIZES = (("", 8), ("d", 4), ("w", 2), ("b", 1))
NAMES = {
    **{size + name: (full, width) for name, full in _OLD.items() for size, width in (("r", 8), ("e", 4), ("", 2))},
    **{name[0] + part: (full, 1) for name, full in _OLD.items() if name[1] == "x" for part in "lh"},
    **{name + "l": (full, 1) for name, full in _OLD.items() if name[1] != "x"},
    **{f"r{n}{size}": (f"r{n}", width) for n in range(8, 16) for size, width in _SIZES},
    **{f"{size}mm{n}": (f"mm{n}", width) for n in range(32) for size, width in (("x", 16), ("y", 32), ("z", 64))},
    **{f"k{n}": (f"k{n}", 8) for n in range(8)},
}
"""What each name of a register stands for: the whole register, and how many bytes of it."""

_NUMBER = r"0x[0-9a-f]+|[0-9]+"


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
        if bare in NAMES:
            register, width = NAMES[bare]
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


# --- instructions ------------------------------------------------------------------------------------------------

_CONDITION = re.compile(r"n?([abceglopsz]|[abgl]e)|p[eo]")
_READS_CARRY = re.compile(r"n?[abc]|n?[ab]e")
_READS_CARRY_ALONE = re.compile(r"n?[bc]|n?ae")

_ENDS = {"ret", "ud2", "int3", "hlt"}
_NO_EFFECT = {"endbr64", "vzeroupper"}
_PADDING = re.compile(r"((data16|[cde]s) )*nop\b|xchg (\w+), \3$")
_MOVES = {"mov", "movabs", "movzx", "movsx", "movsxd", "shlx", "shrx", "sarx", "rorx", "pdep", "pext"}
_MOVES_WITH_FLAGS = {"popcnt", "tzcnt", "lzcnt", "andn", "bextr", "bzhi", "blsr", "blsi", "blsmsk"}
_IN_PLACE = {"add", "sub", "and", "or", "xor", "imul", "neg", "adc", "sbb"}
_SHIFTS = {"shl", "sal", "shr", "sar", "rol", "ror", "shld", "shrd"}  # which leave flags alone when they shift by 0
_IN_PLACE_NO_CARRY = {"inc", "dec"}
_IN_PLACE_NO_FLAGS = {"not", "bswap"}

_SETS_FLAGS = {"cmp", "test", "bt"} | _IN_PLACE | _SHIFTS | _IN_PLACE_NO_CARRY | _MOVES_WITH_FLAGS
_VECTOR = re.compile(
    r"""vp?( mov | broadcast | inse?r | extr | blend | perm(?![it]2) | shuf | unpck | pack | align | compress | expand
           | andn? | x?or | s[lr]l | sra | ro[lr] | add | sub | mul | min | max | abs | sad | cmp(?![ei]str) | testn?m
           | popcnt | lzcnt | cvt
           | aes(enc|dec)(last)? | rndscale | div | sqrt | gather | scatter
           | (?P<reads_target> fn?m(add|sub) | perm[it]2 | ternlog | dp[bw] | madd52 | sh[lr]dv ))
    | k( mov | andn? | xn?or | or(?!test) | not | add | shift | unpck )
    | (?P<flags> vu?comis | vptest$ | vtestp | kortest | ktest )""",
    re.VERBOSE,
)
_ZERO_OR_ONES = re.compile(r"v(pxor|xorp|psub|pcmpeq)|kxn?or")  # of a register and itself


def _flags_of(condition: str) -> list[str]:
    """Return the flags that a condition reads, of the two kinds that are told apart; none if it is no condition."""
    if not _CONDITION.fullmatch(condition):
        return []
    carry = ["carry"] if _READS_CARRY.fullmatch(condition) else []
    return carry if _READS_CARRY_ALONE.fullmatch(condition) else [*carry, "other"]


class X86_64(Step):
    """An instruction of x86-64."""

    NAME = "x86_64"
    REGISTERS = frozenset(full for full, _ in NAMES.values()) - {"rsp"} | {"carry", "other"}
    ARGUMENTS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
    KEPT = frozenset(["rbp", "rbx", "r12", "r13", "r14", "r15"])
    STACK_POINTER = "rsp"
    FIRST_ARGUMENT_ON_STACK = 8  # above the return address
    SETS_FLAGS = re.compile("|".join(_SETS_FLAGS) + "|vu?comis[sd]|vptest|k(or)?test[bwdq]")
    VARIABLE_TIME = re.compile(r"i?div|v?(div|sqrt)|vp?(gather|scatter)")

    def run(self) -> None:
        """Execute the instruction."""
        name, texts = self.line.mnemonic, self.line.operands
        if mark := re.fullmatch(rf"nop QWORD PTR \[(\w+)\+{MARK:#x}\]", str(self.line)):
            self.declassify(NAMES[mark[1]][0])
        elif name in _ENDS:
            self.ways = []
        elif name == "jmp":
            self.jump(texts[0])
        elif name == "call":
            self.call(texts[0])
        elif name[0] == "j" and (flags := _flags_of(name[1:])):
            self.branch(texts[0], "flags", *(self.state.registers[flag] for flag in flags))
        elif not (name in _NO_EFFECT or _PADDING.match(str(self.line))):
            self._compute(name, [Operand.parse(text) for text in texts])

    def _compute(self, name: str, operands: list[Operand]) -> None:
        registers = self.state.registers
        if name[0] in "vk":
            self._vector(*operands)
        elif not operands:
            self._without_operands()
        elif name == "push":
            pushed = self._read(operands[0])
            self._move_stack(-8)
            self.store(self.stack_pointer(), 8, pushed)
        elif name == "pop":
            self._write(operands[0], self.load(registers["rsp"], 8))
            self._move_stack(8)
        elif operands[0].register == "rsp" and name not in ("cmp", "test"):
            self._set_stack(*operands[1:])
        elif name in ("prefetcht0", "prefetcht1"):
            self._place(operands[0])
        elif name == "lea":
            self._write(operands[0], self._address(operands[1]))
        elif name in ("cmp", "test"):
            self._flags(combined(*map(self._read, operands)))
        elif name == "bt":
            registers["carry"] = combined(*map(self._read, operands))
        elif name.startswith("set") and (flags := _flags_of(name[3:])):
            self._write(operands[0], combined(*(registers[flag] for flag in flags)))
        elif name.startswith("cmov") and (flags := _flags_of(name[4:])):
            chosen = either(self._read(operands[0]), self._read(operands[1]))
            self._write(operands[0], SECRET if any(registers[flag] == SECRET for flag in flags) else chosen)
        elif name in ("mul", "imul") and len(operands) == 1:
            product = combined(registers["rax"], self._read(operands[0]))
            registers |= {"rax": product, "rdx": product}
            self._flags(product)
        elif name in ("div", "idiv"):
            quotient = combined(registers["rax"], registers["rdx"], self._read(operands[0]))
            registers |= {"rax": quotient, "rdx": quotient}
            self._flags(quotient)
            self.time_of(quotient)
        elif name == "mulx":
            product = combined(registers["rdx"], self._read(operands[2]))
            self._write(operands[0], product)
            self._write(operands[1], product)
        else:
            self._plain(*operands)

    def _plain(self, target: Operand, *sources: Operand) -> None:
        """Compute the first operand from the others, and from itself."""
        name = self.line.mnemonic
        values = [self._read(source) for source in sources]
        in_place = _IN_PLACE | _SHIFTS | _IN_PLACE_NO_CARRY | _IN_PLACE_NO_FLAGS
        if name in ("xor", "sub") and target.register and (target,) == sources:
            values = [PUBLIC]
        elif name in in_place and not (name == "imul" and len(sources) == 2):
            values.append(self._read(target))
        elif name not in _MOVES | _MOVES_WITH_FLAGS | {"imul"}:
            raise Undescribed(name)
        if name in ("adc", "sbb"):
            values.append(self.state.registers["carry"])
        result = values[0] if len(values) == 1 else combined(*values)
        limit = self._limit(*sources)
        self._write(target, result)
        if limit is not None and target.register and target.width >= 4:
            self.state.limits[target.register] = limit
        if name in _IN_PLACE | _MOVES_WITH_FLAGS | _IN_PLACE_NO_CARRY:
            self._flags(result, keep_carry=name in _IN_PLACE_NO_CARRY)
        elif name in _SHIFTS and not (name.startswith("s") and sources[-1].is_number):
            self._flags(combined(result, *(self.state.registers[name] for name in ("carry", "other"))))
        elif name in _SHIFTS:
            self._flags(result)

    def _vector(self, target: Operand, *sources: Operand) -> None:
        name = self.line.mnemonic
        values = [self._read(operand) for operand in sources]
        masks = [self.state.registers[operand.mask] for operand in (target, *sources) if operand.mask]
        kind = _VECTOR.match(name)
        if kind is None:
            raise Undescribed(name)
        if kind["flags"]:
            self._flags(combined(self._read(target), *values))
            return
        if len(sources) == 2 and sources[0] == sources[1] and sources[0].register and _ZERO_OR_ONES.match(name):
            values = [PUBLIC]
        if target.register and (target.keeps or kind["reads_target"]):
            values.append(self._read(target))
        if not target.register and SECRET in masks:
            self.reasons.append("a store under a secret mask")
        self.time_of(combined(*values))
        self._write(target, combined(*values, *masks))

    def _limit(self, *sources: Operand) -> int | None:
        """Return the largest number that a result can be, for what is done to lengths before a call."""
        if self.line.mnemonic == "and" and sources[0].is_number and sources[0].offset >= 0:
            return sources[0].offset
        if self.line.mnemonic == "mov" and sources[0].register:
            return self.state.limits.get(sources[0].register)
        return None

    def _without_operands(self) -> None:
        registers = self.state.registers
        if self.line.mnemonic in ("cdq", "cqo", "cwd"):
            registers["rdx"] = registers["rax"]
        elif self.line.mnemonic not in ("cdqe", "cwde", "cbw"):
            raise Undescribed(self.line.mnemonic)

    # --- the stack pointer

    def _set_stack(self, source: Operand) -> None:
        """Give the stack pointer another value: one that is known, or an aligned one."""
        name = self.line.mnemonic
        if name in ("add", "sub") and source.is_number:
            self._move_stack(source.offset if name == "add" else -source.offset)
        elif name == "and" and source.is_number:
            self.align_stack()
        elif name in ("mov", "lea"):
            self.state.registers["rsp"] = self._read(source) if name == "mov" else self._address(source)
        else:
            raise Undescribed(f"{name} of the stack pointer")
        if name in _IN_PLACE:
            self._flags(PUBLIC)

    def _move_stack(self, by: int) -> None:
        self.state.registers["rsp"] = self.stack_pointer() + by

    # --- operands

    def _address(self, operand: Operand) -> Value:
        values = [TABLE if name == "rip" else self.state.registers[name] for name in operand.address or ()]
        if len(values) == 1 and isinstance(values[0], int):
            return values[0] + operand.offset
        return combined(*values)

    def _place(self, operand: Operand) -> Value:
        if not operand.width:
            raise Undescribed(f"the size of {operand.text}")
        return self.checked(self._address(operand))

    def _read(self, operand: Operand) -> Value:
        if operand.register:
            return self.state.registers[operand.register]
        return PUBLIC if operand.address is None else self.load(self._place(operand), operand.width)

    def _write(self, operand: Operand, value: Value) -> None:
        if operand.register:
            # Byte and word registers leave the rest as it was; all others are written in full.
            partly = operand.width < 4
            self.state.registers[operand.register] = combined(value, self._read(operand)) if partly else value
            self.state.limits.pop(operand.register, None)
        else:
            place = self._place(operand)
            left = [self.load(place, operand.width)] if operand.keeps else []
            self.store(place, operand.width, combined(value, *left) if left else value)

    def _flags(self, value: Value, *, keep_carry: bool = False) -> None:
        self.state.registers["other"] = value
        if not keep_carry:
            self.state.registers["carry"] = value
