"""The program with its commands; errors become a line and an exit code here."""

import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

import dpnoise
from dpnoise._errors import LedgerError
from dpnoise._files import InUse, NotWritten
from dpnoise.cli import completion, signals
from dpnoise.cli.console import InputError, Interrupted, complain, in_json, message_of
from dpnoise.cli.delivery import ClosedPipe, OutputError, guarded_stdout

_STOPPED: Final = 130  # typer's exit code for KeyboardInterrupt

_SETTINGS: Final = {"help_option_names": ["-h", "--help"]}

COMMANDS: Final = {
    "demo": "Show what differential privacy does: to the occupations of 32,561 people, or to your own data.",
    "attack": "Attack the noise of NumPy, and that of dpnoise, on a count of your own data.",
    "plan": "Compare the protocols: accuracy, size of a report and work of the server.",
    "specify": "Write the specification of a collection, which a server announces before it collects.",
    "collection": "Make the folder of a new collection: a question with a list of answers.",
    "perturb": "Randomise a column so that every row is differentially private on its own.",
    "estimate": "Estimate counts, a mean or a distribution from reports.",
    "merge": "Merge states, as if one run had counted all reports.",
    "release": "Answer questions about a table with differential privacy.",
    "ledger": "Check a ledger and show it: every spend, the total, and the remaining budget.",
    "audit": "Audit the mechanisms of this installation: bound their privacy loss from below.",
}
"""The first line of help of each command, all that is shown of those that are not run."""


class _InWords:
    """A command whose help says in words what options take, where newer versions of typer add types of Python."""

    def get_params(self, context: Any) -> Any:
        parameters = super().get_params(context)  # type: ignore[misc] # of the class that this is mixed into
        for one in parameters:
            taken = one.metavar if one.param_type_name == "option" else None
            one.display_type_rich = lambda ctx, taken=taken: taken
        return parameters


class _Command(_InWords, TyperCommand):
    pass


class _Program(_InWords, TyperGroup):
    pass


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpnoise {dpnoise.__version__}")
        raise typer.Exit


def _program(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def app_for(words: Sequence[str]) -> typer.Typer:
    """Return the program with the command that `words` name; the modules of the others are not imported."""
    # Tracebacks stay plain: typer's own show local variables, which hold private data.
    app = typer.Typer(
        help="Exact randomness for differential privacy.",
        epilog="`dpnoise COMMAND -h` explains a command, with an example.",
        context_settings=_SETTINGS,
        pretty_exceptions_enable=False,
        cls=_Program,
        rich_markup_mode="markdown",
    )
    app.callback(invoke_without_command=True)(_program)
    named = next((word for word in completion.words() or words if not word.startswith("-")), None)
    for name, summary in COMMANDS.items():
        if name == named:
            app.command(context_settings=_SETTINGS, cls=_Command)(getattr(import_module(f"dpnoise.cli.{name}"), name))
        else:
            app.command(name, help=summary)(lambda: None)  # is only listed
    return app


def run(app: typer.Typer, arguments: Sequence[str] | None) -> int:
    """Run the command line on `arguments`, or as the program that this process is, and return the exit code."""
    received: list[int] = []
    # The parser may fail before it comes to the option, so the words are asked.
    token = in_json.set("--json" in (sys.argv if arguments is None else arguments))
    try:
        with guarded_stdout(program=arguments is None):
            code, message = _outcome(app, arguments, received)
        if message is not None:
            if received or code == _STOPPED:
                number = received[0] if received else signal.SIGINT
                message = f"stopped by {signal.Signals(number).name}; {message}"
                code = 128 + number if code == _STOPPED else code
            complain(message, code=code)
    finally:
        in_json.reset(token)
    return code


def _outcome(app: typer.Typer, arguments: Sequence[str] | None, received: list[int]) -> tuple[int, str | None]:
    words = None if arguments is None else list(arguments)
    try:
        with signals.raised(received):
            result = app(args=words, prog_name="dpnoise", standalone_mode=False)
            sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        result = _STOPPED
    except Interrupted as error:
        return _STOPPED, message_of(error)
    except ClosedPipe as error:
        return error.code, None
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
        # The base class of the option parser's errors depends on the version of typer; the method does not.
        if not hasattr(error, "format_message"):
            raise
        return 2, _of_usage(error, sys.argv if words is None else words)
    if result == _STOPPED:
        return _STOPPED, "no incomplete file is left"
    return (result if isinstance(result, int) else 0), None


def _of_usage(error: Any, words: Sequence[str]) -> str:
    """Return the message of the option parser in one line; of two numbers the last word may be the only one."""
    message = " ".join(error.format_message().replace("Value error, ", "").split())
    option = getattr(error, "option_name", "")
    last = words[-1].removeprefix(f"{option}=") if words else ""
    got = "none" if last == option else repr(last)
    return message.replace(" requires 2 arguments.", f" takes two numbers, got {got}.")
