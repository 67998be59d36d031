"""Protocols: parameters, reports, and every input that cannot be used, with its message."""

import json
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pyarrow as pa
import pytest
from refusals import refuses
from scipy.stats import binom

import dpnoise
from dpnoise import ParameterError, local
from dpnoise.hazmat import ScriptedRng, SeededRng

ENCODINGS = [
    local.OptimizedUnaryEncoding(k=15, epsilon=1.0),
    local.SymmetricUnaryEncoding(k=128, epsilon=0.3),
    local.UnaryEncoding(k=9, p=0.75, q=0.25),
    local.UnaryEncoding(k=1000, p=0.4, q=0.123),
    local.ThresholdHistogramEncoding(k=15, epsilon=1.0),
]
RESPONSES = [
    local.RandomizedResponse(epsilon=1.0),
    local.RandomizedResponse.coin_flips(),
    local.RandomizedResponse(p=0.8),
]
DIRECT = [
    local.GeneralizedRandomizedResponse(k=15, epsilon=1.0),
    local.GeneralizedRandomizedResponse(k=1000, epsilon=5.0),
    local.GeneralizedRandomizedResponse(k=70_000, epsilon=0.5),
]
HASHED = [
    local.LocalHashing(k=15, epsilon=1.0),
    local.LocalHashing(k=1000, epsilon=0.1, g=9),
    local.LocalHashing(k=2**16, epsilon=3.0),
    local.HadamardResponse(k=15, epsilon=1.0),
    local.HadamardResponse(k=1000, epsilon=0.1),
    local.ProjectiveGeometryResponse(k=15, epsilon=1.0),
    local.ProjectiveGeometryResponse(k=70_000, epsilon=3.0, prime=5),
    local.SubsetSelection(k=15, epsilon=1.0),
    local.SubsetSelection(k=1000, epsilon=5.0, omega=20),
]
SUMMED = [local.SummationHistogramEncoding(k=15, epsilon=1.0), local.SummationHistogramEncoding(k=1000, epsilon=1e-4)]
OF_VALUES = [*ENCODINGS, *DIRECT, *HASHED, *SUMMED]
PROTOCOLS = [*OF_VALUES, *RESPONSES]


# --- Parameters ----------------------------------------------------------------------------------------------------


def test_many_values_and_a_small_epsilon_together():
    refuses(
        ParameterError,
        "k and epsilon must be such that probabilities over a denominator of at most 2**62 achieve 0.999 of epsilon; "
        "unary encoding takes any k and epsilon, and is more accurate here, got k = 16777216, epsilon = 0.001",
        local.GeneralizedRandomizedResponse,
        k=2**24,
        epsilon=0.001,
    )
    assert local.GeneralizedRandomizedResponse(k=2**24, epsilon=0.1).report_bytes == 3


def test_the_number_of_hashes():
    assert [local.LocalHashing(k=100, epsilon=e).g for e in (0.1, 1.0, 2.0, 32.0)] == [2, 4, 8, 100]
    assert local.LocalHashing(k=3, epsilon=5.0).g == 3
    refuses(ParameterError, "for more values take projective geometry", local.LocalHashing, k=2**16 + 1, epsilon=1.0)


def test_the_prime_of_the_projective_space():
    make = local.ProjectiveGeometryResponse
    assert [make(k=22_000, epsilon=e).prime for e in (2**-20, 0.1, 1.0, 3.0, 5.0)] == [2, 2, 3, 19, 149]
    assert [make(k=k, epsilon=32.0).dimension for k in (2, 15, 10**6, 2**24)] == [2, 2, 2, 2]
    assert (make(k=22_000, epsilon=1.0).dimension, make(k=22_000, epsilon=1.0, prime=2).dimension) == (10, 15)
    for prime in (0, 1, 4, 15, 2**27):
        refuses(ParameterError, "a prime number below 2**27, got", make, k=15, epsilon=1.0, prime=prime)
    too_many = "the smallest space of k = 16777216 points has at most 86093440 of them; the default is 3, got 127"
    refuses(ParameterError, too_many, make, k=2**24, epsilon=1.0, prime=127)
    refuses(
        ParameterError,
        "has at most 12 of them; the default is 2, got 134217689",
        make,
        k=3,
        epsilon=1.0,
        prime=134_217_689,
    )
    unreachable = "k, epsilon and prime must be such that"
    refuses(ParameterError, unreachable, make, k=2**24, epsilon=2**-20, prime=16_777_259)


