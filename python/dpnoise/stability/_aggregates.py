"""Aggregates: private functions of the blocks' answers, any one of which may be arbitrary."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpnoise._arrays import array_of
from dpnoise._columns import plain
from dpnoise._errors import ParameterError
from dpnoise._numbers import real, real_up, share_of
from dpnoise._silence import without_warnings
from dpnoise._types import Rng
from dpnoise.mechanisms import DiscreteLaplace, Mechanism, ReportNoisyMax
from dpnoise.queries import Mean, Median
from dpnoise.sensitivity import check_bounds
from dpnoise.stability._distances import mode
from dpnoise.stability._mechanism import Attempt, StableMechanism, released, stability_test

NO_ANSWER: Final = "f had no answer more often than any one answer"

# alpha is rounded to the nearest fraction with at most this denominator, so that 0.29 of 100 blocks is 29.
_DENOMINATOR = 10**6

# The deepest nesting of tuples and sets in an outcome; Python's own recursion limit would depend on the caller.
_LEVELS: Final = 32


class Aggregate:
    """A private function of answers; neighbours differ in one answer."""

    epsilon: float
    delta = 0.0
    given: Mapping[str, Any]
    """The other parameters of the aggregate, in hashable form."""

    def check(self, blocks: int) -> None:
        """Refuse what cannot aggregate so many answers, before a block is asked."""

    @abstractmethod
    def read(self, answer: Any) -> Any:
        """Convert a block's answer, or raise: then the block counts as one without an answer."""

    @abstractmethod
    def release(self, answers: Iterable[Any], rng: Rng) -> Attempt:
        """Release the aggregate of what was read; None stands for a block without an answer."""


# --- numbers -------------------------------------------------------------------------------------------------------


def _trimmed(ordered: NDArray[np.float64], cut: int) -> NDArray[np.float64]:
    return ordered[cut : len(ordered) - cut]


def _once(blocks: int, cut: int) -> int:
    return 1


def _winsorized(ordered: NDArray[np.float64], cut: int) -> NDArray[np.float64]:
    return np.clip(ordered, ordered[cut], ordered[-1 - cut])


def _with_those_moved(blocks: int, cut: int) -> int:
    return cut + 1 if blocks > 2 * cut + 1 else blocks  # if only the median is kept, all others are moved to it


class _Average(NamedTuple):
    """A query on the sorted answers after ``cut`` of them are trimmed at each end."""

    query: type[Mean | Median]
    trim: Callable[[NDArray[np.float64], int], NDArray[np.float64]] = _trimmed
    copies: Callable[[int, int], int] = _once
    """How many of the remaining answers, given (blocks, cut), may be copies of one: the factor on the sensitivity."""


class Numbers(Aggregate):
    """Averages of numbers within bounds, each coordinate with its share of epsilon."""

    def __init__(
        self, average: _Average, *, epsilon: float, blocks: int, default: Any, bounds: Any, alpha: float | None = None
    ) -> None:
        several = _is_sequence(bounds) and len(bounds) > 0 and _is_sequence(bounds[0])
        pairs = [check_bounds(pair) for pair in (bounds if several else [bounds])]
        self._average = average
        self._cut = 0 if alpha is None else _cut(alpha, blocks)
        self.epsilon = DiscreteLaplace(epsilon=epsilon).epsilon
        share = share_of(self.epsilon, len(pairs) * average.copies(blocks, self._cut))
        self._queries = [average.query(bounds=pair, epsilon=share, relation="substitute") for pair in pairs]
        self._shape = (len(pairs),) if several else ()
        middle = np.reshape([lower / 2 + upper / 2 for lower, upper in pairs], self._shape)
        self._default = middle if default is None else _within(default, pairs, self._shape)
        self.given = {
            "bounds": tuple(pairs) if several else pairs[0],
            "alpha": alpha,
            "default": None if default is None else tuple(self._default) if several else float(self._default),
        }

    def read(self, answer: Any) -> NDArray[np.float64]:
        """Accept finite numbers of the right shape."""
        return _finite(answer, self._shape)

    def release(self, answers: Iterable[Any], rng: Rng) -> Attempt:
        read = np.array([self._default if answer is None else answer for answer in answers])
        columns = read.reshape(len(read), len(self._queries)).T
        averages = [
            query.release(self._average.trim(np.sort(np.clip(column, *query.bounds)), self._cut), rng=rng)
            for query, column in zip(self._queries, columns, strict=True)
        ]
        return Attempt(np.array(averages) if self._shape else averages[0])


def _is_sequence(bounds: Any) -> bool:
    return isinstance(bounds, Sequence) or (isinstance(bounds, np.ndarray) and bounds.ndim > 0)


