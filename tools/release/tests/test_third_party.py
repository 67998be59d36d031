"""Who gets a crate or a binary gets the licences of what is in it, and the list of that."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("folder", ["rust/kernels", "rust/core", "integrations/prio"])
def test_a_published_crate_has_the_licences(folder):
    command = ["cargo", "package", "--list", "--allow-dirty"]
    packaged = subprocess.check_output(command, cwd=ROOT / folder, text=True).splitlines()
    for name in ("LICENSE-APACHE", "LICENSE-MIT"):
        assert name in packaged
        assert (ROOT / folder / name).read_bytes() == (ROOT / name).read_bytes()
