"""Estimates as tables for people, other programs and files."""

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from inspect import Parameter, signature
from typing import Any, Final

from dpnoise import DoubtfulInputWarning, ParameterError, local
from dpnoise._display import rounded
from dpnoise.cli.console import InputError, guarantee, print_table, quantity, say
from dpnoise.cli.protocols import name_of, option_of
from dpnoise.cli.state import State

_SHOWN: Final = 40
_COUNTS: Final = ("value", "count", "standard_error", "lower", "upper")
_MEAN: Final = ("mean", "standard_error", "lower", "upper")
HEADERS: Final = (
    _COUNTS,
    (*_COUNTS, "significant"),
    ("attribute", *_COUNTS),
    ("range", *_COUNTS[1:]),
    _MEAN,
    ("lower", "upper", "probability"),
)
"""The columns of estimates, but for those that other programs might give to a file of theirs."""


def estimated(state: State, options: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Return the estimate from a state, with the options that its protocol takes, and the doubts about it."""
    protocol = state.accumulator.protocol
    takes = dict(signature(type(protocol).estimate).parameters)
    if isinstance(protocol, local.AttributesProtocol):
        for name, part in protocol.attributes.items():
            if not isinstance(part, local.FrequencyProtocol):
                raise InputError(f"attribute {name!r} is not counted by value: estimate it from Python")
        del takes["candidates"]  # candidates are given for each attribute, not as texts
    kind = type(protocol).__name__
    for name, one in takes.items():
        if one.default is Parameter.empty and name not in ("self", "collected", *options):
            option = option_of(name)
            raise InputError(f"reports of {kind} are about texts: say which to look for with {option} or {option}-file")
    for name in options:
        if name not in takes:
            option = "--no-smoothing" if name == "smoothing" else option_of(name)
            raise InputError(f"{option} does not apply to reports of {kind}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DoubtfulInputWarning)
        try:
            estimate = protocol.estimate(state.accumulator, **options)
        except ParameterError as error:
            raise InputError(str(error).replace("collected", "the files", 1)) from None
    return estimate, [str(one.message) for one in caught if issubclass(one.category, DoubtfulInputWarning)]


def columns_of(estimate: Any, ranges: Sequence[tuple[int, int]] | None) -> dict[str, list[Any]]:
    """Return the columns of an estimate: the columns of its `to_arrow`, or the counts of ranges or of attributes."""
    if ranges is not None:
        if not isinstance(estimate, local.RangeEstimate):
            raise InputError("--ranges applies to reports of HierarchicalRange alone")
        counts = [dataclasses.asdict(estimate.range(first, last)) for first, last in ranges]
        names = [f"{first}:{last}" for first, last in ranges]
        return {"range": names, **{name: [count[name] for count in counts] for name in _COUNTS[1:]}}
    if isinstance(estimate, dict):
        parts = [(name, columns_of(one, None)) for name, one in estimate.items()]
        attributes = [name for name, part in parts for _ in part["value"]]
        return {"attribute": attributes, **{name: [x for _, part in parts for x in part[name]] for name in _COUNTS}}
    if isinstance(estimate, local.MeanEstimate):
        return {name: [getattr(estimate, name)] for name in _MEAN}
    columns: dict[str, list[Any]] = estimate.to_arrow().to_pydict()
    return columns


def about(estimate: Any, state: State, level: float) -> dict[str, Any]:
    """Describe an estimate; those of several attributes have a level of their own, higher if all hold together."""
    protocol = state.accumulator.protocol
    several = isinstance(estimate, dict)
    estimate = next(iter(estimate.values())) if several else estimate
    found = {field.name: getattr(estimate, field.name) for field in dataclasses.fields(estimate)}
    plain = {
        name: value for name, value in found.items() if value is None or isinstance(value, bool | int | float | str)
    }
    return {
        "protocol": name_of(protocol),
        **{name: value for name, value in plain.items() if name not in (*_MEAN, "domain")},
        **({"level": level, "rejected": state.accumulator.rejected} if several else {}),
        "rejected_reasons": state.accumulator.rejected_reasons,
        "epsilon": protocol.epsilon,
        "delta": protocol.delta,
        "spec_id": protocol.spec_id,
        **{name: text for name in ("question", "period") if (text := getattr(protocol, name)) is not None},
        "files": len(state.sources),
    }


def print_summary(columns: Mapping[str, Sequence[Any]], about: Mapping[str, Any]) -> None:
    """Print the largest estimates, if any, how many reports they are made from, and how many were rejected and why."""
    if columns:
        _print_columns(columns, about)
    reasons = ", ".join(f"{reason}: {count:,}" for reason, count in about["rejected_reasons"].items())
    rejected = f"{about['rejected']:,} rejected" + (f" ({reasons})" if reasons else "")
    say(f"{quantity(about['n'], 'report')}, {rejected}; {guarantee(about['epsilon'], about['delta'])}")
    if named := [about[name] for name in ("question", "period") if name in about]:
        say(f"about {', '.join(named)}")
    if about["files"] > 1:
        say(quantity(about["files"], "file"))


def _print_columns(columns: Mapping[str, Sequence[Any]], about: Mapping[str, Any]) -> None:
    size = len(next(iter(columns.values())))
    order = list(range(size))
    if next(iter(columns)) == "value":
        order.sort(key=lambda i: columns["count"][i], reverse=True)
    digits = ",.1f" if "count" in columns else ",.6g"
    errors = columns.get("standard_error", [None] * size)
    rows = [[_cell(column[i], errors[i], digits) for column in columns.values()] for i in order[:_SHOWN]]
    print_table(_title(columns, about, len(rows), size), [name.replace("_", " ") for name in columns], rows)


def _title(columns: Mapping[str, Any], about: Mapping[str, Any], shown: int, size: int) -> str:
    what = "mean" if "mean" in columns else "counts" if "count" in columns else "distribution"
    title = f"Estimated {what}"
    if about.get("post"):
        title += f" ({about['post']})"
    if "standard_error" in columns:
        kind = "simultaneous " if about.get("simultaneous") else ""
        title += f" with {kind}{100 * about['level']:g} % intervals"
    if shown < size:
        title += f", the {shown} {'largest' if next(iter(columns)) == 'value' else 'first'} of {size:,}"
    return title


def _cell(value: Any, error: float | None, digits: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return rounded(value, error, digits) if isinstance(value, float) else str(value)
