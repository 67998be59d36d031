"""diffprivlib, imported here and nowhere else."""

from dpnoise._errors import require

try:
    mechanisms = require("diffprivlib.mechanisms", "diffprivlib")
    require("diffprivlib.models", "diffprivlib")
    require("diffprivlib.tools", "diffprivlib")
    check_random_state = require("diffprivlib.utils", "diffprivlib").check_random_state
except ImportError as error:
    if error.name is None or not error.name.startswith("sklearn"):
        raise
    raise ImportError(
        "diffprivlib 0.6.6 needs a scikit-learn below 1.9: pip install 'dpnoise[diffprivlib]'", name=error.name
    ) from error
