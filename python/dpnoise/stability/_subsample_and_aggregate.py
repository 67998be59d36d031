from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpnoise import samplers
from dpnoise._display import progress
from dpnoise._numbers import integer
from dpnoise._processes import Died, in_processes
from dpnoise._silence import interruptible
from dpnoise._types import Integer, Number, Rng
from dpnoise.bit_generator import SecureBitGenerator
from dpnoise.mechanisms import Mechanism
from dpnoise.sensitivity import Bounds, Relation
from dpnoise.stability._aggregates import aggregate_of
from dpnoise.stability._functions import answer_of, check_importable, tried
from dpnoise.stability._mechanism import Attempt, Parameter, StableMechanism, warn_of_large
from dpnoise.stability._rows import Rows, held_rows

Replies = Generator[tuple[int, Any], None, None]


class SubsampleAndAggregate(StableMechanism):
    """A private aggregate of any function's answers on random blocks of rows.

    The rows are partitioned at random into blocks of equal size, give or take one; the function is called on each; and
    a private aggregate of the answers is released. A row is in one block, so it can change one answer, whatever the
    function does. The release is epsilon-differentially private, for "mode" (epsilon, delta)-differentially private,
    between data in which one row is replaced by another; the number of rows is public. With a query or mechanism as the
    aggregate it has the guarantee of that.

    Parameters
    ----------
    f : callable
        The function, called with a block of rows in random order, in the same kind of container as the data: a list for
        a tuple, a NumPy array for a tensor. Blocks of arrays, tables and columns are rebuilt from their own rows (see
        the notes). Its answer must depend on the block only: if it kept state between calls, one row could change the
        answers of several blocks. A global random generator is such a state, as in an estimator of scikit-learn with
        ``random_state=None``: give it a number, or a generator that ``f`` makes. The order of a set of texts, which
        differs between processes, is another.
    blocks : int
        The number of blocks, from 1 to the number of rows.
    aggregate : str, or query or mechanism for the relation "substitute"
        How the answers are aggregated.

        - "mean", "trimmed_mean" (without a part ``alpha`` of the answers at each end) and "winsorized_mean" (with these
          moved to the nearest remaining one): for numbers, clamped to ``bounds``, by additive noise.
        - "median": for numbers, clamped to ``bounds``, by the exponential mechanism.
        - "noisy_max": the commonest of the ``candidates``, by report noisy max.
        - "mode": the exact commonest answer, or None if the vote is too close. Needs ``delta``.
        - A query or mechanism of dpnoise that takes a column, such as a `Histogram` of ``relation="substitute"``: its
          release of the answers, a row each. Its own cost is that of the release. Needs ``default``.
    bounds : pair of float or sequence of d pairs, optional
        The smallest and the largest number, for aggregates of numbers only. With a sequence ``f`` returns ``d``
        numbers, and each coordinate is aggregated at epsilon / d. Never take them from the data.
    candidates : sequence, optional
        The possible answers of ``f``, for "noisy_max" only: public, hashable and all different.
    epsilon : float, optional
        The privacy parameter of a release: positive and finite. It must be given for an aggregate that is a name.
    delta : float, optional
        The privacy parameter of a release, for "mode" only: between 0 and 1, both excluded. Choose it much smaller than
        one over the number of rows.
    alpha : float, optional
        The part of the answers that is trimmed at each end, above 0 and below 1/2: rounded down to a number of answers,
        at least one. For the trimmed and the winsorized mean only.
    default : object, optional
        The value that counts as the answer of a block without one: a block on which ``f`` raises, or returns NaN, an
        infinity, another shape or no candidate. By default it is the middle of the bounds; for "noisy_max" and "mode",
        a vote for no outcome. For a query or mechanism, which must have one, it is a finite number, a text, bytes or a
        boolean, and answers of another kind than it count as it, too.
    processes : int, default 1
        The number of processes that call ``f``. With 1 it is this one; others are spawned, so that ``f`` must be a
        function that they can import, and a script needs ``if __name__ == "__main__":``. A process that ``f`` kills is
        replaced.

    Notes
    -----
    A dtype, the categories of a column, the dictionary of an Arrow array, the index of a frame and the length of the
    longest text depend on all rows, so one row could change all answers through them. Blocks of arrays, tables and
    columns are therefore rebuilt. All numbers and truth values are float64 (cast them in ``f`` if need be:
    ``block.astype(int)``), and missing ones are NaN, or null in polars and Arrow. Everything else is a plain text or
    object, and missing ones are None or null. A pandas block has a new index. Names of columns stay: they must be
    public. The items of a list stay as they are.

    Exceptions and warnings of ``f`` are not shown, since they depend on the data. What it prints, logs or writes, and
    the time that it takes, is not hidden. Try it on made-up data first, by `try_on`: if it always fails, there is no
    sign of that, and the release is close to the default.

    References
    ----------
    Nissim, Raskhodnikova and Smith (2007), "Smooth sensitivity and sampling in private data analysis", section 4; Smith
    (2011), "Privacy-preserving statistical estimation with optimal convergence rates"; Dwork and Roth (2014), "The
    algorithmic foundations of differential privacy", section 7.1.

    Examples
    --------
    >>> import numpy as np
    >>> from dpnoise import stability
    >>> heights = np.random.default_rng().normal(170, 10, 5000)
    >>> spread = stability.SubsampleAndAggregate(f=np.std, blocks=50, aggregate="mean", bounds=(0, 50), epsilon=1.0)
    >>> about_10 = spread.release(heights)
    """

    __slots__ = ("_aggregate",)

    _parameters = (
        "f",
        "blocks",
        "aggregate",
        "bounds",
        "candidates",
        "epsilon",
        "delta",
        "alpha",
        "default",
        "processes",
    )
    _reason = "the difference between the answers on blocks and the answer on all data is private"

    f: Any = Parameter()
    blocks: Any = Parameter()
    aggregate: Any = Parameter()
    bounds: Any = Parameter()
    candidates: Any = Parameter()
    alpha: Any = Parameter()
    default: Any = Parameter()
    processes: Any = Parameter()

    def __init__(
        self,
        *,
        f: Callable[[Any], Any],
        blocks: Integer,
        aggregate: Literal["mean", "trimmed_mean", "winsorized_mean", "median", "noisy_max", "mode"] | Mechanism,
        bounds: Bounds | Sequence[Bounds] | None = None,
        candidates: Sequence[Any] | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        alpha: Number | None = None,
        default: Any = None,
        processes: int = 1,
    ) -> None:
        if not callable(f):
            raise TypeError(f"f must be callable, got {type(f).__name__}")
        number = integer(blocks, "blocks", range(1, 2**63))
        workers = integer(processes, "processes", range(1, 2**15))
        options = {"epsilon": epsilon, "bounds": bounds, "alpha": alpha, "candidates": candidates, "delta": delta}
        self._aggregate = aggregate_of(aggregate, blocks=number, default=default, options=options)
        self._given = {"f": f, "blocks": number, "aggregate": aggregate, "processes": workers, **self._aggregate.given}

    @property
    def epsilon(self) -> float:
        """The privacy parameter epsilon."""
        return self._aggregate.epsilon

    @property
    def delta(self) -> float:
        """The privacy parameter delta, 0 for all aggregates but "mode" and mechanisms that have one."""
        return self._aggregate.delta

    @property
    def relation(self) -> Relation:
        """The neighbouring relation: one row is replaced by another."""
        return "substitute"

    def _values(self) -> dict[str, Any]:
        # A delta is given for "mode" alone, and neither it nor epsilon for a mechanism.
        own = isinstance(self.aggregate, Mechanism)
        kept = () if own else ("epsilon", "delta") if self.delta else ("epsilon",)
        return {name: value for name, value in super()._values().items() if name in kept or name in self._given}

    def release(self, data: Any, *, rng: Rng = None) -> Any:
        """Release the aggregate of the answers on random blocks.

        With a `delta` of at least 1/n for n rows there is a UserWarning.

        Parameters
        ----------
        data : array, list, data frame or series
            The rows, at least as many as blocks, along the first dimension of a NumPy array; pandas, polars and Arrow
            are taken by position. Columns of numbers, truth values, texts or bytes; NumPy's arrays and pandas columns
            of dtype object may hold any objects.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        float, ndarray of shape (d,), a candidate, an outcome or None; or what a query or mechanism releases
            The aggregate. Averages lie within the bounds.

        Raises
        ------
        TypeError
            When a column of the data is of an unsupported type, such as dates and intervals, or other processes cannot
            import ``f``.
        """
        return self._attempt(data, rng).value

    def _held(self, x: Any) -> Any:
        return held_rows(x)

    def try_on(self, example: Any) -> list[Any]:
        """Call ``f`` on random blocks of MADE-UP rows, and let its errors through, which a release hides.

        Nothing of this is private: never give it the private data, nor rows that were copied or computed from them.

        Parameters
        ----------
        example : array, list, data frame or series
            Made-up or public rows, of the kind that `release` takes; at best as many, so that the blocks are as large.

        Returns
        -------
        list
            The answer of each block, as ``f`` gave it.

        Raises
        ------
        ParameterError
            When an answer cannot be used, so that it would count as the default. What ``f`` raises is raised, too.

        Examples
        --------
        >>> import numpy as np
        >>> from dpnoise import stability
        >>> made_up = np.linspace(150, 190, 40)
        >>> spread = stability.SubsampleAndAggregate(f=np.ptp, blocks=4, aggregate="mean", bounds=(0, 50), epsilon=1.0)
        >>> len(spread.try_on(made_up))
        4
        """
        rows = Rows(example)
        parts = _parts(rows, self._checked(rows), None)
        return [tried(self.f, self._aggregate.read, part) for part in parts]

    def _checked(self, rows: Rows) -> int:
        blocks = integer(self.blocks, "blocks", range(1, len(rows) + 1))
        warn_of_large(self.delta, len(rows))
        self._aggregate.check(blocks)
        return blocks

    def _attempt(self, data: Any, rng: Rng) -> Attempt:
        rows = Rows(data)
        blocks = self._checked(rows)
        if self.processes > 1:
            check_importable(self.f)
        ask = partial(answer_of, self.f, self._aggregate.read)
        parts = enumerate(_parts(rows, blocks, rng))
        answers = [None] * blocks
        with (
            closing(
                _in_this_process(ask, parts) if self.processes == 1 else in_processes(ask, parts, self.processes)
            ) as replies,
            progress("asking", blocks, "blocks") as advance,
        ):
            for place, reply in replies:
                answers[place] = None if isinstance(reply, Died) else reply
                advance(1)
        return self._aggregate.release(answers, rng)


def _parts(rows: Rows, blocks: int, rng: Rng) -> Iterator[Any]:
    return map(rows.at, np.array_split(_permutation(len(rows), rng), blocks))


def _permutation(rows: int, rng: Rng) -> NDArray[np.int64]:
    seed = None if rng is None else np.packbits(samplers.bernoulli(0.5, size=128, rng=rng))
    return np.random.Generator(SecureBitGenerator() if seed is None else np.random.PCG64(seed)).permutation(rows)


def _in_this_process(ask: Callable[[Any], Any], parts: Iterable[tuple[int, Any]]) -> Replies:
    with interruptible(ask) as asking:
        for place, block in parts:
            yield place, asking(block)
