"""Runs the entrants of each benchmark in turns, prints the record and, with ``--record``, keeps it."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import dpnoise
from benches import machine, page
from benches.machine import OURS, TWO_THREADS
from benches.record import FOLDER, WHOLE, Record
from benches.targets import INSTRUCTION_SETS
from benches.timing import Entrant, interleaved

RECORD = pytest.StashKey[Record]()
WATCH = pytest.StashKey[machine.Watch]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record",
        nargs="?",
        const=WHOLE,
        metavar="PART",
        help="keep the record of this run, or part",
    )


def pytest_configure(config: pytest.Config) -> None:
    everything = [Path(argument).resolve() for argument in config.args] == [FOLDER.parent]
    if config.getoption("--record") == WHOLE and (not everything or config.getoption("keyword")):
        raise pytest.UsageError(
            "--record keeps the record of all benchmarks, got a part of them: run `make bench`, or name the part, "
            "as in --record=gaussian"
        )
    config.stash[WATCH] = machine.Watch()
    config.stash[RECORD] = machine.new_record(config.getoption("--record"))


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Record:
    return request.config.stash[RECORD]


@pytest.fixture
def race(benchmark: Any, record: Record) -> Callable[..., None]:
    """Return a function that measures a case, the entrants in turns, and notes their times, or rates, in a table."""

    def run(
        title: str, column: str, unit: str, entrants: Sequence[Entrant], rounds: int = 11, rate: bool = False
    ) -> None:
        benchmark.group = title
        times = interleaved(benchmark, entrants, rounds)
        amounts = {name: 1 / time for name, time in times.items()} if rate else times
        record.table(title, unit, higher_is_better=rate).add(column, amounts)

    return run


@pytest.fixture(scope="session")
def other_instruction_sets(request: pytest.FixtureRequest) -> Iterator[dict[str, Executor]]:
    """Start a process for every instruction set but the one in use: the choice is made once in a process."""
    with ExitStack() as stack:
        processes = {}
        for instruction_set, name in INSTRUCTION_SETS.items():
            if name == OURS:
                continue
            variable = ("DPNOISE_INSTRUCTION_SET", instruction_set)
            spawn = multiprocessing.get_context("spawn")
            process = stack.enter_context(ProcessPoolExecutor(1, spawn, initializer=os.putenv, initargs=variable))
            try:
                process.submit(dpnoise.instruction_set).result()
                processes[name] = process
            except dpnoise.ParameterError:
                request.config.stash[RECORD].notes.append(f"{instruction_set}: not on this CPU")
        yield processes


@pytest.fixture
def ours(other_instruction_sets: dict[str, Executor]) -> Callable[..., list[Entrant]]:
    """Return a function that gives a call of ours, which takes `threads`, as the entrants that every table has."""

    def entrants(call: Callable[..., Any], check: Callable[[Any], None], items: int) -> list[Entrant]:
        single = partial(call, threads=1)
        return [
            Entrant(OURS, single, check, items),
            *(Entrant(name, single, check, items, process) for name, process in other_instruction_sets.items()),
            Entrant(TWO_THREADS, partial(call, threads=2), check, items),
        ]

    return entrants


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    record = config.stash[RECORD]
    if not record.tables:
        return
    record.others = config.stash[WATCH].share()
    terminalreporter.write_line(f"\n{page.report(record)}")
    if record.kind is not None and not exitstatus:
        path = record.keep().relative_to(config.rootpath)
        terminalreporter.write_line(f"written to {path}, and shown by the site")
