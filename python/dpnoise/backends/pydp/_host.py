"""The host, imported here and nowhere else."""

from dpnoise._extras import require

numerical_mechanisms = require("pydp.algorithms.numerical_mechanisms", "pydp")
partition_selection = require("pydp.algorithms.partition_selection", "pydp")

# By their names, which `patched` gives to those of this backend.
ConfidenceInterval = numerical_mechanisms.ConfidenceInterval
GaussianMechanism = numerical_mechanisms.GaussianMechanism
LaplaceMechanism = numerical_mechanisms.LaplaceMechanism
NumericalMechanism = numerical_mechanisms.NumericalMechanism