def test_the_number_of_members():
    assert [local.SubsetSelection(k=100, epsilon=e).omega for e in (0.01, 1.0, 3.0, 30.0)] == [50, 27, 5, 1]
    for omega in (0, 15):
        refuses(ParameterError, "omega must be", local.SubsetSelection, k=15, epsilon=1.0, omega=omega)
    message = "k must be an integer from 2 to 65536 for subset selection, got 65537"
    refuses(ParameterError, message, local.SubsetSelection, k=65_537, epsilon=1.0)


def test_probabilities_out_of_range():
    refuses(ParameterError, "p must be greater than q = 0.5, got 0.5", local.UnaryEncoding, k=3, p=0.5, q=0.5)
    refuses(ParameterError, "p must be greater than q = 0.5, got 0.2", local.UnaryEncoding, k=3, p=0.2, q=0.5)
    message = "p and q must be such that epsilon = ln(p (1 - q) / ((1 - p) q)) is between 2**-20 and 32, got p = 0.9"
    refuses(ParameterError, message, local.UnaryEncoding, k=3, p=0.9, q=1e-300)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_the_achieved_epsilon(protocol):
    least = 0.5 if isinstance(protocol, local.ThresholdHistogramEncoding) else 0.999
    assert least * protocol.requested_epsilon <= protocol.epsilon <= protocol.requested_epsilon
    assert protocol in SUMMED or 0.0 < protocol.q < protocol.p < 1.0


def test_known_probabilities():
    assert (RESPONSES[1].p, RESPONSES[1].q) == (0.75, 0.25)
    assert RESPONSES[1].epsilon == pytest.approx(math.log(3), rel=1e-15)
    assert RESPONSES[1].epsilon >= math.log(3)
    optimized = local.OptimizedUnaryEncoding(k=2, epsilon=2.0)
    assert optimized.p == 0.5
    assert optimized.q == pytest.approx(1 / (math.e**2 + 1), rel=2e-3)
    symmetric = local.SymmetricUnaryEncoding(k=2, epsilon=2.0)
    assert symmetric.p == pytest.approx(math.e / (math.e + 1), rel=1e-3)
    assert symmetric.p + symmetric.q == 1.0
    direct = local.GeneralizedRandomizedResponse(k=5, epsilon=2.0)
    assert direct.q == pytest.approx(1 / (math.e**2 + 4), rel=2e-3)
    assert direct.p + 4 * direct.q == pytest.approx(1.0, rel=1e-15)
    assert [local.GeneralizedRandomizedResponse(k=k, epsilon=1.0).report_bytes for k in (2, 256, 257)] == [1, 1, 2]
    hashing = local.LocalHashing(k=1000, epsilon=2.0)
    assert hashing.p == pytest.approx(math.e**2 / (math.e**2 + hashing.g - 1), rel=1e-3)
    assert hashing.q == pytest.approx(1 / hashing.g, rel=1e-5)
    hadamard = local.HadamardResponse(k=1000, epsilon=2.0)
    assert hadamard.p == pytest.approx(math.e**2 / (math.e**2 + 1), rel=1e-3)
    assert hadamard.q == 0.5
    subset = local.SubsetSelection(k=1000, epsilon=2.0)
    weight = subset.omega * math.e**2
    assert subset.p == pytest.approx(weight / (weight + 1000 - subset.omega), rel=2e-3)
    assert subset.p + 999 * subset.q == pytest.approx(subset.omega, rel=1e-12)


