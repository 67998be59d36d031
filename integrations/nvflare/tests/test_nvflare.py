"""What leaves a site of NVFlare with `GaussianPrivacy`: an update with noise that is paid for, or a code."""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nvflare.apis.analytix import AnalyticsData, AnalyticsDataType
from nvflare.apis.controller_spec import Task
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.event_type import EventType
from nvflare.apis.filter import Filter
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey, ReturnCode
from nvflare.apis.impl.task_controller import TaskController
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.workspace import Workspace
from nvflare.app_common.filters.exclude_vars import ExcludeVars
from nvflare.app_common.np.recipes.fedavg import NumpyFedAvgRecipe
from nvflare.private.fed.app.fl_conf import create_privacy_manager
from nvflare.private.privacy_manager import Scope
from nvflare.widgets.fed_event import FedEventRunner
from runner import Site, privacy, update
from scipy.sparse import csr_array

from dpnoise import ParameterError, hazmat
from dpnoise.accounting import Ledger, ZcdpCost, zcdp_epsilon, zcdp_rho
from dpnoise.sgd import NoisyGradient

ARRAYS = {"w": np.full((2, 3), 0.25, np.float32), "b": np.array(-0.5, np.float16), "e": np.zeros((0, 2)), "s": 0.125}
SECRET = 0.123456
ONE = 2 / 4.0**2  # the rho of an update
Make = Callable[..., Site]


