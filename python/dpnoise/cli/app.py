"""The commands put together, and the one place where an error becomes a line and an exit code."""

import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Final

import typer

import dpnoise
from dpnoise import _signals
from dpnoise._files import InUse, NotWritten
from dpnoise.accounting import LedgerError
from dpnoise.cli.aggregate import aggregate
from dpnoise.cli.audit import audit
from dpnoise.cli.console import InputError, Interrupted, complain, message_of
from dpnoise.cli.delivery import OutputError, guarded_stdout
from dpnoise.cli.demo import demo
from dpnoise.cli.ledger import ledger
from dpnoise.cli.merge import merge
from dpnoise.cli.perturb import perturb
from dpnoise.cli.plan import plan
from dpnoise.cli.release import release

_STOPPED: Final = 130  # what typer makes of KeyboardInterrupt

# Tracebacks stay plain: typer's own show the local variables, and those hold private data.
app = typer.Typer(
    help="Exact randomness for differential privacy.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command()(demo)
app.command()(plan)
app.command()(perturb)
app.command()(aggregate)
app.command()(merge)
app.command()(release)
app.command()(ledger)
app.command()(audit)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpnoise {dpnoise.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _program(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line on `arguments`, or as the program that this process is, and return the exit code."""
    with guarded_stdout(program=arguments is None), _signals.raised() as received:
        code, message = _outcome(arguments)
    if message is not None:
        if received or code == _STOPPED:
            number = received[0] if received else signal.SIGINT
            message = f"stopped by {signal.Signals(number).name}; {message}"
            code = 128 + number if code == _STOPPED else code
        complain(message)
    return code


def _outcome(arguments: Sequence[str] | None) -> tuple[int, str | None]:
    """Run a command; give its exit code and, if it has failed, the line that says why."""
    try:
        result = app(args=None if arguments is None else list(arguments), prog_name="dpnoise", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        result = _STOPPED
    except Interrupted as error:
        return _STOPPED, message_of(error)
    except OutputError as error:
        return error.code, message_of(error)
    except NotWritten as error:
        return OutputError.code, message_of(error)
    except (InputError, InUse, LedgerError, dpnoise.ParameterError, ImportError) as error:
        return 2, message_of(error)
    except dpnoise.RandomnessError as error:
        return 1, message_of(error)  # not the user's doing
    except OSError as error:
        if error.strerror is None:
            raise
        return 2, message_of(error)
    except Exception as error:
        # What the option parser raises has a different base class from one typer to the next; the method stays.
        if not hasattr(error, "format_message"):
            raise
        return 2, " ".join(error.format_message().split())
    if result == _STOPPED:
        return _STOPPED, "no incomplete file is left"
    return (result if isinstance(result, int) else 0), None
