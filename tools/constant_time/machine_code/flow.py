"""Follow what is known of registers and stack along all paths of a kernel.

What a kernel finds in registers when it is called is public: pointers, lengths, counters, parameters. What it loads is
secret, but for its own stack, constants of the program, and what some arguments point to. The result of an instruction
is secret if something is that it reads. Refused are

- a jump on a secret, an address made of a secret, and a store under a secret mask;
- divisions and square roots of secrets, gathers and scatters: they take longer for some values than for others;
- calls, but for those that end the program (NO_RETURN) and those whose time depends on a length alone (COPIES);
- jumps to a computed address;
- everything that is not described.

What a kernel may know of secrets itself is marked in its code, by `declassify_in_register` of arch/secrecy.rs.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from .listing import Instruction, Undescribed

COPIES = {"memcpy", "memmove", "memset"}
NO_RETURN = re.compile(r"core::(panicking::|slice::index::slice_\w*fail|option::expect_failed|result::unwrap_failed)")

MARK = 0x100
"""What is added to a register that is no longer secret, in an instruction without effect."""

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


ALIGNED = -(1 << 30)
"""Where the stack is taken to be once its pointer has been aligned."""


@dataclass
class Step(ABC):
    """An instruction, and what happens when it is executed. There is a subclass for each architecture."""

    NAME: ClassVar[str]  # as `target_arch` has it in Rust
    REGISTERS: ClassVar[frozenset[str]]  # without the stack pointer, with the flags
    ARGUMENTS: ClassVar[tuple[str, ...]]  # the registers that pass integers and pointers
    KEPT: ClassVar[frozenset[str]]  # which calls preserve
    STACK_POINTER: ClassVar[str]
    FIRST_ARGUMENT_ON_STACK: ClassVar[int]
    SETS_FLAGS: ClassVar[re.Pattern[str]]  # mnemonics
    VARIABLE_TIME: ClassVar[re.Pattern[str]]  # mnemonics

    state: State
    line: Instruction
    ways: list[int | None] = field(default_factory=lambda: [None])  # to addresses, or on (None)
    reasons: list[str] = field(default_factory=list)  # why it is refused
    jumps_on: str | None = None  # what a conditional jump reads: "flags", or a register
    ends_by: str | None = None  # the function that ends the program
    declassifies: bool = False

    @abstractmethod
    def run(self) -> None:
        """Execute the instruction."""

    @classmethod
    def at_entry(cls, tables: frozenset[int]) -> State:
        """Return what is known when a kernel is called with pointers to public memory in these argument registers."""
        # What is in a register that passes no argument has no influence on what a function does.
        registers: dict[str, Value] = dict.fromkeys(cls.REGISTERS, PUBLIC)
        registers |= {name: TABLE for number, name in enumerate(cls.ARGUMENTS) if number in tables}
        first = cls.FIRST_ARGUMENT_ON_STACK
        return State(registers | {cls.STACK_POINTER: 0}, dict.fromkeys(range(first, first + 256), PUBLIC))

    # --- where it goes

    def branch(self, target: str, reads: str, *conditions: Value) -> None:
        """Go to the target or on, depending on what is read."""
        self.jumps_on = reads
        if SECRET in conditions:
            self.reasons.append("a jump on a secret")
        self.jump(target)
        self.ways.append(None)

    def jump(self, target: str) -> None:
        """Go to the target."""
        self.ways = []
        if not re.fullmatch("[0-9a-f]+", target):
            self.reasons.append("a computed address")
        elif NO_RETURN.match(self.line.symbol):
            self.ends_by = self.line.symbol
        else:
            self.ways.append(int(target, 16))

    def call(self, target: str) -> None:
        """Call the target."""
        if self.line.symbol in COPIES:
            self._copy()
            return
        self.jump(target)
        if self.ways:
            self.reasons.append("a call that returns")
            self.ways = []

    def _copy(self) -> None:
        """Call a function that copies or fills memory."""
        registers = self.state.registers
        target, source, length = self.ARGUMENTS[:3]
        place = registers[target]
        if SECRET in (place, registers[source]):
            self.reasons.append("an address made of a secret")
        if registers[length] == SECRET:
            self.reasons.append("the length of a copy is secret")
        most = self.state.limits.get(length)
        if isinstance(place, int) and most is not None:
            self.store(place, most, SECRET)
        else:
            self.store(STACK if isinstance(place, int) else place, 0, SECRET)
        registers |= dict.fromkeys(self.REGISTERS - self.KEPT, SECRET)
        self.state.limits = {name: limit for name, limit in self.state.limits.items() if name in self.KEPT}

    # --- memory

    def stack_pointer(self) -> int:
        """Return where the stack is."""
        pointer = self.state.registers[self.STACK_POINTER]
        if not isinstance(pointer, int):
            raise Undescribed("a stack pointer that is not known")
        return pointer

    def align_stack(self) -> None:
        """Align the stack pointer."""
        self.state.registers[self.STACK_POINTER] = ALIGNED
        first = self.FIRST_ARGUMENT_ON_STACK
        self.state.stack = {at: value for at, value in self.state.stack.items() if at >= first}

    def checked(self, place: Value) -> Value:
        """Return an address that is used; refuse it if it is secret."""
        if place == SECRET:
            self.reasons.append("an address made of a secret")
        return place

    def load(self, place: Value, width: int) -> Value:
        """Return what is known of memory."""
        if not isinstance(place, int):
            return PUBLIC if place == TABLE else SECRET
        values = {self.state.stack.get(at, SECRET) for at in range(place, place + width)}
        return values.pop() if len(values) == 1 else combined(*values)

    def store(self, place: Value, width: int, value: Value) -> None:
        """Write to memory."""
        aligned = self.stack_pointer() < ALIGNED // 2
        if place == TABLE and value == SECRET:
            self.reasons.append("a secret stored in public memory")
        elif place == STACK or (
            isinstance(place, int) and aligned and ALIGNED // 2 < place < self.FIRST_ARGUMENT_ON_STACK
        ):
            self.state.stack.clear()  # it may have gone anywhere
        elif isinstance(place, int):
            self.state.stack |= dict.fromkeys(range(place, place + width), value)

    # --- registers

    def declassify(self, register: str) -> None:
        """Take the register for public from here on."""
        self.declassifies = True
        self.state.registers[register] = PUBLIC

    def time_of(self, value: Value) -> None:
        """Refuse what takes longer for some values, if the value is secret."""
        if value == SECRET and self.VARIABLE_TIME.match(self.line.mnemonic):
            self.reasons.append("takes longer for some values than for others")


@dataclass
class Kernel:
    """A kernel and what was found in it."""

    name: str
    instructions: list[Instruction]
    architecture: type[Step]
    tables: frozenset[int] = frozenset()  # the numbers of argument registers that point to public memory
    jumps: dict[int, str] = field(default_factory=dict)
    calls: set[str] = field(default_factory=set)
    declassified: set[int] = field(default_factory=set)
    refused: dict[int, str] = field(default_factory=dict)

    def follow(self) -> Kernel:
        """Follow all paths."""
        lines = {line.at: index for index, line in enumerate(self.instructions)}
        before = {0: self.architecture.at_entry(self.tables)}
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

    def _step(self, state: State, index: int) -> list[int | None]:
        """Execute a line; return where it may go."""
        line = self.instructions[index]
        step = self.architecture(state, line)
        try:
            step.run()
        except Undescribed as problem:
            self._refuse(index, f"not described: {problem}")
            return []
        for reason in step.reasons:
            self._refuse(index, reason)
        if step.jumps_on == "flags":
            before = (line for line in self.instructions[index - 1 :: -1] if step.SETS_FLAGS.fullmatch(line.mnemonic))
            self.jumps[line.at] = f"{next(before, '')} {line.mnemonic}"
        elif step.jumps_on:
            self.jumps[line.at] = f"{line.mnemonic} {step.jumps_on}"
        if step.ends_by:
            self.calls.add(step.ends_by)
        if step.declassifies:
            self.declassified.add(line.at)
        return step.ways

    def _refuse(self, index: int, reason: str) -> None:
        line = self.instructions[index]
        self.refused.setdefault(line.at, f"+{line.at - self.instructions[0].at:#x} {line}: {reason}")
