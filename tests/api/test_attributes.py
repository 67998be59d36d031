"""Several attributes: estimates by exact enumeration, and everything that cannot be randomised, read or counted."""

import itertools
import json
import math
import pickle
import re
import zlib
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpnoise import ParameterError, _native, local
from dpnoise.local import _attributes, _estimate

BOTH = [local.Sampled, local.Split]
CERTAIN = 32.0  # at this epsilon a report differs from the value with a probability below 1e-11
COLOURS = ["red", "green", "blue"]


def refuses(kind: type[Exception], message: str, call, *args, **kwargs) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        call(*args, **kwargs)


def mixed(make=local.Sampled, epsilon: float = CERTAIN, **others):
    """Give attributes of every kind that there is."""
    protocols = {
        "colour": local.OptimizedUnaryEncoding(domain=COLOURS, epsilon=epsilon),
        "size": local.GeneralizedRandomizedResponse(k=300, epsilon=epsilon),
        "smokes": local.RandomizedResponse(epsilon=epsilon),
        "height": local.SquareWave(k=16, epsilon=epsilon),
        "mood": local.HybridMean(epsilon=epsilon),
        "debt": local.LaplaceMean(epsilon=epsilon),
        "age": local.HierarchicalRange(k=100, epsilon=epsilon),
        "word": local.CountMeanSketch(epsilon=epsilon, rows=64, width=64),
        "place": local.PrefixExtension(bits=16, epsilon=epsilon, rows=64, width=64),
    }
    return make(attributes=protocols | others)


def people(n: int) -> dict:
    i = np.arange(n)
    return {
        "colour": [COLOURS[j % 3] for j in i],
        "size": i % 300,
        "smokes": i % 4 == 0,
        "height": np.full(n, 0.5),
        "mood": np.where(i % 2 == 0, 1.0, -0.5),
        "debt": np.full(n, 0.25),
        "age": i % 50,
        "word": ["plum" if j % 2 else "pear" for j in i],
        "place": np.full(n, 4711),
    }


def counted(protocol, reports):
    accumulator = protocol.accumulator()
    accumulator.add(reports)
    return accumulator


# What reports and estimates are.


@pytest.mark.parametrize("make", BOTH)
def test_estimates_of_all_kinds_are_about_all_people(make):
    protocol, n = mixed(make), 9000
    found = protocol.estimate(protocol.perturb(people(n)), candidates={"word": ["plum", "fig"]})
    assert list(found) == list(protocol.attributes)
    assert {estimate.n for estimate in found.values()} == {n}
    # Standard deviations are up to 60 with a report from each person about each attribute, and 200 with one of
    # nine; only that of a range is 740. Seven of them are exceeded with probability 2.6e-12.
    near = 1500 if make is local.Sampled else 450
    assert abs(found["colour"].count("red").count - 3000) < near
    assert abs(found["smokes"].counts[1] - 2250) < near
    assert abs(found["word"].counts[0] - 4500) < near
    assert abs(found["age"].range(0, 49).count - 9000) < 5500
    assert abs(found["mood"].mean - 0.25) < 0.2
    assert abs(found["debt"].mean - 0.25) < 0.1
    assert abs(found["height"].mean() - 0.5) < 0.1
    assert found["place"].values[0] == 4711
    assert found["size"].counts.shape == (300,)
    assert found["colour"].domain == tuple(COLOURS)


def test_a_report_of_sampled_is_the_number_of_one_attribute_and_the_report_on_it():
    protocols = {
        "a": local.GeneralizedRandomizedResponse(k=300, epsilon=CERTAIN),
        "b": local.GeneralizedRandomizedResponse(k=7, epsilon=CERTAIN),
        "c": local.RandomizedResponse(epsilon=CERTAIN),
    }
    protocol, n = local.Sampled(attributes=protocols), 3000
    columns = {"a": np.arange(n) % 300, "b": np.arange(n) % 7, "c": np.arange(n) % 2 == 1}
    reports = protocol.perturb(columns)
    assert reports.shape == (n, 3)
    contents = reports[:, 1] + 256 * reports[:, 2].astype(np.int64)
    values = np.stack([np.asarray(columns[name]).astype(np.int64) for name in protocols])
    assert (contents == values[reports[:, 0], np.arange(n)]).all()
    assert set(reports[:, 0].tolist()) == {0, 1, 2}
    out = np.full((n, 3), 255, np.uint8)
    assert protocol.perturb(columns, out=out, threads=1) is out
    assert (out[out[:, 0] > 0, 2] == 0).all()


