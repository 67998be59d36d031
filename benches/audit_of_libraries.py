"""What other libraries claim, and what `dpnoise.audit` shows: ``python -m benches.audit_of_libraries [LIBRARY ...]``.

Each case is one call with its claim, for neighbours at a distance of 1. Audited are, at a level of 99.9999 % each:

- its distribution: numbers are rounded to eighths first, so that no low-order bit counts;
- its low-order bits and its precision, by the attacks, where releases are floating-point numbers;
- a planted fault: the distribution of the same call with half the noise, held against the same claim.

A refuted case is shown only if the library's own pages or tracker say so in public (`Case.known`): otherwise its
maintainers are to be told first. A library that is not installed is named and left out.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpnoise import audit
from dpnoise.audit import attacks

LEVEL = 0.999999
N = 20_000
DELTA = 1e-3
MAGNITUDES = (0, 1, 2**10)
PRIO = "0.18.1"

Release = Callable[[Any], Any]


class Case(NamedTuple):
    """A call, and what the documentation or the accountant of its library claims."""

    call: str
    make: Callable[[float], Release]
    """Takes the share of the noise, 1 or one half, and returns the function that releases."""
    epsilon: float
    delta: float = 0.0
    pair: tuple[Any, Any] = (0.0, 1.0)
    """Neighbours: floats; lists of records with a float as release; or integers, in an array too, without attacks."""
    scale: float | None = None
    """The scale of Laplace noise, whose supports are compared."""
    vectorized: bool = False
    known: str = ""


RUST = """use prio::dp::{DifferentialPrivacyStrategy, PureDpBudget, Rational, distributions::PureDpDiscreteLaplace};
use prio::{field::Field128, flp::{TypeWithNoise, gadgets::{Mul, ParallelSum}, types::Histogram}};
fn main() {
    let given: Vec<u64> = std::env::args().skip(1).map(|text| text.parse().unwrap()).collect();
    let budget = PureDpBudget::new(Rational::from_unsigned(given[0], 1).unwrap()).unwrap();
    let pair = given[2..].iter().map(|&count| Field128::from(u128::from(count)));
    let mut share: Vec<_> = pair.cycle().take(2 * given[1] as usize).collect();
    let histogram = Histogram::<Field128, ParallelSum<Field128, Mul>>::new(share.len(), 1000).unwrap();
    histogram.add_noise_to_agg_share(&PureDpDiscreteLaplace::from_budget(budget), &mut share, 1).unwrap();
    let signed = |x: Field128| (u128::from(x) >> 127 == 0).then_some(u128::from(x) as i128);
    share.into_iter().for_each(|x| println!("{}", signed(x).unwrap_or_else(|| -(u128::from(-x) as i128))));
}"""


def diffprivlib() -> Iterator[Case]:
    from diffprivlib.mechanisms import GaussianAnalytic, Geometric, Laplace

    known = "https://github.com/IBM/differential-privacy-library/issues/94"

    def laplace(noise: float) -> Release:
        return Laplace(epsilon=1, sensitivity=noise).randomise

    def gaussian(noise: float) -> Release:
        return GaussianAnalytic(epsilon=1, delta=DELTA, sensitivity=noise).randomise

    yield Case("Laplace(epsilon=1)", laplace, 1, scale=1, known=known)
    yield Case("GaussianAnalytic(epsilon=1, delta=0.001)", gaussian, 1, DELTA, known=known)
    yield Case("Geometric(epsilon=1)", lambda noise: Geometric(epsilon=1 / noise).randomise, 1, pair=(0, 1))


def opendp() -> Iterator[Case]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domains = {float: dp.atom_domain(T=float, nan=False), "i64": dp.atom_domain(T="i64")}

    def laplace(of: Any, scale: float) -> Any:
        return dp.m.make_laplace(dp.vector_domain(domains[of]), dp.l1_distance(T=of), scale=scale)

    def gaussian(scale: float) -> Any:
        return dp.m.make_gaussian(dp.vector_domain(domains[float]), dp.l2_distance(T=float), scale=scale)

    def releases(measurement: Any) -> Release:
        return lambda rows: np.array(measurement(rows))

    claims = laplace(float, 1).map(1.0), laplace("i64", 1).map(1), dp.c.make_zCDP_to_approxDP(gaussian(3)).map(1.0)
    rows: dict[str, Any] = {"vectorized": True}
    yield Case("make_laplace(floats, scale=1)", lambda s: releases(laplace(float, s)), claims[0], scale=1, **rows)
    yield Case("make_laplace(integers, scale=1)", lambda s: releases(laplace("i64", s)), claims[1], pair=(0, 1), **rows)
    yield Case(
        "make_gaussian(floats, scale=3)", lambda s: releases(gaussian(3 * s)), claims[2].epsilon(DELTA), DELTA, **rows
    )


def pydp() -> Iterator[Case]:
    from pydp.algorithms.laplacian import BoundedSum
    from pydp.algorithms.numerical_mechanisms import LaplaceMechanism
    from pydp.algorithms.partition_selection import create_truncated_geometric_partition_strategy as truncated_geometric

    def laplace(noise: float) -> Release:
        return LaplaceMechanism(epsilon=1, sensitivity=noise).add_noise

    def selection(noise: float) -> Release:
        return truncated_geometric(1 / noise, DELTA, 1).should_keep

    def bounded_sum(noise: float) -> Release:
        of = {"lower_bound": 0, "upper_bound": 1, "dtype": "float"}
        return lambda values: BoundedSum(epsilon=1 / noise, **of).quick_result(values)

    yield Case("LaplaceMechanism(1).add_noise(float)", laplace, 1, scale=1)
    yield Case("LaplaceMechanism(1).add_noise(int)", laplace, 1, pair=(0, 1))
    yield Case("BoundedSum(1).quick_result(floats)", bounded_sum, 1, pair=([1.0] * 2, [1.0] * 3))
    yield Case("create_truncated_geometric_partition_strategy(1, 0.001, 1)", selection, 1, DELTA, (4, 5))


def tumult() -> Iterator[Case]:
    from tmlt.core.domains.numpy_domains import NumpyFloatDomain
    from tmlt.core.measurements.noise_mechanisms import AddDiscreteGaussianNoise, AddGeometricNoise, AddLaplaceNoise

    def laplace(noise: float) -> Any:
        return AddLaplaceNoise(NumpyFloatDomain(), Fraction(noise))

    def gaussian(noise: float) -> Any:
        return AddDiscreteGaussianNoise(9 * Fraction(noise) ** 2)

    rho, order = gaussian(1).privacy_function(1).to_float(round_up=True), np.linspace(1.01, 100, 10_000)
    # Canonne, Kamath and Steinke (2020), for each order of Renyi divergence.
    epsilons = rho * order + np.log1p(-1 / order) - np.log(DELTA * order) / (order - 1)
    yield Case("AddLaplaceNoise(floats, scale=1)", laplace, 1, scale=1)
    yield Case("AddGeometricNoise(alpha=1)", lambda noise: AddGeometricNoise(Fraction(noise)), 1, pair=(0, 1))
    yield Case("AddDiscreteGaussianNoise(sigma_squared=9)", gaussian, float(epsilons.min()), DELTA, (0, 1))


def prio() -> Iterator[Case]:
    folder = Path("target/audit_of_prio")
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "src/main.rs").write_text(RUST)
    wanted = f'[dependencies]\nprio = {{ version = "={PRIO}", features = ["experimental"] }}\n[workspace]\n'
    (folder / "Cargo.toml").write_text(f'[package]\nname = "audited"\nedition = "2024"\n{wanted}')
    subprocess.run(["cargo", "build", "--release", "--quiet", "--target-dir", "target"], cwd=folder, check=True)

    def histogram(noise: float) -> Release:
        def release(rows: Any) -> Any:
            command = [folder / "target/release/audited", str(round(1 / noise)), str(len(rows)), *map(str, rows[0])]
            text = subprocess.run(command, capture_output=True, check=True, text=True).stdout
            return np.array([int(line) for line in text.split()]).reshape(-1, 2)

        return release

    yield Case("Histogram with PureDpDiscreteLaplace(1)", histogram, 1, pair=((1, 0), (0, 1)), vectorized=True)


def opacus() -> Iterator[Case]:
    import torch
    from opacus.accountants import PRVAccountant
    from opacus.optimizers import DPOptimizer

    def one_step(noise: float) -> Release:
        weight = torch.nn.Parameter(torch.zeros(1))
        of: dict[str, Any] = {"max_grad_norm": 1.0, "expected_batch_size": 1, "loss_reduction": "sum"}
        optimizer = DPOptimizer(torch.optim.SGD([weight], lr=1.0), noise_multiplier=3 * noise, **of)

        def release(gradients: list[float]) -> float:
            optimizer.zero_grad()
            weight.grad_sample = torch.tensor(gradients)[:, None]
            optimizer.pre_step()
            return float(weight.grad)

        return release

    accountant = PRVAccountant()
    accountant.step(noise_multiplier=3.0, sample_rate=1.0)
    known = "https://github.com/meta-pytorch/opacus/issues/616"
    pair = [0.0], [0.0, 1.0]
    yield Case("DPOptimizer(noise_multiplier=3)", one_step, accountant.get_epsilon(DELTA), DELTA, pair, known=known)


def jax_privacy() -> Iterator[Case]:
    import jax.numpy as jnp
    from dp_accounting import GaussianDpEvent
    from dp_accounting.pld import PLDAccountant
    from jax_privacy.noise_addition import gaussian_privatizer

    def privatizer(noise: float) -> Release:
        def release(rows: Any) -> Any:
            sums = jnp.asarray(rows, jnp.float32)
            made = gaussian_privatizer(stddev=3 * noise, prng_key=secrets.randbits(31))  # a new key for each block
            return np.asarray(made.update(sums, made.init(sums))[0])

        return release

    epsilon = PLDAccountant().compose(GaussianDpEvent(3.0)).get_epsilon(DELTA)
    known = "https://github.com/google-deepmind/jax_privacy/blob/main/docs/sharp_edges_dp_training_pitfalls.md"
    yield Case("gaussian_privatizer(stddev=3)", privatizer, epsilon, DELTA, vectorized=True, known=known)


LIBRARIES = {"diffprivlib": diffprivlib, "opendp": opendp, "python-dp": pydp, "tmlt.core": tumult, "prio": prio}
LIBRARIES |= {"opacus": opacus, "jax-privacy": jax_privacy}


def audited(case: Case) -> tuple[bool, str]:
    """Return whether the claim is refuted, and cells of the table."""
    begun = time.perf_counter()
    claim: Any = {"level": LEVEL} | {name: getattr(case, name) for name in ("epsilon", "delta", "vectorized")}
    whole, half = (case.make(noise) for noise in (1.0, 0.5))

    def rounded(release: Release) -> Release:
        return lambda x: np.rint(8 * np.asarray(release(x), float))  # post-processing, so as private as the release

    shown = [audit.check(rounded(whole), *case.pair, n=N, **claim).bound.epsilon]
    if not isinstance(case.pair[0], int | tuple):
        of_float = isinstance(case.pair[0], float)
        by_place = whole if of_float else lambda place: whole(case.pair[int(place)])
        shown.append(attacks.low_order_bits(by_place, n=N, scale=case.scale, **claim).bound.epsilon)
        if of_float:
            found = attacks.precision(whole, n=N, sensitivity=1.0, magnitudes=MAGNITUDES, **claim)
            shown.append(found.bound.epsilon)
    planted = audit.check(rounded(half), *case.pair, n=N, **claim)
    cells = [f"**{bound:.2f}**" if bound > case.epsilon else f"{bound:.2f}" for bound in shown]
    cells += ["-"] * (3 - len(cells)) + [f"{planted.bound.epsilon:.2f}, {'found' if planted.refuted else 'MISSED'}"]
    claimed = f"{case.epsilon:.3g}, {case.delta:g}" if case.delta else f"{case.epsilon:.3g}"
    row = [f"`{case.call}`", claimed, *cells, f"{time.perf_counter() - begun:.0f}"]
    return max(shown) > case.epsilon, " | ".join(row)


def main(names: list[str]) -> None:
    """Print the table of the named libraries, or of all that are installed."""
    print("| library | call | claim | distribution | low-order bits | precision | half the noise | seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in names or LIBRARIES:
        try:
            for case in LIBRARIES[name]():
                refuted, row = audited(case)
                version = PRIO if name == "prio" else metadata.version(name)
                if refuted and not case.known:
                    print(f"{name}: not shown, as it is refuted and not public: {case.call}", file=sys.stderr)
                else:
                    print(f"| {name} {version} | {row} |", flush=True)
        except (ImportError, FileNotFoundError) as error:
            print(f"{name} is left out, as it or what builds it is not installed: {error}", file=sys.stderr)


if __name__ == "__main__":
    if unknown := [name for name in sys.argv[1:] if name not in LIBRARIES]:
        sys.exit(f"LIBRARY must be one of {', '.join(LIBRARIES)}, got {unknown[0]!r}")
    main(sys.argv[1:])