def test_a_given_probability_of_the_truth_is_used():
    coarse, given = local.RandomizedResponse(epsilon=math.log(4)), local.RandomizedResponse(p=0.8)
    assert coarse.p < 0.79981
    exact = Fraction(0.8) / (1 - Fraction(0.8))
    assert (given.p, given.q, Fraction(given.p) + Fraction(given.q)) == (0.8, 1 - 0.8, 1)
    assert given.epsilon == given.requested_epsilon
    with mpmath.workdps(50):
        assert mpmath.log(mpmath.mpf(exact.numerator) / exact.denominator) <= given.epsilon
        assert mpmath.log(mpmath.mpf(exact.numerator) / exact.denominator) > math.nextafter(given.epsilon, 0)
    assert repr(given) == "RandomizedResponse(p=0.8)"
    assert repr(local.RandomizedResponse(p=0.8, domain=["no", "yes"])) == (
        "RandomizedResponse(domain=('no', 'yes'), p=0.8)"
    )
    assert local.RandomizedResponse(p=0.75) == RESPONSES[1]
    for fraction in (Fraction(4, 5), Fraction(2, 3), Fraction(999, 1000)):
        used = Fraction(local.RandomizedResponse(p=fraction).p)
        assert fraction - Fraction(1, 2**53) < used < fraction


def test_the_report_of_a_single_answer_is_a_bool():
    labelled = local.RandomizedResponse(p=0.75, domain=["no", "yes"])
    for seed in range(20):
        expected = [RESPONSES[1].perturb([truth], rng=SeededRng(seed)) for truth in (False, True)]
        for protocol, answers in ((RESPONSES[1], (False, np.True_)), (labelled, ("no", "yes"))):
            found = [protocol.perturb(answer, rng=SeededRng(seed)) for answer in answers]
            assert list(map(type, found)) == [bool, bool]
            assert found == [reports.item() for reports in expected]
            assert protocol.estimate(found).n == 2
    out = np.empty(1, np.bool_)
    assert labelled.perturb("yes", out=out) is out


def test_probabilities_of_the_truth_that_cannot_be_used():
    make = local.RandomizedResponse
    for p in (0.5, 0, 1, 1.0, -0.8, Fraction(1, 3), math.nan, math.inf):
        refuses(ParameterError, "p must be a probability between 1/2 and 1, both excluded, got ", make, p=p)
    for p in (0.5 + 2**-40, 1 - 2**-50):
        message = f"p must be a probability whose epsilon = ln(p / (1 - p)) is between 2**-20 and 32, got {p!r}"
        refuses(ParameterError, message, make, p=p)
    for p in ("0.8", True, [0.8]):
        refuses(TypeError, "p must be a number, got ", make, p=p)
    refuses(ParameterError, "either epsilon or p must be given, got both", make, epsilon=1.0, p=0.8)
    refuses(TypeError, "epsilon must be a number, got None: give either epsilon or p", make)


def test_variances_follow_the_law():
    for protocol in PROTOCOLS:
        for f in (0.0, 0.3, 1.0) if protocol not in SUMMED else ():
            p, q = protocol.p, protocol.q
            law = q * (1 - q) / (p - q) ** 2 + f * (1 - p - q) / (p - q)
            assert protocol.variance(1000, f) == pytest.approx(1000 * law, rel=1e-12)
        refuses(ParameterError, "frequency must be between 0 and 1, got 1.5", protocol.variance, 10, 1.5)
        for n in (-1, 2**64):
            refuses(ParameterError, f"n must be an integer from 0 to 2**64 - 1, got {n}", protocol.variance, n)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_a_protocol_is_a_value(protocol):
    for same in (
        pickle.loads(pickle.dumps(protocol)),  # noqa: S301
        local.protocol_from_json(protocol.to_json()),
        type(protocol).from_json(protocol.to_json()),
    ):
        assert same == protocol
        assert hash(same) == hash(protocol)
        assert type(same) is type(protocol)
        assert (same.spec_id, same.epsilon) == (protocol.spec_id, protocol.epsilon)
    assert len({*PROTOCOLS, *PROTOCOLS}) == len(PROTOCOLS)
    again = eval(repr(protocol), vars(local).copy())  # noqa: S307
    assert again == protocol
    for name in ("k", "p", "epsilon", "anything"):
        with pytest.raises(AttributeError):
            setattr(protocol, name, 1)


