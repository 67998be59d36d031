"""The script of figures finds what is planted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.figures import figures

ROOT = Path(__file__).parents[3]
FILES = figures.read(ROOT) if (ROOT / ".git").exists() else {}

PYPROJECT = """
[project]
dependencies = ["numpy>=1.26"]
[project.optional-dependencies]
all = ["dpnoise[plot]"]
plot = ["matplotlib>=3.8"]
test = ["dpnoise[all]", "opacus>=1.6", "torch", "pytest"]
"""
HOST = '[project]\nname = "dpnoise-%s"\ndependencies = ["dpnoise>=0.1", "%s>=1"]\n'
TENANTS = {
    "pyproject.toml": PYPROJECT,
    "integrations/opacus/pyproject.toml": HOST % ("opacus", "opacus"),
    "integrations/opacus/src/dpnoise_opacus/__init__.py": "from dpnoise_opacus._own import x\n",
    "integrations/jax/pyproject.toml": HOST % ("jax", "jax"),
    "integrations/README.md": "| [Opacus](opacus/README.md) | [JAX](jax/README.md) |\n",
    "CHANGELOG.md": "`dpnoise-opacus` and `dpnoise-jax` are distributions.\n",
    "Makefile": "INTEGRATIONS := opacus jax\n",
    "docs/compare.md": "Opacus draws from torch.\n",
    "docs/uses.md": "[Training](../integrations/jax/README.md)\n",
}


@pytest.mark.skipif(not FILES, reason="only a checkout has tracked files")
def test_every_file_belongs_somewhere() -> None:
    groups = {figures.group_of(path) for path in FILES}
    assert {"core", "command line", "proofs", "clients/go", "integrations/opacus"} < groups
    assert "UNCLASSIFIED" not in groups


@pytest.mark.parametrize(
    ("path", "group"),
    [
        ("integrations/opacus/tests/test_steps.py", "integrations/opacus"),
        ("clients/c/fuzz/src/world.rs", "clients/c"),
        ("tests/vectors/local.json", "core"),
        ("tests/new/test_new.py", "UNCLASSIFIED"),
        ("docs/new/new.md", "UNCLASSIFIED"),
        ("python/other/new.py", "UNCLASSIFIED"),
    ],
)
def test_a_file_belongs_to_its_tenant(path: str, group: str) -> None:
    assert figures.group_of(path) == group


def test_places_of_integrations() -> None:
    counted = figures.places_of_integrations(TENANTS)
    assert counted.value == "3 / 4"
    assert counted.places == [
        "to add: CHANGELOG.md",
        "to add: Makefile",
        "to add: integrations/README.md",
        "to remove opacus, 3: CHANGELOG.md Makefile integrations/README.md",
        "to remove jax, 4: CHANGELOG.md Makefile docs/uses.md integrations/README.md",
    ]


def test_files_that_name_all_others() -> None:
    rust = "impl Family for OneBit {\nimpl Family for TwoBits {\n"
    tree = {"rust/all.rs": rust, "spec.py": '"one_bit", "two-bits"', "one.py": "OneBit", "many.py": "one_bits two_bits"}
    assert figures.files_that_name_all(tree, r"impl Family for (\w+)") == [
        "a file of its own",
        "rust/all.rs",
        "spec.py",
    ]
    with pytest.raises(ValueError, match="nothing in Rust is defined as"):
        figures.files_that_name_all(tree, r"impl Protocol for (\w+)")


@pytest.mark.parametrize(
    "planted",
    [
        "from dpnoise._errors import require",
        "from dpnoise import _errors",
        "import dpnoise._errors as errors",
        "x = dpnoise._errors.require",
        "patch('dpnoise._errors.require')",
        "from dpnoise.local._plan import plan",
        "from dpnoise_opacus._engine import Engine",
    ],
)
def test_private_names(planted: str) -> None:
    assert figures.private_names({"integrations/jax/tests/test_jax.py": planted}).value == "1"
    assert figures.private_names({"python/dpnoise/cli/plan.py": planted}).value == "0"
    assert figures.private_names({"tests/api/test_plan.py": planted}).value == "0"


def test_names_that_are_public_or_of_the_tenant() -> None:
    fine = "from dpnoise import Laplace, __version__\nfrom dpnoise_jax._step import step\nfrom opacus import _privacy\n"
    assert figures.private_names({"integrations/jax/src/dpnoise_jax/__init__.py": fine}).value == "0"


def test_parameters() -> None:
    module = '''
__all__ = ["Noise", "draw"]

class _Base:
    def release(self, x, rng=None):
        """Release.

        Parameters
        ----------
        x : int
            A number.
        rng : as everywhere
        """

class Noise(_Base):
    """Noise.

    Parameters
    ----------
    scale, radius : float
        How much of it.
    shape
        Of no type.

    Attributes
    ----------
    other : int
        No parameter.
    """

    def __init__(self, scale, radius, shape, *, other): ...
    def release(self, x, rng=None): ...
    def _private(self, x): ...

def draw(x, **options):
    """Draw.

    Parameters
    ----------
    x : int
        As for `Noise`.
    **options : Any
        Those of the host.
    """
'''
    counted = figures.parameters({"python/dpnoise/noise.py": module})
    assert counted.places == [
        f"dpnoise.noise.{name}"
        for name in ["Noise.__init__: shape", "Noise.__init__: other", "_Base.release: rng", "draw: x"]
    ]


def test_distributions_of_the_tests() -> None:
    assert figures.installed(TENANTS).value == "5 / 1"  # numpy, matplotlib, pytest, torch, and opacus


def test_lines_of_code() -> None:
    assert (
        figures.code_lines(
            '"""Doc."""\n\n# why\nx = """a\n\nb"""  # c\n\ndef f():\n    """Doc.\n\n    More.\n    """\n    return 1\n'
        )
        == 4
    )
