"""What holds for all local protocols, from the table of families."""

from __future__ import annotations

import inspect
import math
import pickle
import re
from typing import Any

import numpy as np
import pytest

from dpnoise import ParameterError, local
from dpnoise.local import FAMILIES
from tests.local_families import EXAMPLES, perturbed, values_for

OUT_OF_RANGE: dict[type, tuple[Any, ...]] = {
    int: (-1, 2**70, -(2**70)),
    float: (0.0, -1.0, math.nan, math.inf, 33.0, 2**2000),
    str: ("none", ""),
}
WRONG_TYPE: dict[type, tuple[Any, ...]] = {
    int: (2.0, "2", True, np.True_, None),
    float: ("1", True, 1j, np.complex64(1), None),
    str: (1, None, b"optimized"),
}

all_families = pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)


def test_every_family_has_one_class() -> None:
    for unique in ("name", "protocol", "code", "abbreviation"):
        assert len({getattr(family, unique) for family in FAMILIES.values()}) == len(FAMILIES)
    assert all(FAMILIES[name].name == name == protocol._family for name, protocol in EXAMPLES.items())


@all_families
def test_the_signature_is_that_of_the_table(family: Any) -> None:
    signature = dict(inspect.signature(family.protocol).parameters)
    for name in ("domain", "bounds"):  # Python's alone
        signature.pop(name, None)
    if family.protocol is local.RandomizedResponse:
        signature.pop("p")
    assert list(signature) == [parameter.name for parameter in family.parameters]
    for parameter in family.parameters:
        given = signature[parameter.name]
        assert given.kind is inspect.Parameter.KEYWORD_ONLY
        if given.default is None and (parameter.name == "k" or family.protocol is local.RandomizedResponse):
            continue  # or a domain, or p
        assert given.default == (inspect.Parameter.empty if parameter.required else parameter.default)


@all_families
def test_arguments_that_cannot_be_used(family: Any) -> None:
    example = {parameter.name: parameter.example for parameter in family.parameters}
    make = family.protocol
    for parameter in family.parameters:
        for bad in OUT_OF_RANGE[parameter.kind]:
            with pytest.raises(ParameterError, match=rf"^{parameter.name} must be .*, got ") as refused:
                make(**{**example, parameter.name: bad})
            for least, most in re.findall(r"an integer from (\d+) to (\d+), got ", str(refused.value)):
                for beyond in (int(least) - 1, int(most) + 1):
                    with pytest.raises(
                        ParameterError, match=rf"^{parameter.name} must be an integer .*, got {beyond}$"
                    ):
                        make(**{**example, parameter.name: beyond})
        for bad in WRONG_TYPE[parameter.kind]:
            if bad is None and not parameter.required and parameter.default is None:
                continue
            with pytest.raises(TypeError, match=rf"^{parameter.name} must be an? (int|number|str), got "):
                make(**{**example, parameter.name: bad})
        if parameter.required and parameter.name != "k":
            with pytest.raises(TypeError, match=parameter.name):
                make(**{name: value for name, value in example.items() if name != parameter.name})
    with pytest.raises(TypeError, match="bogus"):
        make(**example, bogus=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("protocol", EXAMPLES.values(), ids=repr)
def test_a_protocol_is_a_value(protocol: Any) -> None:
    assert eval(repr(protocol), vars(local).copy()) == protocol  # noqa: S307
    assert pickle.loads(pickle.dumps(protocol)) == protocol  # noqa: S301
    assert type(protocol).from_json(protocol.to_json()) == protocol == local.protocol_from_json(protocol.to_json())
    assert [other for other in EXAMPLES.values() if other == protocol] == [protocol]
    assert len({hash(other) for other in EXAMPLES.values()}) == len(EXAMPLES)
    for parameter in FAMILIES[protocol._family].parameters:
        name = parameter.name
        assert getattr(protocol, f"requested_{name}", getattr(protocol, name, None)) == parameter.example


@pytest.mark.parametrize("protocol", EXAMPLES.values(), ids=repr)
def test_reports_messages_and_states(protocol: Any) -> None:
    reports = perturbed(protocol, values_for(protocol, 20))
    assert (reports.shape, reports.dtype) == ((20, protocol.report_bytes), np.uint8) or reports.dtype == np.bool_
    rows, messages = protocol.accumulator(), protocol.accumulator()
    rows.add(reports)
    sent = protocol.messages(reports)
    assert {message[3] for message in sent} == {FAMILIES[protocol._family].code}
    messages.add_messages(sent)
    assert (rows.n, rows.rejected) == (20, 0)
    assert rows.to_bytes() == messages.to_bytes() == local.Accumulator.from_bytes(rows.to_bytes()).to_bytes()