@pytest.mark.parametrize(
    "written_again",
    [
        lambda text: json.dumps(json.loads(text)),  # with spaces
        lambda text: json.dumps(dict(reversed(json.loads(text).items())), separators=(",", ":")),
        lambda text: text.replace("1e-6", "0.000001"),  # as JavaScript writes this number
        lambda text: text.replace("-6", "-06"),  # as Python does
        lambda text: text.replace("_", "\\u005f"),
        lambda text: text.replace('"k"', '"k":3,"k"'),
    ],
)
def test_a_specification_that_was_written_again_is_refused(written_again):
    text = local.HadamardResponse(k=15, epsilon=1e-6).to_json()
    changed = written_again(text)
    assert changed != text
    refuses(ParameterError, "must be exactly as to_json gave them", local.protocol_from_json, changed)
    assert local.protocol_from_json(f" {text}\r\n").to_json() == text


def test_specifications_that_cannot_be_used():
    text = ENCODINGS[0].to_json()
    changed = text.replace('"q":551', '"q":550')
    message = "not a protocol specification: its probabilities are not those that its epsilon gives"
    refuses(ParameterError, message, local.protocol_from_json, changed)
    refuses(ParameterError, "it is not JSON", local.protocol_from_json, text[:-1])
    refuses(ParameterError, "unknown protocol", local.protocol_from_json, text.replace("optimized", "improved"))
    message = "the specification must be of RandomizedResponse, got one of OptimizedUnaryEncoding"
    refuses(ParameterError, message, local.RandomizedResponse.from_json, text)
    refuses(TypeError, "make one of the protocols", local.Protocol)


