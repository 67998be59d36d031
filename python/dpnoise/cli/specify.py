"""``dpnoise specify``: the specification of a protocol, which a server announces before it collects."""

from pathlib import Path
from typing import Annotated

import typer

from dpnoise._files import atomic_write, locked
from dpnoise.cli.console import InputError, check_target, guarantee, quantity, say, to_json
from dpnoise.cli.options import AsJson
from dpnoise.cli.protocols import RequiredProtocolName, build, with_parameters


@with_parameters(memo=True)
def specify(
    protocol: RequiredProtocolName,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the specification goes.")],
    as_json: AsJson = False,
    **parameters: float | int | str | None,
) -> None:
    """Write the specification of a protocol, which a server announces before it collects.

    Example: `dpnoise specify --protocol oue --k 3 --epsilon 1 -o spec.json`

    Where people keep a secret between reports (lue, loloha and others), reports are made from Python.

    The file has the bytes whose SHA-256 begins with the id that every message has: announce it as it is. `perturb` and
    `estimate` read it with --spec. A file that is something else is not replaced. Nothing in it is private.
    """
    check_target(output)
    scheme = build(protocol, parameters, None)
    content = scheme.to_json().encode()
    with locked(output):
        if output.exists() and output.read_bytes() not in (b"", content):
            raise InputError(f"{str(output)!r} is there already and is something else: give another name")
        with atomic_write(output) as file:
            file.write(content)
    if as_json:
        names = ("spec_id", "epsilon", "requested_epsilon", "delta", "report_bytes")
        about = {name: getattr(scheme, name) for name in names}
        print(to_json({"command": "specify", "protocol": protocol, "output": str(output), **about}))
        return
    size = f"{quantity(scheme.report_bytes, 'byte')} per report"
    promise = f"{guarantee(scheme.epsilon, scheme.delta)} (achieved)"
    say(f"{output}: {scheme!r}, {promise}, {size}, id {scheme.spec_id}")
