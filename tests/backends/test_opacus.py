"""Opacus with sums and noise of dpnoise: the host's signatures, checks and accounts, and steps that are exact."""

from __future__ import annotations

import doctest
import inspect
import itertools
import math
import subprocess
import sys
import warnings
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("opacus", reason="needs Opacus: pip install 'dpnoise[opacus]'")

import opacus
import torch
from opacus import optimizers as host
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, WeightedRandomSampler

from dpnoise import ParameterError, hazmat
from dpnoise.backends import _gradients
from dpnoise.backends import opacus as ours

pytestmark = pytest.mark.filterwarnings(
    "ignore:Full backward hook is firing",
    "ignore:Secure RNG turned off",
    "ignore:Optimal order is the largest alpha",
)

OPTIMIZERS = [name for name in ours.__all__ if name != "PrivacyEngine"]
ADAPTIVE = {
    "clipping": "adaptive",
    "target_unclipped_quantile": 0.5,
    "clipbound_learning_rate": 0.2,
    "max_clipbound": 10.0,
    "min_clipbound": 0.01,
    "unclipped_num_std": 5.0,
}
CLIPPINGS = {"flat": {}, "per_layer": {"clipping": "per_layer", "max_grad_norm": [0.5, 0.1]}, "adaptive": ADAPTIVE}


def examples(n: int = 60, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(n, 4, generator=generator)
    return features, (features.sum(1) > 0).long()


def parts_of(engine=None, *, n=60, batch_size=20, loader=None, lr=0.1, **changes):
    """A linear model, its optimizer and its loader, made private."""
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    loader = loader or DataLoader(TensorDataset(*examples(n)), batch_size=batch_size)
    parameters = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, **changes}
    engine = engine or ours.PrivacyEngine()
    return engine.make_private(module=model, optimizer=optimizer, data_loader=loader, **parameters)


def backward(model, features, labels, reduction="mean"):
    nn.functional.cross_entropy(model(features), labels, reduction=reduction).backward()


def gradient_of(batch, **changes):
    """The gradients of a step on a batch, with known noise."""
    model, optimizer, _ = parts_of(noise_generator=hazmat.SeededRng(1), **changes)
    backward(model, *batch, changes.get("loss_reduction", "mean"))
    optimizer.step()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def error_of(call):
    try:
        call()
    except Exception as error:
        return type(error), str(error)
    return None


# --- the host's interface -----------------------------------------------------------------------------------------


def test_the_engine_looks_like_the_host():
    for name in ("__init__", "make_private", "make_private_with_epsilon"):
        shown, expected = (
            inspect.signature(getattr(kind, name)) for kind in (ours.PrivacyEngine, opacus.PrivacyEngine)
        )
        assert list(shown.parameters) == list(expected.parameters)
        assert [p.default for p in shown.parameters.values()][-1] == [p.default for p in expected.parameters.values()][
            -1
        ]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_looks_like_the_host(name):
    kind, original = getattr(ours, name), getattr(host, name)
    assert issubclass(kind, original)
    assert issubclass(kind, ours.DPOptimizer)
    assert list(inspect.signature(kind).parameters) == list(inspect.signature(original).parameters)


@pytest.mark.parametrize(
    ("subject", "names"),
    [
        (opacus.PrivacyEngine, {}),
        (host.DPOptimizer, {"DPOptimizer": ours.DPOptimizer}),
        (BatchMemoryManager, {"BatchMemoryManager": BatchMemoryManager}),
    ],
)
def test_the_hosts_examples_run(subject, names):
    """Those of its documentation, with names that they take from elsewhere; only the import is different."""
    loader = DataLoader(TensorDataset(*examples(16)), batch_size=4)
    engine = ours.PrivacyEngine()
    given = {
        "PrivacyEngine": ours.PrivacyEngine,
        "torch": torch,
        "nn": nn,
        "demo_dataloader": loader,
        "MyCustomModel": lambda: nn.Linear(4, 2),
        "_init_private_training": lambda: parts_of(engine, loader=loader),
    }
    test = doctest.DocTestParser().get_doctest(
        inspect.getdoc(subject), {**given, **names}, subject.__name__, None, None
    )
    assert test.examples
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


