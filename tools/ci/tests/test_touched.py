"""Which targets a change must pass."""

import subprocess

import pytest

from tools.ci.touched import HOUSE, ROOT, targets


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["README.md", "rust/core/src/lib.rs", ".ci/run"], []),
        (["integrations/jax/README.md", "integrations/jax/src/dpnoise_jax/a.py"], ["-C integrations/jax gate"]),
        (["integrations/integration.mk"], ["test-integrations"]),
        (["integrations/shared/test_shown.py"], ["test-integrations"]),
        (["integrations/removed/pyproject.toml"], ["test-integrations"]),
        (["clients/go/memo.go"], ["-C clients/go test"]),
        (["clients/c/src/lib.rs"], ["test-clients"]),  # the others are made of it
        (["clients/client.mk"], ["test-clients"]),
        (["python/dpnoise/engines/_dask.py", "tests/engines/conftest.py"], ["test-engines"]),
        (["tools/miri.sh", "proofs/prove.py"], ["prove"]),
        (["docs/proofs/proved.md", "docs/proofs/alias.md"], ["prove"]),
        ([], []),
    ],
)
def test_the_targets_of_a_change(paths, expected):
    assert targets(paths) == HOUSE + expected


def test_every_target_is_one():
    files = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    for target in targets(files):
        if not target.startswith("-C"):
            assert f"\n{target}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
            continue
        _, folder, name = target.split()
        shared = {"integrations": "integrations/integration.mk", "clients": "clients/client.mk"}[folder.split("/")[0]]
        rules = "".join((ROOT / file).read_text(encoding="utf-8") for file in (shared, f"{folder}/Makefile"))
        assert f"\n{name}" in rules
