"""Pipelines of PipelineDP with our noise."""

import math
import pickle
import random

import numpy as np
import pipeline_dp
import pytest
from host_tests.patches import check_blocks, check_install, check_many_threads
from host_tests.silence import NUMBERS, check_silent, columns
from pipeline_dp import dp_computations, pipeline_backend, sampling_utils
from pipeline_dp.aggregate_params import NormKind
from pydp.algorithms import numerical_mechanisms, partition_selection

from dpnoise import ParameterError
from dpnoise_google import pipeline_dp as ours
from dpnoise_google import pydp

METRICS = pipeline_dp.Metrics
NOISES = [pipeline_dp.NoiseKind.LAPLACE, pipeline_dp.NoiseKind.GAUSSIAN]
# Visitors, days and what they spent; "day9" has one visitor, who is not to be found.
VISITS = [(person, f"day{day}", 10.0 + person % 5) for person in range(400) for day in range(3)] + [(1, "day9", 30.0)]


def snapshot():
    places = (
        numerical_mechanisms,
        partition_selection,
        dp_computations,
        dp_computations.AdditiveMechanism,
        dp_computations.ExponentialMechanism,
        pipeline_dp.DPEngine,
        pipeline_backend.LocalBackend,
        sampling_utils,
    )
    return [dict(vars(place)) for place in places]


def leave():
    ours._PATCH.leave()
    pydp._patch._PATCH.leave()


def test_blocks():
    check_blocks(ours.patched, snapshot)


def test_install():
    check_install(ours.install, ours.patched, snapshot, leave)


def test_many_threads():
    check_many_threads(
        ours.patched,
        lambda: (
            dp_computations.dp_mechanisms.LaplaceMechanism is pydp.LaplaceMechanism
            and dp_computations.add_noise_vector is ours._add_noise_vector
        ),
        snapshot,
    )


@pytest.mark.parametrize("first", [ours.patched, pydp.patched])
def test_blocks_of_both_modules_overlap(first):
    before = snapshot()
    second = pydp.patched if first is ours.patched else ours.patched
    one, two = first(), second()
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    assert numerical_mechanisms.LaplaceMechanism is pydp.LaplaceMechanism
    assert (dp_computations.add_noise_vector is ours._add_noise_vector) == (second is ours.patched)
    two.__exit__(None, None, None)
    assert snapshot() == before


@pytest.fixture
def no_noise_of_the_host(monkeypatch):
    """Make all that the host draws with fail: PyDP's noise, and the generators of NumPy and Python."""
    for method in ("add_noise", "noised_value_above_threshold"):
        monkeypatch.setattr(pydp.NumericalMechanism, method, None)
    for owner, name in [(np.random, "choice"), (np.random, "default_rng"), (random, "sample")]:
        monkeypatch.setattr(owner, name, None)


def extractors():
    return pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda visit: visit[0],
        partition_extractor=lambda visit: visit[1],
        value_extractor=lambda visit: visit[2],
    )


def aggregate(metrics, noise=NOISES[0], public=None, accountant=None, rows=VISITS, **more):
    accountant = accountant or pipeline_dp.NaiveBudgetAccountant(total_epsilon=50.0, total_delta=1e-12)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    bounds = {"min_value": 0, "max_value": 20} if "vector_size" not in more else {}
    params = pipeline_dp.AggregateParams(
        metrics=metrics,
        noise_kind=noise,
        max_partitions_contributed=2,
        max_contributions_per_partition=1,
        **bounds,
        **more,
    )
    result = engine.aggregate(rows, params, extractors(), public_partitions=public)
    accountant.compute_budgets()
    return dict(result)


@pytest.mark.usefixtures("no_noise_of_the_host")
@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
@pytest.mark.parametrize("public", [None, ["day0", "day1", "day2", "day7"]], ids=["private", "public"])
def test_the_example_of_the_hosts_documentation(noise, public):
    """Count, sum and mean of a small list on the local backend."""
    with ours.patched():
        found = aggregate([METRICS.COUNT, METRICS.SUM, METRICS.MEAN, METRICS.PRIVACY_ID_COUNT], noise, public)
    assert {"day0", "day1", "day2"} <= {*found}
    assert "day9" not in found or public  # a probability of at most 1e-12
    # Each person is in two of the three days, by chance: a deviation of 150 has a probability below 1e-40.
    assert sum(found[f"day{day}"].count for day in range(3)) == pytest.approx(800, abs=150)
    for day in range(3):
        assert found[f"day{day}"].mean == pytest.approx(12, abs=3)
        assert found[f"day{day}"].count != round(found[f"day{day}"].count)


