"""States of runs with correlated noise, in the hands of somebody who can write them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from security.test_correlated_gradient_privacy import CLAIM, lower_bound

from dpnoise import ParameterError
from dpnoise.keyed import NoiseKey
from dpnoise.sgd import BandedToeplitz, CorrelatedGradient, CorrelatedGradientRun, SingleEpoch

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

STEPS = 64
# A coordinate is a run of its own, as in the attacks on runs that nobody interferes with.
OWN = CorrelatedGradient(
    strategy=BandedToeplitz([1.0, 1.0], steps=STEPS),
    clip_norm=1.0,
    noise_multiplier=2.0**-8,
    expected_batch_size=1.0,
    participation=SingleEpoch(),
)


def resumed(state: bytes, key: NoiseKey) -> CorrelatedGradientRun | None:
    try:
        return OWN.resume(state, key=key)
    except ParameterError:
        return None


def weak_places(width: int) -> list[int]:
    """Give the places at which the end of the state of another run with the same key can be put into a state."""
    key, states = NoiseKey.generate(), []
    for steps in (1, 2):
        run = OWN.start(key=key)
        for _ in range(steps):
            run.step(np.zeros((0, width)))
        states.append(run.state())
    own, other = states
    made = {place: own[:place] + other[place:] for place in range(len(own) + 1)}
    return [place for place, state in made.items() if state not in states and resumed(state, key)]


def interfered_with(present: Flags) -> Floats:
    """Run steps of which the first one has the example, or not, while somebody writes the states between them.

    They put tickets of a public run behind that of the first step, if this is possible. Then each step takes back the
    noise of the first one, and otherwise noise that is known: the noise of the first step is measured again and again.
    The results are likelihood ratios, but for factors and constants.
    """
    key, nothing = NoiseKey.generate(), np.zeros((0, present.size))
    public, run = OWN.start(key=key), OWN.start(key=key)
    first, before = run.step(2.0**-8 * present[np.newaxis]), public.step(nothing)
    own, state, places = run.state(), run.state(), weak_places(present.size)
    seen, known, sign = first, 0.0 * first, 1
    for _ in range(STEPS - 1 if places else 1):
        run = OWN.resume(state, key=key)
        seen = seen + sign * (run.step(nothing) + known + sign * first)
        noise = public.step(nothing)
        known, before, sign = noise + before - known, noise, -sign
        state = own[: places[-1]] + public.state()[places[-1] :] if places else run.state()
    return seen


def test_a_run_whose_states_others_write_loses_no_more_than_it_claims() -> None:
    assert 0.5 * CLAIM < lower_bound(interfered_with) <= CLAIM, "and the experiment has some power"


def test_no_part_of_another_state_is_taken() -> None:
    assert not weak_places(2)