def test_secure_mode_works_where_the_hosts_does_not():
    with pytest.raises(ImportError, match="you must install the torchcsprng package"):
        opacus.PrivacyEngine(secure_mode=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine = ours.PrivacyEngine(secure_mode=True)
    model, optimizer, loader = parts_of(engine)
    for batch in loader:
        optimizer.zero_grad()
        backward(model, *batch)
        optimizer.step()
    assert engine.get_epsilon(1e-5) > 0


@pytest.mark.parametrize("clipping", CLIPPINGS)
def test_training_learns_and_costs_what_the_host_says(clipping):
    """Examples that a line separates: both engines find it, with the same account."""
    features, labels = examples(2000)
    learned = {}
    for library in (opacus, ours):
        engine = library.PrivacyEngine(accountant="rdp")
        loader = DataLoader(TensorDataset(features, labels), batch_size=200)
        # Noise of 1/200 on gradients of about 1: it does not decide.
        model, optimizer, loader = parts_of(engine, loader=loader, lr=1.0, **CLIPPINGS[clipping])
        for batch in itertools.chain(loader, loader):
            optimizer.zero_grad()
            backward(model, *batch)
            optimizer.step()
        accuracy = (model(features).argmax(1) == labels).float().mean()
        learned[library] = engine.get_epsilon(1e-5), engine.accountant.history, accuracy
    (epsilon, history, accuracy), (expected, their_history, _) = learned[ours], learned[opacus]
    assert (epsilon, history) == (expected, their_history)
    assert accuracy > 0.9


def test_the_noise_for_an_epsilon_is_the_hosts():
    found = []
    for library in (opacus, ours):
        model = nn.Linear(4, 2)
        _, optimizer, _ = library.PrivacyEngine(accountant="rdp").make_private_with_epsilon(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=DataLoader(TensorDataset(*examples()), batch_size=10),
            target_epsilon=2.0,
            target_delta=1e-5,
            epochs=3,
            max_grad_norm=1.0,
        )
        found.append(optimizer.noise_multiplier)
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "changes",
    [
        {"loss_reduction": "max"},
        {"clipping": "none"},
        {"clipping": "adaptive"},
        {**ADAPTIVE, "max_clipbound": 0.001},
        {**ADAPTIVE, "noise_multiplier": 20.0},
        {"clipping": "per_layer", "max_grad_norm": [1.0]},
        {"optimizer": torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)},
        {"module": nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2))},
        {"surprise": None, "clipping": "per_layer", "max_grad_norm": 1.0},
    ],
    ids=lambda changes: ", ".join(map(str, changes)),
)
def test_errors_are_the_hosts(changes):
    def made(library):
        module = changes.get("module", nn.Linear(4, 2))
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(*examples()), batch_size=20)
        parameters = {
            "module": module,
            "optimizer": optimizer,
            "noise_multiplier": 1.0,
            "max_grad_norm": 1.0,
            **changes,
        }
        return library.PrivacyEngine().make_private(data_loader=loader, **parameters)

    expected, found = error_of(lambda: made(opacus)), error_of(lambda: made(ours))
    assert expected is not None
    assert found == expected


@pytest.mark.parametrize("clipping", CLIPPINGS)
@pytest.mark.parametrize("cleared", ["nothing", "rows"])
def test_gradients_that_were_used_are_refused_as_by_the_host(clipping, cleared):
    """The rows of the last step, and its sum: `zero_grad` of the model clears the rows alone."""
    found = []
    for library in (opacus, ours):
        model, optimizer, _ = parts_of(library.PrivacyEngine(), poisson_sampling=False, **CLIPPINGS[clipping])
        batch = examples(5)
        backward(model, *batch)
        optimizer.step()
        if cleared == "rows":
            model.zero_grad()
        backward(model, *batch)
        found.append(error_of(optimizer.step))
    assert found[0][0] is ValueError
    assert "haven't been cleared" in found[0][1]
    assert found[1] == found[0]


def test_a_closure_is_called():
    model, optimizer, _ = parts_of()
    called = []
    optimizer.step(lambda: called.append(backward(model, *examples(3))))
    assert len(called) == 1
    assert all((p.grad != 0).all() for p in model.parameters())


