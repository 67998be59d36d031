"""Signals while the program `dpnoise` starts: each ends it with a line, as there is nothing to save yet.

This is imported before all else, and imports next to nothing, so that no signal comes before it is answered. A program
that only imports dpnoise keeps its handlers.
"""

import os
import signal
import sys

# The signals of this system: Windows has no SIGHUP.
ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def end(number: int, _: object) -> None:
    """Print the name of the signal, and end the process."""
    try:
        os.write(2, f"dpnoise: stopped by {signal.Signals(number).name}\n".encode())
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
    for _number in ENDING:
        if signal.getsignal(_number) not in (signal.SIG_IGN, None):  # nohup has it ignored
            signal.signal(_number, end)
