"""The key stream of the secure generator as a short specification: ChaCha12 in the word order of
rust/kernels/src/arch/chacha.rs, and its blocks; it shares no code with the library.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

BLOCKS = 16
GROUP = 64 * BLOCKS  # bytes


@functools.lru_cache(4096)
def key_stream(key: bytes, groups: int, first: int = 0) -> bytes:
    """Give bytes of the stream under a key of 32 bytes from its block ``first`` on, 1024 to a group."""
    counter = np.uint64(first) + np.arange(BLOCKS * groups, dtype=np.uint64)
    inputs = np.zeros((4, counter.size), np.uint32)
    inputs[0], inputs[1] = counter & 0xFFFFFFFF, counter >> 32
    words = chacha12(np.frombuffer(key, "<u4")[:, None], inputs).reshape(16, groups, BLOCKS)
    # Of each group: the first words of its blocks, then their second words, and so on.
    return words.swapaxes(0, 1).astype("<u4").tobytes()


def chacha12(keys: NDArray[np.uint32], inputs: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Give the 16 words of the blocks with these 8 words of a key, and 4 of counter and nonce."""
    start = np.zeros((16, inputs.shape[1]), np.uint32)
    start[:4] = np.frombuffer(b"expand 32-byte k", "<u4")[:, None]
    start[4:12], start[12:] = keys, inputs
    a, b, c, d = rows = start.copy().reshape(4, 4, -1)  # each has four rows, which are mixed side by side

    def quarter_rounds() -> None:
        for x, y, z, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x += y
            z ^= x
            z[:] = z << np.uint32(by) | z >> np.uint32(32 - by)

    for _ in range(6):
        quarter_rounds()  # of the columns
        b[:], c[:], d[:] = np.roll(b, -1, axis=0), np.roll(c, -2, axis=0), np.roll(d, -3, axis=0)
        quarter_rounds()  # of the diagonals
        b[:], c[:], d[:] = np.roll(b, 1, axis=0), np.roll(c, 2, axis=0), np.roll(d, 3, axis=0)
    return rows.reshape(16, -1) + start