@pytest.fixture
def site(tmp_path: Path) -> Make:
    return lambda *filters, **more: Site(tmp_path, *filters, **more)


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Seed the noise of each update, and keep what gets the noise."""
    found = []
    release = NoisyGradient.release

    def seeded(mechanism: NoisyGradient, row: np.ndarray) -> np.ndarray:
        found.append(row)
        return release(mechanism, row, rng=hazmat.SeededRng(3))

    monkeypatch.setattr(NoisyGradient, "release", seeded)
    return found


def entries(root: Path, name: str = "budget.db") -> list[Any]:
    return Ledger.open_readonly(root / name).entries() if (root / name).exists() else []


def content(sent: Shareable) -> dict[str, Any]:
    """Give all that was sent, but for the identifier that NVFlare draws for each message."""
    sent = copy.deepcopy(sent)
    assert sent["__headers__"].pop("__msg_root_id__")
    return dict(sent)


def code(sent: Shareable) -> str:
    """Give the code of what was sent, which must have nothing else in it."""
    (headers,) = content(sent).values()
    assert headers.keys() <= {"__rc__", "__audit_event_id__", "__task_name__", "__task_id__"}
    return headers["__rc__"]


# --- what is sent ----------------------------------------------------------------------------------------------------


def test_an_update_is_one_row_of_noisy_gradient_bit_for_bit(site: Make, rows: list[np.ndarray]) -> None:
    sent = site(privacy(clip_norm=0.5, noise_multiplier=3.0)).train(update(ARRAYS))["DXO"]
    row = np.concatenate([np.ravel(array) for array in ARRAYS.values()])
    assert sum(map(np.size, rows)) == row.size == 8
    mechanism = NoisyGradient(clip_norm=0.5, noise_multiplier=3.0, expected_batch_size=1)
    expected = mechanism.release(row[np.newaxis])
    assert sent["kind"] == DataKind.WEIGHT_DIFF
    assert list(sent["data"]) == list(ARRAYS)
    for name, array in sent["data"].items():
        assert (array.shape, array.dtype) == (np.shape(ARRAYS[name]), np.asarray(ARRAYS[name]).dtype)
    dtypes = [np.asarray(array).dtype for array in ARRAYS.values() for _ in range(np.size(array))]
    found = [number for array in sent["data"].values() for number in np.ravel(array)]
    assert found == [number.astype(dtype) for number, dtype in zip(expected, dtypes, strict=True)]


@pytest.mark.usefixtures("rows")
def test_nothing_but_the_row_is_sent(tmp_path: Path) -> None:
    """With the same noise the bytes are the same, whatever else a result has."""
    plain, more = update(ARRAYS), update(ARRAYS, NUM_STEPS_CURRENT_ROUND=17, filter_history=[str(SECRET)])
    more["note"] = SECRET
    more.set_header("note", SECRET)
    more.set_peer_props({"note": SECRET})
    more.add_cookie("note", SECRET)
    found = [content(Site(tmp_path, privacy()).train(result)) for result in (plain, more)]
    assert str(found[0]) == str(found[1])
    assert found[0]["DXO"]["meta"] == {"filter_history": ["GaussianPrivacy"]}


def test_each_update_has_fresh_noise(site: Make) -> None:
    here, found = site(privacy()), set()
    for _ in range(3):
        np.random.seed(1)  # noqa: NPY002
        found.add(here.train(update(ARRAYS))["DXO"]["data"]["w"].tobytes())
    assert len(found) == 3


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_update_with_a_nan_or_an_infinity_counts_as_zeros(
    site: Make, tmp_path: Path, rows: list[np.ndarray], bad: float
) -> None:
    """An error, a warning or an unpaid round would tell of it."""
    here = site(privacy())
    found = [here.train(update({"w": np.array(values)})) for values in ([bad, 1.0], [0.0, 0.0])]
    assert str(content(found[0])) == str(content(found[1]))
    assert [entry.cost.rho for entry in entries(tmp_path)] == [ONE, ONE]


@pytest.mark.usefixtures("rows")
def test_an_error_in_place_of_a_result_says_only_that_there_is_one(site: Make, tmp_path: Path) -> None:
    codes = [value for name, value in vars(ReturnCode).items() if not name.startswith("_") and value != ReturnCode.OK]
    here = site(privacy())
    for given in [*codes, str(SECRET)]:
        result = update(ARRAYS)
        result.set_return_code(given)
        assert code(here.train(result)) == ReturnCode.EXECUTION_EXCEPTION
    assert entries(tmp_path) == []


@pytest.mark.parametrize("kind", [RuntimeError, ValueError, KeyError, OSError, MemoryError, FloatingPointError])
def test_an_exception_tells_no_more_than_whether_it_is_a_runtime_error(
    site: Make, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    def execute(*_: Any) -> None:
        raise kind(SECRET)

    monkeypatch.setattr(Site, "execute", execute)
    sent = code(site(privacy()).train(update(ARRAYS)))
    assert sent == (ReturnCode.EXECUTION_RESULT_ERROR if kind is RuntimeError else ReturnCode.EXECUTION_EXCEPTION)


# --- what it costs ---------------------------------------------------------------------------------------------------


def test_two_updates_are_no_further_apart_than_an_update_is_paid_for() -> None:
    """In integers: an update and its opposite, both of which are clipped."""
    d, mechanism = 50, NoisyGradient(clip_norm=1.0, noise_multiplier=4.0, expected_batch_size=1)
    steps = Fraction(mechanism.sensitivity(d)) / Fraction(mechanism.granularity)
    row = 100 * np.random.default_rng(6).normal(size=d)
    a, b = (mechanism.clipped_sum([sign * row[np.newaxis]]) for sign in (1, -1))
    distance = sum(int(number) ** 2 for number in a - b)
    assert Fraction(9999, 10000) * (2 * steps) ** 2 < distance <= (2 * steps) ** 2
    assert Fraction(distance) / (2 * (4 * steps) ** 2) <= ONE == 4 * mechanism.rho


def test_a_fraction_that_another_program_has_spent_is_no_error_after_payment(site: Make, tmp_path: Path) -> None:
    here = site(privacy(epsilon=zcdp_epsilon(4 * ONE, delta=1e-6)))
    assert "DXO" in here.train(update(ARRAYS), "task-1")
    Ledger(tmp_path / "budget.db").spend(ZcdpCost(Fraction(1, 300)))
    assert "DXO" in here.train(update(ARRAYS), "task-2")
    assert len(entries(tmp_path)) == 3


def test_a_budget_lasts_for_its_updates_and_then_the_run_is_halted(
    site: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    here = site(privacy(epsilon=zcdp_epsilon(2.4 * ONE, delta=1e-6)))
    for number in (1, 2):
        assert "DXO" in here.train(update(ARRAYS), f"task-{number}")
    assert f"epsilon {zcdp_epsilon(ONE, delta=1e-6):.4g} by itself, at delta 1e-06, which is rho 0.125; " in caplog.text
    assert f"rho 0.05 of 0.3 remains in {tmp_path}/budget.db, for 0 more" in caplog.text
    assert code(here.train(update(ARRAYS), "task-3")) == ReturnCode.UNSAFE_JOB
    assert "no update leaves this site, and the run is halted: this would cost rho=0.125" in caplog.text
    assert code(here.train(update(ARRAYS), "task-4")) == ReturnCode.UNSAFE_JOB
    assert [(entry.label, entry.cost) for entry in entries(tmp_path)] == [
        (f"job-1 train task-{number}", ZcdpCost(ONE, relation="add/remove")) for number in (1, 2)
    ]


def test_an_update_is_paid_for_before_its_noise_is_drawn(
    site: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = NoisyGradient.release
    monkeypatch.setattr(NoisyGradient, "release", lambda *given: release(*given, rng=hazmat.ScriptedRng(b"")))
    assert code(site(privacy()).train(update(ARRAYS))) == ReturnCode.UNSAFE_JOB
    assert len(entries(tmp_path)) == 1


def test_a_transfer_that_fails_sends_the_same_and_a_task_that_is_repeated_is_paid_again(
    site: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nvflare.private.fed.client.client_runner.time.sleep", lambda _: None)
    here = site(privacy())
    here.tries = 3
    here.train(update(ARRAYS))
    assert len({str(content(sent)) for sent in here.sent}) == 1 < len(here.sent)
    assert len(entries(tmp_path)) == 1
    here.train(update(ARRAYS))
    assert len({str(content(sent)) for sent in here.sent}) == len(entries(tmp_path)) == 2


@pytest.mark.parametrize(("relation", "person"), [("substitute", None), ("add/remove", "patient")])
def test_a_ledger_for_other_neighbours_takes_updates_too(
    site: Make, tmp_path: Path, relation: Any, person: str | None
) -> None:
    Ledger(tmp_path / "budget.db", rho=zcdp_rho(epsilon=8.0, delta=1e-6), relation=relation, person=person)
    assert "DXO" in site(privacy()).train(update(ARRAYS))
    assert [entry.cost for entry in entries(tmp_path)] == [ZcdpCost(ONE, relation=relation, person=person)]


def test_a_ledger_with_another_budget_or_damage_halts_the_run(
    site: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Ledger(tmp_path / "other.db", epsilon=1.0)
    (tmp_path / "text").write_text("no ledger " * 100)
    for name, text in {
        "other.db": "is a ledger with the budget",
        "text": "is not a ledger of dpnoise",
        "none/b.db": "none/b.db",
    }.items():
        assert code(site(privacy(ledger=name)).train(update(ARRAYS))) == ReturnCode.UNSAFE_JOB
        assert text in caplog.text
    assert entries(tmp_path, "other.db") == []


@pytest.mark.parametrize("mode", ["simulator", "POC"])
def test_no_ledger_is_in_a_folder_that_the_host_deletes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    more = {FLContextKey.SIMULATE_MODE: True} if mode == "simulator" else {}
    folder = tmp_path / "deleted"
    root = folder / ("site-1" if mode == "simulator" else "project/prod_00/site-1")
    (folder / "data").mkdir(parents=True)
    (folder / "project.yml").touch()
    root.mkdir(parents=True)
    (tmp_path / "link").symlink_to(folder)
    for ledger in ("budget.db", str(root / "budget.db"), str(folder / "budget.db"), str(tmp_path / "link/budget.db")):
        assert code(Site(root, privacy(ledger=ledger), **more).train(update(ARRAYS))) == ReturnCode.UNSAFE_JOB
        assert f"such as '/home/me/{{SITE_NAME}}.db', got '{ledger}'" in caplog.text
    assert not list(folder.rglob("*.db"))
    assert "DXO" in Site(root, privacy(ledger=str(tmp_path / "budget.db")), **more).train(update(ARRAYS))
    assert len(entries(tmp_path)) == 1


# --- what is refused -------------------------------------------------------------------------------------------------

REFUSED = {
    "weights": (DXO(DataKind.WEIGHTS, ARRAYS), "must be of kind WEIGHT_DIFF, got WEIGHTS: send differences"),
    "metrics": (DXO(DataKind.METRICS, {"loss": SECRET}), "got METRICS: "),
    "statistics": (DXO(DataKind.STATISTICS, {"mean": SECRET}), "got STATISTICS: "),
    "a collection": (DXO(DataKind.COLLECTION, {"w": DXO(DataKind.WEIGHT_DIFF, ARRAYS)}), "got COLLECTION: "),
    "whatever": (DXO(DataKind.APP_DEFINED, SECRET), "got APP_DEFINED: "),
    "nothing": (DXO(DataKind.WEIGHT_DIFF, {}), "must have at least one number of floating point, got none"),
    "no numbers": (
        DXO(DataKind.WEIGHT_DIFF, {"w": np.zeros((0, 2))}),
        "must have at least one number of floating point, got none",
    ),
    **{
        str(array.dtype): (
            DXO(DataKind.WEIGHT_DIFF, {**ARRAYS, "n": array}),
            f"got {array.dtype} for 'n': convert it, or leave it out",
        )
        for array in map(np.asarray, (1j, np.longdouble(SECRET), str(SECRET), [b"", None]))
    },
    "integers alone": (DXO(DataKind.WEIGHT_DIFF, {"n": np.array(3)}), "one number of floating point, got none"),
    "a list": (DXO(DataKind.WEIGHT_DIFF, {"n": [SECRET]}), "got <class 'list'> for 'n'"),
    "an array of another library": (DXO(DataKind.WEIGHT_DIFF, {"n": csr_array(np.eye(2))}), "csr_array'> for 'n'"),
    "no DXO": (None, "must be a DXO of kind WEIGHT_DIFF, got none"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_results_are_refused_before_anything_is_paid(
    site: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    dxo, text = REFUSED[name]
    result = Shareable({"note": SECRET}) if dxo is None else dxo.to_shareable()
    assert code(site(privacy()).train(result)) == ReturnCode.UNSAFE_JOB
    assert text in caplog.text
    assert str(SECRET) not in caplog.text
    assert entries(tmp_path) == []


def test_what_is_refused_can_be_left_out_by_an_earlier_filter(site: Make) -> None:
    sent = site(ExcludeVars("^n$"), privacy()).train(update({**ARRAYS, "n": np.array(3j)}))
    assert list(sent["DXO"]["data"]) == list(ARRAYS)


def test_integers_and_booleans_stay_those_of_the_model(site: Make) -> None:
    """Their differences become zeros, of the same dtype, and the row is that of the floats alone."""
    still = {"n": np.array(100), "steps": 7, "u": np.full((2, 3), 2**64 - 1, np.uint64), "mask": np.array([True])}
    sent = site(privacy(clip_norm=1.0, noise_multiplier=0.01, epsilon=1e5)).train(
        update({"n": still.pop("n"), **ARRAYS, **still})
    )
    arrays = sent["DXO"]["data"]
    assert {name: (array.dtype, array.shape) for name, array in arrays.items() if name not in ARRAYS} == {
        "n": (np.int64, ()),
        "steps": (np.int64, ()),
        "u": (np.uint64, (2, 3)),
        "mask": (np.bool_, (1,)),
    }
    assert not any(array.any() for name, array in arrays.items() if name not in ARRAYS)
    # A counter in the row would leave a hundredth of the rest, whose norm is 0.8.
    assert sum(float(np.sum(np.square(arrays[name], dtype=np.float64))) for name in ARRAYS) > 0.3


@pytest.mark.parametrize("number", [0, 2**63 - 1, 2**63, 2**64, -(2**63) - 1])
def test_the_dtype_of_an_integer_of_python_does_not_tell_its_size(site: Make, number: int) -> None:
    sent = site(privacy()).train(update({**ARRAYS, "n": number}))["DXO"]["data"]["n"]
    assert (sent, sent.dtype, sent.shape) == (0, np.int64, ())


class Renewing(Filter):
    def process(self, shareable: Shareable, fl_ctx: Any) -> Shareable:
        return Shareable(shareable)


class Streaming(FLComponent):
    """A component that sends results by a way of its own, as NVFlare's for tensors does."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Shareable] = []

    def handle_event(self, event_type: str, fl_ctx: Any) -> None:
        if event_type == EventType.AFTER_TASK_RESULT_FILTER:
            self.sent.append(copy.deepcopy(fl_ctx.get_prop(FLContextKey.TASK_RESULT)))


