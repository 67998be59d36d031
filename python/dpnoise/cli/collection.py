"""``dpnoise collection``: the folder of a new collection, with all that devices and the collector need."""

import json
import math
import re
from pathlib import Path
from string import Template
from typing import Annotated, Final

import typer

from dpnoise import ParameterError, local
from dpnoise._files import atomic_write
from dpnoise.cli.console import InputError, guarantee, quantity, say, to_json
from dpnoise.cli.options import AsJson, read_domain
from dpnoise.cli.protocols import in_options, name_of

SPECIFICATIONS: Final = Path("specifications")
"""Where the documents of a collection are, one for each period."""

INBOX: Final = Path("inbox")
"""Where the files of messages or of reports of a collection are."""

_PEOPLE: Final = (1_000, 10_000, 100_000)


def collection(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to make: empty, or not there yet.")],
    question: Annotated[
        str,
        typer.Option(metavar="TEXT", help="What is asked, of whom and by whom: the same whenever it is asked again."),
    ],
    epsilon: Annotated[float, typer.Option(metavar="NUMBER", help="The privacy parameter of one report.")],
    period: Annotated[
        str,
        typer.Option(metavar="TEXT", help="The time in which each person sends one report, as 2026-W48 or 2026-11."),
    ],
    domain: Annotated[
        str | None,
        typer.Option(metavar="VALUES", help="The public list of possible answers, separated by commas as in CSV."),
    ] = None,
    domain_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The same, one answer per line; an empty line is the empty text."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make the folder of a new collection: a question with a list of answers.

    Example: `dpnoise collection survey --question "favourite colour of our visitors" --domain red,green,other --epsilon
    1 --period 2026-W48`

    It has the document that devices and the collector read, and a README with what people are promised, how exact the
    result will be, and the lines of Python, JavaScript, Go and Java that send a report. The protocol is the most
    accurate one. `dpnoise estimate` needs no options in this folder. Nothing in it is private.
    """
    labels = read_domain(domain, domain_file)
    if labels is None:
        raise InputError("give the answers with either --domain or --domain-file")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{str(folder)!r} is there already and is not an empty folder: give another name")
    try:
        chosen = local.plan(n=max(_PEOPLE), k=len(labels), epsilon=epsilon)[0].protocol
        protocol = chosen.about(question=question, period=period, domain=labels)
    except ParameterError as error:
        raise InputError(in_options(str(error), ("question", "epsilon", "period"))) from None
    document = SPECIFICATIONS / f"{_name(period)}.json"
    for inner in (SPECIFICATIONS, INBOX):
        (folder / inner).mkdir(parents=True)
    for path, content in ((document, protocol.to_document()), (Path("README.md"), _readme(protocol, document))):
        with atomic_write(folder / path) as file:
            file.write(content.encode())
    if as_json:
        announced = str(folder / document)
        about = {"protocol": name_of(protocol), "spec_id": protocol.spec_id, "epsilon": protocol.epsilon}
        print(to_json({"command": "collection", "folder": str(folder), "specification": announced, **about}))
        return
    say(
        f"{folder}: {protocol!r}, {guarantee(protocol.epsilon, protocol.delta)} (achieved), "
        f"{quantity(protocol.report_bytes, 'byte')} per report, id {protocol.spec_id}"
    )
    say(f"Read {folder / 'README.md'}: what people are promised, and how devices send reports.")


def _name(period: str) -> str:
    """Return a period as the name of a file."""
    return re.sub(r"[^\w.-]+", "-", period).strip(".-") or "period"


def _readme(protocol: local.FrequencyProtocol, document: Path) -> str:
    labels = [str(label) for label in protocol.domain or ()]
    ratio, next_document = math.exp(protocol.epsilon), document.with_name("NEXT.json")
    errors = "\n".join(f"| {n:,} | {math.sqrt(protocol.variance(n)):,.0f} |" for n in _PEOPLE)
    return _README.substitute(
        question=protocol.question,
        period=protocol.period,
        answers="\n".join(f"{number}. {' '.join(label.split())}" for number, label in enumerate(labels)),
        protocol=type(protocol).__name__,
        epsilon=f"{_up(protocol.epsilon, 3)}",
        ratio=f"{_up(ratio, 2):,}",
        belief=f"{_up(100 * ratio / (1 + ratio), 1)}",
        twice=f"{_up(100 * ratio**2 / (1 + ratio**2), 1)}",
        errors=errors,
        document=document.as_posix(),
        next_document=next_document.as_posix(),
        spec_id=protocol.spec_id,
        label=json.dumps(labels[0], ensure_ascii=False),
        most=f"{_up(protocol.epsilon, 3)}",
    )


def _up(number: float, decimals: int) -> float:
    """Return a number with so many decimals, rounded up: what is promised holds."""
    factor: int = 10**decimals
    return math.ceil(number * factor) / factor


_README: Final = Template("""\
# $question

Collected: $period, one report from each person. The answers, by their numbers:

$answers

## What people are promised

Your device does not send your answer. It sends a report that it draws at random, by a public rule. Every report may
come from every answer, and from none more than $ratio times as often as from another one. So whoever sees your report,
us included, learns little: somebody who gave your true answer an even chance before believes in it with at most
$belief % after. That is local differential privacy with epsilon = $epsilon ($protocol of dpnoise). It does not
depend on what anybody knows or computes, now or later.

It holds for one report. Two reports of one person, say in two periods, reveal up to twice as much (at most $twice %
instead of $belief %): do not ask the same people again and again, or use a protocol with a memo, such as LOLOHA.
The report does not hide that you took part, nor the address that it was sent from.

## How exact the result will be

| people | standard error of a count |
| --- | --- |
$errors

## Send a report

A device has the file `$document` built in, whose messages have the id `$spec_id`, and sends the
message to the collector. Python:

```python
from pathlib import Path
from dpnoise import local

protocol = local.protocol_from_json(Path("$document").read_text(encoding="utf-8"))
[message] = protocol.messages(protocol.perturb($label))
```

JavaScript, where `document` is the text of the file and 0 is the number of the answer:

```js
import { Client } from "@dpnoise/client";

const client = await Client.fromSpecification(document);
if (client.epsilon > $most) throw new Error("more than people were told");
const message = client.message(0);
```

Go:

```go
protocol, err := dpnoise.ParseProtocol(document)
if err != nil || protocol.Epsilon() > $most {
	log.Fatal("not what people were told: ", err)
}
defer protocol.Close()
message, err := protocol.Message(0)
```

Java:

```java
try (Protocol protocol = Protocol.fromJson(document)) {
    if (protocol.epsilon() > $most) throw new IOException("more than people were told");
    byte[] message = protocol.message(0);
}
```

## Count

Files of messages, each behind its length in 4 bytes (little-endian), go into `inbox` as `*.bin`, or files of reports as
`*.parquet`. Then, in this folder:

```sh
dpnoise estimate
```

## The next period

```sh
dpnoise specify --spec $document --period NEXT -o $next_document
```

Devices take the new file, or write the period themselves, by `about` in all languages. `dpnoise estimate` counts late
reports for the period in which they were made.
""")