# --- Values --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [*ENCODINGS, local.SubsetSelection(k=15, epsilon=1.0)], ids=repr)
def test_bits_of_reports(protocol):
    reports = protocol.perturb(np.arange(200) % protocol.k)
    bits = protocol.bits(reports)
    assert (bits.shape, bits.dtype) == ((200, protocol.k), np.uint8)
    for v in range(protocol.k):
        assert np.array_equal(bits[:, v], reports[:, v // 8] >> v % 8 & 1)
    refuses(ParameterError, "reports must have shape (n, ", protocol.bits, reports[:, :-1])
    refuses(TypeError, "reports must be a NumPy array of dtype uint8", protocol.bits, bits.astype(int))


@pytest.mark.parametrize("labels", [["tea", "milk", "none"], [10, 20, 30], [False, True]], ids=str)
def test_one_value_is_a_person(labels):
    for make in (local.OptimizedUnaryEncoding, local.GeneralizedRandomizedResponse):
        protocol = make(domain=labels, epsilon=1.0)
        for label in (*labels, *np.array(labels)):
            one = protocol.perturb(label, rng=SeededRng(1))
            assert np.array_equal(one, protocol.perturb([label], rng=SeededRng(1)))
            assert one.shape == (1, protocol.report_bytes)
    encoding = local.OptimizedUnaryEncoding(domain=labels, epsilon=1.0)
    for v, label in enumerate(labels):
        assert encoding.bits(encoding.encode(label)).tolist() == [[int(v == i) for i in range(len(labels))]]
    plain = local.OptimizedUnaryEncoding(k=3, epsilon=1.0)
    for value in (2, np.uint8(2)):
        assert plain.bits(plain.encode(value)).tolist() == [[0, 0, 1]]
    memo = local.ClientMemo.generate()
    assert local.DBitFlip(k=9, epsilon=1.0, d=2).perturb(7, memo, question="colour").shape == (1, 2)


VALUES = [3, 0, 8, 8, 1] * 20


@pytest.mark.parametrize("protocol", OF_VALUES, ids=repr)
def test_all_ways_to_pass_values_agree(protocol):
    values = VALUES
    expected = protocol.perturb(values, rng=SeededRng(1))
    assert expected.shape == (100, protocol.report_bytes)
    assert expected.dtype == np.uint8
    strided = np.full(300, -1)
    strided[::3] = values
    backwards = np.array(values[::-1])[::-1]
    arrow = pa.chunked_array([pa.array(values[:7], pa.int8()), pa.array(values[7:], pa.int8())])
    kinds = [np.array(values, dtype) for dtype in ("i1", "u1", ">i2", "u4", "i8", "u8")]
    for given in (*kinds, tuple(values), strided[::3], backwards, arrow, np.ma.masked_array(values)):
        assert np.array_equal(protocol.perturb(given, rng=SeededRng(1)), expected)
    for given in ([], (), np.empty(0, np.int32)):
        assert protocol.perturb(given).shape == (0, protocol.report_bytes)


@pytest.mark.parametrize("protocol", ENCODINGS, ids=repr)
def test_all_ways_to_pass_rows_agree(protocol):
    expected = protocol.perturb(VALUES, rng=SeededRng(1))
    bits = protocol.encode(VALUES)
    wide = np.zeros((100, 2 * protocol.report_bytes), np.uint8)
    wide[:, ::2] = bits
    for given in (bits, np.asfortranarray(bits), wide[:, ::2]):
        assert np.array_equal(protocol.perturb_encoded(given, rng=SeededRng(1)), expected)
    assert protocol.perturb_encoded(bits[:0]).shape == (0, protocol.report_bytes)


@pytest.mark.parametrize("bad", [15, -1, 2**40, -(2**63), 4242424242])
def test_a_value_outside_the_domain_is_not_shown(bad):
    for call in (ENCODINGS[0].perturb, ENCODINGS[0].encode, DIRECT[0].perturb):
        with pytest.raises(ParameterError) as caught:
            call([1, bad, 2])
        assert str(caught.value) == "values must be integers in [0, k) with k = 15"


def test_an_unsigned_value_beyond_int64_is_outside_the_domain():
    for protocol in (ENCODINGS[0], DIRECT[0]):
        beyond = np.array([2**64 - 1], np.uint64)
        refuses(ParameterError, "values must be integers in [0, k)", protocol.perturb, beyond)


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        ([0.0, 1.0], TypeError, "values must be integers, got dtype float64: fill or drop missing values (NaN) first"),
        ([1, math.nan], TypeError, "values must be integers, got dtype float64: fill or drop missing values (NaN)"),
        ([1, None], TypeError, "values must be integers, got dtype object: fill or drop missing values (None, NA)"),
        ([2**70], TypeError, "values must be integers, got dtype object"),
        ([True, False], TypeError, "values must be integers, got dtype bool: cast with .astype(int)"),
        (["7"], TypeError, "values must be integers, got dtype str: replace every value by its index"),
        (pa.array([1, None]), ParameterError, "values must have no missing values: fill or drop them first"),
        (None, TypeError, "values must be integers, for example a NumPy array of dtype int64, got None"),
        (np.ma.masked_array([7, 1], [False, True]), ParameterError, "values must have no masked values: fill or drop"),
        (7.0, ParameterError, "values must be one-dimensional, one for each person, got shape ()"),
        (True, TypeError, "values must be integers, got dtype bool: cast with .astype(int)"),
        ("7", TypeError, "values must be integers, got dtype str: replace every value by its index"),
        ([[7]], ParameterError, "values must be one-dimensional, one for each person, got shape (1, 1)"),
        ([[7], [7, 7]], ParameterError, "values must be an array, got nested sequences of different lengths"),
        (np.empty(0), TypeError, "values must be integers, got dtype float64"),
    ],
)
def test_values_that_cannot_be_used(values, kind, message):
    refuses(kind, message, ENCODINGS[0].perturb, values, rng=ScriptedRng(b""))
    refuses(kind, message, ENCODINGS[0].encode, values)
    refuses(kind, message, DIRECT[0].perturb, values, rng=ScriptedRng(b""))


def test_rows_with_other_bits_are_refused():
    protocol = ENCODINGS[0]
    rows = protocol.encode([3, 4])
    message = "rows must each have at most one of the first k = 15 bits set, and no other"
    for row in ([3, 0], [1, 1], [0, 0x80], [1, 0x80]):
        rows[1] = row
        refuses(ParameterError, message, protocol.perturb_encoded, rows, rng=ScriptedRng(b""))


def test_answers_that_cannot_be_used():
    perturb = RESPONSES[0].perturb
    refuses(TypeError, "values must be booleans, got dtype int64: compare to get booleans", perturb, [0, 1])
    refuses(TypeError, "values must be booleans, got dtype object", perturb, [True, None])
    refuses(TypeError, "values must be booleans, for example a NumPy array of dtype bool, got None", perturb, None)
    refuses(TypeError, "values must be booleans, got dtype int64: compare to get booleans", perturb, 1)
    masked = np.ma.masked_array([True, False], [False, True])
    refuses(ParameterError, "values must have no masked values", perturb, masked)
    # NumPy lets bytes other than 0 and 1 pass for booleans.
    refuses(ParameterError, "values must be booleans (0 or 1)", perturb, np.array([7], np.uint8).view(bool))


