"""No two public classes have the same name, whatever packages they are in."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections import defaultdict

import dpnoise

# The command line and the engines have no classes.
OTHERS = ("dpnoise.__main__", "dpnoise.cli", "dpnoise.engines.")


def test_a_name_is_of_one_class() -> None:
    classes: dict[str, set[type]] = defaultdict(set)
    for module in pkgutil.walk_packages(dpnoise.__path__, "dpnoise."):
        if "._" in module.name or module.name.startswith(OTHERS):
            continue
        public = importlib.import_module(module.name)
        for name in getattr(public, "__all__", ()):
            if inspect.isclass(getattr(public, name)):
                classes[name].add(getattr(public, name))
    assert {"Laplace", "Estimate", "Count", "CountEstimate"} <= classes.keys()
    assert [name for name, found in classes.items() if len(found) > 1] == []
