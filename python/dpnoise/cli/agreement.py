"""The common protocol and domain of the counted reports: the given ones, or what most files have."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpnoise import ParameterError, local
from dpnoise.cli.console import InputError
from dpnoise.cli.options import read_domain
from dpnoise.cli.protocols import read_specification
from dpnoise.cli.reports import Announced, Labels, Meaning, Reports, compact, open_reports
from dpnoise.cli.state import State

LIMIT: Final = 1 << 22
"""The most bytes of counters if no limit is given: a table of what they count takes about 60 times as much."""


@dataclass(frozen=True)
class Agreement:
    """The protocol and domain that all files must have; None if the files decide."""

    protocol: Announced | None = None
    domain: Labels | None = None
    limit: int = LIMIT
    """The most bytes of counters."""

    def kind_of(self, file: Reports) -> tuple[Announced, Meaning]:
        """Return the protocol and the domain of a file, or refuse one that cannot be counted or does not agree."""
        protocol, name = file.protocol, repr(file.path)
        if protocol is None:
            raise InputError(f"{name} does not say how its reports were made: no metadata 'dpnoise.protocol'")
        self.check_limit(protocol, name)
        domain = self.domain_of(protocol, name) if file.meaning is None else file.meaning
        if self.protocol is not None and protocol != self.protocol:
            raise InputError(f"{name} is of another protocol than --spec: {protocol!r}, not {self.protocol!r}")
        if self.domain is not None and domain != self.domain:
            raise InputError(f"{name} has another domain than --domain-file")
        return protocol, domain

    def check_limit(self, protocol: Announced, name: str) -> None:
        """Refuse a protocol whose counters take more memory than --limit."""
        if protocol.counter_bytes > self.limit:
            raise InputError(
                f"{name} needs a --limit of at least {protocol.counter_bytes}, the bytes of the counters of "
                f"{protocol!r}, got {self.limit}"
            )

    def domain_of(self, protocol: Announced, name: str) -> Labels:
        """Return the labels of the values if only --domain-file has them; none if reports are not about values."""
        if not isinstance(protocol, local.FrequencyProtocol):
            if self.domain is not None:
                kind = type(protocol).__name__
                raise InputError(f"{name} has reports of {kind}, which are not about values that --domain-file lists")
            return []
        if self.domain is not None and len(self.domain) != protocol.k:
            raise InputError(
                f"{name} has reports about {protocol.k} values, and --domain-file lists {len(self.domain)}"
            )
        return self.domain or range(protocol.k)

    def check_state(self, state: State) -> None:
        state.check_same("--spec", self.protocol or state.accumulator.protocol, state.meaning)
        state.check_same("--domain-file", state.accumulator.protocol, self.domain or state.meaning)

    def of_messages(self) -> State:
        """Return an empty state for messages, which name their protocol only by its id."""
        if self.protocol is None:
            raise InputError("--messages needs --spec: messages have the id of their protocol, and do not describe it")
        return State("--spec", self.protocol.accumulator(), self.domain_of(self.protocol, "--spec"))

    def of_most(self, files: Sequence[Path]) -> State | None:
        """Return an empty state with the protocol and domain of most files, None if no file can be used."""
        kinds: Counter[tuple[Announced, str]] = Counter()
        examples: dict[object, tuple[Path, Meaning]] = {}
        for path in files:
            try:
                protocol, meaning = self.kind_of(open_reports(path))
            except (InputError, ParameterError, OSError, MemoryError):
                continue  # the file is named later, when it would be counted
            kind = (protocol, repr(meaning))
            kinds[kind] += 1
            examples.setdefault(kind, (path, meaning))
        if not kinds:
            return None
        (most, count), *others = kinds.most_common(2)
        if others and others[0][1] == count:
            first, second = (repr(str(examples[kind][0])) for kind in (most, others[0][0]))
            raise InputError(
                f"as many files are like {first} as like {second}, which differ in protocol or domain: say which ones "
                f"to count with --spec or --domain-file"
            )
        (protocol, _), (_, meaning) = most, examples[most]
        return State(f"{count:,} of the {kinds.total():,} files", protocol.accumulator(), meaning)


def read_agreement(specification: Path | None, domain_file: Path | None, limit: int) -> Agreement:
    labels = read_domain(None, domain_file)
    protocol = None if specification is None else read_specification(specification)
    agreement = Agreement(protocol, None if labels is None else compact(list(labels)), limit)
    if protocol is not None:
        agreement.check_limit(protocol, "--spec")
        agreement.domain_of(protocol, "--spec")  # refuses a domain of another size before any file is read
    return agreement
