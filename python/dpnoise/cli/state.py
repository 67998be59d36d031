"""The counts so far, as a file: to continue later, and to merge.

docs/reference/cli.md describes the file: JSON, so that any program can read it.

A source is identified by the SHA-256 of its content. So copies, links and renamed files are recognised. The same
reports written anew, for example with another compression or in one file with others, are not.
"""

import base64
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dpnoise import local
from dpnoise._files import atomic_write
from dpnoise._json import read_json
from dpnoise.cli.console import InputError
from dpnoise.cli.reports import Announced

_FORMAT: Final = "dpnoise state"
_VERSION: Final = 1


@dataclass
class State:
    name: str
    """The name of the state in messages: a path in quotes, or words."""
    accumulator: local.Accumulator | local.AttributesAccumulator
    sources: dict[str, str] = field(default_factory=dict)
    """The path of each source, by the SHA-256 of its content."""

    def check_same(self, name: str, protocol: Announced) -> None:
        """Refuse another specification."""
        own = self.accumulator.protocol
        if protocol.to_json() != own.to_json():
            raise InputError(f"{name} is of another collection than {self.name}: {protocol!r}, not {own!r}")

    def joined(self, other: "State") -> "State":
        """Return this state with the counts of another state; refuse a state that shares a file with this one.

        Takes ownership of `other`: the counts are added to its counts. This state does not change, so it is intact
        after an interrupt.
        """
        self.check_same(other.name, other.accumulator.protocol)
        shared = [path for sha256, path in other.sources.items() if sha256 in self.sources]
        if shared:
            more = f" and {len(shared) - 1} more" if len(shared) > 1 else ""
            raise InputError(
                f"{other.name} holds {shared[0]!r}{more}, which has been counted before: "
                f"merging would count the reports twice"
            )
        other.accumulator.merge(self.accumulator)  # type: ignore[arg-type] # both are of one protocol
        return State(self.name, other.accumulator, {**self.sources, **other.sources})


class StateFile:
    """The file of a state. A writer holds its lock; changes by programs that ignore the lock are detected."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._content: bytes | None = None

    def read(self) -> State:
        """Return the state; refuse a file that is no state."""
        content = self.path.read_bytes()
        self._content = content
        name = repr(str(self.path))
        try:
            document = read_json(content)
        except ValueError:
            document = None
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise InputError(f"{name} is not a state that dpnoise wrote, or was cut short")
        if document.get("version") != _VERSION:
            raise InputError(
                f"{name} has version {document.get('version')!r}; this release reads {_VERSION}: upgrade dpnoise"
            )
        if document.pop("checksum", None) != _checksum(document):
            raise InputError(f"{name} is damaged: its checksum is wrong")
        try:
            content, domain = base64.b64decode(document["accumulator"]), document["domain"]
            kind = local.AttributesAccumulator if isinstance(domain, dict) else local.Accumulator
            accumulator = kind.from_bytes(content, domain=domain or None, limit=None)
            sources = {source["sha256"]: source["path"] for source in document["sources"]}
            if not all(isinstance(text, str) for source in sources.items() for text in source):
                raise TypeError("sources must be named by texts")
            return State(name, accumulator, sources)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{name} is damaged: {error}") from None

    def write(self, state: State) -> None:
        """Replace the file, unless another process has changed it since it was read or written."""
        if (self.path.read_bytes() if self.path.exists() else None) != self._content:
            raise InputError(f"{str(self.path)!r} was changed by another program meanwhile, and is left as it is")
        document: dict[str, Any] = {
            "format": _FORMAT,
            "version": _VERSION,
            "domain": _listed(state.accumulator.protocol),
            "sources": [{"path": path, "sha256": sha256} for sha256, path in state.sources.items()],
            "accumulator": base64.b64encode(state.accumulator.to_bytes()).decode(),
        }
        content = json.dumps({**document, "checksum": _checksum(document)}, indent=1).encode()
        with atomic_write(self.path) as file:
            file.write(content)
        self._content = content


def _listed(protocol: Announced) -> Any:
    """Return what values stand for: of several attributes an object, and else a list; empty for numbers."""
    document = json.loads(protocol.to_document()).get("dpnoise.domain")
    return document or ({} if isinstance(protocol, local.AttributesProtocol) else [])


def _checksum(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
