"""Domains: the public lists of labels that the values 0, 1, ..., k - 1 stand for.

Labels are looked up in tables, hash tables and sorted arrays, here and in the libraries of the containers: not in
constant time. No message shows a value that is looked up, or says which one is meant; labels are public and are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise._arrays import listed, vector_of_booleans, vector_of_integers
from dpnoise._columns import labels_of, places_of_texts
from dpnoise._errors import ParameterError
from dpnoise._types import Labels

_KINDS: Final = {str: "texts", int: "integers", bool: "booleans"}

_SHOWN: Final = 20


def codes(values: Any, domain: Domain | None) -> NDArray[np.int64]:
    """Copy people's labels as their numbers, or numbers if there is no domain, to a new int64 array."""
    given = listed(values)
    return vector_of_integers(given) if domain is None else domain.numbers_of(given)


class Domain(tuple[Any, ...]):
    """The labels in their order: all str, all int or all bool, and all different.

    Parameters
    ----------
    labels : sequence or column of labels
        Two or more. A pandas Categorical or CategoricalDtype, a polars Enum and an Arrow array with a dictionary stand
        for their categories, whatever values they hold; any other column for its values.
    name : str
        The name of the domain in messages.
    """

    def __new__(cls, labels: Labels, name: str = "domain") -> Domain:
        if type(labels) is cls:
            return labels
        domain = super().__new__(cls, map(_plain, labels_of(labels, name)))
        kinds = set(map(type, domain))
        if len(kinds) > 1 or not kinds <= _KINDS.keys():
            found = " and ".join(sorted(kind.__name__ for kind in kinds))
            raise TypeError(f"{name} must be of texts, of integers or of booleans, got {found}")
        if str in kinds and any(label != label.encode(errors="replace").decode() for label in domain):
            raise ParameterError(f"{name} must be of texts that UTF-8 can hold, got {listing(domain)}")
        if int in kinds and not -(2**63) <= min(domain) <= max(domain) < 2**63:
            raise ParameterError(f"{name} must be of integers that int64 can hold, got {listing(domain)}")
        if len(domain) < 2:
            raise ParameterError(f"{name} must have at least 2 values, got {len(domain)}")
        if len(domain._positions) < len(domain):
            repeated = [label for label, count in Counter(domain).items() if count > 1]
            raise ParameterError(f"a value of {name} must occur only once, got more of {listing(repeated)}")
        return domain

    @property
    def kind(self) -> type:
        return type(self[0])

    @property
    def names(self) -> list[str]:
        """The labels as texts, which files have: integers in decimal digits, and "false" and "true"."""
        return list(self) if self.kind is str else [str(label).lower() for label in self]

    def position(self, label: Any, name: str) -> int:
        """Return the number of a label, which is public and is shown if it is unknown."""
        given = _plain(label)
        found = self._positions.get(given) if type(given) is self.kind else None
        if found is None:
            raise ParameterError(f"{name} must be a label of the domain {self!r}, got {label!r}")
        return found

    def numbers_of(self, values: Any) -> NDArray[np.int64]:
        """Return the number of each person's label, in a list, an array or a column of any library."""
        found: NDArray[np.int64]
        if self.kind is bool:
            found = np.not_equal(vector_of_booleans(values), self[0]).astype(np.int64)
        elif self.kind is int:
            found = self._numbers_of_integers(values)
        else:
            found = places_of_texts(values, self._positions, "values")
        if found.min(initial=0) < 0:
            raise ParameterError(
                f"values must all be in the domain {self!r}; which value is not, and where, is private and not shown"
            )
        return found

    def _numbers_of_integers(self, values: Any) -> NDArray[np.int64]:
        if isinstance(values, list | tuple) and not {bool, np.bool_}.isdisjoint(map(type, values)):
            raise TypeError("values must be integers, as the labels of the domain are, got bool")
        given = vector_of_integers(values, copy=False)
        labels, numbers = self._sorted
        wrapped = given.astype(np.int64, copy=False)
        if self._table is None:
            places = np.minimum(np.searchsorted(labels, wrapped), len(self) - 1)
            found = np.where(labels[places] == wrapped, numbers[places], -1)
        else:
            # Below all labels the difference wraps to one that is beyond all labels.
            places = np.minimum((wrapped - labels[0]).view(np.uint64), len(self._table) - 1)
            found = self._table.take(places.view(np.int64), mode="clip")
        if given.dtype == np.uint64:
            found[wrapped < 0] = -1
        return found

    @cached_property
    def _table(self) -> NDArray[np.int64] | None:
        """The numbers of the integers from the first label to the last, and a -1 after them; None if they are many."""
        labels, numbers = self._sorted
        width = int(labels[-1]) - int(labels[0])
        if width > max(1 << 12, 8 * len(self)):
            return None
        table = np.full(width + 2, -1, np.int64)
        table[labels - labels[0]] = numbers
        return table

    @cached_property
    def _positions(self) -> dict[Any, int]:
        return {label: number for number, label in enumerate(self)}

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        labels = np.array(self, np.int64)
        numbers = np.argsort(labels)
        return labels[numbers], numbers

    def __repr__(self) -> str:
        return f"({listing(self)})"

    def __reduce__(self) -> tuple[type[Domain], tuple[tuple[Any, ...]]]:
        return Domain, (tuple(self),)


def listing(values: Sequence[Any]) -> str:
    """Return values in one line, quoted; of many only the first twenty."""
    shown = ", ".join(map(repr, values[:_SHOWN]))
    return shown if len(values) <= _SHOWN else f"{shown}, ... ({len(values)} in all)"


def _plain(label: Any) -> Any:
    """Return a label of a library's own type as a built-in type."""
    if isinstance(label, str):
        return str.__str__(label)
    return label.item() if isinstance(label, np.integer | np.bool_) else label
