"""A budget on disk that cannot be overspent."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from os import PathLike
from pathlib import Path
from shlex import quote
from typing import Any, Final, Generic, overload

from dpnoise import _native
from dpnoise._display import html_table
from dpnoise._errors import Error, LedgerError, ParameterError
from dpnoise._numbers import check_text
from dpnoise._types import Integer, Number
from dpnoise.accounting._cost import (
    Cost,
    PrivacyCost,
    RenyiCost,
    ZcdpCost,
    check_neighbours,
    down,
    exact_of,
    exact_sum,
    read_amount,
    seen,
    text_of,
    unit_of,
    up,
)
from dpnoise.accounting._filters import (
    Amounts,
    AnyCost,
    Filter,
    Guarantee,
    RenyiFilter,
    SequentialFilter,
    ZcdpFilter,
    checked_cost,
    filter_of,
)
from dpnoise.accounting._ledger_file import LedgerFile, Row, State, damaged
from dpnoise.accounting._ledger_memory import IN_MEMORY, MemoryLedger
from dpnoise.accounting._losses import Mechanism
from dpnoise.sensitivity import Relation, check_person, check_relation

# Silent until the program configures logging. No line may show data.
_logger: Final = logging.getLogger("dpnoise")
_logger.addHandler(logging.NullHandler())


_ROUNDING: Final = Fraction(1, 2**30)
"""The part of a cost up to which it exceeds a budget by rounding errors alone, as we guess for a hint."""


class BudgetExceeded(Error):
    """A release would cost more than the remaining budget. Nothing was spent or drawn.

    A ledger makes the error, and its parameters are attributes of the same names.

    Parameters
    ----------
    cost : PrivacyCost, ZcdpCost or RenyiCost
        The cost of the release, in the measure of the ledger.
    remaining : PrivacyCost, ZcdpCost or RenyiCost
        The remaining budget, in the measure of the ledger.
    path : pathlib.Path
        The file of the ledger; ``Path(":memory:")`` for a ledger in memory.
    """

    __module__ = "dpnoise"

    def __init__(self, cost: Any, remaining: Any, path: Path) -> None:
        super().__init__(cost, remaining, path)
        self.cost, self.remaining, self.path = cost, remaining, path

    def __str__(self) -> str:
        message = f"this would cost {self.cost.amounts()}, and what remains of the budget is {self.remaining.amounts()}"
        if isinstance(self.cost, PrivacyCost) and self.cost.delta and not self.remaining.delta:
            message += "; what has a delta, such as Gaussian noise or keys, needs a budget with one, or of rho"
        amounts = zip(*(map(exact_of, cost.numbers()) for cost in (self.cost, self.remaining)), strict=True)
        if any(0 < one - left < one * _ROUNDING for one, left in amounts):
            message += "; parts that were rounded may exceed the whole, and those of `ledger.budget.split(...)` do not"
        if self.path == Path(IN_MEMORY):
            return f"{message}; ask for less"
        return f"{message}; ask for less, or see by `dpnoise ledger {quote(str(self.path))}` what all runs have spent"


@dataclass(frozen=True)
class LedgerEntry(Generic[AnyCost]):
    """A spend of a ledger, as `Ledger.entries` lists it.

    Attributes
    ----------
    number : int
        The number of the spend: 1 for the first spend of a ledger, then 2, and so on.
    time : datetime.datetime
        When the spend was recorded, in UTC.
    label : str
        The spender's name for the release.
    mechanism : str
        The call that makes the mechanism; empty when only a cost was spent.
    cost : PrivacyCost, ZcdpCost or RenyiCost
        The cost that was spent, in the measure of the ledger.
    total : PrivacyCost, ZcdpCost or RenyiCost
        The total of all spends up to this one, in the measure of the ledger.
    """

    number: int
    time: datetime
    label: str
    mechanism: str
    cost: AnyCost
    total: AnyCost


class Ledger(Generic[AnyCost]):
    """A budget on disk, with a record of every spend, for releases that may depend on the answers so far.

    A ledger is a privacy filter: whoever spends may choose the next mechanism, its parameters and whether to go on by
    what earlier releases have shown, and all releases together still have the guarantee of the budget. A spend is on
    disk before `spend` returns. Any number of threads and processes of one machine may use the same ledger at once, and
    may read its file, fork or be killed at any moment: a granted spend is never lost, and an interrupted one counts at
    most once.

    Parameters
    ----------
    path : str or os.PathLike
        The file, on a local disk (locks of network file systems cannot be relied on). It is made if it does not exist.
        While a spend is written, and after a kill during that, a file with ``-journal`` appended to the name is beside
        it and belongs to it. An empty file with ``-lock`` appended stays there: whoever uses the ledger locks it. The
        text ``":memory:"`` makes a ledger without a file, which ends with its object: it is for trying things out, and
        for this process alone, with all its threads.
    epsilon : float or Fraction, optional
        The budget of a ledger of epsilon and delta, in which epsilons and deltas add up: zero or more, and finite. A
        new ledger needs either ``epsilon`` or ``rho``; for an existing ledger what is given must equal its budget.
    delta : float or Fraction, optional
        The budget of delta, from 0 and below 1; 0 by default. It is given together with ``epsilon`` or ``rho``.
    rho : float or Fraction, optional
        The budget of a ledger of zero-concentrated differential privacy, in which many small releases and Gaussian
        noise cost less: positive and finite. `zcdp_rho` gives the rho for an epsilon and a delta.
    orders : iterable of int, optional
        The orders of a budget of Rényi divergences: up to 64 different ones, from 2 to 1024, together with ``epsilon``
        and a positive ``delta``, which the orders share. All releases together are ``(epsilon, delta)``-differentially
        private. The ledger grants as long as the divergences of one order stay within what implies epsilon with that
        order's share of delta.
    odometer_delta : float, optional
        The probability with which `odometer` may fail, for a budget of rho: above 0 and below 1 - ``delta``. It is
        chosen when the ledger is made.
    relation : str, optional
        Which data sets are neighbours: `"add/remove"`: one row is added or removed, and the number of rows is private;
        `"substitute"`: one row is replaced, and the number of rows is public. A row is a person, without ``person``.
        By default `"add/remove"` for a new ledger. A ledger keeps its relation, and grants only costs for it.
    person : str, optional
        The name of the column that says whose a row is: neighbours then differ by all rows of one person, who is added
        or removed. By default each row of a new ledger is a person of its own. A ledger keeps the name, and grants only
        costs for these persons; it is recorded, so it must not be private.

    Attributes
    ----------
    path : pathlib.Path
        The file; ``Path(":memory:")`` if there is none.
    relation : str
        The neighbouring relation.
    person : str or None
        The name of the column that says whose a row is; None if each row is a person of its own.
    budget : PrivacyCost, ZcdpCost or RenyiCost
        The budget that the ledger was made with, in its measure.
    spent : PrivacyCost, ZcdpCost or RenyiCost
        The total of all spends, in the measure of the ledger.
    remaining : PrivacyCost, ZcdpCost or RenyiCost
        The part of the budget that remains, in the measure of the ledger.

    Raises
    ------
    LedgerError
        When the file is no ledger, is damaged or incomplete, comes from another version, has several names (hard
        links), or cannot be read, written or made; or when the ledger has another budget or relation, or is for
        other persons or for rows. And when a signal handler or finalizer uses a ledger in the middle of another use of
        one, or a forked process one in memory. Nothing is spent from it then.

    Notes
    -----
    The guarantee holds if each release has its stated cost given all earlier answers, and if parameters depend on
    answers and public data only. Runs of `AboveThreshold` between whose answers other releases are made are covered by
    all ledgers but those of rho with a delta, for which no theorem is known.

    Sums are exact. A float stands for the decimal number that Python prints for it, so that ten spends of 0.1 exhaust a
    budget of 1.0, and an eleventh, however small, is refused. The float nearest to 0.1 is slightly more than a tenth,
    so the joint loss of ten mechanisms with that epsilon may exceed the budget by less than one part in 2**53.
    Fractions are exact, too: three costs of ``Fraction(1, 3)`` exhaust a budget of 1.0. Eleven costs of the float
    ``1.0 / 11`` exceed it: divide a budget by its method `split`, whose parts add up to it.

    The logger ``dpnoise`` gets a line for each spend, at the level INFO, with the amounts and the label.

    Each spend is hashed together with the budget and all spends before it, by SHA-256. The hash of the last spend, with
    the totals, is checked when a ledger is opened and before each spend, and `entries` checks all. So damage, and a
    copy that was made during a spend without the ``-journal`` file, are noticed. Forgery is not, since the hash has no
    key, nor is a whole copy of an earlier state: it has forgotten the spends since.

    References
    ----------
    Rogers, Roth, Ullman and Vadhan (2016), "Privacy odometers and filters: pay-as-you-go composition"; Feldman and
    Zrnic (2021), "Individual privacy accounting via a Rényi filter"; Whitehouse, Ramdas, Rogers and Wu (2023), "Fully
    adaptive composition in differential privacy". The proof page "Filters" has the theorems.

    Examples
    --------
    >>> from dpnoise import BudgetExceeded, Gaussian, Laplace
    >>> from dpnoise.accounting import Ledger
    >>> ledger = Ledger(":memory:", epsilon=1.0)  # a path keeps it on disk
    >>> count = ledger.release(Laplace(epsilon=0.75), 128, label="visitors")
    >>> ledger.remaining
    PrivacyCost(epsilon=0.25, delta=0.0, relation='add/remove')
    >>> try:
    ...     ledger.release(Laplace(epsilon=0.75), 59, label="buyers")
    ... except BudgetExceeded as error:
    ...     print(error.remaining.epsilon)
    0.25
    >>> parts = ledger.remaining.split(3)
    >>> counts = [ledger.release(Laplace(epsilon=part.epsilon), 128) for part in parts]
    >>> ledger.remaining.epsilon
    0.0
    >>> adaptive = Ledger(":memory:", rho=0.5, odometer_delta=1e-6)
    >>> count = adaptive.release(Gaussian(rho=0.1), 128, label="visitors")
    >>> adaptive.remaining, round(adaptive.odometer.epsilon, 2)
    (ZcdpCost(rho=0.4, delta=0.0, relation='add/remove'), 2.6)
    """

    __slots__ = ("_file", "_filter")

    _file: LedgerFile | MemoryLedger
    _filter: Filter[Any]

    @overload
    def __init__(
        self: Ledger[PrivacyCost],
        path: str | PathLike[str],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        relation: Relation | None = None,
        person: str | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Ledger[ZcdpCost],
        path: str | PathLike[str],
        *,
        rho: Number,
        delta: Number | None = None,
        odometer_delta: Number | None = None,
        relation: Relation | None = None,
        person: str | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Ledger[RenyiCost],
        path: str | PathLike[str],
        *,
        epsilon: Number,
        delta: Number,
        orders: Iterable[Integer],
        relation: Relation | None = None,
        person: str | None = None,
    ) -> None: ...
    def __init__(
        self,
        path: str | PathLike[str],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        orders: Iterable[Integer] | None = None,
        odometer_delta: Number | None = None,
        relation: Relation | None = None,
        person: str | None = None,
    ) -> None:
        if relation is not None:
            check_relation(relation)
        check_person(person, relation or "add/remove")
        given = _filter_of(epsilon, delta, rho, orders, odometer_delta, relation or "add/remove", person)
        if path == IN_MEMORY:
            if given is None:
                raise ParameterError("epsilon or rho must be given for a ledger in memory, which is always a new one")
            self._open(MemoryLedger(given.terms))
            return
        self._open(LedgerFile(path, terms=None if given is None else given.terms))
        name, found = str(self.path), self._filter
        if given is not None and (given.kind, given.description) != (found.kind, found.description):
            raise LedgerError(f"{name!r} is a ledger with the budget {found.description}, not {given.description}")
        kept = getattr(found, "odometer_delta", None)
        if odometer_delta is not None and kept != getattr(given, "odometer_delta", None):
            raise LedgerError(f"{name!r} is a ledger with odometer_delta={kept}, not {odometer_delta!r}")
        if relation not in (None, found.relation):
            raise LedgerError(f'{name!r} is a ledger for neighbours by "{found.relation}", not "{relation}"')
        if person not in (None, found.person):
            raise LedgerError(f"{name!r} is a ledger for {unit_of(found.person)}, not {unit_of(person)}")

    @classmethod
    def open_readonly(cls, path: str | PathLike[str]) -> Ledger[Any]:
        """Open an existing ledger read-only: `spend` and `release` raise `LedgerError`.

        Parameters
        ----------
        path : str or os.PathLike
            The file of the ledger, which exists.
        """
        ledger = cls.__new__(cls)
        ledger._open(LedgerFile(path, readonly=True))
        return ledger

    def _open(self, file: LedgerFile | MemoryLedger) -> None:
        with _undamaged(file.path):
            self._file, self._filter = file, filter_of(file.terms)
            _ = self.budget

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    @property
    def budget(self) -> AnyCost:
        """The budget that the ledger was made with."""
        return self._cost(self._filter.limits)

    @property
    def relation(self) -> Relation:
        """Which data sets are neighbours."""
        return self._filter.relation

    @property
    def person(self) -> str | None:
        """The name of the column that says whose a row is; None if each row is a person of its own."""
        return self._filter.person

    @property
    def spent(self) -> AnyCost:
        """The total of all spends, rounded up if it is a decimal number that no float represents."""
        return self._seen(self._totals(self._file.state()))

    @property
    def remaining(self) -> AnyCost:
        """The remaining budget, rounded down if it is a decimal number that no float represents.

        It is zero for a Rényi order that has none.
        """
        return self._seen(self._left(self._file.state()), down)

    @property
    def odometer(self) -> PrivacyCost:
        """A bound on the privacy loss of all releases so far that holds at every time at once.

        Except with a probability of at most its delta, the loss of all releases up to each moment is at most the
        epsilon that the odometer shows at that moment, also if an analyst stops where it is convenient. `spent` alone
        has no such meaning: an epsilon that is computed from a total is a guarantee for totals that were fixed before.
        The delta is that of the budget, for a budget of rho ``odometer_delta`` and that of the budget. A ledger of rho
        that was made without ``odometer_delta`` has no odometer, and raises a `ParameterError`.

        A release with a delta counts with its epsilon or rho, apart from an exception of that probability, as
        approximate differential privacy does. The loss itself of such noise exceeds its epsilon more often than that.
        """
        return self._filter.odometer(self._totals(self._file.state()))

    def entries(self) -> list[LedgerEntry[AnyCost]]:
        """List the spends, the oldest first; a `LedgerError` says that any of them, also an old one, is damaged."""
        _, rows = self._file.entries()
        return [
            LedgerEntry(
                number=number,
                time=datetime.fromisoformat(time),
                label=label,
                mechanism=mechanism,
                cost=self._seen(self._amounts(amounts)),
                total=self._seen(self._amounts(totals)),
            )
            for number, time, label, mechanism, amounts, totals in rows
        ]

    def spend(self, cost: Guarantee | Sequence[Guarantee], label: str = "") -> None:
        """Take a cost from the budget, before the release that it pays for; or several costs together, or none of them.

        Parameters
        ----------
        cost : mechanism, PrivacyCost, ZcdpCost, RenyiCost or PrivacyLoss, or a list of those
            The cost to spend, for the ledger's neighbouring relation and persons; for a mechanism the cost of one
            release. It is converted to the ledger's measure, exactly or rounded up. A ledger of epsilon takes what has
            an epsilon and a delta; a ledger of rho that too, and a rho; a ledger of Rényi orders all but what has a
            delta.
        label : str, default ""
            A name for the release. It is recorded, so it must not be private.

        Raises
        ------
        BudgetExceeded
            When the cost is above the remaining budget. Nothing is spent then.
        LedgerError
            When the ledger is read-only, damaged, gone, or locked by another program for a minute, or the disk is full.
            Nothing is spent then, except that a disk failure in the last step may leave the spend recorded.
        TypeError, ParameterError
            When the cost is for another relation or other persons, cannot be converted to the ledger's measure, or is
            none. The total of an `Accountant` is none, as it holds only for releases that are fixed beforehand. And
            when ``DPNOISE_GENERATOR`` or ``DPNOISE_INSTRUCTION_SET`` names none of this CPU.
        RandomnessError
            When the CPU's AES is broken.
        """
        amounts, row_after = self._plan(cost, label)
        _native.generator()  # nothing is spent where nothing can be drawn
        self._file.append(row_after)
        # Not within the transaction: a handler may take its time.
        _logger.info("%r: spent %s for %r", str(self.path), self._seen(amounts).amounts(), label)

    def _plan(self, cost: Guarantee | Sequence[Guarantee], label: str) -> tuple[Amounts, Callable[[State], Row]]:
        """Return the amounts of a cost, and what gives the row of the spend or raises that the budget is exceeded."""
        check_text(label, "label")
        costs = list(cost) if isinstance(cost, list | tuple) else [cost]
        if not costs:
            raise ParameterError("cost must be a cost or several, got an empty list")
        amounts = tuple(map(exact_sum, zip(*map(self._price, costs), strict=True)))
        mechanism = ", ".join(repr(one) for one in costs if not isinstance(one, Cost))

        def row_after(state: State) -> Row:
            totals = tuple(map(exact_sum, zip(self._totals(state), amounts, strict=True)))
            if not self._filter.grants(totals):
                raise BudgetExceeded(self._seen(amounts), self._seen(self._left(state), down), self.path)
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            return now, label, mechanism, " ".join(map(text_of, amounts)), " ".join(map(text_of, totals))

        return amounts, row_after

    def _price(self, cost: Any) -> Amounts:
        priced = checked_cost(cost)
        check_neighbours("cost", priced, self.relation, self.person, "ledger")
        return self._filter.price(priced)

    def release(self, mechanism: Mechanism, x: Any, label: str = "") -> Any:
        """Pay for a release, and then return the result of ``mechanism.release(x)``.

        Invalid input is refused before anything is spent. Then the cost is spent, and only then is noise drawn. If
        drawing fails, or the process is killed, the cost stays spent.

        Input that can be read only once, such as a stream or a generator of batches, is read once, into memory. Arrays,
        lists and columns of pandas, polars and pyarrow are not copied: nobody may change them meanwhile. Data that
        functions of yours take, as those of `ProposeTestRelease`, must give them the same twice.

        It returns the release itself and is no context manager, since a spend cannot be undone by leaving a block.

        Parameters
        ----------
        mechanism : Mechanism
            A mechanism or query of dpnoise, whose method ``release`` takes one value or array.
        x : object
            The data, as the mechanism's ``release`` takes them; for `queries.PerPerson` a pair of the column and the
            persons.
        label : str, default ""
            A name for the release. It is recorded, so it must not be private.

        Raises
        ------
        BudgetExceeded, LedgerError
            When `spend` raises it. Nothing is drawn then.
        ParameterError, TypeError
            When the mechanism refuses ``x``. Nothing is spent or drawn then.
        """
        needed = ("_loss", "_taken", "release")
        if isinstance(mechanism, type) or not all(hasattr(mechanism, name) for name in needed):
            raise TypeError(f"mechanism must be a mechanism of dpnoise, got {type(mechanism).__name__}")
        taken = mechanism._taken(x)
        self.spend(mechanism, label)
        return mechanism.release(taken)

    def _cost(self, amounts: Iterable[Any]) -> AnyCost:
        cost: AnyCost = self._filter.cost(list(amounts))
        return cost

    def _seen(self, amounts: Amounts, rounded: Callable[[Fraction], float] = up) -> AnyCost:
        return self._cost(seen(amount, rounded) for amount in amounts)

    def _totals(self, state: State) -> Amounts:
        return self._amounts(state.totals) if state.spends else (Fraction(),) * len(self._filter.names)

    def _amounts(self, text: str) -> Amounts:
        with _undamaged(self.path):
            amounts = tuple(map(read_amount, text.split(" ")))
            if len(amounts) != len(self._filter.names):
                raise ValueError("the amounts of another budget")
            return amounts

    def _left(self, state: State) -> Amounts:
        """Subtract the totals from the budget; a Rényi order may have none left."""
        both = zip(self._filter.limits, self._totals(state), strict=True)
        return tuple(max(limit - total, Fraction()) for limit, total in both)

    def _repr_html_(self) -> str:
        state, rows = self._file.entries()
        names: tuple[str, ...] = self._filter.names
        amounts = (map(text_of, one) for one in (self._filter.limits, self._totals(state), self._left(state)))
        summary = {"": ["budget", "spent", "remaining"], **dict(zip(names, zip(*amounts, strict=True), strict=True))}
        columns = ("number", "time (UTC)", "label", "mechanism", *names, *(f"total {name}" for name in names))
        shown = list(map(_cells, rows))
        entries = {name: [cells[i] for cells in shown] for i, name in enumerate(columns)}
        unit = "row" if self.person is None else f"person: {self.person}"
        return html_table(f"{self!r}, {self.relation}, {unit}", summary) + html_table("spends", entries)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path, so that another process of this machine can open the ledger."""
        if isinstance(self._file, MemoryLedger):
            raise TypeError("a ledger in memory cannot be copied or pickled, since each copy would spend the budget")
        return (Ledger.open_readonly if self._file.readonly else Ledger), (self.path,)

    def __repr__(self) -> str:
        """Show the call that opens this ledger."""
        if isinstance(self._file, MemoryLedger):
            return f"Ledger({IN_MEMORY!r}, {self._filter.description})"
        return f"Ledger.open_readonly({str(self.path)!r})" if self._file.readonly else f"Ledger({str(self.path)!r})"