# --- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"grad_sample_mode": "ghost"},
            ValueError,
            "grad_sample_mode must be 'hooks', 'functorch' or 'ew', got 'ghost'",
        ),
        ({"grad_sample_mode": "ghost_fsdp"}, ValueError, "got 'ghost_fsdp', which adds up"),
        ({"rand_on_empty": True}, ValueError, "rand_on_empty must be False"),
        (
            {"noise_generator": torch.Generator()},
            ValueError,
            "noise_generator must be None, since whoever knows a seed",
        ),
        ({"noise_generator": 0}, ValueError, "noise_generator must be None.*got int"),
        ({"noise_multiplier": 0.0}, ParameterError, r"noise_multiplier must be from 2\*\*-20 to 2\*\*11, got 0.0"),
        ({"noise_multiplier": math.nan}, ParameterError, "noise_multiplier must be from"),
        ({"noise_multiplier": "1"}, TypeError, "noise_multiplier must be a number"),
        ({"max_grad_norm": 0.0}, ParameterError, r"max_grad_norm must be from 2\*\*-80 to 2\*\*80, got 0.0"),
        ({"max_grad_norm": math.inf}, ParameterError, "max_grad_norm must be from"),
        (
            {"clipping": "per_layer", "max_grad_norm": [1.0, -1.0]},
            ParameterError,
            "max_grad_norm must be from .* got -1",
        ),
        ({**ADAPTIVE, "unclipped_num_std": 2.0**60}, ParameterError, "unclipped_num_std must be from"),
    ],
    ids=lambda value: ", ".join(map(str, value)) if isinstance(value, dict) else "",
)
def test_what_cannot_be_exact_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        parts_of(**changes)


def test_a_refused_model_stays_as_it_was():
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(*examples()), batch_size=20)
    seeded = DataLoader(TensorDataset(*examples()), batch_size=20, generator=torch.Generator())
    good = {
        "module": model,
        "optimizer": optimizer,
        "data_loader": loader,
        "noise_multiplier": 1.0,
        "max_grad_norm": 1.0,
    }
    for bad in ({"noise_multiplier": 0.0}, {"rand_on_empty": True}, {"noise_generator": 1}, {"data_loader": seeded}):
        with pytest.raises(ValueError, match=r"must (be|have)"):
            ours.PrivacyEngine().make_private(**{**good, **bad})
    ours.PrivacyEngine().make_private(**good)


def test_a_generator_of_the_loader_is_refused():
    generator = torch.Generator().manual_seed(1)
    loader = DataLoader(TensorDataset(*examples()), batch_size=20, shuffle=True, generator=generator)
    with pytest.raises(ValueError, match="data_loader must have no generator"):
        parts_of(loader=loader)
    parts_of(loader=loader, poisson_sampling=False)


def test_a_seed_is_refused_in_secure_mode_as_by_the_host():
    with pytest.raises(ValueError, match="Passing seed is prohibited in secure mode"):
        parts_of(ours.PrivacyEngine(secure_mode=True), noise_generator=hazmat.SeededRng(1))


def test_a_generator_of_an_optimizer_is_refused():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
    parameters = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "expected_batch_size": 4}
    with pytest.raises(ValueError, match="generator must be None"):
        ours.DPOptimizer(optimizer, generator=torch.Generator(), **parameters)
    with pytest.raises(ParameterError, match="max_grad_norm must be from"):
        ours.DPOptimizer(optimizer, **{**parameters, "max_grad_norm": 0.0})


def test_complex_parameters_are_refused():
    """A conversion to real numbers would drop half of them without an error."""
    model = nn.ParameterDict({"real": torch.zeros(2), "complex": torch.zeros(2, dtype=torch.complex64)})
    parameters = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "expected_batch_size": 4}
    with pytest.raises(TypeError, match="parameters must be real, got complex ones"):
        ours.DPOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), **parameters)


def test_norms_and_noise_that_schedulers_change():
    model, optimizer, _ = parts_of()
    backward(model, *examples(5))
    optimizer.signal_skip_step(True)
    optimizer.step()
    optimizer.zero_grad()
    optimizer.max_grad_norm = 2.0
    backward(model, *examples(5))
    with pytest.raises(ValueError, match="max_grad_norm must not change between batches that make one step"):
        optimizer.step()

    model, optimizer, _ = parts_of(**CLIPPINGS["per_layer"])
    backward(model, *examples(5))
    optimizer.max_grad_norm *= 0.9
    with pytest.raises(ValueError, match="cannot be changed where each parameter has a norm of its own"):
        optimizer.step()

    model, optimizer, _ = parts_of()
    optimizer.noise_multiplier = 0.0
    backward(model, *examples(5))
    with pytest.raises(ParameterError, match="noise_multiplier must be from"):
        optimizer.step()


