"""Several attributes: errors and likelihood ratios by exact enumeration, predicted variances, and plans."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from api.several_attributes import BOTH, counted, mixed, small
from refusals import refuses

from dpnoise import ParameterError, local
from dpnoise.local import _estimate

# Errors, by exact enumeration.


def law(protocol) -> tuple[Fraction, Fraction]:
    """Give the exact probabilities of generalised randomised response to report the value, and any other."""
    fields = json.loads(protocol.to_json())
    keep = Fraction(fields["keep"], 2 ** fields["planes"])
    return keep + (1 - keep) / protocol.k, (1 - keep) / protocol.k


def test_unbiased_and_with_the_predicted_variance_in_every_small_collection():
    first = local.GeneralizedRandomizedResponse(k=2, epsilon=1.0)
    protocol = local.Sampled(attributes={"a": first, "b": first})
    p, q = law(first)
    values = [1, 1, 0, 1, 0]
    n, count = len(values), sum(values)
    exact: dict[int, list] = {}
    for drawn in itertools.product((0, 1), repeat=n):
        asked = [i for i in range(n) if drawn[i] == 0]
        for answers in itertools.product((0, 1), repeat=len(asked)):
            if not 0 < len(asked) < n:
                continue
            reports = np.zeros((n, 2), np.uint8)
            reports[:, 0] = drawn
            reports[asked, 1] = answers
            weight = math.prod(p if answer == values[i] else q for i, answer in zip(asked, answers, strict=True))
            estimate = protocol.estimate(reports)["a"]
            exact.setdefault(len(asked), []).append((weight, estimate.counts[1], estimate.standard_errors[1] ** 2))
    assert set(exact) == {1, 2, 3, 4}
    share = Fraction(count, n)
    for n_a, found in exact.items():
        total = sum(weight for weight, _, _ in found)
        mean = sum(weight * Fraction(c) for weight, c, _ in found) / total
        variance = sum(weight * (Fraction(c) - mean) ** 2 for weight, c, _ in found) / total
        of_report = (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2
        of_draw = share * (1 - share) * Fraction(n - n_a, n - 1)
        assert mean == pytest.approx(count, rel=1e-12)
        assert variance == pytest.approx(Fraction(n * n, n_a) * (of_report + of_draw), rel=1e-12)
        # Positive control: neither part is small here.
        assert variance != pytest.approx(Fraction(n * n, n_a) * of_report, rel=0.01) or n_a == n


def stated_error(found, own) -> float:
    return found.standard_error


def coverage(epsilon: float, count: int, error=stated_error, n: int = 100) -> float:
    """Give the exact probability that an interval at 95 % has the true count, over all draws and reports."""
    first = local.GeneralizedRandomizedResponse(k=2, epsilon=epsilon)
    protocol = local.Sampled(attributes={"a": first, "b": first})
    p, q = map(float, law(first))

    def binomial(m: int, x: float) -> np.ndarray:
        return np.array([math.comb(m, j) * x**j * (1 - x) ** (m - j) for j in range(m + 1)])

    covered = 0.0
    for n_a in range(1, n):
        of_reports = np.zeros(n_a + 1)
        for x in range(max(0, n_a - (n - count)), min(n_a, count) + 1):
            drawn = math.comb(count, x) * math.comb(n - count, n_a - x) / math.comb(n, n_a)
            of_reports += drawn * np.convolve(binomial(x, p), binomial(n_a - x, q))
        weight = math.comb(n, n_a) / (2**n - 2)
        for reported in np.flatnonzero(of_reports * weight > 1e-12).tolist():
            reports = np.repeat(
                np.array([[0, 0], [0, 1], [1, 0]], np.uint8), [n_a - reported, reported, n - n_a], axis=0
            )
            found = protocol.estimate(reports)["a"].count(1)
            margin = 1.959963984540054 * error(found, first.estimate(reports[:n_a, 1:]))
            covered += weight * of_reports[reported] * (abs(found.count - count) <= margin)
    return covered


@pytest.mark.parametrize(("epsilon", "count"), [(1.0, 50), (1.0, 5), (4.0, 50), (8.0, 30)])
def test_intervals_hold_as_often_as_they_say(epsilon, count):
    assert 0.93 < coverage(epsilon, count) < 0.975


def noise_alone(found, own) -> float:
    return own.standard_errors[1] * 100 / own.n


def with_replacement(found, own) -> float:
    share = min(max(own.counts[1] / own.n, 0.0), 1.0)
    return math.sqrt(noise_alone(found, own) ** 2 + 100**2 / own.n * share * (1.0 - share))


@pytest.mark.parametrize(("wrong", "epsilon", "count"), [(noise_alone, 4.0, 50), (with_replacement, 8.0, 30)])
def test_intervals_with_another_error_of_the_sample_are_noticed(wrong, epsilon, count):
    assert not 0.93 < coverage(epsilon, count, wrong) < 0.975


def test_the_standard_error_of_a_mean_is_at_least_that_of_the_sample_and_the_noise():
    first = local.DuchiMean(epsilon=3.0)
    fields = json.loads(first.to_json())
    keep = Fraction(fields["keep"], 2 ** fields["planes"])
    protocol = local.Sampled(attributes={"a": first, "b": first})
    numbers, n_a = [1, -1, 1, 1, 1], 3
    n, truth, means = len(numbers), Fraction(3, 5), []
    for asked in itertools.combinations(range(n), n_a):
        for answers in itertools.product((0, 1), repeat=n_a):
            reports = np.zeros((n, 2), np.uint8)
            reports[:, 0] = 1
            reports[asked, 0], reports[asked, 1] = 0, answers
            signs = [numbers[i] * (2 * answer - 1) for i, answer in zip(asked, answers, strict=True)]
            weight = math.prod((1 + sign * keep) / 2 for sign in signs) / math.comb(n, n_a)
            found = protocol.estimate(reports)["a"]
            assert found.n == n
            means.append((weight, Fraction(found.mean), Fraction(found.standard_error) ** 2))
    assert sum(weight for weight, _, _ in means) == 1
    assert sum(weight * mean for weight, mean, _ in means) == pytest.approx(truth, rel=1e-9)
    variance = sum(weight * (mean - truth) ** 2 for weight, mean, _ in means)
    noise, spread = 1 / keep**2 - 1, 1 - truth**2
    assert variance == pytest.approx(noise / n_a + spread * Fraction(n - n_a, (n - 1) * n_a), rel=1e-9)
    assert variance < (noise + spread) / n_a <= variance + spread / n
    # Estimated from a few reports, the bound itself is too small by what their mean is off.
    stated = sum(weight * error for weight, _, error in means)
    assert stated > variance


def test_consistent_counts_and_intervals_are_those_of_all_people():
    first = local.OptimizedUnaryEncoding(k=10, epsilon=1.0)
    protocol, n = local.Sampled(attributes={"a": first, "b": first}), 4000
    reports = protocol.perturb({"a": np.arange(n) % 3, "b": np.arange(n) % 2})
    collected, about_a = counted(protocol, reports), reports[reports[:, 0] == 0, 1:]
    plain, own = protocol.estimate(collected)["a"], first.estimate(about_a)
    scale = n / own.n
    assert plain.counts == pytest.approx(own.counts * scale)
    shares = np.clip(own.counts / own.n, 0.0, 1.0)
    of_sample = own.n * shares * (1.0 - shares) * (n - own.n) / (n - 1)
    assert plain.standard_errors == pytest.approx(scale * np.sqrt(own.standard_errors**2 + of_sample), rel=1e-12)
    for post in ("norm", "norm-mul", "norm-sub", "norm-cut", "base-cut"):
        # All methods give the same shares for counts and n of any scale.
        found = protocol.estimate(collected, post=post)["a"]
        assert found.counts == pytest.approx(first.estimate(about_a, post=post).counts * scale, abs=1e-6)
        assert (found.lower == plain.lower).all()
    wide = protocol.estimate(collected, simultaneous=True, level=0.9)["a"]
    margin = _estimate.normal_quantile(0.95, 10)  # 20 intervals in all
    assert wide.level == pytest.approx(0.95)
    assert wide.upper - plain.counts == pytest.approx(margin * plain.standard_errors)


@pytest.mark.parametrize("make", BOTH)
def test_levels_close_to_one_are_never_rounded_down(make):
    protocol = small(make)
    reports = protocol.perturb({"a": ["red"] * 99, "b": [3] * 99})
    for steps in (2, 3, 4, 5, 10):
        level = 1.0 - steps * 2.0**-53
        own = protocol.estimate(reports, level=level, simultaneous=True)["a"].level
        assert (own < 1.0, 2 * (1 - Fraction(own)) <= 1 - Fraction(level)) == (True, True)
    level = 1.0 - 2.0**-53
    assert protocol.estimate(reports, level=level)["a"].level == level
    message = f"level must be smaller for 2 attributes together, whose own rounds to 1, got {level!r}"
    refuses(ParameterError, message, protocol.estimate, reports, level=level, simultaneous=True)


# Privacy.


def likelihoods(protocol, record) -> dict:
    """Give the exact probability of each report of a person with a value for each attribute."""
    laws = [(one.k, *law(one)) for one in protocol.attributes.values()]
    answers = [{r: p if r == v else q for r in range(k)} for (k, p, q), v in zip(laws, record, strict=True)]
    if isinstance(protocol, local.Sampled):
        return {(a, r): chance / len(laws) for a, answer in enumerate(answers) for r, chance in answer.items()}
    return {
        tuple(r for r, _ in reports): math.prod(chance for _, chance in reports)
        for reports in itertools.product(*(answer.items() for answer in answers))
    }


def worst_ratio(mechanism, records) -> Fraction:
    found = [mechanism(record) for record in records]
    assert all(sum(one.values()) == 1 for one in found)
    return max(one[y] / other[y] for one, other in itertools.permutations(found, 2) for y in one)


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize(
    ("sizes", "epsilons"), [((2, 3), (1.0, 1.0)), ((3, 3), (0.5, 2.0)), ((2, 3, 4), (0.3, 0.3, 0.2))]
)
def test_the_exact_likelihood_ratio_of_whole_records_is_that_of_epsilon(make, sizes, epsilons):
    protocols = {
        f"attribute {i}": local.GeneralizedRandomizedResponse(k=k, epsilon=epsilon)
        for i, (k, epsilon) in enumerate(zip(sizes, epsilons, strict=True))
    }
    protocol = make(attributes=protocols)
    ratio = worst_ratio(lambda record: likelihoods(protocol, record), itertools.product(*map(range, sizes)))
    assert protocol.epsilon - 1e-12 < math.log(ratio) <= protocol.epsilon
    requested = max(epsilons) if make is local.Sampled else sum(epsilons)
    assert 0.998 * requested < protocol.epsilon <= requested


def fake_data(record, k: int, odds: Fraction) -> dict:
    """Give the probabilities of outputs of random sampling plus fake data, with randomised response of these odds."""
    d = len(record)
    p, q = odds / (odds + k - 1), 1 / (odds + k - 1)
    return {
        output: sum((p if output[j] == record[j] else q) * Fraction(1, k) ** (d - 1) for j in range(d)) / d
        for output in itertools.product(range(k), repeat=d)
    }


@pytest.mark.parametrize(("d", "k"), [(2, 2), (2, 3), (2, 5), (3, 2), (3, 3), (4, 2)])
def test_random_sampling_plus_fake_data_promises_epsilon_for_one_attribute_alone(d, k):
    odds = Fraction(math.e)  # e**epsilon for epsilon = 1, as a fraction
    amplified = d * (odds - 1) + 1
    records = list(itertools.product(range(k), repeat=d))
    outputs = {record: fake_data(record, k, amplified) for record in records}
    one = [(0,) * d, (1,) + (0,) * (d - 1)]
    assert worst_ratio(outputs.__getitem__, one) == odds
    assert worst_ratio(outputs.__getitem__, records) == amplified
    if (d, k) == (2, 3):
        assert round(math.log(amplified), 3) == 1.490


def test_random_sampling_plus_fake_data_is_worse_at_the_same_epsilon():
    d, k = 5, 10
    amplified = d * (math.e - 1) + 1  # what epsilon = 1 for one attribute costs for all
    p, q = (x / (amplified + k - 1) for x in (amplified, 1.0))
    hidden = q / d + (1 - 1 / d) / k  # a report has a value that its sender has not
    fake = hidden * (1 - hidden) * d**2 / (p - q) ** 2
    answers = {
        f"attribute {i}": local.GeneralizedRandomizedResponse(k=k, epsilon=math.log(amplified)) for i in range(d)
    }
    sampled = local.Sampled(attributes=answers).variance("attribute 0", 1)
    assert 8.0 < fake / sampled < 8.2


def test_variances_of_five_attributes_of_ten_values():
    def variance(make, epsilon):
        protocols = {f"attribute {i}": local.OptimizedUnaryEncoding(k=10, epsilon=epsilon) for i in range(5)}
        return make(attributes=protocols).variance("attribute 0", 1)

    assert round(variance(local.Sampled, 1.0)) == 18
    assert round(variance(local.Split, 0.2)) == 100
    plan = local.plan_attributes(n=1000, attributes={f"attribute {i}": 10 for i in range(5)}, epsilon=1.0)
    sampled, split = plan.candidates
    assert isinstance(sampled.protocol, local.Sampled)
    assert isinstance(split.protocol, local.Split)
    assert 0.999 <= sampled.protocol.epsilon <= 1.0
    assert 0.999 <= split.protocol.epsilon <= 1.0
    for candidate in plan.candidates:
        best = next(iter(candidate.protocol.attributes.values()))
        assert type(best) is type(local.plan(n=1000, k=10, epsilon=1.0)[0].protocol)
        deviation = math.sqrt(candidate.protocol.variance("attribute 0", 1000))
        assert candidate.standard_deviations == dict.fromkeys(candidate.protocol.attributes, deviation)
        assert candidate.report_bytes == candidate.protocol.report_bytes
    assert len(plan.to_pandas()) == 10


def test_plans_refuse_what_they_cannot_compare():
    def plan(attributes, epsilon=1.0):
        return local.plan_attributes(n=10, attributes=attributes, epsilon=epsilon)

    refuses(TypeError, "attributes must be a mapping of names to numbers, got list", plan, [3, 4])
    refuses(ParameterError, "from 2 to 256 of them; one needs only its protocol, got 1", plan, {"a": 3})
    refuses(ParameterError, "attributes['b']: k must be an integer from 2", plan, {"a": 3, "b": 1})
    for epsilon, shown in ((math.nan, "NaN"), (2.0**-21, "")):
        with pytest.raises(ParameterError, match=rf"^epsilon must be between 2\*\*-20 and 32, got {shown}"):
            plan({"a": 3, "b": 2}, epsilon)
    for n in (0, -1, 2**64):
        with pytest.raises(ParameterError, match=r"^n must be "):
            local.plan_attributes(n=n, attributes={"a": 3, "b": 2}, epsilon=1.0)


def test_plans_leave_out_shares_that_no_protocol_takes():
    found = [local.plan_attributes(n=10, attributes={"a": 3, "b": 2}, epsilon=2.0**-i).candidates for i in (19, 20)]
    assert [[type(one.protocol) for one in candidates] for candidates in found] == [BOTH, [local.Sampled]]


@pytest.mark.parametrize("make", BOTH)
def test_predicted_variances(make):
    protocol = mixed(make, epsilon=1.0)
    alone = protocol.attributes
    d = len(alone) if make is local.Sampled else 1
    assert protocol.variance("colour", 500, 0.25) == pytest.approx(
        d * alone["colour"].variance(500, 0.25) + (d - 1) * 500 * 0.25 * 0.75
    )
    assert protocol.variance("mood", 500, 0.5) == pytest.approx(d * alone["mood"].variance(500, 0.5))
    refuses(ParameterError, 'attribute must be one of "colour", ', protocol.variance, "color", 5)
    refuses(ParameterError, 'or of a mean, got "height" of square_wave', protocol.variance, "height", 5)
    refuses(ParameterError, "n must be an integer from 1", protocol.variance, "mood", 0)
    refuses(TypeError, "attribute must be a str, got int", protocol.variance, 3, 5)
    refuses(ParameterError, 'at must be between 0 and 1 for "colour", got 1.5', protocol.variance, "colour", 5, at=1.5)
    refuses(ParameterError, 'at must be between 0 and 1 for "colour", got -1', protocol.variance, "colour", 5, at=-1)
    refuses(ParameterError, 'at must be between -1 and 1 for "mood", got 2', protocol.variance, "mood", 5, at=2)
    refuses(
        ParameterError, 'at must be between -1 and 1 for "mood", got NaN', protocol.variance, "mood", 5, at=math.nan
    )


def test_errors_of_an_unequal_collection_are_those_of_theory():
    protocols = {
        "occupation": local.OptimizedUnaryEncoding(k=15, epsilon=1.0),
        "income": local.RandomizedResponse(epsilon=1.0),
    }
    n = 30_000
    columns = {"occupation": np.minimum(np.arange(n) % 100, 14), "income": np.arange(n) % 4 == 0}
    truths = {name: np.bincount(np.asarray(column).astype(int)) for name, column in columns.items()}
    for make in BOTH:
        protocol = make(attributes=protocols)
        for _ in range(5):
            found = protocol.estimate(protocol.perturb(columns))
            for name, truth in truths.items():
                # 170 scores in all; one beyond 7 has a probability of 2.6e-12.
                assert (np.abs(found[name].counts - truth) < 7 * found[name].standard_errors).all()
    # Positive control: of a fifth of the people, every answer is yes: 27 standard errors, so a score of less than 7
    # has a probability below 1e-80.
    columns["income"] |= np.arange(n) % 5 == 0
    found = protocol.estimate(protocol.perturb(columns))["income"]
    assert (np.abs(found.counts - truths["income"]) > 7 * found.standard_errors).all()
