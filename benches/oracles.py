"""Frequency oracles at published settings: errors beside the law, sizes and times, ours beside other libraries.

``make bench-oracles`` runs it, keeps the record and writes docs/benchmarks/frequency_oracles.md. Errors are of real
reports. `benches.oracle_cases` has the settings.
"""

from __future__ import annotations

import math
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from statistics import fmean, median, stdev
from time import monotonic, perf_counter
from typing import Any, NamedTuple

import numpy as np

from benches import machine, page, peers
from benches.oracle_cases import (
    BYTES,
    CLIENT,
    COLLECTOR,
    LARGE,
    LARGEST,
    LAW,
    LDP3,
    LDP3_ORACLES,
    MAXIMUM,
    MAXIMUM_ERROR,
    MSE,
    MSE_ERROR,
    MSE_SCALED,
    NO_POST,
    ORACLES,
    POSTS,
    PUBLISHED,
    Case,
    by_post_title,
)
from benches.record import Record, Table

SECONDS = 3.0
"""How long each of our protocols collects in a case, if it needs that long for `COLLECTIONS`."""
FEWEST, COLLECTIONS = 3, 300
"""The collections of a case; 300 are those of Feldman et al."""
LIMIT = 20.0
"""How many seconds another library has for its collections of a case: at least one, otherwise it did not finish."""
BY_LIBRARY = 5
"""The collections of another library, if it can do as many."""
MEMORY = 6 << 30
"""The bytes of address space that another library may use."""
POST_OF_LIBRARY = {"multi-freq-ldpy": "norm-mul", "pure-ldp": NO_POST}
"""What a library does with its counts."""


class Collection(NamedTuple):
    """What one collection showed."""

    client: float
    """In nanoseconds per report."""
    collector: float
    """In milliseconds, from reports to all k counts."""
    errors: dict[str, tuple[float, float]]
    """The mean squared error per person and the maximal error in people, by how the counts were made consistent."""


def errors_of(counts: np.ndarray, true_counts: np.ndarray, n: int) -> tuple[float, float]:
    errors = np.abs(counts - true_counts)
    return float(np.mean(errors**2)) / n, float(errors.max())


def collect(protocol: Any, values: np.ndarray, true_counts: np.ndarray, posts: Sequence[Any] = ()) -> Collection:
    """Randomise all values, on one thread, and estimate how many people have each."""
    started = perf_counter()
    reports = protocol.perturb(values, threads=1)
    reported = perf_counter()
    accumulator = protocol.accumulator()
    accumulator.add(reports, threads=1)
    estimates = {NO_POST: accumulator.estimate()}
    finished = perf_counter()
    estimates |= {post: accumulator.estimate(post=post) for post in posts}
    return Collection(
        1e9 * (reported - started) / values.size,
        1e3 * (finished - reported),
        {post: errors_of(estimate.counts, true_counts, values.size) for post, estimate in estimates.items()},
    )


def peer_collections(send: Any, case: Case, library: str, name: str) -> None:
    """Collect with another library, and send what each collection showed. A process of its own does this."""
    import resource  # Windows has none

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    peer = peers.local_protocols(library, case.epsilon)[name]
    peer.server([peer.client(0, case.k) for _ in range(2)], case.k)  # compiles what numba does
    values = case.values()
    true_counts = np.bincount(values, minlength=case.k)
    people = values.tolist()
    send.send(None)
    try:
        for _ in range(BY_LIBRARY):
            started = perf_counter()
            reports = [peer.client(value, case.k) for value in people]
            reported = perf_counter()
            frequencies = peer.server(reports, case.k)
            finished = perf_counter()
            errors = errors_of(np.asarray(frequencies) * case.n, true_counts, case.n)
            times = 1e9 * (reported - started) / case.n, 1e3 * (finished - reported)
            send.send(Collection(*times, {POST_OF_LIBRARY[library]: errors}))
    except MemoryError:
        send.send(f"needs more than {MEMORY >> 30} GiB of memory")


