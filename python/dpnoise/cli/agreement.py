"""The common specification of the counted reports: the given ones, or what most files have."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpnoise import ParameterError
from dpnoise.cli.console import InputError
from dpnoise.cli.protocols import is_informed, read_specification
from dpnoise.cli.reports import Announced, Reports, open_reports
from dpnoise.cli.state import State

LIMIT: Final = 1 << 22
"""The most bytes of counters if no limit is given: a table of what they count takes about 60 times as much."""


class Elsewhere(InputError):
    """What is counted for another one of the given specifications."""


@dataclass(frozen=True)
class Agreement:
    """The specification that all files must have; None if the files decide."""

    protocol: Announced | None = None
    limit: int = LIMIT
    """The most bytes of counters."""
    others: tuple[Announced, ...] = ()
    """Further specifications, whose reports are counted elsewhere."""

    def kind_of(self, file: Reports) -> Announced:
        """Return the protocol of a file, or refuse one that cannot be counted or does not agree."""
        protocol, name = file.protocol or self.protocol, repr(file.path)
        if protocol is None:
            raise InputError(
                f"{name} does not say how its reports were made: no metadata 'dpnoise.protocol'; perhaps a program "
                "that wrote it again dropped its metadata: give --spec"
            )
        if file.protocol is None and self.others:
            raise InputError(f"{name} does not say which of --spec its reports are of: give this one alone")
        self.check_limit(protocol, name)
        if self.protocol is None:
            return protocol
        if protocol.to_json() in [other.to_json() for other in self.others]:
            raise Elsewhere(f"{name} is of another one of --spec")
        if protocol.to_json() != self.protocol.to_json():
            raise InputError(f"{name} is of another collection than --spec: {protocol!r}, not {self.protocol!r}")
        return self.protocol if is_informed(self.protocol) else protocol

    def check_limit(self, protocol: Announced, name: str) -> None:
        """Refuse a protocol whose counters take more memory than --limit."""
        if protocol.counter_bytes > self.limit:
            raise InputError(
                f"{name} needs a --limit of at least {protocol.counter_bytes}, the bytes of the counters of "
                f"{protocol!r}, got {self.limit}"
            )

    def check_state(self, state: State) -> None:
        """Refuse the state of another specification, and tell one without labels those of --spec."""
        if self.protocol is not None:
            state.check_same("--spec", self.protocol)
            state.accumulator.merge(self.protocol.accumulator())  # type: ignore[arg-type] # of one specification

    def of_messages(self) -> State:
        """Return an empty state for messages, which name their protocol only by its id."""
        if self.protocol is None:
            raise InputError("--messages needs --spec: messages have the id of their protocol, and do not describe it")
        return State("--spec", self.protocol.accumulator())

    def of_most(self, files: Sequence[Path]) -> State | None:
        """Return an empty state with the specification of most files, None if no file can be used."""
        kinds: Counter[str] = Counter()
        examples: dict[str, tuple[Path, Announced]] = {}
        for path in files:
            try:
                protocol = self.kind_of(open_reports(path))
            except (InputError, ParameterError, OSError, MemoryError):
                continue  # the file is named later, when it would be counted
            kind = protocol.to_json()
            kinds[kind] += 1
            examples.setdefault(kind, (path, protocol))
        if not kinds:
            return None
        (most, count), *others = kinds.most_common(2)
        if others and others[0][1] == count:
            first, second = (repr(str(examples[kind][0])) for kind in (most, others[0][0]))
            raise InputError(
                f"as many files are like {first} as like {second}, which differ in their specification: say which ones "
                f"to count with --spec"
            )
        _, protocol = examples[most]
        return State(f"{count:,} of the {kinds.total():,} files", protocol.accumulator())


def read_agreements(specifications: Sequence[Path], limit: int) -> list[Agreement]:
    """Return what is counted for each of the files of --spec, or for none."""
    protocols = [read_specification(path) for path in specifications]
    agreements = [
        Agreement(protocol, limit, tuple(other for other in protocols if other.to_json() != protocol.to_json()))
        for protocol in protocols
    ] or [Agreement(limit=limit)]
    for agreement in agreements:
        if agreement.protocol is not None:
            agreement.check_limit(agreement.protocol, "--spec")
        if len(agreement.others) < len(agreements) - 1:
            raise InputError(f"--spec must be of different collections, got {agreement.protocol!r} twice")
    return agreements
