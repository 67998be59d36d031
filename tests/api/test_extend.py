"""What integrations build on refuses bad parameters by name, and restores what it replaced."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace

import pytest

from dpnoise import DiscreteGaussian, Gaussian, ParameterError, extend, hazmat, sgd


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan")])
@pytest.mark.parametrize(
    "make",
    [
        lambda scale: extend.with_scale(Gaussian, 1.0, scale),
        lambda scale: extend.gaussian(1.0, 1e-5, 1.0, scale),
        lambda scale: extend.gaussian(1.0, 1.0, 1.0, scale),
    ],
)
def test_a_scale_is_positive_and_finite(make: Callable[[float], object], scale: float) -> None:
    with pytest.raises(ParameterError, match=f"^scale must be positive and finite, got {scale!r}"):
        make(scale)


@pytest.mark.parametrize("scale", [1e-3, 0.7, 1.0, 3.3, 1e6])
@pytest.mark.parametrize("kind", [Gaussian, DiscreteGaussian])
def test_the_scale_is_the_hosts_or_hardly_larger(kind: type[Gaussian], scale: float) -> None:
    made = extend.with_scale(kind, 1.0, scale)
    assert scale <= made.scale <= scale * (1 + 1e-12)


def test_the_larger_scale_counts() -> None:
    least = Gaussian(epsilon=1.0, delta=1e-5, sensitivity=1.0).scale
    assert extend.gaussian(1.0, 1e-5, 1.0, least / 2).scale == least
    assert 2 * least <= extend.gaussian(1.0, 1e-5, 1.0, 2 * least).scale < 2.001 * least


def test_a_root_is_rounded_up() -> None:
    for square in (Fraction(2), Fraction(1, 3), Fraction(4), Fraction(10**40 + 1)):
        root = extend.root(square)
        assert Fraction(root) ** 2 >= square
        assert root <= float(square) ** 0.5 * (1 + 2**-51)


def test_seeds_are_refused_and_test_generators_taken() -> None:
    rng = hazmat.SeededRng(1)
    assert extend.generator_for_tests(key=None, seed=rng) is rng
    assert extend.generator_for_tests(key=None) is None
    with pytest.raises(ValueError, match=r"^seed must be left out or None, since anybody who knows it"):
        extend.generator_for_tests(seed=7)
    with pytest.raises(ValueError, match=r"^Only one of key or seed can be specified"):
        extend.generator_for_tests(key=rng, seed=rng)


def test_a_patch_lasts_while_any_thread_needs_it() -> None:
    host = SimpleNamespace(noise="theirs")
    patch = extend.Patch(lambda: [(host, "noise", "ours")])
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with patch.within():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=stay)
    thread.start()
    inside.wait()
    with pytest.raises(KeyError), patch.within(), patch.within():
        raise KeyError
    assert host.noise == "ours"
    leave.set()
    thread.join()
    assert host.noise == "theirs"


def test_norms_and_widths_are_as_many() -> None:
    with pytest.raises(ParameterError, match=r"^widths must be as many as clip_norms, got 2 widths and 1 norms"):
        sgd.noise_multipliers([1.0], [1, 2], 1.0)
