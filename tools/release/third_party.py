"""What binaries are linked with: the notices in LICENSE-THIRD-PARTY, and the inventory in each wheel.

    python tools/release/third_party.py

writes LICENSE-THIRD-PARTY anew, where a test finds that the crates or their licences have changed.
"""

from __future__ import annotations

import json
import re
import subprocess
import textwrap
import tomllib
import uuid
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

from version import Version

ROOT = Path(__file__).resolve().parents[2]
NOTICES = ROOT / "LICENSE-THIRD-PARTY"
MODULE, LIBRARY = "dpnoise-python", "dpnoise-ffi"
TARGETS = {
    MODULE: ["x86_64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"],
    LIBRARY: ["x86_64-unknown-linux-gnu", "wasm32-unknown-unknown"],
}
HEAD = """\
The Python wheels of dpnoise, its C library and its WebAssembly modules contain compiled code of the following crates,
not all of them in each, and of Rust's standard library, which is under the MIT licence like libc. Of a choice between
licences it is the MIT licence that is used.
"""
TERMS = re.compile(r"^(Permission is hereby granted|Redistribution and use)", re.MULTILINE)


class Crate(NamedTuple):
    """A crate: its name, its version, the expression of its licence, and the folder of its sources."""

    name: str
    version: str
    licence: str
    folder: Path


def _cargo(*command: str, sources: Path) -> str:
    return subprocess.check_output(["cargo", *command], cwd=sources, text=True)


@cache
def _described(sources: Path) -> dict[tuple[str, str], Crate]:
    """Return all crates of the lock file by name and version."""
    described = json.loads(_cargo("metadata", "--format-version=1", sources=sources))["packages"]
    return {
        (one["name"], one["version"]): Crate(
            one["name"], one["version"], one["license"].replace("/", " OR "), Path(one["manifest_path"]).parent
        )
        for one in described
    }


def linked(package: str, target: str, sources: Path = ROOT) -> dict[Crate, set[Crate]]:
    """Return the crates that a package is linked with for a target, itself first, each with those that it uses."""
    crates = _described(sources)
    # Not what only compiles: neither build scripts nor procedural macros.
    shown = ["--edges=normal,no-proc-macro", "--prefix=depth", "--format= {p}", "--no-dedupe"]
    uses: dict[Crate, set[Crate]] = {}
    above: list[Crate] = []
    for line in _cargo("tree", f"--package={package}", f"--target={target}", *shown, sources=sources).splitlines():
        depth, name, version = line.split()[:3]
        crate = crates[name, version.removeprefix("v")]
        above[int(depth) :] = [crate]
        uses.setdefault(crate, set())
        if len(above) > 1:
            uses[above[-2]].add(crate)
    return uses


def notices() -> str:
    """Return the copyright notices of all crates of others, by the terms of their licences."""
    crates = {crate for package, targets in TARGETS.items() for target in targets for crate in linked(package, target)}
    holders: dict[str, list[str]] = {}
    for crate in sorted(crates):
        if not crate.folder.is_relative_to(ROOT):
            name = "LICENSE-MIT" if "MIT" in crate.licence else "LICENSE"
            text = (crate.folder / name).read_text(encoding="utf-8")
            start = TERMS.search(text)
            if start is None:
                raise SystemExit(f"{crate.name}: read its licence, {crate.licence}, and add its first words to TERMS")
            holder = textwrap.indent(text[: start.start()].strip(), "    ")
            terms = re.sub(r"\s+", " ", text[start.start() :].strip())
            holders.setdefault(terms, []).append(f"{crate.name}\n{holder}".strip())
    parts = [HEAD]
    for terms, of in holders.items():
        parts += ["\n".join(of) + "\n", textwrap.fill(terms, 120) + "\n"]
    return "\n".join(parts)


def inventory(target: str, sources: Path, seconds: int) -> str:
    """Return the inventory (CycloneDX) of a wheel for a target, made so many seconds after the beginning of 1970."""
    uses = linked(MODULE, target, sources)
    module, *crates = uses
    names = {crate: f"pkg:cargo/{crate.name}@{crate.version}" for crate in crates}
    # The distribution stands for the native module; its index writes 0.1.0-rc.1 as 0.1.0rc1.
    version = Version(module.version).pep440
    project = tomllib.loads((sources / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    package = module._replace(name=project["name"], version=version, licence=project["license"])
    names[module] = names[package] = f"pkg:pypi/{package.name}@{package.version}"
    locked = tomllib.loads((sources / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    sums = {(one["name"], one["version"]): one["checksum"] for one in locked if "checksum" in one}

    def component(crate: Crate) -> dict[str, object]:
        checksum = sums.get((crate.name, crate.version))
        hashes = {"hashes": [{"alg": "SHA-256", "content": checksum}]} if checksum else {}
        described = {"type": "library", "bom-ref": names[crate], "name": crate.name, "version": crate.version}
        licences = [{"expression": crate.licence}]
        return {**described, "scope": "required", **hashes, "licenses": licences, "purl": names[crate]}

    content = {
        "metadata": {"timestamp": datetime.fromtimestamp(seconds, UTC).isoformat(), "component": component(package)},
        "components": [component(crate) for crate in sorted(crates)],
        "dependencies": [
            {"ref": names[crate], "dependsOn": sorted(names[used] for used in uses[crate])} for crate in sorted(uses)
        ],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([target, content]))
    document = {"bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{serial}", "version": 1}
    return json.dumps(document | content, indent=2) + "\n"


if __name__ == "__main__":
    NOTICES.write_text(notices(), encoding="utf-8")