def pipelines(engine):
    """Make one of each kind, which are lazy."""
    sums = pipeline_dp.AggregateParams(
        metrics=[METRICS.SUM],
        max_partitions_contributed=2,
        max_contributions_per_partition=1,
        min_value=0,
        max_value=20,
    )
    weighted, plain = (
        pipeline_dp.SelectPartitionsParams(max_partitions_contributed=2, partition_selection_strategy=strategy)
        for strategy in (
            pipeline_dp.PartitionSelectionStrategy.WEIGHTED_GAUSSIAN_THRESHOLDING,
            pipeline_dp.PartitionSelectionStrategy.TRUNCATED_GEOMETRIC,
        )
    )
    noise = pipeline_dp.aggregate_params.AddDPNoiseParams(noise_kind=NOISES[0], l0_sensitivity=1, linf_sensitivity=1)
    bounds = pipeline_dp.CalculatePrivateContributionBoundsParams(
        aggregation_noise_kind=NOISES[0],
        aggregation_eps=1.0,
        aggregation_delta=0.0,
        calculation_eps=1.0,
        max_partitions_contributed_upper_bound=5,
    )
    return [
        engine.aggregate(VISITS, sums, extractors()),
        engine.select_partitions(VISITS, weighted, extractors()),
        engine.select_partitions(VISITS, plain, extractors()),
        engine.add_dp_noise([(key, 5.0) for key in range(3)], noise),
        engine.calculate_private_contribution_bounds(VISITS, bounds, extractors(), ["day0", "day1", "day2"]),
    ]


@pytest.mark.usefixtures("no_noise_of_the_host")
def test_results_that_are_read_after_the_block():
    before = snapshot()
    with ours.patched():
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=50.0, total_delta=1e-12)
        results = pipelines(pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend()))
        accountant.compute_budgets()
    assert snapshot() == before
    read = [list(result) for result in results]
    assert [len(each) for each in read] == [3, 3, 3, 3, 1]
    assert [list(result) for result in results] == read  # PipelineDP remembers them
    for result in results:
        next(iter(result))
        assert snapshot() == before


@pytest.mark.usefixtures("no_noise_of_the_host")
@pytest.mark.parametrize("metrics", [[METRICS.VARIANCE], [METRICS.PRIVACY_ID_COUNT], [METRICS.SUM]], ids=str)
@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_other_metrics(metrics, noise):
    with ours.patched():
        assert {"day0", "day1", "day2"} <= {*aggregate(metrics, noise)}


@pytest.mark.usefixtures("no_noise_of_the_host")
def test_post_aggregation_thresholding():
    with ours.patched():
        found = aggregate([METRICS.PRIVACY_ID_COUNT], post_aggregation_thresholding=True)
    assert {*found} == {"day0", "day1", "day2"}


def test_quantiles_stay_the_hosts():
    with ours.patched():
        assert 5 < aggregate([METRICS.PERCENTILE(50)])["day0"].percentile_50 < 16


@pytest.mark.usefixtures("no_noise_of_the_host")
@pytest.mark.parametrize("strategy", pipeline_dp.PartitionSelectionStrategy, ids=lambda strategy: strategy.name)
def test_selecting_partitions(strategy):
    with ours.patched():
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=5.0, total_delta=1e-12)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        params = pipeline_dp.SelectPartitionsParams(max_partitions_contributed=2, partition_selection_strategy=strategy)
        result = engine.select_partitions(VISITS, params, extractors())
        accountant.compute_budgets()
        assert {*result} == {"day0", "day1", "day2"}


@pytest.mark.usefixtures("no_noise_of_the_host")
@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_noise_for_aggregates(noise):
    with ours.patched():
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=5.0, total_delta=1e-12)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        params = pipeline_dp.aggregate_params.AddDPNoiseParams(
            noise_kind=noise, l0_sensitivity=1, linf_sensitivity=1, output_noise_stddev=True
        )
        result = engine.add_dp_noise([("a", 5.0), ("b", np.arange(1000.0))], params)
        accountant.compute_budgets()
        found = dict(result)
    assert found["a"].noised_value != 5.0
    assert (found["b"].noised_value != np.arange(1000)).all()
    assert found["b"].noise_stddev == found["a"].noise_stddev > 0