def test_a_result_that_the_filter_does_not_get_is_not_sent(
    site: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """NVFlare's default, all tasks as ``"*"``, names no task. Components of a job stand before its filters."""
    plain = make_reply(ReturnCode.TASK_ABORTED)
    for tasks in (("*",), ("validate",)):
        for result in (update(ARRAYS), DXO(DataKind.METRICS, {"loss": SECRET}).to_shareable(), plain):
            here = site(privacy(), tasks=tasks)
            here.handlers.insert(0, streaming := Streaming())
            assert code(here.train(result)) == ReturnCode.UNSAFE_JOB
            assert streaming.sent == [make_reply(ReturnCode.UNSAFE_JOB)]
    assert entries(tmp_path) == []
    assert "nothing leaves here, and the run is halted: GaussianPrivacy must filter every" in caplog.text
    assert "give it to sites, not to the server, as an output filter, and name all tasks" in caplog.text
    assert "DXO" in site(tasks=("*",)).train(update(ARRAYS))  # without it
    released = site(privacy(), Renewing()).train(update(ARRAYS))["DXO"]["data"]
    assert not np.array_equal(released["w"], ARRAYS["w"])


def test_a_task_for_another_site_is_held_back(site: Make) -> None:
    """NVFlare sends the object that a filter was given, not the one that it returned."""
    here, controller = site(filter := privacy()), TaskController()
    for filters in ([], [Renewing()], [filter], [filter, Renewing()]):
        controller.task_data_filters = {"report/out": filters}
        with here.contexts.new_context() as context:
            controller.broadcast_and_wait(Task("report", update(ARRAYS), timeout=1), context, targets=["server"])
    assert len(here.sent) == 4
    for held in here.sent:
        assert held.get_return_code() == ReturnCode.UNSAFE_JOB
        assert held.keys() == {"__headers__"}


class Events(FedEventRunner):
    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Shareable] = []

    def fire_and_forget_request(self, request: Shareable, **_: Any) -> None:
        self.sent.append(request)


