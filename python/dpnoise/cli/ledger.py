"""``dpnoise ledger``: the spends from a budget, and the remaining budget."""

from collections.abc import Callable
from decimal import ROUND_CEILING, Context
from pathlib import Path
from typing import Annotated, Any

import typer

from dpnoise import ParameterError
from dpnoise._numbers import real_down
from dpnoise.accounting import Ledger
from dpnoise.cli.console import InputError, print_table, quantity, say, to_json
from dpnoise.cli.options import AsJson, RelationIfGiven


def ledger(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The ledger; with a budget, it is made.")],
    epsilon: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Make a ledger with this budget of epsilon.")
    ] = None,
    rho: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Make a ledger with this budget of zero-concentrated privacy."),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="The budget of delta; none if not given.")
    ] = None,
    orders: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS",
            help="Add up Rényi divergences of these orders, separated by commas; for epsilon and delta.",
        ),
    ] = None,
    odometer_delta: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="With --rho: the probability that the odometer may fail.")
    ] = None,
    relation: RelationIfGiven = None,
    person: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The column that says whose a row is; a row is a person if not given."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a ledger and show it: every spend, the total, and the remaining budget.

    Example: `dpnoise ledger people.db`

    Every spend is checked. The ledger is opened read-only, unless a budget is given; other programs may spend from it
    at the same time. A ledger holds what was asked and what that cost, but no data and no answers.

    Costs are shown in the measure of the ledger. The odometer bounds the privacy loss of all spends so far, at every
    time at once, except with the probability that is shown with it. Spends with a delta count with their epsilon or
    rho.
    """
    neighbours = {"relation": relation, "person": person}
    budget = {"epsilon": epsilon, "rho": rho, "delta": delta, "odometer_delta": odometer_delta, **neighbours}
    given: dict[str, Any] = {name: value for name, value in budget.items() if value is not None}
    if orders is not None:
        given["orders"] = _whole(orders)
    opened = Ledger(path, **given) if given else Ledger.open_readonly(path)
    entries = opened.entries()
    budgets = {
        "budget": _amounts(opened.budget, real_down),
        "spent": _amounts(opened.spent),
        "remaining": _amounts(opened.remaining, real_down),
    }
    try:
        odometer = opened.odometer
    except ParameterError:  # it was made without one
        odometer = None
    if as_json:
        rows = [
            {
                "number": entry.number,
                "time": entry.time.isoformat(),
                "label": entry.label,
                "mechanism": entry.mechanism,
                **_amounts(entry.cost),
                **{f"total_{name}": amount for name, amount in _amounts(entry.total).items()},
            }
            for entry in entries
        ]
        about = {"command": "ledger", "path": str(path), "relation": opened.relation, "person": opened.person}
        print(to_json({**about, **budgets, "odometer": odometer and _amounts(odometer), "entries": rows}))
        return
    names = list(budgets["budget"])
    shown = [name.replace("_", " ") for name in names]
    print_table(
        quantity(len(entries), "spend"),
        ("label", "time (UTC)", "mechanism", *shown, *(f"total {name}" for name in shown)),
        [
            (
                entry.label,
                f"{entry.time:%Y-%m-%d %H:%M:%S}",
                entry.mechanism.partition("(")[0],
                *(_short(amount) for cost in (entry.cost, entry.total) for amount in _amounts(cost).values()),
            )
            for entry in entries
        ],
    )
    for name, title in zip(names, shown, strict=True):
        most, spent, remaining = (amounts[name] for amounts in budgets.values())
        say(f"{title}: {spent!r} of {most!r} spent, {remaining!r} remains")
    if odometer is not None:
        lost = _short(_amounts(odometer)["epsilon"])
        say(f"odometer: epsilon {lost} so far, except with a probability of {odometer.delta!r}")
    say(f"neighbours by {opened.relation}")
    say(f"privacy of: {'rows' if opened.person is None else f'persons ({opened.person})'}")


def _whole(orders: str) -> list[int]:
    try:
        return [int(order) for order in orders.split(",")]
    except ValueError:
        raise InputError(f"--orders must be whole numbers separated by commas, got {orders!r}") from None


def _up(value: Any, name: str) -> float:
    """Return the smallest float that is no smaller, nor is the decimal number that is printed."""
    return -real_down(-value, name)


def _short(amount: float) -> str:
    """Write an amount with six digits, rounded up, as a loss that is shown must not be below the one that it bounds."""
    return f"{float(Context(prec=6, rounding=ROUND_CEILING).create_decimal(str(amount))):g}"


def _amounts(cost: Any, rounded: Callable[[Any, str], float] = _up) -> dict[str, float]:
    """Return the amounts of a cost by name; fractions are rounded up, or as is said."""
    values = {name: value for name, value in vars(cost).items() if name not in ("relation", "person")}
    orders = values.pop("divergences", {})
    values |= {f"order_{order}": divergence for order, divergence in orders.items()}
    return {name: rounded(value, name) for name, value in values.items()}
