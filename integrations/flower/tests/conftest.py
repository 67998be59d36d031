"""The typer that Flower holds back warns where it is imported first."""

import warnings

with warnings.catch_warnings(action="ignore"):
    import flwr.supercore.logger  # noqa: F401
