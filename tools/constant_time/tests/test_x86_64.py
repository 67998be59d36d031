"""The rule for machine code with AVX-512 accepts what depends on public values and refuses all that does not."""

import pytest

from tools.constant_time.machine_code.x86_64 import X86_64
from tools.constant_time.tests import kernels
from tools.constant_time.tests.kernels import to

SECRETS = ["vmovdqu64 zmm9,ZMMWORD PTR [rdi]", "vptestmq k1,zmm9,zmm9", "mov r10,QWORD PTR [rdi]", "test r10,r10"]
"""What comes before each kernel below: zmm9, k1, r10 and the flags are secret."""


def refusals(*lines, tables=()):
    return kernels.refusals(X86_64, SECRETS, lines, tables)


ACCEPTED = {
    "a loop counter": ["mov eax,0x6", "vpaddd zmm0,zmm0,ZMMWORD PTR [rdi]", "dec eax", f"jne {to(1)}", "ret"],
    "the length of a slice": ["cmp rdx,0xff", f"jbe {to(3)}", "ret", "call 99 <core::panicking::panic_fmt>"],
    "an argument on the stack": ["cmp QWORD PTR [rsp+0x8],0x7", f"ja {to(2)}", "ret"],
    "a spilled length": ["push rbx", "mov QWORD PTR [rsp-0x8],rdx", "cmp BYTE PTR [rsp-0x8],0x1", f"je {to(4)}", "ret"],
    "a public mask in vector registers": [
        "vmovq xmm0,rsi",
        "vpshufb xmm0,xmm0,XMMWORD PTR [rip+0x20]        # 40 <TABLE>",
        "vpextrq rcx,xmm0,0x1",
        "vmovdqu64 ZMMWORD PTR [rdx+rcx*8],zmm1",
        "ret",
    ],
    "a register that is cleared": ["mov rax,QWORD PTR [rdi]", "xor eax,eax", "test eax,eax", f"je {to(4)}", "ret"],
    "a choice without a branch": ["test r10,r10", "cmove rax,rcx", "mov QWORD PTR [rsi],rax", "ret"],
    "a mask that is stored": ["kmovb eax,k1", "or al,cl", "mov BYTE PTR [rsi],al", "ret"],
    "a division of lengths": ["mov rax,rdx", "xor edx,edx", "div rcx", "test rax,rax", f"je {to(5)}", "ret"],
    "a copy of a short rest": [
        "push rbp",
        "mov rbp,rsp",
        "and rsp,0xffffffffffffffc0",
        "sub rsp,0x80",
        "mov QWORD PTR [rsp+0x38],rcx",
        "and edx,0x38",
        "mov rbx,rdx",
        "lea rdi,[rsp+0x40]",
        "mov rdx,rbx",
        "call QWORD PTR [rip+0x5bbb9]        # 9cf68 <memcpy@GLIBC_2.14>",
        "cmp QWORD PTR [rsp+0x38],0x0",
        f"je {to(12)}",
        "ret",
    ],
    "a look ahead": ["prefetcht0 BYTE PTR [rdi+rdx*8]", "ret"],
    "padding": ["data16 cs nop WORD PTR [rax+rax*1+0x0]", "xchg ax,ax", "vzeroupper", "ret", "int3", "not an opcode"],
}


@pytest.mark.parametrize("lines", ACCEPTED.values(), ids=ACCEPTED)
def test_public_jumps_and_addresses(lines):
    assert refusals(*lines) == []


@pytest.mark.parametrize(
    ("setter", "jump"),
    [
        ("cmp QWORD PTR [rdi],0x1", "je"),
        ("test r10,r10", "js"),
        ("kortestb k1,k1", "jne"),
        ("vptest ymm9,ymm9", "je"),
        ("vucomisd xmm9,QWORD PTR [rip+0x0]        # 8 <ONE>", "jp"),
        ("add rdx,QWORD PTR [rdi]", "jo"),
        ("popcnt rax,QWORD PTR [rdi]", "je"),
        ("bt QWORD PTR [rdi],0x3", "jb"),
        ("sbb ecx,ecx", "jne"),
        ("shl esi,cl", "je"),
        ("dec esi", "jbe"),
    ],
)
def test_a_jump_on_a_secret(setter, jump):
    """The flags are secret before; shifts by 0 and counting leave some of them alone."""
    (refusal,) = refusals(setter, f"{jump} {to(2)}", "ret")
    assert refusal.endswith("a jump on a secret")