def events_of(here: Site, name: str = "fed.analytix_log_stats") -> int:
    """Fire an event with a metric, and count what the server gets."""
    here.handlers.append(events := Events())  # the last of all, as in NVFlare
    metric = AnalyticsData("loss", SECRET, AnalyticsDataType.SCALAR).to_dxo().to_shareable()
    with here.contexts.new_context() as context:
        here.runner.fire_fed_event(name, metric, context)
    return len(events.sent)


def test_events_for_the_server_stay_at_the_site(site: Make) -> None:
    assert (events_of(site()), events_of(site(privacy()))) == (1, 0)
    names = [EventType.BEFORE_TASK_RESULT_FILTER, EventType.BEFORE_TASK_DATA_FILTER, EventType.AFTER_TASK_DATA_FILTER]
    assert [events_of(site(privacy()), name) for name in names] == [0, 0, 0]


BAD = {
    "clip_norm": [0.0, 2.0**81, np.nan, "1"],
    "noise_multiplier": [0.0, 2.0**12, -1.0, None],
    "epsilon": [0.0, 2.4, -1.0, np.inf, np.nan, "8"],
    "delta": [0.0, 1.0, -1e-6, np.nan],
    "ledger": ["", None, 3],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD for value in BAD[name]])
def test_parameters_that_cannot_be_honoured_are_refused(name: str, value: Any) -> None:
    with pytest.raises((ParameterError, TypeError), match=f"^{name} must be"):
        privacy(**{name: value})


