"""Which libraries are exact and secure, of those that are compared."""

from __future__ import annotations

import re
from typing import NamedTuple

from benches import hosts


class Library(NamedTuple):
    """What a library does for its noise and its reports."""

    exact: str
    """Whether they have the distribution of the proof."""
    secure: str
    """Whether the random bits cannot be predicted."""
    source: str
    """Where the bits come from, and the arithmetic."""

    @property
    def kind(self) -> str:
        """Return which of `KINDS` it is."""
        return KINDS[{("yes", "yes"): 1, ("no", "yes"): 2, ("no", "no"): 3}[self.exact, self.secure]]


KINDS = (
    "dpnoise: exact and secure",
    "another library: exact and secure",
    "another library: secure, not exact",
    "another library: neither exact nor secure",
)
LIBRARIES = {
    "dpnoise": Library("yes", "yes", "ChaCha12 with keys from the operating system; exact arithmetic in constant time"),
    "opendp": Library("yes", "yes", "OpenSSL; exact arithmetic"),
    "diffprivlib": Library("no", "yes", "the operating system; floating point"),
    "python-dp": Library("no", "yes", "OpenSSL; noise on a grid, with probabilities in floating point"),
    "NumPy": Library("no", "no", "PCG64 or SFC64; floating point"),
    **dict.fromkeys(("pandas", "polars", "pyarrow"), Library("no", "no", "no noise: plain answers of columns")),
    "multi-freq-ldpy": Library("no", "no", "NumPy's Mersenne Twister; floating point"),
    "pure-ldp": Library("no", "no", "the Mersenne Twisters of Python and of NumPy; floating point"),
    **{name: Library(**given) for name, given in hosts.LIBRARIES.items()},
}


def library(entrant: str) -> str:
    """Return the key of an entrant in `LIBRARIES`."""
    return re.split(r"[ ,]", entrant, maxsplit=1)[0]


def kind_of(entrant: str) -> str:
    return KINDS[0] if entrant.startswith("dpnoise") else LIBRARIES[library(entrant)].kind
