"""``dpnoise merge``: states of several runs or machines into one."""

from pathlib import Path
from typing import Annotated

import typer

from dpnoise._files import locked
from dpnoise.cli.console import check_target, quantity, say, to_json
from dpnoise.cli.options import AsJson
from dpnoise.cli.sources import matching
from dpnoise.cli.state import StateFile


def merge(
    states: Annotated[
        list[Path], typer.Argument(metavar="STATE...", help="Files that estimate --state wrote, or quoted patterns.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="Where the merged state goes.")],
    as_json: AsJson = False,
) -> None:
    """Merge states, as if one run had counted all reports.

    Example: `dpnoise merge monday.json tuesday.json -o both.json`

    They must be of the same protocol and domain. States that hold the same file of reports are refused, because its
    reports would be counted twice. `dpnoise estimate --state OUT` gives the estimates. States hold counts
    of reports, which are differentially private.
    """
    states = [path for state in states for path in matching(state)]
    check_target(output, states)
    with locked(output):
        merged, *others = (StateFile(path).read() for path in states)
        for other in others:
            merged = merged.joined(other)
        target = StateFile(output)
        if output.exists():
            target.read()  # only a state may be replaced
        target.write(merged)

    accumulator = merged.accumulator
    record = {
        "command": "merge",
        "states": [str(path) for path in states],
        "output": str(output),
        "files": len(merged.sources),
        "n": accumulator.n,
        "rejected": accumulator.rejected,
        "rejected_reasons": accumulator.rejected_reasons,
        "spec_id": accumulator.protocol.spec_id,
    }
    if as_json:
        print(to_json(record))
        return
    say(
        f"{quantity(len(states), 'state')} in {output}: {quantity(accumulator.n, 'report')} of "
        f"{quantity(len(merged.sources), 'file')}, "
        f"{accumulator.rejected:,} rejected"
    )