VECTOR = {"vector_norm_kind": NormKind.Linf, "vector_max_norm": 1.0, "vector_size": 4}


@pytest.mark.usefixtures("no_noise_of_the_host")
@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_vectors(noise):
    rows = [(person, "all", np.array([1.0, 0.5, 0.0, 0.0])) for person in range(400)]
    with ours.patched():
        found = aggregate([METRICS.VECTOR_SUM], noise, rows=rows, **VECTOR)["all"].vector_sum
    assert found.shape == (4,)
    assert found == pytest.approx([400, 200, 0, 0], abs=90)  # 100 scales at least
    assert (found != [400, 200, 0, 0]).all()


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_no_warning_tells_of_a_row(noise):
    def totals(number):
        metrics = [METRICS.COUNT, METRICS.SUM, METRICS.MEAN, METRICS.VARIANCE, METRICS.PRIVACY_ID_COUNT]
        return aggregate(metrics, noise, ["day0", "day7"], rows=[*VISITS[:60], (500, "day0", number)])

    def vectors(column):
        rows = [*((person, "all", np.ones(4)) for person in range(60)), (60, "all", column)]
        return aggregate([METRICS.VECTOR_SUM], noise, rows=rows, **VECTOR)

    params = vector_params(noise, NormKind.L2)
    with ours.patched():
        check_silent(totals, [*NUMBERS, columns(1)[-1][0]])
        check_silent(vectors, columns(4))
        check_silent(lambda column: dp_computations.add_noise_vector(column, params), columns(4))
    with pytest.raises(AssertionError, match="invalid value"):
        check_silent(vectors, columns(4))


def vector_params(noise, norm, epsilon=1.0):
    return dp_computations.AdditiveVectorNoiseParams(
        eps=epsilon, delta=1e-6, max_norm=1.0, l0_sensitivity=2, linf_sensitivity=1, norm_kind=norm, noise_kind=noise
    )


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
@pytest.mark.parametrize("norm", NormKind, ids=lambda norm: norm.name)
def test_sensitivities_and_errors_of_vectors_are_the_hosts(noise, norm, monkeypatch):
    """A vector has the sensitivity that the host gives to each of its values, or the host's error."""
    made = []
    for name in ("apply_laplace_mechanism", "apply_gaussian_mechanism"):
        monkeypatch.setattr(dp_computations, name, lambda value, *rest: made.append(rest) or value)
    vector = np.arange(5.0)

    def outcome():
        try:
            return dp_computations.add_noise_vector(vector, vector_params(noise, norm)).tolist()
        except ValueError as error:
            return str(error)

    theirs = outcome()
    asked = {*made}
    made.clear()
    with ours.patched():
        assert outcome() == theirs
    assert {*made} == asked
    assert len(made) <= 1


def test_wrong_kinds_of_vectors():
    params = vector_params("magic", NormKind.L1)
    with pytest.raises(ValueError, match="Unknown noise kind"), ours.patched():
        dp_computations.add_noise_vector(np.zeros(3), params)


def test_a_vector_is_released_as_a_whole():
    """Its values share the sensitivity, and what rounding each of them adds."""
    with ours.patched():
        released = dp_computations.add_noise_vector(np.zeros(1000), vector_params(NOISES[0], NormKind.L1))
        empty = dp_computations.add_noise_vector(np.zeros(0), vector_params(NOISES[0], NormKind.L1))
    assert empty.shape == (0,)
    assert released.shape == (1000,)
    assert len({*released}) > 990  # two are equal by chance with a probability of 2e-7


def test_a_mechanism_that_was_made_before_is_the_hosts():
    mechanism = dp_computations.LaplaceMechanism.create_from_epsilon(1.0, 1.0)
    with ours.patched():
        assert mechanism.add_noise(np.zeros((2, 2))).shape == (2, 2)
        assert isinstance(mechanism.add_noise(3), float)


