"""The table of the families of protocols, as the core has it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

from dpnoise.local._protocol import Protocol
from dpnoise.local._specification import CLASSES, ROWS


class Parameter(NamedTuple):
    """A parameter of a protocol.

    Attributes
    ----------
    name : str
        The name, in all languages.
    kind : type
        ``int``, ``float`` or ``str``.
    required : bool
        Whether it must be given. In Python a domain may stand in for ``k``.
    default : int, str or None
        What it is when it is not given; None where the most accurate value is chosen.
    example : int, float or str
        A small value that is allowed together with the examples of the other parameters.
    help : str
        What it means: a phrase of one line.
    """

    name: str
    kind: type
    required: bool
    default: int | str | None
    example: float | str
    help: str


class Family(NamedTuple):
    """What all protocols of a class have in common, for programs that offer a choice of protocols.

    Attributes
    ----------
    name : str
        The name in specifications.
    abbreviation : str
        The abbreviation of the literature.
    code : int
        The number in messages.
    keeps_memo : bool
        Whether people keep a `ClientMemo` from one report to the next.
    parameters : tuple of Parameter
        The parameters of the class.
    server_cost : str or None
        The order of the collector's work, as in `Candidate`, where `plan` compares the family.
    """

    name: str
    abbreviation: str
    code: int
    keeps_memo: bool
    parameters: tuple[Parameter, ...]
    server_cost: str | None

    @property
    def protocol(self) -> type[Protocol]:
        """The class of its protocols."""
        return cast(type[Protocol], CLASSES[self.name])

    def is_named(self, text: str) -> bool:
        """Say whether a text is the abbreviation, the name or the name of the class, in upper or lower case.

        Parameters
        ----------
        text : str
            The text, with or without hyphens and underscores.

        Examples
        --------
        >>> from dpnoise import local
        >>> local.FAMILIES["subset_selection"].is_named("SubsetSelection")
        True
        """
        names = (self.abbreviation, self.name, self.protocol.__name__)
        return _letters(text) in map(_letters, names)

    def example(self, **parameters: Any) -> Protocol:
        """Make a small protocol of the family.

        Parameters
        ----------
        **parameters : int, float or str
            Parameters of the class, by their names, that replace parameters of the example.

        Returns
        -------
        Protocol
            A protocol of the family.

        Examples
        --------
        >>> from dpnoise import local
        >>> local.FAMILIES["local_hashing"].example(epsilon=1.0)
        LocalHashing(k=4, epsilon=1.0, g=2)
        """
        return self.protocol(**{parameter.name: parameter.example for parameter in self.parameters} | parameters)


def _letters(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


_ALL: Final = [Family(*row)._replace(parameters=tuple(Parameter(*one) for one in row[4])) for row in ROWS]

FAMILIES: Final[Mapping[str, Family]] = MappingProxyType({family.name: family for family in _ALL})
"""All families, by their names in specifications."""
