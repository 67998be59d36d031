"""Opacus with dpnoise: the host's signatures, checks, errors and accounts, and what is refused."""

from __future__ import annotations

import doctest
import inspect
import itertools
import math
import warnings

import opacus
import pytest
import torch
from host_tests.errors import error_of
from opacus import optimizers as host
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import dpnoise_opacus as ours
from dpnoise import ParameterError, hazmat

from .models import ADAPTIVE, CLIPPINGS, backward, examples, parts_of

OPTIMIZERS = [name for name in ours.__all__ if name != "PrivacyEngine"]

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
            "noise_generator must be None, since anybody who knows a seed",
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