@pytest.mark.parametrize(
    "make",
    [
        lambda: dp_computations.LaplaceMechanism.create_from_epsilon(0.5, 3.0),
        lambda: dp_computations.LaplaceMechanism.create_from_std_deviation(2.0, 3.0),
        lambda: dp_computations.GaussianMechanism.create_from_epsilon_delta(0.5, 1e-6, 3.0),
        lambda: dp_computations.GaussianMechanism.create_from_std_deviation(2.0, 3.0),
    ],
    ids=["Laplace", "Laplace of a deviation", "Gaussian", "Gaussian of a deviation"],
)
def test_mechanisms_describe_themselves_as_the_hosts_do(make):
    theirs = make()
    with ours.patched():
        mine = make()
        assert mine.add_noise(np.zeros(3)).shape == (3,)
        assert mine.add_noise(np.zeros(3, int)).dtype == np.float64
    assert mine.describe() == theirs.describe()
    assert (mine.std, mine.sensitivity) == (theirs.std, theirs.sensitivity)
    assert pickle.loads(pickle.dumps(mine)).describe() == theirs.describe()  # noqa: S301
    with pytest.raises(TypeError):
        pickle.dumps(theirs)


def test_budgets_by_privacy_loss_distributions():
    with ours.patched():
        accountant = pipeline_dp.PLDBudgetAccountant(5.0, 1e-6, pld_discretization=0.01)
        found = aggregate([METRICS.COUNT, METRICS.SUM], NOISES[1], ["day0"], accountant)
    assert found["day0"].count == pytest.approx(267, abs=150)


class Scores(dp_computations.ExponentialMechanism.ScoringFunction):
    global_sensitivity = 1.0

    def __init__(self, monotonic=False):
        self._monotonic = monotonic

    @property
    def is_monotonic(self):
        return self._monotonic

    def score(self, k):
        return float(k)


@pytest.mark.usefixtures("no_noise_of_the_host")
def test_the_exponential_mechanism():
    with ours.patched():
        mechanism = dp_computations.ExponentialMechanism(Scores())
        chosen = mechanism.apply(1.0, [1, 2, 3])
        assert isinstance(chosen, np.integer)
        assert chosen in (1, 2, 3)
        assert mechanism.apply(100.0, [1, 2, 1000]) == 1000
        for wrong in (0.0, -1.0, math.nan):
            with pytest.raises(ParameterError, match="epsilon must be"):
                mechanism.apply(wrong, [1, 2])
        with pytest.raises(ParameterError):
            mechanism.apply(1.0, [])


@pytest.mark.usefixtures("no_noise_of_the_host")
def test_private_contribution_bounds():
    params = pipeline_dp.CalculatePrivateContributionBoundsParams(
        aggregation_noise_kind=NOISES[0],
        aggregation_eps=1.0,
        aggregation_delta=0.0,
        calculation_eps=1.0,
        max_partitions_contributed_upper_bound=5,
    )
    with ours.patched():
        engine = pipeline_dp.DPEngine(None, pipeline_dp.LocalBackend())
        bounds = engine.calculate_private_contribution_bounds(VISITS, params, extractors(), ["day0", "day1", "day2"])
        assert 1 <= next(iter(bounds)).max_partitions_contributed <= 5


@pytest.mark.usefixtures("no_noise_of_the_host")
def test_samples():
    with ours.patched():
        few = [1, 2]
        assert sampling_utils.choose_from_list_without_replacement(few, 2) is few
        chosen = sampling_utils.choose_from_list_without_replacement([2**70, "b", None, 4.0], 3)
        assert len(chosen) == 3
        assert all(each in (2**70, "b", None, 4.0) for each in chosen)
        backend = pipeline_dp.LocalBackend()
        rows = [("a", each) for each in range(100)] + [("b", 1)]
        sampled = dict(backend.sample_fixed_per_key(rows, 7, "stage"))
        assert sampled["b"] == [1]
        assert len({*sampled["a"]}) == 7
        assert {*sampled["a"]} <= {*range(100)}


def test_seeds_of_numpy_decide_nothing():
    def draw():
        np.random.seed(1)  # noqa: NPY002 - what a user may have done
        return sampling_utils.choose_from_list_without_replacement([*range(1000)], 500)

    assert draw() == draw()
    with ours.patched():
        assert draw() != draw()
