"""Local differential privacy: every person randomises their own answer, and only randomised reports are collected.

A protocol is an immutable object. Each person's device calls ``perturb``; the collector keeps an `Accumulator`; the
result is an `Estimate`: unbiased counts with standard errors and confidence intervals.

Probabilities are multiples of a power of two, so that they are exact; the achieved ``epsilon`` is computed exactly from
them. It is never above the requested one, and at least 0.999 of it, but for `ThresholdHistogramEncoding`, whose
threshold hides more than the requested noise. The time and the memory addresses of perturbing do not depend on the
values.

Examples
--------
>>> from dpnoise import local
>>> protocol = local.OptimizedUnaryEncoding(k=4, epsilon=1.0)
>>> reports = protocol.perturb([0, 1, 1, 3])
>>> reports.shape
(4, 1)
>>> protocol.estimate(reports).n
4
"""

from typing import TYPE_CHECKING

from dpnoise import _calls, _errors
from dpnoise.local._accumulator import Accumulator
from dpnoise.local._attributes import AttributesAccumulator, AttributesProtocol, Sampled, Split
from dpnoise.local._categories import (
    GeneralizedRandomizedResponse,
    HadamardResponse,
    LocalHashing,
    ProjectiveGeometryResponse,
    RandomizedResponse,
    SubsetSelection,
)
from dpnoise.local._compare import Compared, Comparison, compare
from dpnoise.local._estimate import CountEstimate, Estimate, Post
from dpnoise.local._families import FAMILIES, Family, Parameter
from dpnoise.local._frequency import FrequencyProtocol
from dpnoise.local._longitudinal import LOLOHA, DBitFlip, LongitudinalProtocol, LongitudinalUnaryEncoding
from dpnoise.local._memo import ClientMemo
from dpnoise.local._messages import Framing, read_messages
from dpnoise.local._numbers import (
    DensityEstimate,
    DuchiMean,
    GaussianMean,
    HybridMean,
    LaplaceMean,
    MeanEstimate,
    MeanProtocol,
    NumberProtocol,
    PiecewiseMean,
    SquareWave,
)
from dpnoise.local._parquet import ReportsFile, open_reports
from dpnoise.local._plan import AttributesCandidate, AttributesPlan, Candidate, Plan, plan, plan_attributes
from dpnoise.local._protocol import COUNTER_LIMIT, Protocol, protocol_from_json
from dpnoise.local._ranges import HierarchicalRange, RangeEstimate
from dpnoise.local._rappor import Rappor, RapporEstimate
from dpnoise.local._sketches import (
    CountMeanSketch,
    HadamardCountMeanSketch,
    HeavyHitters,
    PrefixExtension,
    Sketch,
    SketchEstimate,
)
from dpnoise.local._specification import Specification
from dpnoise.local._unary_encoding import (
    OptimizedUnaryEncoding,
    PopcountCheck,
    SummationHistogramEncoding,
    SymmetricUnaryEncoding,
    ThresholdHistogramEncoding,
    UnaryEncoding,
)

__all__ = [
    "COUNTER_LIMIT",
    "FAMILIES",
    "LOLOHA",
    "Accumulator",
    "AttributesAccumulator",
    "AttributesCandidate",
    "AttributesPlan",
    "AttributesProtocol",
    "Candidate",
    "ClientMemo",
    "Compared",
    "Comparison",
    "CountEstimate",
    "CountMeanSketch",
    "DBitFlip",
    "DensityEstimate",
    "DuchiMean",
    "Estimate",
    "Family",
    "Framing",
    "FrequencyProtocol",
    "GaussianMean",
    "GeneralizedRandomizedResponse",
    "HadamardCountMeanSketch",
    "HadamardResponse",
    "HeavyHitters",
    "HierarchicalRange",
    "HybridMean",
    "LaplaceMean",
    "LocalHashing",
    "LongitudinalProtocol",
    "LongitudinalUnaryEncoding",
    "MeanEstimate",
    "MeanProtocol",
    "NumberProtocol",
    "OptimizedUnaryEncoding",
    "Parameter",
    "PiecewiseMean",
    "Plan",
    "PopcountCheck",
    "Post",
    "PrefixExtension",
    "ProjectiveGeometryResponse",
    "Protocol",
    "RandomizedResponse",
    "RangeEstimate",
    "Rappor",
    "RapporEstimate",
    "ReportsFile",
    "SampleAndThreshold",
    "Sampled",
    "Sketch",
    "SketchEstimate",
    "Specification",
    "Split",
    "SquareWave",
    "SubsetSelection",
    "SummationHistogramEncoding",
    "SymmetricUnaryEncoding",
    "ThresholdAccumulator",
    "ThresholdEstimate",
    "ThresholdHistogramEncoding",
    "UnaryEncoding",
    "compare",
    "open_reports",
    "plan",
    "plan_attributes",
    "protocol_from_json",
    "read_messages",
]

if TYPE_CHECKING:
    from dpnoise.local._sample_and_threshold import SampleAndThreshold, ThresholdAccumulator, ThresholdEstimate
else:  # a mechanism, which imports the accounting that reports do not need
    __getattr__, __dir__ = _errors.lazily(
        __name__, __all__, _sample_and_threshold="SampleAndThreshold ThresholdAccumulator ThresholdEstimate"
    )

_calls.explain(__name__)
