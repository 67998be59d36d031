"""``dpnoise specify``: the specification of a collection, which a server announces before it collects."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dpnoise import ParameterError, local
from dpnoise._domain import Domain
from dpnoise._files import atomic_write, locked
from dpnoise.cli.console import InputError, check_target, guarantee, quantity, say, to_json
from dpnoise.cli.options import AsJson, read_domain, two_numbers
from dpnoise.cli.protocols import MEANS, ProtocolName, in_options, name_of, protocol_of, with_parameters
from dpnoise.cli.sources import check_stdin


@with_parameters(memo=True)
def specify(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the specification goes.")],
    protocol: ProtocolName = None,
    spec: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Go on from this specification, for another question, period or domain."),
    ] = None,
    question: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What is asked, of whom and by whom: the same whenever it is asked again."),
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The time in which each person sends one report, as 2026-W48 or 2026-11."),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(metavar="VALUES", help="The public list of possible values, separated by commas as in CSV."),
    ] = None,
    domain_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The same, one value per line; an empty line is the empty text.")
    ] = None,
    bounds: Annotated[
        tuple[float, float] | None,
        two_numbers("LOW HIGH", f"{', '.join(MEANS)}: the public bounds that -1 and 1 stand for."),
    ] = None,
    as_json: AsJson = False,
    **parameters: float | int | str | None,
) -> None:
    """Write the specification of a collection, which a server announces before it collects.

    Example: `dpnoise specify --protocol oue --domain red,green,blue --epsilon 1 --question "favourite colour" --period
    2026-W48 -o week-48.json`

    Where people keep a secret between reports (lue, loloha and others), reports are made from Python and by clients.

    The file is the specification itself, whose SHA-256 begins with the id that every message has, or with a domain or
    bounds a document with the specification and these. `perturb`, `estimate` and clients of all languages read both
    with --spec. Reports about another question, period or domain are never counted together. A file that is something
    else is not replaced. Nothing in it is private.
    """
    check_target(output, [spec] if spec is not None else [])
    check_stdin([spec, domain_file])
    labels = read_domain(domain, domain_file)
    randomiser = protocol_of(protocol, spec, parameters, labels if spec is None else None)
    scheme = _about(randomiser, question, period, labels, bounds)
    content = scheme.to_document().encode()
    with locked(output):
        if output.exists() and output.read_bytes() not in (b"", content):
            raise InputError(f"{str(output)!r} is there already and is something else: give another name")
        with atomic_write(output) as file:
            file.write(content)
    if as_json:
        names = ("spec_id", "question", "period", "epsilon", "delta", "report_bytes")
        about = {name: getattr(scheme, name) for name in names}
        requested = getattr(scheme, "requested_epsilon", None)
        record = {
            "command": "specify",
            "protocol": name_of(scheme),
            "output": str(output),
            "requested_epsilon": requested,
        }
        print(to_json({**record, **about}))
        return
    size = f"{quantity(scheme.report_bytes, 'byte')} per report"
    promise = f"{guarantee(scheme.epsilon, scheme.delta)} (achieved)"
    say(f"{output}: {scheme!r}, {promise}, {size}, id {scheme.spec_id}")


def _about(
    scheme: Any, question: str | None, period: str | None, labels: Domain | None, bounds: tuple[float, float] | None
) -> Any:
    """Return the protocol for reports about this."""
    given: dict[str, Any] = {"question": question, "period": period}
    if labels is not None and not isinstance(scheme, local.FrequencyProtocol):
        raise InputError(f"--domain does not apply to {type(scheme).__name__}, whose reports are not counted by value")
    if bounds is not None and not isinstance(scheme, local.MeanProtocol):
        raise InputError(f"--bounds applies to the protocols {', '.join(MEANS)} alone")
    given |= {"domain": labels} if labels is not None else {"bounds": bounds} if bounds is not None else {}
    try:
        return scheme.about(**given)
    except ParameterError as error:
        raise InputError(in_options(str(error), given)) from None
