"""A docstring of PipelineDP has an escape that Python warns of, where no bytecode is kept yet."""

import warnings

with warnings.catch_warnings(action="ignore"):
    import pipeline_dp  # noqa: F401