@pytest.mark.parametrize("of_site", [False, True])
def test_two_filters_for_one_result_halt_the_run(
    site: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture, of_site: bool
) -> None:
    """The second would clip the noise of the first to the norm of an update, so that nothing were left of that."""
    (scope := Scope()).add_task_result_filter(privacy(), "out")
    here = site(privacy(), **{FLContextKey.SCOPE_OBJECT: scope}) if of_site else site(privacy(), privacy())
    assert code(here.train(update(ARRAYS))) == ReturnCode.UNSAFE_JOB
    assert "one GaussianPrivacy must filter a result, got more" in caplog.text
    assert entries(tmp_path) == []


def test_a_job_is_exported_with_all_parameters_also_those_that_numpy_has_computed(tmp_path: Path) -> None:
    given = {"clip_norm": 0.1, "noise_multiplier": 20 / 3, "ledger": "/l/{SITE_NAME}.db", "epsilon": 8, "delta": 1e-7}
    numpy = {name: value if isinstance(value, str) else np.asarray(value)[()] for name, value in given.items()}
    script = str(Path(__file__).with_name("client.py"))
    recipe = NumpyFedAvgRecipe(name="study", model=np.ones(3), min_clients=2, num_rounds=1, train_script=script)
    recipe.add_client_output_filter(privacy(**numpy), tasks=["train"])
    recipe.export(str(tmp_path))
    config = json.loads((tmp_path / "study/app/config/config_fed_client.json").read_text(encoding="utf-8"))
    (filters,) = config["task_result_filters"]
    assert filters == {"tasks": ["train"], "filters": [{"path": "dpnoise_nvflare.GaussianPrivacy", "args": given}]}


def test_a_site_has_the_filter_in_its_own_policy(tmp_path: Path, site: Make) -> None:
    """As the page shows it, it filters the results of all tasks of all jobs."""
    page = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    policy = page.split("```json\n")[1].split("```")[0]
    site()
    (tmp_path / "local/privacy.json").write_text(policy)
    manager = create_privacy_manager(Workspace(str(tmp_path)), names_only=False)
    scopes = manager.get_scope(None), None
    here, simulated = (Site(tmp_path, **{FLContextKey.SCOPE_OBJECT: scope}) for scope in scopes)
    for one in (here, simulated):
        one.handlers += manager.components.values()
        assert events_of(one) == 0
    assert code(simulated.train(update(ARRAYS))) == ReturnCode.UNSAFE_JOB
    assert here.train(update(ARRAYS))["DXO"]["meta"] == {"filter_history": ["GaussianPrivacy"]}
    assert code(here.train(DXO(DataKind.METRICS, {"loss": SECRET}).to_shareable())) == ReturnCode.UNSAFE_JOB
    assert len(entries(tmp_path)) == 1
