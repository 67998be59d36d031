"""mbi warns of the float32 mode of JAX where it is imported first: the tests are about integers."""

import warnings

with warnings.catch_warnings(action="ignore"):
    import mbi  # noqa: F401
