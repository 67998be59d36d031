"""No warning tells of a number in NumPy arrays of more bits than JAX takes."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from host_tests.silence import check_silent, columns

from dpnoise_jax import jax_privacy, optax

AGGREGATE = optax.differentially_private_aggregate(l2_norm_clip=1.0, noise_multiplier=1.0)
PRIVATIZER = jax_privacy.gaussian_privatizer(stddev=1.0)
CALLS: dict[str, Any] = {
    "optax": lambda column: AGGREGATE.update({"w": np.stack([column, column], axis=1)}, AGGREGATE.init(None)),
    "jax_privacy": lambda column: PRIVATIZER.update(column, PRIVATIZER.init(jnp.zeros(4))),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_warning_tells_of_a_number(name: str) -> None:
    check_silent(CALLS[name], columns(4))


def test_warnings_of_jax_are_found() -> None:
    with pytest.raises(AssertionError, match="encountered in cast"):
        check_silent(lambda column: CALLS["optax"](jnp.asarray(column)), columns(4))
