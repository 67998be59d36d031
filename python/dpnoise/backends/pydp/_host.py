"""PyDP, imported here and nowhere else."""

from dpnoise._errors import require

numerical_mechanisms = require("pydp.algorithms.numerical_mechanisms", "pydp")
partition_selection = require("pydp.algorithms.partition_selection", "pydp")

# Imported by name, since `patched` puts the classes of this backend under these names.
ConfidenceInterval = numerical_mechanisms.ConfidenceInterval
GaussianMechanism = numerical_mechanisms.GaussianMechanism
LaplaceMechanism = numerical_mechanisms.LaplaceMechanism
NumericalMechanism = numerical_mechanisms.NumericalMechanism
