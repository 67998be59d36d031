"""The commands put together, and the one place where an error becomes a line and an exit code."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import dpnoise
from dpnoise.accounting import LedgerError
from dpnoise.cli.aggregate import aggregate
from dpnoise.cli.audit import audit
from dpnoise.cli.console import InputError, Interrupted, message_of
from dpnoise.cli.demo import demo
from dpnoise.cli.ledger import ledger
from dpnoise.cli.merge import merge
from dpnoise.cli.perturb import perturb
from dpnoise.cli.plan import plan
from dpnoise.cli.release import release

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
    """Run the command line on `arguments` and return the exit code."""
    try:
        result = app(args=None if arguments is None else list(arguments), prog_name="dpnoise", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        result = 130
    except Interrupted as error:
        return _refuse(f"interrupted; {message_of(error)}", code=130)
    except (InputError, LedgerError, dpnoise.ParameterError, ImportError) as error:
        return _refuse(message_of(error))
    except dpnoise.RandomnessError as error:
        return _refuse(message_of(error), code=1)  # not the user's doing
    except OSError as error:
        if error.strerror is None:
            raise
        return _refuse(message_of(error))
    except Exception as error:
        # What the option parser raises has a different base class from one typer to the next; the method stays.
        if not hasattr(error, "format_message"):
            raise
        return _refuse(" ".join(error.format_message().split()))
    if result == 130:
        print("dpnoise: interrupted; no file was written", file=sys.stderr)
    return result if isinstance(result, int) else 0


def _refuse(message: str, code: int = 2) -> int:
    print("dpnoise:", message, file=sys.stderr)
    return code