# --- sums ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clipping", CLIPPINGS)
def test_the_order_of_a_batch_does_not_matter(clipping):
    features, labels = examples(32)
    expected = gradient_of((features, labels), **CLIPPINGS[clipping])
    turned = gradient_of((features.flip(0), labels.flip(0)), **CLIPPINGS[clipping])
    torch.testing.assert_close(turned, expected, rtol=0, atol=0)


@pytest.mark.parametrize("clipping", CLIPPINGS)
def test_batches_in_parts_make_the_step_of_the_whole(clipping):
    """Bit by bit, since only integers are added up."""
    features, labels = examples(32)
    changes = {"loss_reduction": "sum", **CLIPPINGS[clipping]}
    expected = gradient_of((features, labels), **changes)
    model, optimizer, _ = parts_of(noise_generator=hazmat.SeededRng(1), **changes)
    for part in (slice(0, 8), slice(8, 9), slice(9, 9), slice(9, 32)):
        optimizer.zero_grad()
        optimizer.signal_skip_step(part.stop < 32)
        backward(model, features[part], labels[part], "sum")
        optimizer.step()
        assert all(p.summed_grad.dtype == torch.int64 for p in model.parameters())
    found = torch.cat([p.grad.flatten() for p in model.parameters()])
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_virtual_steps():
    engine = ours.PrivacyEngine()
    model, optimizer, loader = parts_of(engine, n=200, batch_size=50)
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as small:
        for features, labels in small:
            assert len(features) <= 8
            optimizer.zero_grad()
            backward(model, features, labels)
            optimizer.step()
    assert engine.accountant.history == [(1.0, 0.25, 4)]


@pytest.mark.parametrize("clipping", CLIPPINGS)
def test_an_empty_batch_makes_a_step_of_noise(clipping):
    features, labels = examples(0)
    found = gradient_of((features, labels), **CLIPPINGS[clipping])
    assert (found != 0).all()
    assert found.abs().max() < 10 / 20  # of the expected batch size


def test_batches_may_be_empty():
    engine = ours.PrivacyEngine()
    model, optimizer, loader = parts_of(engine, n=10, batch_size=1)  # every third is
    sizes = []
    for features, labels in itertools.chain.from_iterable([loader] * 20):
        optimizer.zero_grad()
        backward(model, features, labels)
        weights = next(model.parameters())
        before = weights.clone()
        optimizer.step()
        sizes.append(len(features))
        assert (weights != before).all()
    assert 0 in sizes
    assert sum(steps for _, _, steps in engine.accountant.history) == len(sizes) == 200


def test_what_is_frozen_before_a_step_stays_as_it_is():
    """Its gradient has no noise, and the base optimizer would follow it."""
    model, optimizer, _ = parts_of()
    weight = next(model.parameters())
    before = weight.detach().clone()
    backward(model, *examples())
    assert weight.grad.abs().max() > 0
    weight.requires_grad_(False)
    optimizer.step()
    torch.testing.assert_close(weight, before, rtol=0, atol=0)


def test_an_example_that_is_not_finite_counts_as_zeros():
    features, labels = examples(8)
    features[3] = math.nan
    kept = [i for i in range(8) if i != 3]
    found = gradient_of((features, labels), loss_reduction="sum")
    torch.testing.assert_close(found, gradient_of((features[kept], labels[kept]), loss_reduction="sum"), rtol=0, atol=0)


def test_gradients_are_divided_as_the_loss_is_reduced():
    zero = torch.zeros(0, 4), torch.zeros(0, dtype=torch.long)
    mean, whole = gradient_of(zero), gradient_of(zero, loss_reduction="sum")
    torch.testing.assert_close(mean, whole / 20)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_gradients_have_the_dtype_of_the_parameters(dtype):
    parameter = nn.Parameter(torch.zeros(3, 2, dtype=dtype))
    optimizer = ours.DPOptimizer(
        torch.optim.SGD([parameter], lr=0.1),
        noise_multiplier=0.5,
        max_grad_norm=1.0,
        expected_batch_size=4,
        generator=hazmat.SeededRng(1),
    )
    parameter.grad_sample = torch.randn(5, 3, 2).to(dtype)
    rows = parameter.grad_sample.double().numpy()
    optimizer.step()
    assert parameter.grad.dtype == dtype
    assert parameter.grad.shape == (3, 2)
    wide = np.float64 if dtype == torch.float64 else np.float32
    noisy = _gradients.noisy(
        _gradients.clipped_sum([rows.astype(wide)], clip_norm=1.0),
        clip_norm=1.0,
        noise_multiplier=0.5,
        dtype=wide,
        rng=hazmat.SeededRng(1),
    )
    expected = torch.from_numpy(noisy).to(dtype).view(3, 2) / 4
    torch.testing.assert_close(parameter.grad, expected, rtol=0, atol=0)


