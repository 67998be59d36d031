"""What the instructions of AArch64 do, with Advanced SIMD (NEON)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .flow import MARK, PUBLIC, SECRET, TABLE, Step, Value, combined, either
from .listing import Undescribed

_WIDTHS = {"b": 1, "h": 2, "w": 4, "s": 4, "x": 8, "d": 8, "q": 16}
_NUMBER = r"(?:[12]?[0-9]|3[01])"
_GENERAL = re.compile(r"(?P<size>[wx])(?P<name>[12]?[0-9]|30|zr)|(?P<stack>w?sp)")
_SCALAR = re.compile(rf"(?P<size>[bhsdq])(?P<name>{_NUMBER})")
_VECTOR = re.compile(rf"v(?P<name>{_NUMBER})\.(?P<lanes>[0-9]*)(?P<size>[bhsd])(?P<lane>\[[0-9]+\])?")
# How a register is extended or shifted, a condition, and a number in floating point.
_CONSTANT = re.compile(
    r"([us]xt[bhwx]|[lam]s[lr]|ror)( #[0-9]+)?|eq|ne|c[sc]|mi|pl|v[sc]|hi|ls|g[et]|l[et]|#-?[0-9]\.[0-9]+(e.+)?"
)


@dataclass(frozen=True)
class Operand:
    """A register, a list of registers, a place in memory, or a number."""

    registers: tuple[str, ...] = ()  # those of a list, or those that make an address
    width: int = 0  # of each register, in bytes
    element: int = 0  # of each lane, in bytes
    is_lane: bool = False  # of a register that keeps its other lanes
    is_address: bool = False
    is_written_back: bool = False  # the address, before it is used
    offset: int = 0  # the number, or what is added to the address

    @classmethod
    def parse(cls, text: str) -> Operand:
        """Read an operand."""
        if register := _GENERAL.fullmatch(text):
            if register["stack"]:
                return cls(("sp",), 8, 8)
            width = _WIDTHS[register["size"]]
            return cls(("zr" if register["name"] == "zr" else f"x{register['name']}",), width, width)
        if register := _SCALAR.fullmatch(text):
            width = _WIDTHS[register["size"]]
            return cls((f"v{register['name']}",), width, width)
        if register := _VECTOR.fullmatch(text):
            element = _WIDTHS[register["size"]]
            width = element * int(register["lanes"] or 1)
            return cls((f"v{register['name']}",), width, element, bool(register["lane"]))
        if several := re.fullmatch(r"\{(.+)\}(\[[0-9]+\])?", text):
            first, *others = (cls.parse(part) for part in re.split(r"-|, ", several[1]))
            names = [name for part in (first, *others) for name in part.registers]
            if "-" in text:
                start, stop = (int(name[1:]) for name in names)
                names = [f"v{n % 32}" for n in range(start, stop + 1 + 32 * (stop < start))]
            return cls(tuple(names), first.width, first.element, several[2] is not None)
        if memory := re.fullmatch(r"\[(.+)\](!?)", text):
            parts = [cls.parse(part) for part in memory[1].split(", ")]
            names = [name for part in parts for name in part.registers]
            offset = sum(part.offset for part in parts if not part.registers)
            return cls(tuple(names), is_address=True, is_written_back=bool(memory[2]), offset=offset)
        if number := re.fullmatch(r"#(-?(?:0x[0-9a-f]+|[0-9]+))", text):
            return cls(offset=int(number[1], 0))
        if _CONSTANT.fullmatch(text):
            return cls()
        raise Undescribed(f"the operand {text}")


# --- instructions ------------------------------------------------------------------------------------------------


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ENDS = _names("ret brk udf")
_NO_EFFECT = _names("nop bti paciasp autiasp")
_JUMPS_ON_A_REGISTER = _names("cbz cbnz tbz tbnz")
_COMPARES = _names("cmp cmn tst ccmp ccmn fcmp fcmpe fccmp fccmpe")
_CHOICES = _names("csel csinc csinv csneg cset csetm cinc cinv cneg fcsel")
_READS_FLAGS = _CHOICES | _names("ccmp ccmn fccmp fccmpe adc adcs sbc sbcs ngc ngcs")
_SETS_FLAGS = _COMPARES | _names("adds subs ands bics negs adcs sbcs ngcs")

_INTEGER = _names("""
    add sub neg and orr eor bic orn eon mov movz movn mvn lsl lsr asr ror extr ubfx sbfx ubfiz sbfiz uxtb uxth sxtb
    sxth sxtw mul mneg madd msub smull umull smnegl umnegl smulh umulh smaddl umaddl smsubl umsubl clz cls rbit rev
    rev16 rev32 sdiv udiv""")
_WRITES_IN_PART = _names("movk bfi bfxil bfc ins")
_LANES = _names("""
    abs addp addv aesmc cmeq cmge cmgt cmhi cmhs cmle cmlt cmtst cnt dup ext movi mvni not pmul rev64 sabd saddlp saddlv
    shadd shl shsub smax smaxp smaxv smin sminp sminv smov srhadd sshl sshr tbl trn1 trn2 uabd uaddlp uaddlv uhadd
    uhsub umax umaxp umaxv umin uminp uminv umov urhadd ushl ushr uzp1 uzp2 zip1 zip2""")
_ACCUMULATING = _names("""
    aese bif bit bsl fmla fmls mla mls saba sadalp sdot sli sri srsra ssra tbx uaba uadalp udot ursra usra""")
_FLOAT = _names("""
    fabd fabs facge facgt fadd faddp fcmeq fcmge fcmgt fcmle fcmlt fcvt fcvtas fcvtau fcvtms fcvtmu fcvtns fcvtnu
    fcvtps fcvtpu fcvtzs fcvtzu fdiv fmadd fmax fmaxnm fmaxnmp fmaxnmv fmaxp fmaxv fmin fminnm fminnmp fminnmv fminp
    fminv fmov fmsub fmul fneg fnmadd fnmsub fnmul frinta frinti frintm frintn frintp frintx frintz fsqrt fsub scvtf
    ucvtf""")
# These have a second form, with a 2 behind the name, for the upper half of the narrow register.
_LENGTHENING = _names("""
    fcvtl pmull sabdl saddl saddw shll smull sshll ssubl ssubw sxtl uabdl uaddl uaddw umull ushll usubl usubw uxtl""")
_NARROWING = _names("addhn fcvtn raddhn rshrn rsubhn shrn subhn xtn")
_ACCUMULATING_LONG = _names("sabal smlal smlsl uabal umlal umlsl")

_IN_HALVES = _LENGTHENING | _NARROWING | _ACCUMULATING_LONG
_DESCRIBED = frozenset().union(
    *(_INTEGER, _SETS_FLAGS, _READS_FLAGS, _WRITES_IN_PART, _LANES, _ACCUMULATING, _FLOAT, _IN_HALVES),
    (f"{name}2" for name in _IN_HALVES),
)
_READS_TARGET = frozenset().union(
    *(_WRITES_IN_PART, _ACCUMULATING, _ACCUMULATING_LONG),
    (f"{name}2" for name in _NARROWING | _ACCUMULATING_LONG),  # a narrowing one writes half of it
)

_LOAD = re.compile(r"ld(u?r|n?p)(?P<size>s?[bhw])?|ld[1-4]r?")
_STORE = re.compile(r"st(u?r|n?p)(?P<size>[bh])?|st[1-4]")
_INTERLEAVED = re.compile(r"(ld|st)[2-4]r?")


class AArch64(Step):
    """An instruction of AArch64."""

    NAME = "aarch64"
    REGISTERS = frozenset([f"x{n}" for n in range(31)] + [f"v{n}" for n in range(32)] + ["nzcv"])
    ARGUMENTS = tuple(f"x{n}" for n in range(8))
    KEPT = frozenset(f"x{n}" for n in range(19, 30))
    STACK_POINTER = "sp"
    FIRST_ARGUMENT_ON_STACK = 0
    SETS_FLAGS = re.compile("|".join(_SETS_FLAGS))
    VARIABLE_TIME = re.compile(r"[usf]div|fsqrt")

    def run(self) -> None:
        """Execute the instruction."""
        name, texts = self.line.mnemonic, self.line.operands
        if mark := re.fullmatch(rf"prfm #0x1f, \[(x\d+), #{MARK}\]", str(self.line)):
            self.declassify(mark[1])
        elif name in _ENDS:
            self.ways = []
        elif name in ("b", "br"):
            self.jump(texts[0])
        elif name in ("bl", "blr"):
            self.call(texts[0])
        elif name.startswith("b."):
            self.branch(texts[0], "flags", self.state.registers["nzcv"])
        elif name in _JUMPS_ON_A_REGISTER:
            self.branch(texts[-1], texts[0], self._read(Operand.parse(texts[0])))
        elif name in ("adr", "adrp"):
            self._write(Operand.parse(texts[0]), TABLE)
        elif name == "prfm":
            self.checked(self._address(Operand.parse(texts[1])))
        elif _LOAD.fullmatch(name) or _STORE.fullmatch(name):
            self._transfer(*map(Operand.parse, texts))
        elif name not in _NO_EFFECT:
            if name not in _DESCRIBED:
                raise Undescribed(name)
            self._compute([Operand.parse(text) for text in texts])

    def _compute(self, operands: list[Operand]) -> None:
        name, registers = self.line.mnemonic, self.state.registers
        target, *sources = operands
        values = [self._read(source) for source in (operands if name in _COMPARES else sources)]
        if name in _READS_FLAGS and name not in _CHOICES:
            values.append(registers["nzcv"])
        # Vectors are combined with a number in place.
        is_in_place = name in ("orr", "bic") and not any(source.registers for source in sources)
        if target.is_lane or is_in_place or name in _READS_TARGET:
            values.append(self._read(target))
        result = values[0] if name == "mov" and len(values) == 1 else combined(*values)
        if name in _CHOICES and registers["nzcv"] == SECRET:
            result = SECRET
        elif name in ("csel", "fcsel"):
            result = either(*values[:2])
        elif name in ("add", "sub") and isinstance(values[0], int) and not sources[1].registers:
            shift = 12 if self.line.operands[-1] == "lsl #12" else 0
            by = sources[1].offset << shift
            result = values[0] + (by if name == "add" else -by)
        self.time_of(result)
        if name in _SETS_FLAGS:
            registers["nzcv"] = result
        if name == "and" and target.registers == ("sp",) and not sources[1].registers:
            self.align_stack()
        elif name not in _COMPARES:
            self._write(target, result)

    # --- memory

    def _transfer(self, *operands: Operand) -> None:
        """Load or store registers."""
        name = self.line.mnemonic
        count = next((i for i, operand in enumerate(operands) if operand.is_address), 0)
        if not count:
            raise Undescribed(f"the address of {name}")
        lists, address, after = operands[:count], operands[count], operands[count + 1 :]
        place = self.checked(self._address(address))
        if place == SECRET:
            return
        registers = [register for operand in lists for register in operand.registers]
        is_element = lists[0].is_lane or re.fullmatch("ld[1-4]r", name)
        size = (_LOAD.fullmatch(name) or _STORE.fullmatch(name)).groupdict().get("size")
        width = _WIDTHS[size[-1]] if size else lists[0].element if is_element else lists[0].width
        places = [place + width * i if isinstance(place, int) else place for i in range(len(registers))]
        if _INTERLEAVED.fullmatch(name):
            places, width = [place] * len(registers), width * len(registers)
        if name.startswith("ld"):
            loaded = [self.load(at, width) for at in places]
            for register, value in zip(registers, loaded, strict=True):
                kept = [self._register(register)] if lists[0].is_lane else []
                self._set(register, combined(value, *kept) if kept else value)
        else:
            stored = [self._register(register) for register in registers]
            for at, value in zip(places, stored, strict=True):
                self.store(at, width, combined(*stored) if _INTERLEAVED.fullmatch(name) else value)
        base = address.registers[0]
        if address.is_written_back:
            self._set(base, place)
        elif after:
            by = after[0]
            moved = combined(place, self._read(by)) if by.registers or not isinstance(place, int) else place + by.offset
            self._set(base, moved)

    def _address(self, operand: Operand) -> Value:
        values = [self._register(name) for name in operand.registers]
        if len(values) == 1 and isinstance(values[0], int):
            return values[0] + operand.offset
        return combined(*values)

    # --- registers

    def _read(self, operand: Operand) -> Value:
        values = [self._register(name) for name in operand.registers]
        return values[0] if len(values) == 1 else combined(*values)

    def _write(self, operand: Operand, value: Value) -> None:
        (register,) = operand.registers
        self._set(register, value)

    def _register(self, name: str) -> Value:
        return PUBLIC if name == "zr" else self.state.registers[name]

    def _set(self, name: str, value: Value) -> None:
        if name != "zr":
            self.state.registers[name] = value
            self.state.limits.pop(name, None)
