from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex

from dpnoise import _native
from dpnoise._types import Integer


class ClientMemo:
    """What people's devices keep between reports: a secret of 32 bytes for each person, and what questions it answered.

    Make one by `generate`: of one person on a device, of many people in a simulation. All permanent randomness of a
    person, such as the permanent answer to a value, is derived from the secret whenever it is needed. So a person who
    is asked again gives the same permanent answers, in every process and on every machine, and no answer is stored.

    With another randomiser the same person would give new permanent answers, which spends epsilon again. So a memo
    keeps in mind with which one its people answered each question, and refuses another: store it again after the first
    report on a question.

    The secrets never change. ``memo[i]`` and ``memo[i:j]`` are memos of some of its people, and what one of them
    answers all have answered. Two memos are equal if their secrets are; the time to compare them depends only on their
    lengths. Their repr does not show secrets.

    Warnings
    --------
    Keep a memo as secret as the values. Whoever has the secret and the reports can undo the permanent round, and knows
    the value almost as if it had been sent. Do not lose it: a new memo gives a person new permanent answers, which
    spends the permanent epsilon again.

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
    def generate(cls, n: Integer = 1) -> ClientMemo:
        """Draw secrets for people who have none yet.

        Parameters
        ----------
        n : int, default 1
            The number of people, from 0 to 2**64 - 1.

        Returns
        -------
        ClientMemo
            The memo of these people.
        """
        return cls._of(_native.LocalMemo.generate(n))

    @classmethod
    def from_bytes(cls, memo: bytes) -> ClientMemo:
        """Read the result of `to_bytes`.

        Parameters
        ----------
        memo : bytes
            A whole memo, as `to_bytes` gave it.

        Returns
        -------
        ClientMemo
            The memo of the same people.

        Raises
        ------
        ParameterError
            When the bytes are truncated, damaged (CRC-32C), of another version, or not a memo; the message says which.
        """
        if not isinstance(memo, bytes):
            raise TypeError(f"memo must be bytes, got {type(memo).__name__}")
        return cls._of(_native.LocalMemo.from_bytes(memo))

    @classmethod
    def _of(cls, secrets: _native.LocalMemo) -> ClientMemo:
        memo = cls.__new__(cls)
        memo._secrets = secrets
        return memo

    def to_bytes(self) -> bytes:
        """Return the memo as bytes: secrets, how questions were answered, and a checksum; as secret as the memo."""
        return self._secrets.to_bytes()

    def __len__(self) -> int:
        """Return the number of people."""
        return len(self._secrets)

    def __getitem__(self, index: SupportsIndex | slice) -> ClientMemo:
        """Return the memo of one person, or of several."""
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

    __hash__ = None  # type: ignore[assignment] # a hash would reveal whether two secrets are equal

    def __repr__(self) -> str:
        """Show the number of people, not their secrets."""
        return f"<ClientMemo of {len(self)} {'person' if len(self) == 1 else 'people'}>"

    def __reduce__(self) -> tuple[Callable[[bytes], ClientMemo], tuple[Any, ...]]:
        """Pickle the bytes, secrets included."""
        return ClientMemo.from_bytes, (self.to_bytes(),)