SECRET_IN_RAX = {
    "a mask": ["kmovw eax,k1"],
    "a lane": ["vmovdqu ymm0,YMMWORD PTR [rdi]", "vmovq rax,xmm0"],
    "the number of lanes": ["kmovw eax,k1", "popcnt eax,eax"],
    "a lane of a table looked up by lanes": ["vpermd ymm0,ymm9,YMMWORD PTR [rip+0x8]", "vmovd eax,xmm0"],
    "lanes kept by a mask": ["vpxor xmm0,xmm0,xmm0", "vmovdqa64 zmm0{k1},zmm9", "vmovq rax,xmm0"],
    "a sum with its target": ["vpxor xmm0,xmm0,xmm0", "vfmadd213pd zmm0,zmm9,zmm0", "vmovq rax,xmm0"],
    "the stack, pushed": ["push QWORD PTR [rdi]", "pop rax"],
    "a byte of a vector on the stack": ["vmovdqu64 ZMMWORD PTR [rsp-0x40],zmm9", "movzx eax,BYTE PTR [rsp-0x21]"],
    "the stack, by a pointer": [
        "mov QWORD PTR [rsp-0x8],rdx",
        "lea rcx,[rsp-0x10]",
        "vmovdqu YMMWORD PTR [rcx+rdx*8],ymm9",
        "mov rax,QWORD PTR [rsp-0x8]",
    ],
    "the stack, never written": ["mov rax,QWORD PTR [rsp-0x8]"],
    "the stack, copied to": [
        "mov QWORD PTR [rsp-0x8],rcx",
        "lea rdi,[rsp-0x10]",
        "call 99 <memcpy@plt>",
        "mov rsi,rsp",
        "mov rax,QWORD PTR [rsp-0x8]",
    ],
    "what a call leaves behind": ["mov eax,edx", "call 99 <memset@plt>", "mov rsi,rsp"],
    "the stack, aligned": [
        "push rdx",
        "mov rbp,rsp",
        "and rsp,0xffffffffffffffe0",
        "vmovdqa YMMWORD PTR [rsp],ymm9",
        "mov rax,QWORD PTR [rbp+0x0]",
    ],
    "a part of a register": ["xor eax,eax", "mov al,BYTE PTR [rdi]"],
    "flags": ["cmp QWORD PTR [rdi],0x0", "mov eax,0x0", "sete al"],
    "a choice": ["cmp QWORD PTR [rdi],0x0", "mov eax,edx", "cmove eax,ecx"],
    "a product": ["mov eax,edx", "mul QWORD PTR [rdi]"],
    "what a public pointer leads to": ["mov rax,QWORD PTR [rsi]"],
    "one of two ways": ["mov eax,edx", "test rdx,rdx", f"je {to(4)}", "mov rax,QWORD PTR [rdi]"],
    "a later round": [
        "mov eax,edx",
        "mov ecx,eax",
        "mov rax,QWORD PTR [rdi]",
        "dec edx",
        f"jne {to(1)}",
        "mov eax,ecx",
    ],
}


@pytest.mark.parametrize("lines", SECRET_IN_RAX.values(), ids=SECRET_IN_RAX)
def test_secrets_are_followed(lines):
    (refusal,) = refusals(*lines, "test eax,eax", f"je {to(len(lines) + 2)}", "ret")
    assert refusal.endswith("a jump on a secret")
    (refusal,) = refusals(*lines, "mov rcx,QWORD PTR [rsi+rax*8]", "ret")
    assert refusal.endswith("an address made of a secret")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("div r10", "takes longer"),
        ("vdivpd zmm0,zmm0,zmm9", "takes longer"),
        ("vsqrtsd xmm0,xmm0,xmm9", "takes longer"),
        ("vpgatherqq zmm1{k1},QWORD PTR [rsi+zmm9*8]", "an address made of a secret"),
        ("vscatterqpd QWORD PTR [rsi+zmm0*8]{k1},zmm1", "a store under a secret mask"),
        ("vmovdqu64 ZMMWORD PTR [rsi]{k1},zmm0", "a store under a secret mask"),
        ("call 99 <core::slice::sort>", "a call that returns"),
        ("call QWORD PTR [rip+0x10]        # 90 <_GLOBAL_OFFSET_TABLE_+0x8>", "a computed address"),
        ("mov rdx,r10", "the length of a copy is secret"),
        ("mov rsi,r10", "an address made of a secret"),
        ("prefetcht0 BYTE PTR [rsi+r10*8]", "an address made of a secret"),
        ("jmp rax", "a computed address"),
        ("jmp 99 <other>", "leaves the function"),
        ("jrcxz 0 <kernel>", "not described"),
        ("rep stos QWORD PTR es:[rdi],rax", "not described"),
        ("vpmaskmovq YMMWORD PTR [rsi],ymm8,ymm0", "not described"),
        ("vpcmpistri xmm0,xmm1,0x0", "not described"),
        ("mov rax,QWORD PTR fs:0x28", "not described"),
        ("sub rsp,rax", "not described"),
        ("nop", "leaves the function"),
    ],
)
def test_what_is_not_allowed_at_all(line, reason):
    assert any(reason in refusal for refusal in refusals(line, "call 99 <memmove@plt>"))


def test_what_a_kernel_may_know():
    mark = "nop QWORD PTR [rax+0x100]"
    lines = ["kmovw eax,k1", "popcnt eax,eax", mark, "vmovdqu64 ZMMWORD PTR [rsi+rax*8],zmm0", "ret"]
    assert refusals(*lines) == []
    assert refusals(*lines[:2], *lines[3:]), "without a mark"
    assert refusals(*lines[:2], mark.replace("rax", "rcx"), *lines[3:]), "another register"
    assert refusals(*lines[:2], mark.replace("0x100", "rax*1+0x0"), *lines[3:]), "padding"
    assert refusals(*lines[:-1], "mov rdx,QWORD PTR [rsi+r10*8]", "ret"), "other secrets"
    assert refusals(*lines[:3], "kmovw eax,k1", *lines[3:]), "the register, later"


def test_public_memory_is_that_of_named_arguments():
    lines = ["movzx ecx,BYTE PTR [rsi+0x220]", "test ecx,ecx", f"je {to(3)}", "ret"]
    assert refusals(*lines, tables=[1]) == []
    assert refusals(*lines, tables=[2])
    assert refusals("mov rsi,QWORD PTR [rsi]", *lines, tables=[1]), "pointers in a table lead to secrets"
    assert refusals("vmovdqu YMMWORD PTR [rsi],ymm9", "ret", tables=[1]), "and it must stay public"
    assert refusals("test rdx,rdx", f"je {to(3)}", "mov rsi,rdx", *lines[:-2], f"je {to(6)}", "ret", tables=[1])
