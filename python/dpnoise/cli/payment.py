"""Payment for answers: an error says whether a missing answer was paid for, since the same command would pay again."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import dpnoise
from dpnoise._files import NotWritten
from dpnoise.accounting import Ledger, LedgerError
from dpnoise.cli.console import message_of
from dpnoise.cli.delivery import OutputError
from dpnoise.mechanisms import Mechanism

Answer = TypeVar("Answer")


class Undelivered(OutputError):
    """A ledger has paid for an answer that has not arrived everywhere."""

    code = 6


class Purse(Ledger[Any]):
    """A ledger that says whether it has paid for what was spent last: None if it may have."""

    _file: Any

    @property
    def paid(self) -> bool | None:
        recorded: bool | None = self._file.recorded
        return recorded

    def check(self, costs: Sequence[Mechanism]) -> dict[str, str | None]:
        """Raise what `spend` would raise now, and spend nothing; return what it would spend, and what remains."""
        amounts, row_after = self._plan(costs, "")
        row_after(self._file.state())
        return {"spend": self._seen(amounts).amounts(), "remaining": self.remaining.amounts()}


class Sale:
    """A block in which an answer is paid for, drawn and delivered; its errors say whether the cost was spent."""

    def __init__(self, purse: Purse | None) -> None:
        self.purse = purse
        self.drawn = False
        self.arrived: list[str] = []
        """The places that the answer has reached, in words."""

    def release(self, draw: Callable[[], Answer]) -> Answer:
        answer = draw()
        self.drawn = True
        return answer

    def __enter__(self) -> "Sale":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        paid = self.purse is not None and self.purse.paid is not False
        if error is None or not (paid or isinstance(error, NotWritten | OutputError | LedgerError)):
            return
        if not paid and not self.drawn:
            raise OutputError(f"{_cause(error)}; nothing was spent or drawn") from None
        found = " and ".join(self.arrived)
        answer = f"the answer {found}" if found else "the answer is lost"
        if self.purse is None or not paid:
            raise OutputError(f"{_cause(error)}; {answer}, and no ledger has recorded that it was drawn") from None
        has = "has" if self.purse.paid else "may have"
        cause = "" if isinstance(error, KeyboardInterrupt) else f"{_cause(error)}; "
        raise Undelivered(
            f"{cause}{answer}, and {str(self.purse.path)!r} {has} paid for it (`dpnoise ledger` shows what it paid): "
            f"the same command would pay again"
        ) from None


def _cause(error: BaseException) -> str:
    """Return the cause of a failure, but not the message of an unknown error, which might show a value."""
    known = isinstance(error, OSError | OutputError | LedgerError | dpnoise.RandomnessError)
    return message_of(error) if isinstance(error, Exception) and known else type(error).__name__
