"""The rule for machine code with NEON accepts what depends on public values and refuses all that does not."""

import pytest

from tools.constant_time.machine_code.aarch64 import AArch64
from tools.constant_time.tests import kernels
from tools.constant_time.tests.kernels import to

SECRETS = ["ldr q9, [x0]", "ldr x10, [x0]", "fmov d11, x10", "tst x10, x10"]
"""What comes before each kernel below: v9, x10, v11 and the flags are secret."""


def refusals(*lines, tables=()):
    return kernels.refusals(AArch64, SECRETS, lines, tables)


ACCEPTED = {
    "a loop counter": [
        "mov w8, #0x6                  	// #6",
        "add v0.4s, v0.4s, v9.4s",
        "subs w8, w8, #0x1",
        f"b.ne {to(1)}  // b.any",
        "ret",
    ],
    "the length of a slice": ["cmp x2, #0xff", f"b.ls {to(3)}", "ret", "bl 99 <core::panicking::panic_fmt>"],
    "a bit of a flag": [f"tbnz w3, #0, {to(1)}", "ret"],
    "an argument on the stack": ["ldr x8, [sp, #8]", f"cbz x8, {to(2)}", "ret"],
    "a spilled length": [
        "stp x29, x30, [sp, #-32]!",
        "mov x29, sp",
        "sub sp, sp, #0x1, lsl #12",
        "stp x2, x10, [x29, #16]",
        "str q9, [sp, #4064]",
        "sub x8, x29, #0x10",
        "st1 {v9.16b}, [x8]",
        "add x8, sp, #0x1, lsl #12",
        "ldr x8, [x8, #16]",
        f"cbnz x8, {to(11)}",
        "ldr q0, [x0]",
        "mov sp, x29",
        "ldp x29, x30, [sp], #32",
        "str x8, [sp, #-8]!",
        "ret",
    ],
    "an aligned stack": [
        "sub x9, sp, #0x120",
        "and sp, x9, #0xffffffffffffffc0",
        "str x2, [sp, #64]",
        "str q9, [sp, #80]",
        "ldr x8, [sp, #64]",
        f"cbz x8, {to(6)}",
        "ret",
    ],
    "a public lane": ["dup v0.2d, x1", "mov x8, v0.d[1]", "str q9, [x2, x8, lsl #3]", "ret"],
    "a constant of the program": [
        "adrp x8, 37000 <<T as core::fmt::Display>::fmt+0x10>",
        "add x8, x8, #0x9e0",
        "ldp q0, q1, [x8, #32]",
        "tbl v0.16b, {v0.16b, v1.16b}, v0.16b",
        "ldrb w8, [x8, w1, uxtw]",
        "fmov x9, d0",
        "add x9, x9, x8",
        "ldr x9, [x2, x9]",
        "ret",
    ],
    "a register that is cleared": ["mov x10, xzr", f"cbz x10, {to(2)}", "ret"],
    "a choice without a branch": ["csel x8, x1, x2, eq  // eq = none", "cset w9, ne", "stp x8, x9, [x3], #16", "ret"],
    "a look-up in registers": ["tbl v0.16b, {v0.16b-v3.16b}, v9.16b", "str q0, [x1, #16]!", "ret"],
    "a division of lengths": ["udiv x8, x1, x2", f"cbz x8, {to(2)}", "ret"],
    "memory from end to end": [
        "ld1 {v0.2d-v3.2d}, [x0], #64",
        "ld1 {v4.2d}, [x1], x2",
        "st4 {v0.8b-v3.8b}, [x3]",
        "cmp x0, x1",
        f"b.cc {to(0)}  // b.lo, b.ul, b.last",
        "ret",
    ],
    "a copy": ["mov x19, x2", "mov x0, sp", "bl 99 <memcpy@plt>", f"cbz x19, {to(4)}", "ret"],
    "a look ahead": ["prfm pldl1keep, [x0, x1, lsl #3]", "ret"],
    "padding": ["nop", "bti c", "ret", "udf #0", "not an opcode"],
}


@pytest.mark.parametrize("lines", ACCEPTED.values(), ids=ACCEPTED)
def test_public_jumps_and_addresses(lines):
    assert refusals(*lines) == []


