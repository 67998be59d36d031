"""Signals while the program `dpnoise` starts: each ends it with a line, as there is nothing to save yet.

This is imported before all else, and imports only what the interpreter has imported already: a signal that comes
earlier ends in Python's own traceback. So `signal` is not imported, which would import `enum` for its names. A program
that only imports dpnoise keeps its handlers.
"""

import _signal  # type: ignore[import-not-found]
import os
import sys

# The signals of this system: Windows has no SIGHUP.
NAMES = {getattr(_signal, name): name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(_signal, name)}


def end(number: int, _: object) -> None:
    """Print the name of the signal, and end the process."""
    try:
        os.write(2, f"dpnoise: stopped by {NAMES[number]}\n".encode())
    finally:
        os._exit(128 + number)


def _is_the_program() -> bool:
    """Whether this process is ``python -m dpnoise``, whose main module is being looked for, or the script `dpnoise`."""
    name = sys.argv[0] if getattr(sys, "argv", None) else ""
    if name == "-m":
        words = sys.orig_argv
        named = any(
            words[i][:1] == "-" and words[i][-1:] == "m" for i, word in enumerate(words[1:]) if word == "dpnoise"
        )
        return named or "-mdpnoise" in words
    return os.path.basename(name) in ("dpnoise", "dpnoise.exe")


if _is_the_program():
    for _number in NAMES:
        if _signal.getsignal(_number) not in (_signal.SIG_IGN, None):  # nohup has it ignored
            _signal.signal(_number, end)
