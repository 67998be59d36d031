"""Follow secrets through the machine code of kernels, along all their paths. Used by check.py.

Valgrind runs neither AVX-512 nor another architecture's code, and does not look for divisions.

| module | what |
| --- | --- |
| `listing` | what objdump prints |
| `flow` | the walk along all paths, what is known of values, and what is refused |
| `x86_64`, `aarch64` | what each instruction of an architecture does |
| `sources` | which kernels there are, and what their arguments are |
"""
