"""Other libraries' noise, where they are installed: how to make `n` samples of a scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from importlib import metadata
from typing import Any, NamedTuple

from benches import hosts

Draw = Callable[[int], Any]
Makers = dict[str, Callable[[float], Draw]]
"""For a sampler of `benches.noise`: from a scale to a function from a number of samples to the samples."""


def opendp() -> Makers:
    import opendp.prelude as dp

    dp.enable_features("contrib")

    def maker(make: Callable[..., Any], metric: Callable[..., Any], number: type, **atom: Any) -> Callable[..., Draw]:
        def prepare(scale: float) -> Draw:
            measurement = make(dp.vector_domain(dp.atom_domain(T=number, **atom)), metric(T=number), float(scale))
            return lambda n: measurement([number(0)] * n)

        return prepare

    return {
        "Discrete Laplace": maker(dp.m.make_laplace, dp.l1_distance, int),
        "Discrete Gaussian": maker(dp.m.make_gaussian, dp.l2_distance, int),
        "Float Laplace": maker(dp.m.make_laplace, dp.l1_distance, float, nan=False),
        "Float Gaussian": maker(dp.m.make_gaussian, dp.l2_distance, float, nan=False),
    }


def one_by_one(make: Callable[[float], Callable[[Any], Any]], zero: float) -> Callable[[float], Draw]:
    """Return the maker for a library that releases one value at a time."""

    def prepare(scale: float) -> Draw:
        release = make(scale)
        return lambda n: [release(zero) for _ in range(n)]

    return prepare


def diffprivlib() -> Makers:
    from diffprivlib import mechanisms

    def discrete_gaussian(sigma: float) -> Callable[[int], int]:
        mechanism = mechanisms.GaussianDiscrete(epsilon=1, delta=0.1)
        mechanism._scale = sigma  # it offers no way to name the scale
        return mechanism.randomise

    def gaussian(sigma: float) -> Callable[[float], float]:
        delta = 1.25 * math.exp(-0.5)  # makes the scale the sensitivity
        return mechanisms.Gaussian(epsilon=1, delta=delta, sensitivity=sigma).randomise

    return {
        "Discrete Laplace": one_by_one(lambda scale: mechanisms.Geometric(epsilon=1 / scale).randomise, 0),
        "Discrete Gaussian": one_by_one(discrete_gaussian, 0),
        "Float Laplace": one_by_one(lambda scale: mechanisms.Laplace(epsilon=1 / scale, sensitivity=1).randomise, 0.0),
        "Float Gaussian": one_by_one(gaussian, 0.0),
    }


def python_dp() -> Makers:
    from pydp.algorithms.numerical_mechanisms import GaussianMechanism, LaplaceMechanism

    def laplace(scale: float) -> Callable[[float], float]:
        return LaplaceMechanism(epsilon=1 / scale, sensitivity=1.0).add_noise

    def gaussian(sigma: float) -> Callable[[float], float]:
        return GaussianMechanism.create_from_standard_deviation(sigma).add_noise

    # Its integers are rounded real numbers.
    return {
        "Discrete Laplace": one_by_one(laplace, 0),
        "Discrete Gaussian": one_by_one(gaussian, 0),
        "Float Laplace": one_by_one(laplace, 0.0),
        "Float Gaussian": one_by_one(gaussian, 0.0),
    }


class LocalPeer(NamedTuple):
    """A local protocol of another library: one report at a time, and estimated frequencies of all reports."""

    client: Callable[[int, int], Any]
    """Takes a value and k."""
    server: Callable[[Any, int], Any]


def multi_freq_ldpy(epsilon: float) -> dict[str, LocalPeer]:
    from multi_freq_ldpy.pure_frequency_oracles import GRR, LH, SS, UE

    def unary(optimal: bool) -> LocalPeer:
        return LocalPeer(
            lambda value, k: UE.UE_Client(value, k, epsilon, optimal),
            lambda reports, k: UE.UE_Aggregator_MI(reports, epsilon, optimal),
        )

    def peer(client: Callable[..., Any], server: Callable[..., Any]) -> LocalPeer:
        return LocalPeer(
            lambda value, k: client(value, k, epsilon),
            lambda reports, k: server(reports, k, epsilon),
        )

    return {
        "Generalised randomised response": peer(GRR.GRR_Client, GRR.GRR_Aggregator_MI),
        "Local hashing": peer(LH.LH_Client, LH.LH_Aggregator_MI),
        "Subset selection": peer(SS.SS_Client, SS.SS_Aggregator_MI),
        "Unary encoding": unary(optimal=True),
        "Symmetric unary encoding": unary(optimal=False),
    }


def pure_ldp(epsilon: float) -> dict[str, LocalPeer]:
    from pure_ldp.frequency_oracles import (
        DEClient,
        DEServer,
        HadamardResponseClient,
        HadamardResponseServer,
        LHClient,
        LHServer,
        UEClient,
        UEServer,
    )

    def peer(client: Callable[..., Any], server: Callable[..., Any], **options: Any) -> LocalPeer:
        collector_for = cache(lambda k: server(epsilon=epsilon, d=k, **options))

        @cache
        def privatise(k: int) -> Callable[[int], Any]:
            shared = {"hash_funcs": collector_for(k).get_hash_funcs()} if server is HadamardResponseServer else {}
            return client(epsilon=epsilon, d=k, **options, **shared).privatise

        def estimate(reports: Any, k: int) -> Any:
            collector = collector_for(k)
            collector.reset()
            for report in reports:
                collector.aggregate(report)
            return collector.estimate_all(range(1, k + 1), suppress_warnings=True) / len(reports)

        return LocalPeer(lambda value, k: privatise(k)(value + 1), estimate)

    return {
        "Generalised randomised response": peer(DEClient, DEServer),
        "Local hashing": peer(LHClient, LHServer, use_olh=True),
        "Hadamard response of Acharya et al.": peer(HadamardResponseClient, HadamardResponseServer),
        "Unary encoding": peer(UEClient, UEServer, use_oue=True),
        "Symmetric unary encoding": peer(UEClient, UEServer, use_oue=False),
    }


Choose = Callable[[], Any]


def opendp_selection(column: str, scores: list[float], epsilon: float) -> Choose:
    import opendp.prelude as dp

    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    scale = 2 / epsilon
    measurement = {
        "exponential": lambda: dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale),
        "report noisy max": lambda: dp.m.make_noisy_max(*space, dp.max_divergence(), scale),
        "top 10": lambda: dp.m.make_noisy_top_k(*space, dp.zero_concentrated_divergence(), 10, 10 * scale),
    }[column]()
    return partial(measurement, scores)


def diffprivlib_selection(column: str, scores: list[float], epsilon: float) -> Choose | None:
    from diffprivlib import mechanisms

    if column != "exponential":  # its permute-and-flip takes seconds, and it has no top k
        return None
    # It takes the scores with the parameters.
    return lambda: mechanisms.Exponential(epsilon=epsilon, sensitivity=1.0, utility=scores).randomise()


Query = Callable[[Any], Any]
"""Releases something of a column of doubles."""


def opendp_queries(bounds: tuple[float, float], epsilon: float, rows: int) -> dict[str, Query]:
    import opendp.prelude as dp

    lower, upper = map(float, bounds)
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    clamped = space >> dp.t.then_clamp((lower, upper))
    sized = clamped >> dp.t.then_resize(rows, constant=(lower + upper) / 2)
    width = (upper - lower) / 10
    bins = space >> dp.t.then_find_bin([lower + i * width for i in range(11)])
    counts = bins >> dp.t.then_count_by_categories(list(range(1, 11)), null_category=False)
    candidates = [lower + i * width / 100 for i in range(1001)]

    def noisy(transformation: Any, distance: int = 1) -> Query:
        measurement: Query = dp.binary_search_chain(
            lambda scale: transformation >> dp.m.then_laplace(scale), distance, epsilon
        )
        return measurement

    return {
        "sum": noisy(clamped >> dp.t.then_sum()),
        "mean": noisy(sized >> dp.t.then_mean(), 2),
        "variance": noisy(sized >> dp.t.then_variance(), 2),
        "median": dp.binary_search_chain(
            lambda scale: dp.m.make_private_quantile(*space, dp.max_divergence(), candidates, 0.5, scale), 1, epsilon
        ),
        "histogram of 10 bins": noisy(counts),
    }


def diffprivlib_queries(bounds: tuple[float, float], epsilon: float, rows: int) -> dict[str, Query]:
    from diffprivlib import tools

    return {
        "sum": partial(tools.sum, epsilon=epsilon, bounds=bounds),
        "mean": partial(tools.mean, epsilon=epsilon, bounds=bounds),
        "variance": partial(tools.var, epsilon=epsilon, bounds=bounds),
        "median": partial(tools.median, epsilon=epsilon, bounds=bounds),
        "histogram of 10 bins": lambda column: tools.histogram(column, epsilon=epsilon, bins=10, range=bounds)[0],
    }


PEERS = {"opendp": opendp, "diffprivlib": diffprivlib, "python-dp": python_dp}


def version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


INSTALLED = {name: makers() for name, makers in PEERS.items() if version(name) != "not installed"}
PLAIN_LIBRARIES = ("pandas", "polars", "pyarrow")
LOCAL_PEERS = {"multi-freq-ldpy": multi_freq_ldpy, "pure-ldp": pure_ldp}


def versions() -> dict[str, str]:
    """Return the versions of the libraries that are installed."""
    found = {name: version(name) for name in (*PEERS, *LOCAL_PEERS, *PLAIN_LIBRARIES, *hosts.LIBRARIES)}
    return {name: version for name, version in found.items() if version != "not installed"}


@cache
def local_protocols(library: str, epsilon: float) -> dict[str, LocalPeer]:
    """Return the local protocols of a library, if it is installed."""
    return {} if version(library) == "not installed" else LOCAL_PEERS[library](epsilon)


def local_peers(protocol: str, epsilon: float = 1.0) -> dict[str, LocalPeer]:
    """Return what other libraries have of a protocol, by their names."""
    found = {library: local_protocols(library, epsilon) for library in LOCAL_PEERS}
    return {library: protocols[protocol] for library, protocols in found.items() if protocol in protocols}


SELECTION = {"opendp": opendp_selection, "diffprivlib": diffprivlib_selection}


def selection_peers(column: str, scores: list[float], epsilon: float) -> dict[str, Choose]:
    """Return what other libraries have of a selection, by their names."""
    found = {name: make(column, scores, epsilon) for name, make in SELECTION.items() if name in INSTALLED}
    return {name: choose for name, choose in found.items() if choose is not None}


QUERIES = {"opendp": opendp_queries, "diffprivlib": diffprivlib_queries}


def queries(name: str, bounds: tuple[float, float], epsilon: float, rows: int) -> dict[str, Query]:
    """Return what other libraries have of a query of a column with so many rows, by their names."""
    found = {library: make(bounds, epsilon, rows) for library, make in QUERIES.items() if library in INSTALLED}
    return {library: queries[name] for library, queries in found.items() if name in queries}
