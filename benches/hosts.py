"""What integrations say of the libraries that they serve, their hosts: the table ``tool.dpnoise`` of pyproject.toml.

An integration in Rust has it in Cargo.toml, as ``package.metadata.dpnoise``. The site is built from it without dpnoise,
so nothing here imports that.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parents[1] / "integrations"


class Host(NamedTuple):
    """A library whose users get the noise of dpnoise by an integration."""

    folder: Path
    title: str
    """The name of the host in prose."""
    package: str
    """The name by which pip knows the host."""
    tested: str
    """The version of the host that is tested, which its page names."""
    passed: str
    """How many of the host's own tests pass, as the table of integrations says it."""
    page: str = "README.md"
    """The page about it, in the folder. An integration with several hosts has one for each."""
    module: str = ""
    """What programs import, if it is not the package."""
    suite: dict[str, Any] | None = None
    """The host's own tests: see integrations/host_suite.py."""

    @property
    def name(self) -> str:
        """The name of its pages on the site."""
        return self.folder.name if self.page == "README.md" else Path(self.page).stem

    @property
    def imported(self) -> str:
        """What programs import."""
        return self.module or f"dpnoise_{self.folder.name}"


@cache
def project(folder: Path) -> dict[str, Any]:
    """Read the pyproject.toml of an integration."""
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def hosts(folder: Path) -> list[dict[str, Any]]:
    """Return what an integration says of each host."""
    found: list[dict[str, Any]] = project(folder).get("tool", {}).get("dpnoise", {}).get("hosts", [])
    if not found:
        raise ValueError(f"{folder}/pyproject.toml has no [[tool.dpnoise.hosts]]: docs/adding_an_integration.md")
    return found


FOLDERS = sorted(path.parent for path in FOLDER.glob("*/pyproject.toml"))
HOSTS = sorted(
    (Host(folder, **host) for folder in FOLDERS for host in hosts(folder)), key=lambda host: host.title.lower()
)
CRATES = [
    Host(path.parent, **tomllib.loads(path.read_text(encoding="utf-8"))["package"]["metadata"]["dpnoise"])
    for path in sorted(FOLDER.glob("*/Cargo.toml"))
]
LIBRARIES = {
    name: given for folder in FOLDERS for name, given in project(folder)["tool"]["dpnoise"].get("libraries", {}).items()
}
"""Whether libraries whose noise only the benchmarks of an integration time are exact and secure, as in `libraries`."""
