"""Follow secrets through the machine code of the AVX-512 kernels, along all their paths. Used by constant_time.py.

Valgrind cannot run them, and does not look for divisions.

What a kernel finds in registers when it is called is public: pointers, lengths, counters, parameters. What it loads is
secret, but for its own stack, constants of the program, and what an argument of a type in PUBLIC_TYPES points to. The
result of an instruction is secret if something is that it reads. Refused are

- a jump on a secret, an address made of a secret, and a store under a secret mask;
- divisions and square roots of secrets, gathers and scatters: they take longer for some values than for others;
- calls, but for those that end the program (NO_RETURN) and those whose time depends on a length alone (COPIES);
- jumps to a computed address;
- everything that is not described here.

What a kernel may know of secrets itself stands in DECLASSIFIED.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from machine_code import REGISTERS, Instruction, Operand, Undescribed

PUBLIC_TYPES = {"Tables"}
COPIES = {"memcpy", "memmove", "memset"}
DECLASSIFIED = dict.fromkeys(
    ["trials::run", "trials::compact"],
    ("popcnt", "how many trials are accepted, and so where values go (discrete_laplace.md, Theorem 1)"),
)
"""An instruction whose result a kernel may know, though it is computed from secrets, and why."""

NO_RETURN = re.compile(r"core::(panicking::|slice::index::slice_\w*fail|option::expect_failed|result::unwrap_failed)")

# --- what is known of a value: one of these, or an int, which is an address in the stack relative to that at entry ----

Value = str | int
SECRET = "secret"
PUBLIC = "public"
TABLE = "pointer to public memory"
STACK = "pointer into the stack"


def combined(*values: Value) -> Value:
    """Return what is known of a value that is computed from others."""
    if SECRET in values:
        return SECRET
    if any(value == STACK or isinstance(value, int) for value in values):
        return STACK
    return TABLE if values.count(TABLE) == 1 else PUBLIC


def either(a: Value, b: Value) -> Value:
    """Return what is known of a value that is one of two."""
    if a == b:
        return a
    return PUBLIC if {a, b} == {PUBLIC, TABLE} else combined(a, b)


# --- instructions ------------------------------------------------------------------------------------------------

_CONDITION = re.compile(r"n?([abceglopsz]|[abgl]e)|p[eo]")
_READS_CARRY = re.compile(r"n?[abc]|n?[ab]e")
_READS_CARRY_ALONE = re.compile(r"n?[bc]|n?ae")

_ENDS = {"ret", "ud2", "int3", "hlt"}
_NO_EFFECT = {"nop", "endbr64", "vzeroupper"}
_MOVES = {"mov", "movabs", "movzx", "movsx", "movsxd", "shlx", "shrx", "sarx", "rorx", "pdep", "pext"}
_MOVES_WITH_FLAGS = {"popcnt", "tzcnt", "lzcnt", "andn", "bextr", "bzhi", "blsr", "blsi", "blsmsk"}
_IN_PLACE = {"add", "sub", "and", "or", "xor", "imul", "neg", "adc", "sbb"}
_SHIFTS = {"shl", "sal", "shr", "sar", "rol", "ror", "shld", "shrd"}  # which leave flags alone when they shift by 0
_IN_PLACE_NO_CARRY = {"inc", "dec"}
_IN_PLACE_NO_FLAGS = {"not", "bswap"}

_SETS_FLAGS = {"cmp", "test", "bt"} | _IN_PLACE | _SHIFTS | _IN_PLACE_NO_CARRY | _MOVES_WITH_FLAGS
_VARIABLE_TIME = re.compile(r"i?div|v?(div|sqrt)|vp?(gather|scatter)")
_VECTOR = re.compile(
    r"""vp?( mov | broadcast | inse?r | extr | blend | perm(?![it]2) | shuf | unpck | pack | align | compress | expand
           | andn? | x?or | s[lr]l | sra | ro[lr] | add | sub | mul | min | max | abs | sad | cmp(?![ei]str) | testn?m
           | popcnt | lzcnt | cvt
           | rndscale | div | sqrt | gather | scatter
           | (?P<reads_target> fn?m(add|sub) | perm[it]2 | ternlog | dp[bw] | madd52 | sh[lr]dv ))
    | k( mov | andn? | xn?or | or(?!test) | not | add | shift | unpck )
    | (?P<flags> vu?comis | vptest$ | vtestp | kortest | ktest )""",
    re.VERBOSE,
)
_ZERO_OR_ONES = re.compile(r"v(pxor|xorp|psub|pcmpeq)|kxn?or")  # of a register and itself


@dataclass
class State:
    """What is known of all registers, of the flags, and of the bytes of the stack."""

    registers: dict[str, Value]
    stack: dict[int, Value]
    limits: dict[str, int] = field(default_factory=dict)  # numbers in some registers are at most so large

    def copy(self) -> State:
        """Return a copy to go on from."""
        return State(dict(self.registers), dict(self.stack), dict(self.limits))

    def widen(self, other: State) -> bool:
        """Become what holds after either way here; tell whether that is less than was known."""
        registers = {name: either(value, other.registers[name]) for name, value in self.registers.items()}
        stack = {at: either(value, other.stack[at]) for at, value in self.stack.items() if at in other.stack}
        limits = dict(self.limits.items() & other.limits.items())
        changed = (registers, stack, limits) != (self.registers, self.stack, self.limits)
        self.registers, self.stack, self.limits = registers, stack, limits
        return changed


_ALIGNED = -(1 << 30)  # where the stack is taken to be once its pointer has been aligned
_FLAGS = ["carry", "other"]


@dataclass
class Kernel:
    """A kernel and what was found in it."""

    name: str
    instructions: list[Instruction]
    tables: frozenset[str] = frozenset()  # the argument registers that point to public memory
    jumps: dict[int, str] = field(default_factory=dict)
    calls: set[str] = field(default_factory=set)
    refused: dict[int, str] = field(default_factory=dict)

    def follow(self) -> Kernel:
        """Follow all paths."""
        lines = {line.at: index for index, line in enumerate(self.instructions)}
        # What is in a register that passes no argument has no influence on what a function does.
        registers: dict[str, Value] = {name: PUBLIC for name, _ in REGISTERS.values()}
        registers |= dict.fromkeys(_FLAGS, PUBLIC) | dict.fromkeys(self.tables, TABLE) | {"rsp": 0}
        # Further arguments stand above the return address.
        before = {0: State(registers, dict.fromkeys(range(8, 256), PUBLIC))}
        todo = [0]
        while todo:
            index = todo.pop()
            after = before[index].copy()
            for target in self._step(after, index):
                following = index + 1 if target is None else lines.get(target)
                if following is None or following >= len(self.instructions):
                    self._refuse(index, "leaves the function")
                elif following not in before:
                    before[following] = after.copy()
                    todo.append(following)
                elif before[following].widen(after):
                    todo.append(following)
        return self

    def _refuse(self, index: int, reason: str) -> None:
        line = self.instructions[index]
        self.refused.setdefault(line.at, f"+{line.at - self.instructions[0].at:#x} {line}: {reason}")

    def _step(self, state: State, index: int) -> list[int | None]:
        """Execute a line; return where it may go: to an address, or on (None)."""
        line = self.instructions[index]
        name = line.mnemonic
        if name in _ENDS:
            return []
        try:
            if name.startswith("j") or (name == "call" and line.symbol not in COPIES):
                return self._jump(state, index)
            operands = [Operand.parse(text) for text in line.operands] if name != "call" else []
            is_declassified = name == DECLASSIFIED.get(self.name, ("", ""))[0]
            reasons = Execution(state, name, operands, is_declassified).run()
        except Undescribed as problem:
            self._refuse(index, f"not described: {problem}")
            return []
        for reason in reasons:
            self._refuse(index, reason)
        return [None]

    def _jump(self, state: State, index: int) -> list[int | None]:
        line = self.instructions[index]
        ways: list[int | None] = []
        if not re.fullmatch("[0-9a-f]+", line.operands[0]):
            self._refuse(index, "a computed address")
        elif NO_RETURN.match(line.symbol):
            self.calls.add(line.symbol)
        elif line.mnemonic == "call":
            self._refuse(index, "a call that returns")
        else:
            ways.append(int(line.operands[0], 16))
        if flags := _flags_of(line.mnemonic[1:]):
            ways.append(None)
            setter = next((line for line in self.instructions[index - 1 :: -1] if line.mnemonic in _SETS_FLAGS), "")
            self.jumps[line.at] = f"{setter} {line.mnemonic}"
            if any(state.registers[flag] == SECRET for flag in flags):
                self._refuse(index, "a jump on a secret")
        elif line.mnemonic not in ("call", "jmp"):
            self._refuse(index, "not described")
        return ways


def _flags_of(condition: str) -> list[str]:
    """Return the flags that a condition reads, of the two kinds that are told apart; none if it is no condition."""
    if not _CONDITION.fullmatch(condition):
        return []
    carry = ["carry"] if _READS_CARRY.fullmatch(condition) else []
    return carry if _READS_CARRY_ALONE.fullmatch(condition) else [*carry, "other"]


@dataclass
class Execution:
    """The effect of one instruction."""

    state: State
    name: str
    operands: list[Operand]
    is_declassified: bool
    reasons: list[str] = field(default_factory=list)  # why it is refused

    def run(self) -> list[str]:
        """Apply the effect; return why the instruction must be refused, if it must."""
        name, operands, registers = self.name, self.operands, self.state.registers
        if name in _NO_EFFECT:
            return []
        if name == "call":
            self._copy()
        elif name[0] in "vk":
            self._vector()
        elif not operands:
            self._without_operands()
        elif name == "push":
            pushed = self._read(operands[0])
            self._move_stack(-8)
            self._store(self._stack_pointer(), 8, pushed)
        elif name == "pop":
            self._write(operands[0], self._load(registers["rsp"], 8))
            self._move_stack(8)
        elif operands[0].register == "rsp" and name not in ("cmp", "test"):
            self._set_stack()
        elif name == "prefetcht0":
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
            self._time_of(quotient)
        elif name == "mulx":
            product = combined(registers["rdx"], self._read(operands[2]))
            self._write(operands[0], product)
            self._write(operands[1], product)
        else:
            self._plain()
        return self.reasons

    def _plain(self) -> None:
        """Compute the first operand from the others, and from itself."""
        name, (target, *sources) = self.name, self.operands
        values = [self._read(source) for source in sources]
        in_place = _IN_PLACE | _SHIFTS | _IN_PLACE_NO_CARRY | _IN_PLACE_NO_FLAGS
        if name in ("xor", "sub") and target.register and [target] == sources:
            values = [PUBLIC]
        elif name in in_place and not (name == "imul" and len(sources) == 2):
            values.append(self._read(target))
        elif name not in _MOVES | _MOVES_WITH_FLAGS | {"imul"}:
            raise Undescribed(name)
        if name in ("adc", "sbb"):
            values.append(self.state.registers["carry"])
        result = values[0] if len(values) == 1 else combined(*values)
        if self.is_declassified:
            result = PUBLIC
        limit = self._limit(sources)
        self._write(target, result)
        if limit is not None and target.register and target.width >= 4:
            self.state.limits[target.register] = limit
        if name in _IN_PLACE | _MOVES_WITH_FLAGS | _IN_PLACE_NO_CARRY:
            self._flags(result, keep_carry=name in _IN_PLACE_NO_CARRY)
        elif name in _SHIFTS and not (name.startswith("s") and sources[-1].is_number):
            self._flags(combined(result, *(self.state.registers[name] for name in _FLAGS)))
        elif name in _SHIFTS:
            self._flags(result)

    def _vector(self) -> None:
        target, *sources = self.operands
        values = [self._read(operand) for operand in sources]
        masks = [self.state.registers[operand.mask] for operand in self.operands if operand.mask]
        kind = _VECTOR.match(self.name)
        if kind is None:
            raise Undescribed(self.name)
        if kind["flags"]:
            self._flags(combined(self._read(target), *values))
            return
        if len(sources) == 2 and sources[0] == sources[1] and sources[0].register and _ZERO_OR_ONES.match(self.name):
            values = [PUBLIC]
        if target.register and (target.keeps or kind["reads_target"]):
            values.append(self._read(target))
        if not target.register and SECRET in masks:
            self.reasons.append("a store under a secret mask")
        self._time_of(combined(*values))
        self._write(target, combined(*values, *masks))

    def _time_of(self, value: Value) -> None:
        """Refuse what takes longer for some values, if the value is secret."""
        if value == SECRET and _VARIABLE_TIME.match(self.name):
            self.reasons.append("takes longer for some values than for others")

    def _limit(self, sources: list[Operand]) -> int | None:
        """Return the largest number that a result can be, for what is done to lengths before a call."""
        if self.name == "and" and sources[0].is_number and sources[0].offset >= 0:
            return sources[0].offset
        if self.name == "mov" and sources[0].register:
            return self.state.limits.get(sources[0].register)
        return None

    def _copy(self) -> None:
        """Call a function that copies or fills memory."""
        place, length = self.state.registers["rdi"], self.state.registers["rdx"]
        if SECRET in (place, self.state.registers["rsi"]):
            self.reasons.append("an address made of a secret")
        if length == SECRET:
            self.reasons.append("the length of a copy is secret")
        most = self.state.limits.get("rdx")
        if isinstance(place, int) and most is not None:
            self._store(place, most, SECRET)
        else:
            self._store(STACK if isinstance(place, int) else place, 0, SECRET)
        kept = {"rsp", "rbp", "rbx", "r12", "r13", "r14", "r15"}
        self.state.registers |= dict.fromkeys(self.state.registers.keys() - kept, SECRET)
        self.state.limits = {name: limit for name, limit in self.state.limits.items() if name in kept}

    def _without_operands(self) -> None:
        registers = self.state.registers
        if self.name in ("cdq", "cqo", "cwd"):
            registers["rdx"] = registers["rax"]
        elif self.name not in ("cdqe", "cwde", "cbw"):
            raise Undescribed(self.name)

    # --- the stack pointer

    def _set_stack(self) -> None:
        """Give the stack pointer another value: one that is known, or an aligned one."""
        sources = self.operands[1:]
        if self.name in ("add", "sub") and sources[0].is_number:
            self._move_stack(sources[0].offset if self.name == "add" else -sources[0].offset)
        elif self.name == "and" and sources[0].is_number:
            self.state.registers["rsp"] = _ALIGNED
            self.state.stack = {at: value for at, value in self.state.stack.items() if at >= 8}
        elif self.name in ("mov", "lea"):
            value = self._read(sources[0]) if self.name == "mov" else self._address(sources[0])
            self.state.registers["rsp"] = value
        else:
            raise Undescribed(f"{self.name} of the stack pointer")
        if self.name in _IN_PLACE:
            self._flags(PUBLIC)

    def _move_stack(self, by: int) -> None:
        self.state.registers["rsp"] = self._stack_pointer() + by

    def _stack_pointer(self) -> int:
        pointer = self.state.registers["rsp"]
        if not isinstance(pointer, int):
            raise Undescribed("a stack pointer that is not known")
        return pointer

    # --- operands

    def _address(self, operand: Operand) -> Value:
        values = [TABLE if name == "rip" else self.state.registers[name] for name in operand.address or ()]
        if len(values) == 1 and isinstance(values[0], int):
            return values[0] + operand.offset
        return combined(*values)

    def _place(self, operand: Operand) -> Value:
        if not operand.width:
            raise Undescribed(f"the size of {operand.text}")
        place = self._address(operand)
        if place == SECRET:
            self.reasons.append("an address made of a secret")
        return place

    def _read(self, operand: Operand) -> Value:
        if operand.register:
            return self.state.registers[operand.register]
        return PUBLIC if operand.address is None else self._load(self._place(operand), operand.width)

    def _load(self, place: Value, width: int) -> Value:
        if not isinstance(place, int):
            return PUBLIC if place == TABLE else SECRET
        values = {self.state.stack.get(at, SECRET) for at in range(place, place + width)}
        return values.pop() if len(values) == 1 else combined(*values)

    def _write(self, operand: Operand, value: Value) -> None:
        if operand.register:
            # Byte and word registers leave the rest as it was; all others are written in full.
            partly = operand.width < 4
            self.state.registers[operand.register] = combined(value, self._read(operand)) if partly else value
            self.state.limits.pop(operand.register, None)
        else:
            place = self._place(operand)
            left = [self._load(place, operand.width)] if operand.keeps else []
            self._store(place, operand.width, combined(value, *left) if left else value)

    def _store(self, place: Value, width: int, value: Value) -> None:
        aligned = self._stack_pointer() < _ALIGNED // 2
        if place == TABLE and value == SECRET:
            self.reasons.append("a secret stored in public memory")
        elif place == STACK or (isinstance(place, int) and aligned and _ALIGNED // 2 < place < 8):
            self.state.stack.clear()  # it may have gone anywhere
        elif isinstance(place, int):
            self.state.stack |= dict.fromkeys(range(place, place + width), value)

    def _flags(self, value: Value, *, keep_carry: bool = False) -> None:
        self.state.registers["other"] = value
        if not keep_carry:
            self.state.registers["carry"] = value


# --- which functions, and what their arguments are -----------------------------------------------------------------

_ARGUMENT_REGISTERS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")


def declared(root: Path) -> list[tuple[str, frozenset[str]]]:
    """Return the kernels that sources below `root` declare by dispatch!, and their pointers to public memory.

    A kernel with a type parameter comes twice: there are two types, or it would not have one.
    """
    kernels: list[tuple[str, frozenset[str]]] = []
    for file in sorted(root.rglob("*.rs")):
        source = file.read_text(encoding="utf-8")
        for call in re.finditer(r"dispatch!\(\s*\w+,\s*\w+(<\w+: \w+>)?\(([^()]*)\)\s*\);", source):
            function = re.findall(r"\bfn (\w+)", source[: call.start()])[-1]
            module = "::".join(part for part in file.relative_to(root).with_suffix("").parts if part != "mod")
            types = [argument.split(":", 1)[1].strip() for argument in call[2].split(",") if ":" in argument]
            kernels += (2 if call[1] else 1) * [(f"{module}::{function}", _pointers_to_public(types))]
    return kernels


def _pointers_to_public(types: list[str]) -> frozenset[str]:
    found: list[str] = []
    used = 0
    for kind in types:
        reference = re.fullmatch(r"&(?:mut )?(.+)", kind)
        if reference and reference[1] in PUBLIC_TYPES:
            found += _ARGUMENT_REGISTERS[used : used + 1]
        elif not reference and not re.fullmatch(r"bool|usize|[iuf](8|16|32|64)", kind):
            raise Undescribed(f"an argument of type {kind}")
        # A slice takes two registers, and floating point has registers of its own.
        is_slice = reference and re.fullmatch(r"\[([^;\[\]]|\[[^\[\]]*\])*\]", reference[1])
        used += 0 if kind.startswith("f") else 2 if is_slice else 1
    return frozenset(found)