def test_a_report_of_split_is_all_reports_side_by_side():
    protocols = {
        "a": local.GeneralizedRandomizedResponse(k=300, epsilon=CERTAIN),
        "b": local.GeneralizedRandomizedResponse(k=7, epsilon=CERTAIN),
    }
    reports = local.Split(attributes=protocols).perturb({"b": [5, 6], "a": [257, 3]})
    assert reports.tolist() == [[1, 1, 5], [3, 0, 6]]


def test_the_attribute_is_drawn_exactly_uniformly(monkeypatch):
    for d in range(2, 257):
        drawn = iter([bytes(range(256)), bytes(256)])  # each byte once; and 0 for each that is drawn again
        monkeypatch.setattr(_native, "random_bytes", lambda n, drawn=drawn: next(drawn)[:n])
        found = np.bincount(_attributes._uniform(256, d), minlength=d)
        found[0] -= 256 % d
        assert found.tolist() == [256 // d] * d
    monkeypatch.undo()
    assert np.bincount(np.arange(256) % 3).tolist() != [85] * 3  # the remainder alone would not be uniform
    assert _attributes._uniform(0, 3).size == 0


@pytest.mark.parametrize("make", BOTH)
def test_columns_may_be_a_data_frame(make):
    protocols = {
        "a": local.GeneralizedRandomizedResponse(domain=COLOURS, epsilon=CERTAIN),
        "b": local.DuchiMean(epsilon=1.0),
    }
    protocol, columns = make(attributes=protocols), {"a": ["blue", "red"] * 500, "b": [0.5, -1.0] * 500}
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    for frame in (pandas.DataFrame(columns), polars.DataFrame(columns), pyarrow.table(columns)):
        found = counted(protocol, protocol.perturb(frame))
        assert (found.n, found.rejected) == (1000, 0)
        assert protocol.estimate(found)["a"].count("green").count < 1e-3
    twice = pandas.DataFrame([["red", 0.5, 0.5]], columns=["a", "b", "b"])
    refuses(ParameterError, "different names, got more of 'b'", protocol.perturb, twice)
    refuses(
        ParameterError,
        "different names, got more of 'b'",
        protocol.perturb,
        pyarrow.Table.from_pandas(pandas.DataFrame(columns)).append_column("b", [columns["b"]]),
    )


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


def coverage(epsilon: float, count: int, n: int = 100) -> float:
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
            collected = protocol.accumulator()
            for name, counters in (("a", [n_a - reported, reported]), ("b", [n - n_a, 0])):
                collected._counts[name].add(np.repeat(np.array([[0], [1]], np.uint8), counters, axis=0))
            found = protocol.estimate(collected)["a"].count(1)
            covered += weight * of_reports[reported] * (found.lower <= count <= found.upper)
    return covered


@pytest.mark.parametrize(("epsilon", "count"), [(1.0, 50), (1.0, 5), (4.0, 50), (8.0, 30)])
def test_intervals_hold_as_often_as_they_say(epsilon, count):
    assert 0.93 < coverage(epsilon, count) < 0.975


def noise_alone(found, people):
    counts, errors, n, rejected = found
    return found if people is None else (counts * people / n, errors * people / n, people, rejected)


def with_replacement(found, people):
    counts, errors, n, rejected = noise_alone(found, people)
    shares = np.clip(counts / people, 0.0, 1.0)
    sampled = found[2]
    return counts, np.sqrt(errors**2 + people**2 / sampled * shares * (1.0 - shares)), n, rejected


@pytest.mark.parametrize(("wrong", "epsilon", "count"), [(noise_alone, 4.0, 50), (with_replacement, 8.0, 30)])
def test_intervals_with_another_error_of_the_sample_are_noticed(wrong, epsilon, count, monkeypatch):
    monkeypatch.setattr(_estimate, "of_all_people", wrong)
    assert not 0.93 < coverage(epsilon, count) < 0.975


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
    collected = counted(protocol, protocol.perturb({"a": np.arange(n) % 3, "b": np.arange(n) % 2}))
    plain, own = protocol.estimate(collected)["a"], collected._counts["a"].estimate()
    scale = n / own.n
    assert plain.counts == pytest.approx(own.counts * scale)
    shares = np.clip(own.counts / own.n, 0.0, 1.0)
    of_sample = own.n * shares * (1.0 - shares) * (n - own.n) / (n - 1)
    assert plain.standard_errors == pytest.approx(scale * np.sqrt(own.standard_errors**2 + of_sample), rel=1e-12)
    for post in ("norm", "norm-mul", "norm-sub", "norm-cut", "base-cut"):
        # All methods give the same shares for counts and n of any scale.
        found = protocol.estimate(collected, post=post)["a"]
        assert found.counts == pytest.approx(collected._counts["a"].estimate(post=post).counts * scale, abs=1e-6)
        assert (found.lower == plain.lower).all()
    wide = protocol.estimate(collected, simultaneous=True, level=0.9)["a"]
    margin = _estimate.normal_quantile(0.95, 10)  # 20 intervals in all
    assert wide.level == pytest.approx(0.95)
    assert wide.upper - plain.counts == pytest.approx(margin * plain.standard_errors)


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
    refuses(ParameterError, "attributes must be from 2 to 256, got 1", plan, {"a": 3})
    refuses(ParameterError, "attributes['b']: k must be an integer from 2", plan, {"a": 3, "b": 1})
    refuses(ParameterError, "epsilon must be between 2**-20 and 32, got NaN", plan, {"a": 3, "b": 2}, math.nan)


@pytest.mark.parametrize("make", BOTH)
def test_predicted_variances(make):
    protocol = mixed(make, epsilon=1.0)
    alone = protocol.attributes
    d = len(alone) if make is local.Sampled else 1
    assert protocol.variance("colour", 500, 0.25) == pytest.approx(
        d * alone["colour"].variance(500, 0.25) + (d - 1) * 500 * 0.25 * 0.75
    )
    assert protocol.variance("mood", 500, 0.5) == pytest.approx(d * alone["mood"].variance(500, 0.5))
    refuses(ParameterError, "attribute must be one of 'colour', ", protocol.variance, "color", 5)
    refuses(TypeError, "got one of SquareWave", protocol.variance, "height", 5)
    refuses(ParameterError, "n must be an integer from 1", protocol.variance, "mood", 0)
    refuses(ParameterError, "between 0 and 1", protocol.variance, "colour", 5, 1.5)


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
    # Positive control: a fifth of the people gives another answer.
    columns["income"] = np.arange(n) % 4 <= (np.arange(n) % 5 == 0)
    found = protocol.estimate(protocol.perturb(columns))["income"]
    assert (np.abs(found.counts - truths["income"]) > 7 * found.standard_errors).all()


# What is refused.


@pytest.mark.parametrize("make", BOTH)
def test_attributes_that_are_none(make):
    yes = local.RandomizedResponse(epsilon=1.0)
    asked_again = local.DBitFlip(k=4, epsilon=1.0, d=2)
    rappor = local.Rappor(num_bloombits=16, num_hashes=2, num_cohorts=64, f=0.5, p=0.5, q=0.75)
    for attributes, kind, message in [
        ([("a", yes), ("b", yes)], TypeError, "attributes must be a mapping of names to protocols, got list"),
        ({}, ParameterError, "attributes must be from 2 to 256, got 0"),
        ({"a": yes}, ParameterError, "got 1: a single attribute needs only its protocol"),
        ({f"a{i}": yes for i in range(257)}, ParameterError, "attributes must be from 2 to 256, got 257"),
        ({"a": yes, "": yes}, ParameterError, "not empty and that UTF-8 can hold, got ''"),
        ({"a": yes, "\ud800": yes}, ParameterError, "not empty and that UTF-8 can hold, got '\\ud800'"),
        ({"a": yes, 3: yes}, TypeError, "names of attributes must be str, got int"),
        (
            {"a": yes, "b": 3},
            TypeError,
            "attributes['b'] must be a protocol of dpnoise.local for one attribute, got int",
        ),
        ({"a": yes, "b": make(attributes={"c": yes, "d": yes})}, TypeError, f"for one attribute, got {make.__name__}"),
        ({"a": yes, "b": asked_again}, TypeError, "attributes['b'] must be a protocol without a memo"),
        ({"a": yes, "b": rappor}, TypeError, "attributes['b'] must be a protocol without a memo"),
    ]:
        refuses(kind, message, make, attributes=attributes)
    refuses(TypeError, f"{make.__name__} takes its parameters by name, use attributes=", make, {"a": yes, "b": yes})


@pytest.mark.parametrize("make", BOTH)
def test_columns_are_checked_before_anything_is_drawn(make, monkeypatch):
    def nothing_is_drawn(*_):
        raise AssertionError

    protocol, good = mixed(make), people(20)
    monkeypatch.setattr(_native, "random_bytes", nothing_is_drawn)
    monkeypatch.setattr(local.Protocol, "_reports", nothing_is_drawn)
    bad = {
        "colour": (["red"] * 19 + ["secret"], ParameterError),
        "size": ([0] * 19 + [300], ParameterError),
        "smokes": ([True] * 19 + [None], TypeError),
        "height": ([0.5] * 19 + [1.0000001], ParameterError),
        "mood": ([0.5] * 19 + [math.nan], ParameterError),
        "debt": ([0.5] * 19 + [-2], ParameterError),
        "age": ([0] * 19 + [-1], ParameterError),
        "word": (["plum"] * 19 + ["\ud800"], ParameterError),
        "place": ([0] * 19 + [2**16], ParameterError),
    }
    assert set(bad) == set(good)
    for name, (column, kind) in bad.items():
        with pytest.raises(kind, match=re.escape(f"columns[{name!r}]")) as caught:
            protocol.perturb(good | {name: column})
        assert not any(text in str(caught.value) for text in ("secret", "1.0000001", "65536", "got 300"))
    refuses(
        ParameterError, "got unknown 'color', missing 'colour'", protocol.perturb, {"color": good.pop("colour"), **good}
    )
    good["colour"] = ["red"] * 21
    refuses(ParameterError, "one value for each person, got lengths {'colour': 21, 'size': 20", protocol.perturb, good)
    refuses(TypeError, "columns must be a mapping of names to columns or a data frame, got list", protocol.perturb, [1])
    good["colour"] = ["red"] * 20
    refuses(ParameterError, "out must have the shape", protocol.perturb, good, out=np.empty((3, 3), np.uint8))
    with pytest.raises(AssertionError):  # positive control
        protocol.perturb(good)


@pytest.mark.parametrize("make", BOTH)
def test_estimates_need_reports_and_candidates(make):
    protocol = mixed(make)
    reports = protocol.perturb(people(2000))
    refuses(
        ParameterError,
        "candidates must be given by the names of attributes, got missing 'word'",
        protocol.estimate,
        reports,
    )
    texts = {"word": ["plum"]}
    refuses(TypeError, "candidates must be a mapping", protocol.estimate, reports, candidates=["plum"])
    refuses(ParameterError, "got unknown 'colour'", protocol.estimate, reports, candidates=texts | {"colour": ["x"]})
    refuses(ParameterError, "level must be between 0 and 1", protocol.estimate, reports, candidates=texts, level=1.0)
    refuses(ParameterError, "post must be None or one of", protocol.estimate, reports, candidates=texts, post="no")
    empty = protocol.accumulator()
    refuses(ParameterError, "every attribute, got none about 'colour'", protocol.estimate, empty, candidates=texts)
    other = mixed(make, epsilon=1.0).accumulator()
    refuses(ParameterError, "collected must be of", protocol.estimate, other, candidates=texts)
    refuses(ParameterError, "reports must have shape", protocol.estimate, reports[:, :-1], candidates=texts)


# Specifications.


@pytest.mark.parametrize("make", BOTH)
def test_specifications_round_trip(make):
    protocol = mixed(make, **{'\u00e9 "\n': local.HadamardResponse(k=9, epsilon=1e-6)})
    text = protocol.to_json()
    assert text.isascii()
    read = make.from_json(f" {text}\r\n", domains={"colour": COLOURS})
    assert (read, hash(read), read.to_json(), read.spec_id) == (protocol, hash(protocol), text, protocol.spec_id)
    assert make.from_json(text) != protocol  # it has no labels
    assert pickle.loads(pickle.dumps(protocol)) == protocol  # noqa: S301
    assert read != mixed(make)
    assert {name: one.to_json() for name, one in protocol.attributes.items()} == dict(json.loads(text)["attributes"])
    with pytest.raises(TypeError):
        protocol.attributes["colour"] = protocol.attributes["size"]


def test_the_two_kinds_and_the_order_matter():
    yes, no = local.RandomizedResponse(epsilon=1.0), local.DuchiMean(epsilon=1.0)
    one, other = {"a": yes, "b": no}, {"b": no, "a": yes}
    made = [make(attributes=attributes) for make in BOTH for attributes in (one, other)]
    assert len(set(made)) == len({each.spec_id for each in made}) == 4


def test_specifications_that_are_none():
    yes = local.RandomizedResponse(epsilon=1.0)
    protocol = local.Sampled(attributes={"a": yes, "b": yes})
    text, fields = protocol.to_json(), json.loads(protocol.to_json())

    def changed(**changes):
        return json.dumps(fields | changes, separators=(",", ":"))

    inner = yes.to_json()
    for wrong, message in [
        (changed(attributes=[["a", inner], ["a", inner]]), "attributes must have different names, got more of 'a'"),
        (changed(attributes=[["a", inner]]), "attributes must be from 2 to 256, got 1"),
        (changed(attributes=[["a", inner], ["", inner]]), "names of attributes must be texts that are not empty"),
        (changed(attributes=[["a", inner], ["b", text]]), "attribute 'b': not a protocol specification"),
        (changed(attributes=[["a", inner], ["b", inner.replace("1497", "1999")]]), "attribute 'b'"),
        (changed(attributes=[["a", inner], ["b", json.loads(inner)]]), "must list pairs of texts"),
        (changed(attributes={"a": inner, "b": inner}), "must list pairs of texts"),
        (changed(version=2), "must have version 1, got 2"),
        (changed(more=1), "got one that was written again"),
        (changed(protocol="smp"), "text must be a specification whose \"protocol\" is 'sampled' or 'split'"),
        (changed(protocol=["sampled"]), "got something else"),
        (changed(protocol="split"), "the specification must be of Sampled, got one of Split"),
        (text.replace(",", ", ", 1), "got one that was written again"),
        (text.replace('"version":1', '"version":1,"version":1'), "got one that was written again"),
        (inner, "got something else"),
        ("[" * 100_000, "got something else"),
        ("", "got something else"),
    ]:
        refuses(ParameterError, message, local.Sampled.from_json, wrong)
    refuses(TypeError, "text must be a str, got bytes", local.Sampled.from_json, text.encode())
    refuses(TypeError, "domains must be a mapping", local.Sampled.from_json, text, domains=COLOURS)
    refuses(ParameterError, "got unknown 'c'", local.Sampled.from_json, text, domains={"c": [1, 2]})
    refuses(
        ParameterError,
        "attribute 'b': domain must have 2 values",
        local.Sampled.from_json,
        text,
        domains={"b": COLOURS},
    )
    refuses(ParameterError, "not a protocol specification", local.protocol_from_json, text)


def test_the_specification_of_the_page_is_one():
    page = (Path(__file__).parents[2] / "docs/reference/wire_format.md").read_text(encoding="utf-8")
    (text,) = re.findall(r'^\{"attributes".*$', page, re.MULTILINE)
    smokes, mood = local.Sampled.from_json(text).attributes.values()
    assert (smokes, mood) == (local.RandomizedResponse.coin_flips(), local.DuchiMean(epsilon=1.0))


# Counting.


def small(make=local.Sampled, epsilon=1.0):
    protocols = {
        "a": local.GeneralizedRandomizedResponse(domain=COLOURS, epsilon=epsilon),
        "b": local.GeneralizedRandomizedResponse(k=300, epsilon=epsilon),
    }
    return make(attributes=protocols)


def test_malformed_reports_of_sampled_are_counted_by_reason():
    protocol = small()
    good = [[0, 2, 0], [1, 43, 1]]
    bad = [[2, 0, 0], [255, 0, 0], [0, 1, 1], [0, 3, 0], [1, 44, 1], [1, 255, 255]]
    found = counted(protocol, np.array(good + bad, np.uint8))
    assert (found.n, found.n_by_attribute, found.rejected) == (2, {"a": 1, "b": 1}, 6)
    reasons = found.rejected_reasons
    assert (reasons.pop("unknown attribute"), reasons.pop("padding set"), sum(reasons.values())) == (2, 1, 3)
    estimate = protocol.estimate(found)
    assert (estimate["a"].n, estimate["a"].rejected, estimate["b"].rejected) == (2, 1, 2)
    before = found.to_bytes()
    refuses(ParameterError, "strict is true, got malformed: ", found.add, np.array(good + bad, np.uint8), strict=True)
    assert found.to_bytes() == before


def test_a_malformed_part_of_split_costs_that_part():
    protocol = small(local.Split)
    found = counted(protocol, np.array([[2, 43, 1], [3, 43, 1], [1, 44, 1], [3, 44, 1]], np.uint8))
    assert (found.n, found.n_by_attribute, found.rejected) == (4, {"a": 2, "b": 2}, 4)
    estimate = protocol.estimate(found)
    assert (estimate["a"].n, estimate["a"].rejected) == (2, 2)


@pytest.mark.parametrize("make", BOTH)
def test_messages(make):
    protocol, other = small(make), small(make, epsilon=2.0)
    columns = {"a": ["red", "blue", "red"], "b": [1, 299, 3]}
    reports = protocol.perturb(columns)
    messages = protocol.messages(reports)
    assert {message[:12] for message in messages} == {
        b"DP\x01" + bytes([protocol._code]) + bytes.fromhex(protocol.spec_id)
    }
    found = protocol.accumulator()
    foreign = [*other.messages(other.perturb(columns)), *protocol.attributes["b"].messages(reports[:, 1:3])]
    found.add_messages([*messages, *foreign, messages[0] + b"\0", messages[1][:-1], messages[2][:12], b"", b"DP"])
    assert found.rejected_reasons == {"wrong header": len(foreign) + 2, "wrong length": 3}
    found._rejected.clear()
    assert found == counted(protocol, reports)
    refuses(TypeError, "messages must be bytes, got str", found.add_messages, ["DP"])
    refuses(ParameterError, "wrong header: 1", found.add_messages, [*messages, b""], strict=True)
    assert found == counted(protocol, reports)


@pytest.mark.parametrize("make", BOTH)
def test_states_merge_to_the_same_bytes(make):
    protocol = mixed(make, epsilon=1.0)
    reports = protocol.perturb(people(500))
    reports[::7] ^= 255
    whole, total = counted(protocol, reports), protocol.accumulator()
    for part in np.array_split(reports, 3):
        total.merge(local.AttributesAccumulator.from_bytes(counted(protocol, part).to_bytes()))
    assert total == whole
    assert (whole.rejected > 0, whole.n_by_attribute == total.n_by_attribute) == (True, True)
    copy = pickle.loads(pickle.dumps(whole))  # noqa: S301
    assert (copy, copy.protocol, copy.rejected_reasons) == (whole, protocol, whole.rejected_reasons)
    total.merge(total)
    assert total.n == 2 * whole.n
    assert whole != reports
    assert f"{whole.n} reports ({whole.rejected} rejected) of {make.__name__}" in repr(whole)


@pytest.mark.parametrize("make", BOTH)
def test_states_of_other_attributes_are_named_and_nothing_is_lost(make):
    protocol = small(make)
    found = counted(protocol, protocol.perturb({"a": ["red"] * 9, "b": [3] * 9}))
    before = found.to_bytes()
    renamed = make(attributes=dict(zip("ac", protocol.attributes.values(), strict=True)))
    relabelled = make.from_json(protocol.to_json(), domains={"a": ["x", "y", "z"]})
    for other in (small(make, epsilon=2.0), renamed, relabelled, small(BOTH[make is BOTH[0]])):
        refuses(ParameterError, f"got one of {other!r}", found.merge, other.accumulator())
    for other in (protocol.attributes["a"].accumulator(), before):
        refuses(TypeError, "other must be an AttributesAccumulator", found.merge, other)
    refuses(TypeError, "other must be an Accumulator", protocol.attributes["a"].accumulator().merge, found)
    assert found.to_bytes() == before
    without_labels = local.AttributesAccumulator.from_bytes(before)
    assert protocol.estimate(without_labels)["a"].domain == tuple(COLOURS)
    refuses(TypeError, "protocol must be Sampled or Split", local.AttributesAccumulator, protocol.attributes["a"])
    refuses(TypeError, f"for one attribute, got {make.__name__}", local.Accumulator, protocol)


@pytest.mark.parametrize("make", BOTH)
def test_damaged_states_are_refused(make):
    protocol = small(make)
    state = counted(protocol, protocol.perturb({"a": ["red"] * 9, "b": [3] * 9})).to_bytes()
    read = local.AttributesAccumulator.from_bytes

    def sealed(changed: bytes) -> bytes:
        """Make the length and the checksum right again."""
        changed = changed[:8] + (len(changed) + 4).to_bytes(8, "little") + changed[16:]
        return changed + zlib.crc32(changed).to_bytes(4, "little")

    assert read(sealed(state[:-4])).to_bytes() == state
    for i in range(0, len(state), 3):
        for damaged in (state[:i], state[:i] + bytes([state[i] ^ 16]) + state[i + 1 :]):
            with pytest.raises(ParameterError, match=r"state"):
                read(damaged)
    id_at = state.index(bytes.fromhex(protocol.spec_id))
    inner = state.index(b"DPNA", 4)
    for changed, message in [
        (state[:-4] + b"x", "bytes follow the last attribute"),
        (state[:inner], "state"),
        (state[:id_at] + bytes(8) + state[id_at + 8 : -4], "its id is not that of its specification"),
        (state[:id_at], "the state is damaged"),
        (state[:16] + (2**31).to_bytes(4, "little") + state[20:-4], "the state is damaged"),
        (state[:20] + b"\xff" + state[21:-4], "the state is damaged"),
        (state[:inner] + protocol.attributes["b"].accumulator().to_bytes() * 2, "the protocol of attribute 'a'"),
    ]:
        refuses(ParameterError, message, read, sealed(changed))
    refuses(ParameterError, "this release reads up to 1: upgrade", read, state[:5] + b"\x02" + state[6:])
    refuses(ParameterError, "use Accumulator.from_bytes", read, protocol.attributes["a"].accumulator().to_bytes())
    refuses(ParameterError, "does not begin with DPNA", read, b"PNG")
    refuses(TypeError, "state must be bytes, got str", read, "DPNA")
    refuses(ParameterError, "unknown family", local.Accumulator.from_bytes, state)


def test_engines_name_what_they_take():
    from dpnoise.engines import multiprocess

    refuses(TypeError, "for one attribute, got Sampled", multiprocess.collect, small(), [])


def test_each_person_reports_on_each_attribute_equally_often():
    protocol = small()
    n = 40_000
    found = protocol.perturb({"a": ["red"] * n, "b": [3] * n})[:, 0]
    # A standard deviation is 100; seven are exceeded with probability 2.6e-12.
    assert abs(int(Counter(found.tolist())[0]) - n // 2) < 700
