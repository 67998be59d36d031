"""Signals while the program `dpnoise` starts: each ends it with a line, as there is nothing to save yet.

This imports only what the interpreter has imported already, so that the program can answer signals before it imports
the rest. So `signal` is not imported, which would import `enum` for its names. A signal that comes earlier ends in
Python's own traceback.
"""

import _signal  # type: ignore[import-not-found]
import os
import sys

# The signals of this system: Windows has no SIGHUP.
NAMES = {getattr(_signal, name): name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(_signal, name)}


def line_of(message: str, code: int, as_json: bool) -> str:
    """Return the line of an error in plain letters and quotation marks, before the program can do it itself."""
    quoted = message.replace('"', '\\"')
    return f'{{"format": 1, "message": "{quoted}", "code": {code}}}' if as_json else f"dpnoise: {message}"


def end(number: int, _: object) -> None:
    """Print the name of the signal, and end the process."""
    try:
        os.write(2, f"{line_of(f'stopped by {NAMES[number]}', 128 + number, '--json' in sys.argv)}\n".encode())
    finally:
        os._exit(128 + number)


def answer_signals() -> None:
    """Answer the signals of this process until the program does."""
    for number in NAMES:
        if _signal.getsignal(number) not in (_signal.SIG_IGN, None):  # nohup ignores it
            try:
                _signal.signal(number, end)
            except ValueError:  # only the main thread gets signals
                return
