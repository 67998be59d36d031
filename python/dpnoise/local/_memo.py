"""What clients of longitudinal protocols keep between reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex

from dpnoise import _native


class ClientMemo:
    """What people's devices keep between reports: a secret of 32 bytes each, and nothing else.

    Make one by `generate`; a device has one of one person, a simulation one of many people. Everything about a person
    that has to stay the same for ever, such as the permanent answer to a value, is derived from the secret whenever it
    is needed. So whoever is asked again gives the same permanent answers, in every process and on every machine, and no
    answer is stored.

    A memo is immutable; ``memo[i]`` and ``memo[i:j]`` are memos of some of its people. It does not show its secrets,
    and two are compared in a time that depends on their length alone.

    Warnings
    --------
    Keep it as secret as the values. Whoever has the secret and the reports can undo the permanent round, and knows the
    value almost as if it had been sent. And keep it: a person whose memo is lost gets new permanent answers with the
    next one, which spends the permanent epsilon again.

    Examples
    --------
    >>> from dpnoise import local
    >>> memo = local.ClientMemo.generate()
    >>> local.ClientMemo.from_bytes(memo.to_bytes()) == memo
    True
    >>> memo
    <ClientMemo of 1 person>
    """

    __slots__ = ("_secrets",)

    _secrets: _native.LocalMemo

    def __init__(self) -> None:
        raise TypeError("make one by ClientMemo.generate() or ClientMemo.from_bytes()")

    @classmethod
    def generate(cls, n: int = 1) -> ClientMemo:
        """Draw the secrets of people who have none yet.

        Parameters
        ----------
        n : int
            How many people.

        Returns
        -------
        ClientMemo

        Raises
        ------
        ParameterError
            When ``n`` is negative, or their secrets do not fit the memory.
        RandomnessError
            When the operating system has no randomness to give.
        """
        return cls._of(_native.LocalMemo.generate(n))

    @classmethod
    def from_bytes(cls, memo: bytes) -> ClientMemo:
        """Read back what `to_bytes` gave.

        Parameters
        ----------
        memo : bytes
            A whole memo.

        Returns
        -------
        ClientMemo

        Raises
        ------
        ParameterError
            When the memo is truncated, damaged (CRC-32C), of another version, or none; the message says which.
        """
        return cls._of(_native.LocalMemo.from_bytes(memo))

    @classmethod
    def _of(cls, secrets: _native.LocalMemo) -> ClientMemo:
        memo = cls.__new__(cls)
        memo._secrets = secrets
        return memo

    def to_bytes(self) -> bytes:
        """Give the memo as bytes, which are as secret as it is: the secrets and a checksum.

        Returns
        -------
        bytes
        """
        return self._secrets.to_bytes()

    def __len__(self) -> int:
        """Give the number of people."""
        return len(self._secrets)

    def __getitem__(self, index: SupportsIndex | slice) -> ClientMemo:
        """Give the memo of one person, or of several."""
        if isinstance(index, slice):
            people = range(len(self))[index]
            first, step = (people[0], people.step) if len(people) > 1 else (people[0] if people else 0, 1)
            return self._of(self._secrets.select(first, step, len(people)))
        n = len(self)
        try:
            person = range(n)[index]
        except IndexError:
            raise IndexError(f"index must be from {-n} to {n - 1}, for a memo of {n} people, got {index}") from None
        return self._of(self._secrets.select(person, 1, 1))

    def __eq__(self, other: object) -> bool:
        """Compare the secrets, in a time that does not depend on them."""
        return isinstance(other, ClientMemo) and self._secrets.equals(other._secrets)

    __hash__ = None  # type: ignore[assignment] # a hash would show whether two secrets are the same

    def __repr__(self) -> str:
        """Show how many people it is of, not their secrets."""
        return f"<ClientMemo of {len(self)} {'person' if len(self) == 1 else 'people'}>"

    def __reduce__(self) -> tuple[Callable[[bytes], ClientMemo], tuple[Any, ...]]:
        """Pickle the bytes, secrets included."""
        return ClientMemo.from_bytes, (self.to_bytes(),)