def _cut(alpha: float, blocks: int) -> int:
    part = real(alpha, "alpha")
    cut = int(Fraction(part).limit_denominator(_DENOMINATOR) * blocks) if 0 < part < 0.5 else 0
    cut = min(cut, (blocks - 1) // 2)  # alpha may have been rounded up to 1/2
    if cut < 1:
        raise ParameterError(
            f"alpha must be below 1/2 and trim at least one of {blocks} blocks at each end, got {alpha!r}"
        )
    return cut


def _finite(answer: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    numbers = array_of(answer, "answer")
    if numbers.dtype.kind not in "biufO" or numbers.shape != shape:
        raise TypeError
    found = numbers.astype(np.float64)
    if not np.isfinite(found).all():
        raise ValueError
    return found


def _within(default: Any, pairs: list[tuple[float, float]], shape: tuple[int, ...]) -> NDArray[np.float64]:
    try:
        found = _finite(default, shape)
    except (TypeError, ValueError):
        found = np.full(shape, np.nan)
    lower, upper = np.transpose(pairs).reshape(2, *shape)
    if not np.all((lower <= found) & (found <= upper)):
        raise ParameterError(f"default must be within the bounds {pairs}, of the shape {shape}, got {default!r}")
    return found


# --- outcomes ------------------------------------------------------------------------------------------------------


class NoisyMax(Aggregate):
    """The candidate with the most votes, by report noisy max."""

    def __init__(self, *, epsilon: float, blocks: int, default: Any, candidates: Sequence[Any]) -> None:
        # One block moves its vote from one candidate to another: one count falls by 1, another rises by 1.
        self._choice = ReportNoisyMax(epsilon=epsilon, sensitivity=1.0)
        self.epsilon = self._choice.epsilon
        try:
            self._candidates = tuple(candidates)
            self._index = {candidate: i for i, candidate in enumerate(self._candidates)}
            known = default is None or default in self._index
        except TypeError:
            raise TypeError(
                "candidates must be a sequence, and its items and default hashable, such as texts, numbers or tuples"
            ) from None
        if not 0 < len(self._index) == len(self._candidates):
            raise ParameterError(
                "candidates must have at least one item and no duplicates, got "
                f"{len(self._candidates)} items, {len(self._index)} of them different"
            )
        if not known:
            raise ParameterError(f"default must be None or one of the candidates, got {default!r}")
        self._default = None if default is None else self._index[default]
        self.given = {"candidates": self._candidates, "default": default}

    def read(self, answer: Any) -> int:
        return self._index[answer]

    def release(self, answers: Iterable[Any], rng: Rng) -> Attempt:
        votes = [self._default if answer is None else answer for answer in answers]
        counts = np.bincount([vote for vote in votes if vote is not None], minlength=len(self._candidates))
        return Attempt(self._choice.release(counts, candidates=self._candidates, rng=rng))


class Mode(Aggregate):
    """The commonest answer, if its lead is stable."""

    def __init__(self, *, epsilon: float, blocks: int, default: Any, delta: float) -> None:
        self._test = stability_test(epsilon, delta)
        self.epsilon, self.delta = self._test.epsilon, self._test.delta
        self._default = None if default is None else self.read(default)
        self.given = {"default": self._default}

    def read(self, answer: Any) -> Any:
        """Accept texts, bytes, finite numbers, booleans, and sequences and sets of them, as Python's own types."""
        found = _outcome(answer)
        try:
            _text(found)
        except ValueError:  # the integer is too long for repr
            raise ParameterError(
                "default must have no integers with more digits than Python writes, see sys.get_int_max_str_digits()"
            ) from None
        return found

    def release(self, answers: Iterable[Any], rng: Rng) -> Attempt:
        read = [self._default if answer is None else answer for answer in answers]
        by_text = {_text(answer): answer for answer in read}
        text, distance, _ = mode(list(map(_text, read)), "substitute")
        value = None if by_text[text] is None else self.read(by_text[text])  # again: other processes order sets anew
        found = released(value, distance, self._test, rng)
        return Attempt(None, NO_ANSWER) if found.refusal is None and value is None else found


def _outcome(answer: Any, levels: int = _LEVELS) -> Any:
    if isinstance(answer, np.generic | float):
        answer = plain(answer)  # whole numbers become ints, so that 1.0 is 1
    if isinstance(answer, tuple | list | frozenset | set):
        if levels == 0:
            raise ParameterError(f"default must have tuples and sets nested at most {_LEVELS} deep")
        items = [_outcome(item, levels - 1) for item in answer]
        # Sets are built in a canonical order, since the order of insertion can show in a set.
        return tuple(items) if isinstance(answer, tuple | list) else frozenset(sorted(items, key=_text))
    if type(answer) not in (str, bytes, bool, int, float) or (type(answer) is float and not math.isfinite(answer)):
        raise TypeError(
            "default must be a text, bytes, a finite number, a boolean, or a tuple or set of these, got "
            f"{type(answer).__name__}"
        )
    return answer


def _text(answer: Any) -> str:
    """Map each answer to a text of its own, also 1 and True; of equally common answers the first text is the mode."""
    if isinstance(answer, tuple):
        return f"({', '.join(map(_text, answer))})"
    if isinstance(answer, frozenset):
        return f"{{{', '.join(sorted(map(_text, answer)))}}}"
    return repr(answer)


# --- any column ----------------------------------------------------------------------------------------------------


class Column(Aggregate):
    """What a query or mechanism releases of the answers, for which a replaced answer is a replaced row."""

    def __init__(self, mechanism: Mechanism, default: Any) -> None:
        if mechanism.relation != "substitute":
            raise ParameterError(
                'aggregate must be a query or mechanism for the relation "substitute", since one answer is replaced by '
                f"another, got {mechanism!r} for {mechanism.relation!r}"
            )
        self._mechanism = mechanism
        self._default = _entry(default)
        cost = mechanism.cost  # which a subclass may change
        self.epsilon, self.delta = real_up(cost.epsilon, "epsilon"), real_up(cost.delta, "delta")
        self.given = {"default": self._default}

    def check(self, blocks: int) -> None:
        try:
            with without_warnings():
                self._mechanism._taken([self._default] * blocks)
        except (TypeError, ValueError) as error:
            raise ParameterError(
                f"aggregate must take {blocks} answers such as the default {self._default!r}: {error}"
            ) from None

    def read(self, answer: Any) -> Any:
        """Accept the kind of the default: a column of one kind has no error that depends on several answers."""
        found = float(_finite(answer, ())) if isinstance(self._default, float) else plain(answer)
        if type(found) is not type(self._default):
            raise TypeError
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {"_default": self._default}  # what `read` needs in other processes

    def release(self, answers: Iterable[Any], rng: Rng) -> Attempt:
        column = [self._default if answer is None else answer for answer in answers]
        with without_warnings():  # a delta is compared with the number of rows, not with that of blocks
            if isinstance(self._mechanism, StableMechanism):
                return self._mechanism.attempt(column, rng=rng)
            return Attempt(self._mechanism.release(column, rng=rng))


def _entry(default: Any) -> Any:
    found = plain(default)
    if type(found) in (str, bytes, bool):
        return found
    try:
        return float(_finite(default, ()))
    except (OverflowError, TypeError, ValueError):
        raise ParameterError(
            "default must be a finite number, a text, bytes or a boolean for a query or mechanism, since answers of "
            f"another kind count as the default, got {default!r}"
        ) from None


# --- the table -----------------------------------------------------------------------------------------------------


class _Entry(NamedTuple):
    make: Callable[..., Aggregate]
    options: tuple[str, ...]
    """The options that it requires beside epsilon; all others are refused."""


AGGREGATES: Final[Mapping[str, _Entry]] = {
    "mean": _Entry(partial(Numbers, _Average(Mean)), ("bounds",)),
    "trimmed_mean": _Entry(partial(Numbers, _Average(Mean)), ("bounds", "alpha")),
    "winsorized_mean": _Entry(partial(Numbers, _Average(Mean, _winsorized, _with_those_moved)), ("bounds", "alpha")),
    "median": _Entry(partial(Numbers, _Average(Median)), ("bounds",)),
    "noisy_max": _Entry(NoisyMax, ("candidates",)),
    "mode": _Entry(Mode, ("delta",)),
}


def aggregate_of(named: str | Mechanism, *, blocks: int, default: Any, options: Mapping[str, Any]) -> Aggregate:
    if not isinstance(named, Mechanism) and (not isinstance(named, str) or named not in AGGREGATES):
        raise ParameterError(f"aggregate must be a query, a mechanism or one of {', '.join(AGGREGATES)}, got {named!r}")
    needed = ("epsilon", *AGGREGATES[named].options) if isinstance(named, str) else ()
    given = {option: value for option, value in options.items() if value is not None}
    for option in options:
        if (option in given) != (option in needed):
            problem = "must be None for" if option in given else "must be given for"
            raise ParameterError(f"{option} {problem} the aggregate {named!r}")
    if isinstance(named, str):
        return AGGREGATES[named].make(blocks=blocks, default=default, **given)
    return Column(named, default)
