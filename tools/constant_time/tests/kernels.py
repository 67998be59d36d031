"""Kernels of a few lines, written by hand."""

from tools.constant_time.machine_code import flow, listing


def refusals(architecture, secrets, lines, tables=()):
    """Follow a kernel of one instruction a line, which begins with four lines that load secrets."""
    assert len(secrets) == 4
    text = "".join(f"  {at:x}:\t{line}\n" for at, line in enumerate([*secrets, *lines]))
    ((_, function),) = listing.functions(f"0000 <kernel>:\n{text}")
    instructions = listing.instructions(function)
    return list(flow.Kernel("kernel", instructions, architecture, frozenset(tables)).follow().refused.values())


def to(line):
    """Lead to a line, the first one after the secrets being 0."""
    return f"{4 + line:x} <kernel+{4 + line:#x}>"