@pytest.mark.parametrize(
    ("setter", "jump"),
    [
        ("cmp x10, #0x1", "b.eq"),
        ("cmn w1, w10, lsl #3", "b.cs"),
        ("adds x8, x8, x10", "b.vs"),
        ("ands x8, x10, #0x7", "b.ne"),
        ("subs xzr, x10, x1", "b.hi"),
        ("ccmp x1, x2, #0x4, ne", "b.eq"),
        ("adcs x8, x1, x2", "b.cc"),
        ("fcmp d9, #0.0", "b.mi"),
        ("fcmpe d0, d9", "b.gt"),
        ("nop", "cbz x10,"),
        ("nop", "cbnz w10,"),
        ("nop", "tbz x10, #63,"),
        ("nop", "tbnz w10, #0,"),
    ],
)
def test_a_jump_on_a_secret(setter, jump):
    """The flags are secret before."""
    (refusal,) = refusals(setter, f"{jump} {to(2)}", "ret")
    assert refusal.endswith("a jump on a secret")


@pytest.mark.parametrize("setter", ["cmp x1, x2", "tst w1, #0x3", "adds x8, x1, x2", "bics x8, x1, x2", "fcmp d0, d1"])
def test_flags_are_those_of_the_last_comparison(setter):
    assert refusals(setter, "ccmp x1, #0x7, #0x0, ne", f"b.eq {to(3)}", "ret") == []


SECRET_IN_X8 = {
    "a lane": ["umov w8, v9.b[3]"],
    "a sum of lanes": ["uaddlv s0, v9.16b", "fmov w8, s0"],
    "the number of lanes": ["fmov d0, x10", "cnt v0.8b, v0.8b", "addv b0, v0.8b", "fmov w8, s0"],
    "a lane of a table looked up by lanes": ["tbl v0.16b, {v1.16b, v2.16b}, v9.16b", "fmov x8, d0"],
    "the second register of a table": ["tbl v0.16b, {v8.16b-v9.16b}, v1.16b", "fmov x8, d0"],
    "lanes kept by a mask": ["bsl v9.16b, v0.16b, v1.16b", "fmov x8, d9"],
    "a sum with its target": ["mla v9.4s, v0.4s, v1.4s", "fmov x8, d9"],
    "a lane beside one that is replaced": ["mov v9.d[0], x1", "fmov x8, d9"],
    "a lane beside one that is loaded": ["adrp x8, 1000 <TABLE>", "ld1 {v9.s}[1], [x8]", "fmov x8, d9"],
    "half a register": ["xtn2 v9.4s, v0.2d", "fmov x8, d9"],
    "bits that stay": ["orr v9.4s, #0x80, lsl #24", "fmov x8, d9"],
    "bits that are inserted elsewhere": ["mov x8, x10", "bfi x8, x1, #8, #8"],
    "a part of a register": ["mov x8, x10", "movk x8, #0x1, lsl #16"],
    "the lower half of a register": ["mov w8, w10"],
    "flags": ["cset w8, eq"],
    "a choice": ["csel x8, x1, x2, eq"],
    "a choice in floating point": ["fcsel d0, d1, d2, mi", "fmov x8, d0"],
    "a choice between secrets": ["cmp x1, x2", "csinc x8, x1, x10, eq"],
    "a carry": ["adc x8, x1, x2"],
    "a product": ["umulh x8, x1, x10"],
    "a long sum": ["umaddl x8, w1, w2, x10"],
    "an extended register": ["add x8, x1, w10, uxtb #2"],
    "the second of a pair": ["ldp x7, x8, [x0]"],
    "each of several registers": ["ld1 {v0.2d-v3.2d}, [x0]", "fmov x8, d3"],
    "a load of all lanes": ["ld1r {v0.4s}, [x0]", "fmov x8, d0"],
    "the stack": ["str x10, [sp, #-16]!", "ldr x8, [sp], #16"],
    "a byte of a vector on the stack": ["stp q0, q9, [sp, #-32]", "ldrb w8, [sp, #-9]"],
    "what is interleaved on the stack": ["st2 {v8.4s, v9.4s}, [sp]", "ldr x8, [sp]"],
    "the stack, by a pointer": ["str x2, [sp, #-8]", "sub x7, sp, #0x10", "str q9, [x7, x2]", "ldr x8, [sp, #-8]"],
    "the stack, never written": ["ldr x8, [sp, #-8]"],
    "the stack, copied to": ["str x2, [sp, #-8]", "sub x0, sp, #0x10", "bl 99 <memcpy@plt>", "ldr x8, [sp, #-8]"],
    "the stack, aligned": [
        "str x2, [sp, #-8]!",
        "mov x29, sp",
        "and sp, x29, #0xffffffffffffffe0",
        "str q9, [sp]",
        "ldr x8, [x29]",
    ],
    "what a call leaves behind": ["mov x8, x2", "bl 99 <memset@plt>"],
    "what a public pointer leads to": ["ldr x8, [x1]"],
    "what a pointer in public memory leads to": ["adrp x8, 1000 <TABLE>", "ldr x8, [x8, #8]", "ldr x8, [x8]"],
    "one of two ways": ["mov x8, x2", f"cbz x2, {to(3)}", "ldr x8, [x0]"],
    "a later round": [
        "mov x8, x2",
        "mov x7, x8",
        "ldr x8, [x0]",
        "subs x2, x2, #0x1",
        f"b.ne {to(1)}",
        "mov x8, x7",
    ],
}


