"""Temporary replacement of attributes of a host."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

Replacements = Iterable[tuple[Any, str, Any]]
"""The owner, the name and the new value of each attribute to replace."""


class Patch:
    """A replacement of attributes that lasts while any thread needs it.

    The replacements are computed at the first use, so the host is imported by then.
    """

    def __init__(self, replacements: Callable[[], Replacements]) -> None:
        self._replacements = replacements
        self._lock = threading.Lock()
        self._users = 0
        self._originals: list[tuple[Any, str, Any]] = []

    @contextmanager
    def within(self) -> Iterator[None]:
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        with self._lock:
            if self._users == 0:
                for owner, name, replacement in list(self._replacements()):
                    self._originals.append((owner, name, owner.__dict__.get(name)))
                    setattr(owner, name, replacement)
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                while self._originals:
                    owner, name, original = self._originals.pop()
                    if original is None:  # inherited
                        delattr(owner, name)
                    else:
                        setattr(owner, name, original)
