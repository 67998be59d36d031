"""One process for each language."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.runners import LANGUAGES, REQUIRED, Runner


@pytest.fixture(scope="session", params=LANGUAGES)
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    """Return the runner of each language."""
    language = LANGUAGES[request.param]
    if language.missing is not None:
        (pytest.fail if language.name in REQUIRED else pytest.skip)(language.missing)
    started = Runner(language.command)
    yield started
    started.close()
