r"""Print the targets of make that a change must pass, one a line, for the files on standard input that it touches.

    git diff --name-only --no-renames main | python tools/ci/touched.py | xargs --delimiter='\n' .ci/run

These are the checks of the house, and those of each tenant that has such a file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOUSE = ["lint", "test", "test-cli", "test-tools", "docs"]


def target_of(path: str) -> str | None:
    """Return the target of the tenant that a file belongs to; what several tenants rest on belongs to all of these."""
    folder, name, *_ = *Path(path).parts, ""
    alone = (ROOT / folder / name / "Makefile").is_file()
    if path.startswith(("python/dpnoise/engines/", "tests/engines/")):
        return "test-engines"
    if path == "docs/proofs/proved.md":  # it lists the theorems that are to be printed
        return "prove"
    match folder:
        case "integrations":
            return f"-C integrations/{name} gate" if alone else "test-integrations"
        case "clients":
            return f"-C clients/{name} test" if alone and name != "c" else "test-clients"
        case "proofs":
            return "prove"
    return None


def targets(paths: Iterable[str]) -> list[str]:
    """Return the targets for some files, each once."""
    tenants = {target for path in paths if (target := target_of(path))}
    return HOUSE + sorted(tenants)


if __name__ == "__main__":
    print(*targets(sys.stdin.read().splitlines()), sep="\n")
