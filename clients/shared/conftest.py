"""One process for each language."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from clients.shared.cases import part_of
from clients.shared.runners import LANGUAGES, REQUIRED, Runner


@pytest.fixture(scope="session", params=LANGUAGES)
def ask(request: pytest.FixtureRequest) -> Iterator[Callable[[str], str]]:
    """Return the function that has a line answered, for each language."""
    language = LANGUAGES[request.param]
    if language.missing is not None:
        (pytest.fail if REQUIRED else pytest.skip)(language.missing)
    runner = Runner(language.command)

    def ask(line: str) -> str:
        if part_of(line) not in language.parts:
            pytest.skip(f"{language.name}: the client has no part '{part_of(line)}'")
        return runner.answer(line)

    yield ask
    runner.close()