def test_layers_are_clipped_apart_and_have_the_same_noise():
    parameters = [nn.Parameter(torch.zeros(size)) for size in (50_000, 50_000)]
    optimizer = ours.DPPerLayerOptimizer(
        torch.optim.SGD(parameters, lr=0.1), noise_multiplier=2.0, max_grad_norm=[3.0, 4.0], expected_batch_size=1
    )
    for p, norm in zip(parameters, (3.0, 4.0), strict=True):
        p.grad_sample = torch.full((1, 50_000), 1e6)
        p.expected = norm / math.sqrt(50_000)
    optimizer.step()
    for p in parameters:
        noise = p.grad - p.expected
        # 50 000 normal numbers: their deviation is off by 7 of its standard errors once in 10**11 times.
        assert abs(noise.std().item() / (2.0 * 5.0) - 1) < 7 / math.sqrt(2 * 50_000)
        assert abs(noise.mean().item()) < 7 * 10 / math.sqrt(50_000)


def test_the_noise_of_a_layer_is_its_share():
    """A parameter of the noise, and so exact: the losses of all layers make that of the whole."""
    _, optimizer, _ = parts_of(**CLIPPINGS["per_layer"])
    assert optimizer._noise_multipliers() == _gradients.multipliers([0.5, 0.1], [8, 2], 1.0)


# --- adaptive clipping --------------------------------------------------------------------------------------------


def test_the_count_is_noisy_and_divided_by_a_public_number():
    model, optimizer, _ = parts_of(noise_generator=hazmat.SeededRng(1), **ADAPTIVE)
    seen = []
    for _ in range(200):
        for p in model.parameters():
            p.grad_sample = torch.cat([torch.full((3, *p.shape), 1e6), torch.zeros(5, *p.shape)])
        optimizer.max_grad_norm = 1.0
        optimizer.step()
        assert optimizer.sample_size == 20
        seen.append(optimizer.unclipped_num.item())
        optimizer.zero_grad()
    # Five were not clipped and three were, of twenty expected: 11, and noise of a standard deviation of 5.
    assert all(np.mod(seen, 2.0**-21) == 0)
    assert abs(np.mean(seen) - 11) < 7 * 5 / math.sqrt(200)
    assert abs(np.std(seen) / 5 - 1) < 7 / math.sqrt(400)


def test_gradient_and_count_lose_no_more_than_is_claimed():
    for noise_multiplier, deviation in ((1.0, 5.0), (9.99, 5.0), (0.3, 0.2)):
        _, optimizer, _ = parts_of(**{**ADAPTIVE, "noise_multiplier": noise_multiplier, "unclipped_num_std": deviation})
        (found,) = optimizer._noise_multipliers()
        loss = 1 / Fraction(found) ** 2 + 1 / Fraction(2 * deviation) ** 2
        assert 0.999 / Fraction(noise_multiplier) ** 2 < loss <= 1 / Fraction(noise_multiplier) ** 2


def test_the_norm_adapts():
    model, optimizer, loader = parts_of(n=400, batch_size=100, **{**ADAPTIVE, "min_clipbound": 1e-4})
    for batch in itertools.chain.from_iterable([loader] * 10):
        optimizer.zero_grad()
        backward(model, *batch)
        optimizer.step()
    assert 0.05 < float(optimizer.max_grad_norm) < 0.95


# --- batches ------------------------------------------------------------------------------------------------------


def test_batches_are_poisson_samples_that_no_seed_repeats():
    _, _, loader = parts_of(n=2000, batch_size=100)
    assert isinstance(loader, opacus.data_loader.DPDataLoader)
    assert len(loader) == 20
    torch.manual_seed(1)
    first = list(loader.batch_sampler)
    torch.manual_seed(1)
    second = list(loader.batch_sampler)
    assert first != second
    sizes = [len(batch) for batch in first + second]
    # 80 000 coins of 1/20.
    assert abs(sum(sizes) - 4000) < 7 * math.sqrt(4000)
    assert len(set(sizes)) > 5
    assert all(batch == sorted(set(batch)) for batch in first)


