"""The command line: ``dpnoise``, also ``python -m dpnoise``."""

import sys
from collections.abc import Sequence

from dpnoise._errors import install_command
from dpnoise.cli.starting import answer_signals, line_of

__all__ = ["main", "program"]

_EXTRA = frozenset({"typer", "click", "rich", "pyarrow", "narwhals"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after the program's name; those of the process when not given.

    Returns
    -------
    int
        The exit code: 0 if all went well, 1 if the source of randomness failed, 2 if the input cannot be used, 3 if
        some files of reports cannot be used and the rest was counted, 4 if an audit refutes a claim, 5 if a file or
        stdout could not be written, 6 if a ledger has paid for an answer that has not arrived everywhere, 7 if
        estimates are of doubtful reports, 128 and the number of the signal if one has stopped the program: 130 for
        SIGINT, 143 for SIGTERM, 129 for SIGHUP. A line on stderr, or the report of the audit, says which. 141 is said
        by no line: the reader of stdout has ended.
    """
    words = sys.argv[1:] if arguments is None else arguments
    try:
        from dpnoise.cli.app import app_for, run

        app = app_for(words)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA:
            raise
        message = f"the command line needs the package {error.name}: {install_command(error.name, 'cli')}"
        print(line_of(message, 2, "--json" in words), file=sys.stderr)
        return 2
    return run(app, arguments)


def program() -> int:
    """Run the command line as the program of this process, whose signals it answers from now on.

    Returns
    -------
    int
        The exit code of `main`.
    """
    answer_signals()
    return main()
