"""What is PyDP's, bound here since `patched` puts our classes under these names in PyDP's modules."""

from pydp.algorithms import numerical_mechanisms

GaussianMechanism = numerical_mechanisms.GaussianMechanism
LaplaceMechanism = numerical_mechanisms.LaplaceMechanism
NumericalMechanism = numerical_mechanisms.NumericalMechanism
"""PyDP's own class, of which the mechanisms are subclasses."""
ConfidenceInterval = numerical_mechanisms.ConfidenceInterval
"""PyDP's own class, which ``noise_confidence_interval`` returns."""