@pytest.mark.parametrize("lines", SECRET_IN_X8.values(), ids=SECRET_IN_X8)
def test_secrets_are_followed(lines):
    (refusal,) = refusals(*lines, f"cbz x8, {to(len(lines) + 1)}", "ret")
    assert refusal.endswith("a jump on a secret")
    (refusal,) = refusals(*lines, "add x7, x1, x8, lsl #3", "str x2, [x7, #8]", "ret")
    assert refusal.endswith("an address made of a secret")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("udiv x8, x10, x1", "takes longer"),
        ("sdiv w8, w1, w10", "takes longer"),
        ("fdiv v0.2d, v0.2d, v9.2d", "takes longer"),
        ("fsqrt d0, d9", "takes longer"),
        ("ldr x8, [x1, w10, uxtw #3]", "an address made of a secret"),
        ("ld1 {v0.d}[1], [x10]", "an address made of a secret"),
        ("ld1 {v0.2d}, [x1], x10", "an address made of a secret"),  # the next one
        ("prfm pldl1keep, [x10]", "an address made of a secret"),
        ("prfm #0x1f, [x10]", "an address made of a secret"),
        ("bl 99 <core::slice::sort>", "a call that returns"),
        ("blr x8", "a computed address"),
        ("br x8", "a computed address"),
        ("b 99 <memcpy@plt>", "leaves the function"),
        ("mov x2, x10", "the length of a copy is secret"),
        ("mov x1, x10", "an address made of a secret"),
        ("ldxr x8, [x1]", "not described"),
        ("ldadd x8, x9, [x1]", "not described"),
        ("ldr x8, 1000 <TABLE>", "not described"),
        ("frecpe v0.2d, v1.2d", "not described"),
        ("svc #0x0", "not described"),
        ("msr fpcr, x8", "not described"),
        ("mov z0.d, x8", "not described"),
        ("dup v0.2d, x31", "not described"),
        ("sub sp, sp, x8", "not described"),
        ("nop", "leaves the function"),
    ],
)
def test_what_is_not_allowed_at_all(line, reason):
    assert any(reason in refusal for refusal in refusals(line, "bl 99 <memmove@plt>"))


def test_what_a_kernel_may_know():
    mark = "prfm #0x1f, [x10, #256]"
    table = ["and x8, x10, #0xf", "adrp x7, 1000 <ORDERS>", "add x7, x7, x8, lsl #5", "ldr q0, [x7]", "ret"]
    assert refusals(mark, *table) == []
    assert refusals(*table), "without a mark"
    assert refusals(mark.replace("x10", "x9"), *table), "another register"
    assert refusals(mark.replace("#256", "#248"), *table), "another instruction"
    assert refusals(mark, "fmov x10, d11", *table), "the register, later"
    assert refusals(f"cbz x2, {to(2)}", mark, *table), "not on all paths"


def test_public_memory_is_that_of_named_arguments():
    lines = ["ldrb w8, [x1, #544]", f"cbz w8, {to(2)}", "ret"]
    assert refusals(*lines, tables=[1]) == []
    assert refusals(*lines, tables=[2])
    assert refusals("ldr x1, [x1]", *lines, tables=[1]), "pointers in a table lead to secrets"
    assert refusals("str q9, [x1]", "ret", tables=[1]), "and it must stay public"
    assert refusals("csel x1, x1, x2, eq", *lines, tables=[1])