def test_sums_have_a_variance_and_no_probabilities():
    for protocol in SUMMED:
        assert protocol.variance(1000, 0.3) == pytest.approx(8000 / protocol.epsilon**2, rel=1e-9)
        assert not hasattr(protocol, "p")
        assert not hasattr(protocol, "q")


# --- Reports -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_out_is_filled_in_place(protocol):
    binary = isinstance(protocol, local.RandomizedResponse)
    values = np.ones(1000, bool if binary else int)
    expected = protocol.perturb(values, rng=SeededRng(2))
    out = np.empty_like(expected)
    assert protocol.perturb(values, out=out, rng=SeededRng(2)) is out
    assert np.array_equal(out, expected)
    read_only = out.copy()
    read_only.flags.writeable = False
    refuses(ParameterError, "out must be writable", protocol.perturb, values, out=read_only)
    refuses(ParameterError, "out must have the shape", protocol.perturb, values, out=out[:-1])
    refuses(TypeError, "out must be a NumPy array of dtype", protocol.perturb, values, out=out.astype(float))
    refuses(TypeError, "out must be a NumPy array of dtype", protocol.perturb, values, out=out.tolist())
    strided = np.empty((2000, *out.shape[1:]), out.dtype)[::2]
    refuses(ParameterError, "out must be C-contiguous", protocol.perturb, values, out=strided)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
@pytest.mark.parametrize("threads", [0, -1, 2**64])
def test_threads_out_of_range(protocol, threads):
    message = f"threads must be None or a positive integer below 2**64, got {threads}"
    values = np.ones(3, bool if isinstance(protocol, local.RandomizedResponse) else int)
    refuses(ParameterError, message, protocol.perturb, values, threads=threads)
    refuses(ParameterError, message, protocol.estimate, protocol.perturb(values), threads=threads)


def test_rng_of_the_wrong_type():
    refuses(TypeError, "rng must be None", ENCODINGS[0].perturb, [1], rng=np.random.default_rng(1))


def test_a_dry_source_leaves_nothing_behind():
    def fails(call, values, out, script):
        refuses(dpnoise.RandomnessError, "nothing was released", call, values, out=out, rng=ScriptedRng(script))
        assert not out.any()

    values = np.ones(10_000, int)
    for protocol in ENCODINGS:
        bits = protocol.encode(values)
        for script in (b"", bytes(20_000)):
            fails(protocol.perturb, values, np.full_like(bits, 0xAA), script)
            fails(protocol.perturb_encoded, bits, np.full_like(bits, 0xAA), script)
    for protocol in DIRECT:
        for script in (b"", bytes(20_000)):
            fails(protocol.perturb, values, np.full((10_000, protocol.report_bytes), 0xAA, np.uint8), script)
    fails(RESPONSES[0].perturb, np.ones(1000, bool), np.ones(1000, bool), b"")


@pytest.mark.parametrize("protocol", ENCODINGS, ids=repr)
def test_unused_bits_are_zero(protocol):
    bits = np.unpackbits(protocol.perturb(np.zeros(5000, int)), axis=1, bitorder="little")
    assert not bits[:, protocol.k :].any()
    assert bits[:, : protocol.k].any(axis=0).all()


@pytest.mark.parametrize("protocol", DIRECT, ids=repr)
def test_direct_reports_are_values(protocol):
    values = np.arange(20_000) % protocol.k
    reports = protocol.perturb(values)
    found = reports.astype(int) @ 256 ** np.arange(protocol.report_bytes)
    assert found.max() < protocol.k
    # By exact quantiles: of the largest k less than one is expected.
    law = binom(20_000, protocol.p)
    assert law.ppf(1e-11) <= np.sum(found == values) <= law.isf(1e-11)
    with pytest.raises(AttributeError):
        protocol.encode(values)


def test_randomised_response_is_of_booleans():
    reports = RESPONSES[1].perturb([True, False, True])
    assert reports.dtype == np.bool_
    assert reports.shape == (3,)
    assert RESPONSES[1].perturb([]).shape == (0,)
    assert (RESPONSES[1].k, RESPONSES[1].report_bytes) == (2, 1)