def within_limit(work: Callable[..., None], *arguments: Any, limit: float = LIMIT) -> tuple[list[Collection], str]:
    """Return what `work` sends from a process of its own until the time is over, and why that is nothing."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(send, *arguments))
    process.start()
    send.close()
    found: list[Collection] = []
    try:
        receive.recv()  # imports are not counted
        end = monotonic() + limit
        while receive.poll(max(0.0, end - monotonic())):
            message = receive.recv()
            if isinstance(message, str):
                return found, message
            found.append(message)
        return found, f"no collection in {limit:g} s"
    except EOFError:
        return found, "failed"
    finally:
        process.terminate()
        process.join()


def law(protocol: Any, n: int) -> float:
    """Return the predicted squared error per person, on average over all values.

    The variance is linear in the frequency of a value, and frequencies add up to 1.
    """
    return protocol.variance(n, 1 / protocol.k) / n


def standard_error(numbers: Sequence[float]) -> float:
    """Return that of their mean."""
    return stdev(numbers) / math.sqrt(len(numbers))


def amounts(collections: list[Collection]) -> dict[str, float]:
    """Return the row of an entrant in the table of a case."""
    row = {
        CLIENT: median(collection.client for collection in collections),
        COLLECTOR: median(collection.collector for collection in collections),
        "collections": len(collections),
    }
    if "norm-mul" in collections[0].errors:
        row[MSE_SCALED] = fmean(collection.errors["norm-mul"][0] for collection in collections)
    if NO_POST in collections[0].errors:
        mse, maximum = zip(*(collection.errors[NO_POST] for collection in collections), strict=True)
        row |= {MSE: fmean(mse), MAXIMUM: fmean(maximum)}
        if len(collections) > 1:
            row |= {MSE_ERROR: standard_error(mse), MAXIMUM_ERROR: standard_error(maximum)}
    return row


def take_turns(case: Case, protocols: dict[str, Any], seconds: float) -> dict[str, list[Collection]]:
    """Return what the collections of each protocol showed."""
    values = case.values()
    true_counts = np.bincount(values, minlength=case.k)
    posts = POSTS if case in LDP3 else ("norm-mul",) if case.libraries else ()
    found: dict[str, list[Collection]] = {name: [] for name in protocols}
    spent = dict.fromkeys(protocols, 0.0)
    for turn in range(COLLECTIONS):
        for name, protocol in protocols.items():
            if turn < FEWEST or spent[name] < seconds:
                started = monotonic()
                found[name].append(collect(protocol, values, true_counts, posts))
                spent[name] += monotonic() - started
    return found


def check(name: str, case: Case, mse: float, expected: float) -> None:
    """Refuse errors that are not those of the law: a fast wrong answer is no answer."""
    if not 0.5 < mse / expected < 2:
        raise AssertionError(f"{name}, {case}: the squared error is {mse:.4g} n, by the law {expected:.4g} n")


def put(table: Table, entrant: str, row: dict[str, float]) -> None:
    for column, amount in row.items():
        table.add(column, {entrant: amount})


def measure(record: Record, case: Case, seconds: float = SECONDS) -> None:
    """Add the tables of a case with our protocols."""
    oracles = LDP3_ORACLES if case in LDP3 else ORACLES
    allowed = {name: oracle for name, oracle in oracles.items() if case.k <= oracle.largest}
    table = record.table(str(case), "")
    table.missing |= {f"dpnoise {name}": oracles[name].reason for name in oracles if name not in allowed}
    protocols = {name: oracle.make(k=case.k, epsilon=case.epsilon) for name, oracle in allowed.items()}
    for name, collections in take_turns(case, protocols, seconds).items():
        protocol, entrant = protocols[name], f"dpnoise {name}"
        row = amounts(collections) | {LAW: law(protocol, case.n), BYTES: protocol.report_bytes}
        check(entrant, case, row[MSE], row[LAW])
        put(table, entrant, row)
        for i, what in enumerate((MSE, MAXIMUM) if case in LDP3 else ()):
            by_post = {post: fmean(c.errors[post][i] for c in collections) for post in (NO_POST, *POSTS)}
            put(record.table(by_post_title(case, what), ""), entrant, by_post)


def measure_libraries(record: Record, case: Case) -> None:
    """Add what other libraries have of our protocols to the table of a case."""
    table = record.table(str(case), "")
    for name, oracle in ORACLES.items():
        for library in peers.local_peers(oracle.peer, case.epsilon):
            found, reason = within_limit(peer_collections, case, library, oracle.peer)
            if found:
                put(table, f"{library} {name}", amounts(found))
            else:
                table.missing[f"{library} {name}"] = reason


def main() -> None:
    watch = machine.Watch()
    record = machine.new_record("oracles")
    for case in (*PUBLISHED.values(), *LARGE, *LARGEST, *LDP3):
        print(case, file=sys.stderr, flush=True)
        measure(record, case)
        if case.libraries:
            measure_libraries(record, case)
    record.others = watch.share()
    record.keep()
    print(page.report(record))


if __name__ == "__main__":
    main()
