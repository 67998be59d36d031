"""JSON that anybody may have written."""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

_DEEPEST: Final = 64


def read_json(content: str | bytes) -> Any:
    """Read a JSON document; whatever is wrong with it raises a ValueError.

    Refused is also what programs read differently: a name that occurs twice in an object, and NaN and infinities, which
    are not JSON. Deep nesting is refused here, and not where a recursive function meets it.
    """
    try:
        # json.loads guesses the encoding of bytes, and lets lone surrogates pass.
        text = content if isinstance(content, str) else content.decode()
        document = json.loads(text, parse_constant=_refused, object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level = [document]
    for _ in range(_DEEPEST):
        inner = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
        if not level:
            return document
    raise ValueError("it is nested too deeply")


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"it has the number {constant}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("it has a name twice")
    return found
