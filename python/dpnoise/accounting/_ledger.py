"""A budget on disk that cannot be overspent."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

from dpnoise._display import html_table
from dpnoise._errors import Error, LedgerError, ParameterError
from dpnoise._parameters import ByName, real_down
from dpnoise.accounting._cost import PrivacyCost, check_same_relation, decimal_of, down, exact_difference, exact_sum, up
from dpnoise.accounting._ledger_file import LedgerFile, State
from dpnoise.accounting._losses import Mechanism
from dpnoise.sensitivity import Relation, check_relation

# Silent until the program configures logging. No line may show data.
_logger: Final = logging.getLogger("dpnoise")
_logger.addHandler(logging.NullHandler())


class BudgetExceeded(Error):
    """A release would cost more than the remaining budget. Nothing was spent or drawn.

    Attributes
    ----------
    cost : PrivacyCost
        The cost of the release.
    remaining : PrivacyCost
        The remaining budget.
    """

    __module__ = "dpnoise"

    def __init__(self, cost: PrivacyCost, remaining: PrivacyCost) -> None:
        super().__init__(cost, remaining)
        self.cost, self.remaining = cost, remaining

    def __str__(self) -> str:
        return (
            f"this would cost epsilon={self.cost.epsilon!r}, delta={self.cost.delta!r}, and what remains of the budget "
            f"is epsilon={self.remaining.epsilon!r}, delta={self.remaining.delta!r}"
        )


@dataclass(frozen=True)
class LedgerEntry:
    """One spend.

    Attributes
    ----------
    number : int
        1 for the first spend of a ledger, then 2, and so on.
    time : datetime
        When it was recorded, in UTC.
    label : str
        The spender's name for the release.
    mechanism : str
        The call that makes the mechanism; empty when only a cost was spent.
    cost : PrivacyCost
        What was spent.
    total : PrivacyCost
        The total after this spend.
    """

    number: int
    time: datetime
    label: str
    mechanism: str
    cost: PrivacyCost
    total: PrivacyCost


class Ledger(ByName):
    """A budget of epsilon and delta on disk, with a record of every spend.

    A spend is granted only if the sum of all spends stays within the budget, by sequential composition; it is on disk
    before `spend` returns. Any number of threads and processes of one machine may use the same ledger at once, and may
    fork or be killed at any moment: a granted spend is never lost, and an interrupted one counts at most once.

    Parameters
    ----------
    path : path-like
        The file, on a local disk (locks of network file systems cannot be relied on). It is made if it does not exist.
        While a spend is written, and after a kill during that, a file with ``-journal`` appended to the name is beside
        it and belongs to it.
    epsilon : float, optional
        The budget, zero or more. It is required to make a ledger. For an existing ledger it must equal the ledger's
        budget.
    delta : float, default 0
        The budget of delta, from 0 up to, but not including, 1. It is given together with ``epsilon``.
    relation : {"add/remove", "substitute"}, optional
        The neighbouring relation; by default "add/remove" for a new ledger. A ledger keeps its relation, and grants
        only costs for it.

    Attributes
    ----------
    path : pathlib.Path
        The file.
    relation : str
        The neighbouring relation.
    budget, spent, remaining : PrivacyCost
        The budget of the ledger, the part that has been spent, and the part that remains.

    Raises
    ------
    LedgerError
        When the file is no ledger, is damaged or incomplete, comes from another version, has several names (hard
        links), or cannot be read, written or made; or when the ledger has another budget or relation. Nothing is
        spent from it then.

    Notes
    -----
    Sums are exact. A float stands for the decimal number that Python prints for it, so that ten spends of 0.1 exhaust a
    budget of 1.0, and an eleventh, however small, is refused. The float nearest to 0.1 is slightly more than a tenth,
    so the joint loss of ten mechanisms with that epsilon may exceed the budget by less than one part in 2**53.

    The logger ``dpnoise`` gets a line for each spend, at the level INFO, with the amounts and the label.

    The budget and all spends are under one SHA-256 hash, which is checked when a ledger is opened; what was added since
    is checked before each spend. So damage, and a copy that was made during a spend without the ``-journal`` file, are
    noticed. Forgery is not, since the hash has no key, nor is a whole copy of an earlier state: it has forgotten the
    spends since.

    Examples
    --------
    >>> import tempfile
    >>> from dpnoise import BudgetExceeded, Laplace
    >>> from dpnoise.accounting import Ledger
    >>> ledger = Ledger(tempfile.mkdtemp() + "/ledger.db", epsilon=1.0)
    >>> count = ledger.release(Laplace(epsilon=0.75), 128, label="visitors")
    >>> ledger.remaining
    PrivacyCost(epsilon=0.25, delta=0.0, relation='add/remove')
    >>> try:
    ...     ledger.release(Laplace(epsilon=0.75), 59, label="buyers")
    ... except BudgetExceeded as error:
    ...     print(error.remaining.epsilon)
    0.25
    """

    __slots__ = ("_file",)

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        relation: Relation | None = None,
    ) -> None:
        if relation is not None:
            check_relation(relation)
        budget = None
        if epsilon is not None:
            allowed = 0.0 if delta is None else real_down(delta, "delta")
            budget = PrivacyCost(real_down(epsilon, "epsilon"), allowed, relation or "add/remove")
        elif delta is not None:
            raise ParameterError("epsilon must be given together with delta")
        self._file = LedgerFile(Path(fspath(path)), budget=budget)
        found = self.budget
        if budget is not None and (found.epsilon, found.delta) != (budget.epsilon, budget.delta):
            raise LedgerError(
                f"{str(self.path)!r} is a ledger with the budget epsilon={found.epsilon!r}, delta={found.delta!r}, not "
                f"epsilon={budget.epsilon!r}, delta={budget.delta!r}"
            )
        if relation not in (None, found.relation):
            raise LedgerError(f'{str(self.path)!r} is a ledger for neighbours by "{found.relation}", not "{relation}"')

    @classmethod
    def open_readonly(cls, path: str | PathLike[str]) -> Ledger:
        """Open an existing ledger read-only: `spend` and `release` raise `LedgerError`."""
        ledger = cls.__new__(cls)
        ledger._file = LedgerFile(Path(fspath(path)), readonly=True)
        return ledger

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    @property
    def budget(self) -> PrivacyCost:
        """The budget that the ledger was made with."""
        state = self._file.state()
        epsilon, delta = map(float, state.budget)
        return PrivacyCost(epsilon, delta, state.relation)

    @property
    def relation(self) -> Relation:
        """Which data sets are neighbours."""
        return self._file.state().relation

    @property
    def spent(self) -> PrivacyCost:
        """The total of all spends, rounded up if no float represents it."""
        state = self._file.state()
        epsilon, delta = map(up, state.spent)
        return PrivacyCost(epsilon, delta, state.relation)

    @property
    def remaining(self) -> PrivacyCost:
        """The remaining budget, rounded down if no float represents it."""
        return _remaining(self._file.state())

    def entries(self) -> list[LedgerEntry]:
        """List the spends, the oldest first."""
        state, rows = self._file.entries()
        return [
            LedgerEntry(
                number=number,
                time=datetime.fromisoformat(time),
                label=label,
                mechanism=mechanism,
                cost=PrivacyCost(float(epsilon), float(delta), state.relation),
                total=PrivacyCost(up(Decimal(total_epsilon)), up(Decimal(total_delta)), state.relation),
            )
            for number, time, label, mechanism, epsilon, delta, total_epsilon, total_delta in rows
        ]

    def spend(self, cost: PrivacyCost | Mechanism, label: str = "") -> None:
        """Take a cost from the budget, before the release that it pays for.

        Parameters
        ----------
        cost : PrivacyCost or mechanism
            The cost to spend, for the ledger's neighbouring relation; for a mechanism the cost of one release.
        label : str, optional
            A name for the release. It is recorded, so it must not be private.

        Raises
        ------
        BudgetExceeded
            When the cost is above the remaining budget. Nothing is spent then.
        LedgerError
            When the ledger is read-only, damaged, gone, or locked by another program for a minute, or the disk is full.
            Nothing is spent then, except that a disk failure in the last step may leave the spend recorded.
        """
        if not isinstance(label, str):
            raise TypeError(f"label must be a text, got {type(label).__name__}")
        if not label.isascii() and label != label.encode(errors="replace").decode():
            raise ParameterError(f"label must be a text that UTF-8 can hold, got {label!r}")
        price, mechanism = (cost, "") if isinstance(cost, PrivacyCost) else (getattr(cost, "cost", None), repr(cost))
        if not isinstance(price, PrivacyCost):
            raise TypeError(f"cost must be a PrivacyCost or a mechanism, got {type(cost).__name__}")
        amounts = decimal_of(price.epsilon), decimal_of(price.delta)
        with self._file.write() as (state, append):
            check_same_relation("cost", price.relation, state.relation, "ledger")
            totals = [exact_sum(pair) for pair in zip(state.spent, amounts, strict=True)]
            if any(new > most for new, most in zip(totals, state.budget, strict=True)):
                raise BudgetExceeded(price, _remaining(state))
            now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
            append((now, label, mechanism, *map(str, (*amounts, *totals))))
        # Not within the transaction: a handler may take its time.
        _logger.info("%r: spent epsilon=%s, delta=%s for %r", str(self.path), *amounts, label)

    def release(self, mechanism: Mechanism, x: Any, label: str = "") -> Any:
        """Pay for a release, and then return the result of ``mechanism.release(x)``.

        Invalid input is refused before anything is spent. Then the cost is spent, and only then is noise drawn. If
        drawing fails, or the process is killed, the cost stays spent.

        It returns the release itself and is no context manager, since a spend cannot be undone by leaving a block.

        Parameters
        ----------
        mechanism : a mechanism of dpnoise
            With a method ``release`` of one value or array.

        Raises
        ------
        BudgetExceeded, LedgerError
            As for `spend`. Nothing is drawn then.
        ParameterError, TypeError
            When the mechanism refuses ``x``. Nothing is spent or drawn then.
        """
        needed = ("cost", "_check", "release")
        if isinstance(mechanism, type) or not all(hasattr(mechanism, name) for name in needed):
            raise TypeError(f"mechanism must be a mechanism of dpnoise, got {type(mechanism).__name__}")
        mechanism._check(x)
        self.spend(mechanism, label)
        return mechanism.release(x)

    def _repr_html_(self) -> str:
        state, rows = self._file.entries()
        remaining = map(exact_difference, state.budget, state.spent)
        epsilons, deltas = zip(state.budget, state.spent, remaining, strict=True)
        amounts = {"": ["budget", "spent", "remaining"], "epsilon": epsilons, "delta": deltas}
        names = ("number", "time (UTC)", "label", "mechanism", "epsilon", "delta", "total epsilon", "total delta")
        shown = [(row[0], row[1][:19], row[2], row[3], *map(Decimal, row[4:])) for row in rows]
        entries = {name: [row[i] for row in shown] for i, name in enumerate(names)}
        return html_table(f"{self!r}, {state.relation}", amounts) + html_table("spends", entries)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path, so that another process of this machine can open the ledger."""
        return (Ledger.open_readonly if self._file.readonly else Ledger), (self.path,)

    def __repr__(self) -> str:
        """Show the call that opens this ledger."""
        return f"Ledger.open_readonly({str(self.path)!r})" if self._file.readonly else f"Ledger({str(self.path)!r})"


def _remaining(state: State) -> PrivacyCost:
    epsilon, delta = map(down, map(exact_difference, state.budget, state.spent))
    return PrivacyCost(epsilon, delta, state.relation)
