"""``dpnoise ledger``: the spends from a budget, and the remaining budget."""

from pathlib import Path
from typing import Annotated

import typer

from dpnoise.accounting import Ledger, PrivacyCost
from dpnoise.cli.console import print_table, quantity, to_json
from dpnoise.cli.options import AsJson


def ledger(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A ledger that dpnoise.accounting.Ledger has made.")],
    as_json: AsJson = False,
) -> None:
    """Show a ledger: every spend, the total, and the remaining budget.

    Example: `dpnoise ledger people.db`

    It is opened read-only. Other programs may spend from it at the same time. A ledger holds what was asked and what
    that cost, but no data and no answers.
    """
    opened = Ledger.open_readonly(path)
    entries = opened.entries()
    budget, spent, remaining = opened.budget, opened.spent, opened.remaining
    if as_json:
        rows = [
            {
                "number": entry.number,
                "time": entry.time.isoformat(),
                "label": entry.label,
                "mechanism": entry.mechanism,
                "epsilon": entry.cost.epsilon,
                "delta": entry.cost.delta,
                "total_epsilon": entry.total.epsilon,
                "total_delta": entry.total.delta,
            }
            for entry in entries
        ]
        costs = {"budget": budget, "spent": spent, "remaining": remaining}
        amounts = {name: dict(zip(("epsilon", "delta"), _amounts(cost), strict=True)) for name, cost in costs.items()}
        about = {"command": "ledger", "path": str(path), "relation": opened.relation}
        print(to_json({**about, **amounts, "entries": rows}))
        return
    print_table(
        quantity(len(entries), "spend"),
        ("label", "time (UTC)", "mechanism", "epsilon", "delta", "total epsilon", "total delta"),
        [
            (
                " ".join(entry.label.split()),
                f"{entry.time:%Y-%m-%d %H:%M:%S}",
                entry.mechanism.partition("(")[0],
                *(f"{amount:g}" for amount in (*_amounts(entry.cost), *_amounts(entry.total))),
            )
            for entry in entries
        ],
    )
    for name in ("epsilon", "delta"):
        print(
            f"{name}: {getattr(spent, name)!r} of {getattr(budget, name)!r} spent, {getattr(remaining, name)!r} remains"
        )
    print(f"neighbours by {opened.relation}")


def _amounts(cost: PrivacyCost) -> tuple[float, float]:
    return cost.epsilon, cost.delta