def test_the_order_of_batches_in_secure_mode():
    engine = ours.PrivacyEngine(secure_mode=True)
    loader = DataLoader(TensorDataset(*examples(100)), batch_size=30, shuffle=True)
    _, _, prepared = parts_of(engine, loader=loader, poisson_sampling=False)
    torch.manual_seed(1)
    first = list(prepared.batch_sampler)
    torch.manual_seed(1)
    assert first != list(prepared.batch_sampler)
    assert [len(batch) for batch in first] == [30, 30, 30, 10]
    assert sorted(itertools.chain.from_iterable(first)) == list(range(100))


@pytest.mark.parametrize(
    "sampler",
    [
        WeightedRandomSampler([1.0] * 10, num_samples=10),
        RandomSampler(range(10), replacement=True),
        RandomSampler(range(10), num_samples=4),
        RandomSampler(range(10), num_samples=25),
    ],
    ids=["weighted", "with replacement", "some", "some twice"],
)
def test_samplers_that_secure_mode_does_not_know(sampler):
    loader = DataLoader(TensorDataset(*examples(10)), batch_size=5, sampler=sampler)
    with pytest.raises(ValueError, match="knows no secure sampler in place of that of data_loader"):
        parts_of(ours.PrivacyEngine(secure_mode=True), loader=loader, poisson_sampling=False)


def test_an_order_that_is_fixed_is_refused_in_secure_mode_as_by_the_host():
    loader = DataLoader(TensorDataset(*examples(10)), batch_size=5)
    with pytest.raises(ValueError, match="Target sampler doesn't have generator attribute: nothing to switch"):
        parts_of(ours.PrivacyEngine(secure_mode=True), loader=loader, poisson_sampling=False)


# --- several workers ----------------------------------------------------------------------------------------------

WORKER = """
import sys
import torch
from torch import nn
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as DPDDP
from torch.utils.data import DataLoader, TensorDataset
from dpnoise import hazmat
from dpnoise.backends import opacus as ours

folder, rank = sys.argv[1], int(sys.argv[2])
torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
features, labels = torch.load(f"{folder}/examples")
part = slice(0, 12) if rank == 0 else slice(12, 32)
found = {}
for name, changes in torch.load(f"{folder}/clippings").items():
    torch.manual_seed(0)
    model = DPDDP(nn.Linear(4, 2))
    model, optimizer, loader = ours.PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(TensorDataset(features, labels), batch_size=20),
        noise_generator=hazmat.SeededRng(1),
        **changes,
    )
    loss = nn.functional.cross_entropy(model(features[part]), labels[part])
    loss.backward()
    optimizer.step()
    found[name] = torch.cat([p.grad.flatten() for p in model.parameters()])
rare = type(loader.batch_sampler)(total_size=60, sample_rate=1 / 200)
torch.save((found, list(loader.batch_sampler), [len(batch) for batch in rare]), f"{folder}/found.{rank}")
torch.distributed.destroy_process_group()
"""


def test_two_workers_make_the_step_of_one(tmp_path):
    features, labels = examples(60)
    torch.save((features, labels), tmp_path / "examples")
    clippings = {name: CLIPPINGS[name] for name in ("flat", "per_layer")}
    parameters = {"noise_multiplier": 1.0, "max_grad_norm": 1.0}
    torch.save({name: {**parameters, **changes} for name, changes in clippings.items()}, tmp_path / "clippings")
    program = [sys.executable, "-W", "ignore", "-c", WORKER, str(tmp_path)]
    workers = [subprocess.Popen([*program, str(rank)]) for rank in range(2)]
    assert [worker.wait(timeout=300) for worker in workers] == [0, 0]
    (first, batches, rare), (second, others, _) = (torch.load(tmp_path / f"found.{rank}") for rank in range(2))
    for name, changes in clippings.items():
        torch.testing.assert_close(first[name], second[name], rtol=0, atol=0)
        # Another batch size makes other roundings of each gradient.
        whole = gradient_of((features[:32], labels[:32]), **changes)
        torch.testing.assert_close(first[name], whole, rtol=0, atol=1e-6)
    assert len(batches) == len(others) == 3
    assert not set(itertools.chain(*batches)) & set(itertools.chain(*others))
    # 200 batches with an example each in seven.
    assert 0 in rare
    assert len(rare) == 200