@contextmanager
def _undamaged(path: Path) -> Iterator[None]:
    """Refuse what a forger has written, with a hash that matches: it may be of any form."""
    try:
        yield
    except (AttributeError, TypeError, ValueError, LookupError) as error:
        raise LedgerError(damaged(path)) from error


def _cells(row: tuple[Any, ...]) -> list[Any]:
    number, time, label, mechanism, amounts, totals = row
    return [number, time[:19], label, mechanism, *amounts.split(), *totals.split()]


def _filter_of(
    epsilon: Number | None,
    delta: Number | None,
    rho: Number | None,
    orders: Iterable[Integer] | None,
    odometer_delta: Number | None,
    relation: Relation,
    person: str | None,
) -> Filter[Any] | None:
    """Return the filter of the budget that was given, if one was."""
    if epsilon is not None and rho is not None:
        raise ParameterError(f"rho must be None when epsilon is given, got {rho!r} and epsilon={epsilon!r}")
    if odometer_delta is not None and rho is None:
        raise ParameterError(f"rho must be given together with odometer_delta, got odometer_delta={odometer_delta!r}")
    if orders is not None and (epsilon is None or delta is None):
        raise ParameterError("epsilon and delta must be given together with orders")
    allowed = 0.0 if delta is None else delta
    if rho is not None:
        return ZcdpFilter.of(relation, person, rho, allowed, odometer_delta)
    if epsilon is None:
        if delta is not None:
            raise ParameterError("epsilon or rho must be given together with delta")
        return None
    if orders is not None:
        return RenyiFilter.of(relation, person, epsilon, allowed, orders)
    return SequentialFilter.of(relation, person, epsilon, allowed)
