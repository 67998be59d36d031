"""``dpnoise plan``: a comparison of protocols before the collection."""

import math
from dataclasses import asdict
from typing import Annotated, Final

import typer

from dpnoise import local
from dpnoise.cli.console import print_table, quantity, say, to_json
from dpnoise.cli.options import AsJson, whole_number
from dpnoise.cli.protocols import name_of

_NEAR: Final = 1.05

_LEGEND: Final = """\
standard deviation: of the estimated count of a rare value, in people
detectable count:   how many people must have a value for its estimate to stand out, with a probability of 95 %
server cost:        the order of the collector's work for n reports about k values; K, q and t are the points, field
                    and dimension of a projective space"""

_BOUNDS: Final = """\
blanket: what the protocol's reports on all values have in common
binary:  what reports on two values have in common, of any protocol
clones:  what all protocols with this epsilon have in common
local:   the epsilon of a single report"""


def plan(
    n: Annotated[int, typer.Option("--n", parser=whole_number, metavar="NUMBER", help="How many people will report.")],
    k: Annotated[
        int, typer.Option("--k", parser=whole_number, metavar="NUMBER", help="How many values an answer may have.")
    ],
    epsilon: Annotated[
        float, typer.Option(metavar="NUMBER", help="The privacy parameter of a person's report, from 2**-20 to 32.")
    ],
    shuffled: Annotated[
        float | None,
        typer.Option(metavar="DELTA", help="Show the epsilon of all reports together, shuffled, for this delta."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the protocols: accuracy, size of a report and work of the server.

    Example: `dpnoise plan --n 1e6 --k 40 --epsilon 1`

    They are those that count each of k values, by the names that `perturb` takes. Standard deviations and counts are in
    people. No data is read.

    With a probability of 95 %, the estimates of all values that do not occur stay below a threshold. With a probability
    of 95 %, a value with the smallest detectable count has an estimate above this threshold.

    The recommended protocol has the shortest reports of those whose standard deviation is at most 5 % above the
    smallest.

    With `--shuffled`, a second table has the epsilon of all n reports together at that delta, if a trusted shuffler
    removes their senders and their order. It may take some seconds.
    """
    candidates = local.plan(n=n, k=k, epsilon=epsilon, shuffled_delta=shuffled)
    best = candidates[0]
    near = [one for one in candidates if one.standard_deviation <= _NEAR * best.standard_deviation]
    recommended = min(near, key=lambda one: one.report_bytes)
    if as_json:
        rows = [{**asdict(candidate), "protocol": name_of(candidate.protocol)} for candidate in candidates]
        print(
            to_json(
                {
                    "command": "plan",
                    "n": n,
                    "k": k,
                    "requested_epsilon": epsilon,
                    "shuffled_delta": shuffled,
                    "protocols": rows,
                    "recommended": name_of(recommended.protocol),
                }
            )
        )
        return
    print_table(
        f"{n:,} people, {k:,} values, epsilon {epsilon:g}",
        ("protocol", "standard deviation", "detectable count", "report bytes", "server cost"),
        [
            (
                name_of(candidate.protocol),
                f"{candidate.standard_deviation:,.1f}",
                "more than all"
                if math.isinf(least := candidate.smallest_detectable_count)
                else f"{math.ceil(least):,}",
                f"{candidate.report_bytes:,}",
                candidate.server_cost,
            )
            for candidate in candidates
        ],
    )
    print(_LEGEND)
    if shuffled is not None:
        print_table(
            f"All {n:,} reports together, shuffled, delta {shuffled:g}",
            ("protocol", "epsilon", "bound"),
            [(name_of(one.protocol), f"{one.shuffled_epsilon:.5g}", str(one.bound)) for one in candidates],
        )
        print(_BOUNDS)
    reason = "its standard deviation is the smallest"
    if recommended is not best:
        more = 100 * (recommended.standard_deviation / best.standard_deviation - 1)
        reason = (
            f"its reports have {quantity(recommended.report_bytes, 'byte')} instead of {best.report_bytes:,}, at a "
            f"standard deviation that is {more:.1f} % above the smallest, of {name_of(best.protocol)}"
        )
    say(f"Recommended: {name_of(recommended.protocol)}, since {reason}.")
