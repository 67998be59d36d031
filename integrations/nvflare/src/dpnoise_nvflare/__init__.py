"""Federated learning with NVFlare and exact noise: `GaussianPrivacy`, a filter for the updates that a site sends.

It gives local privacy: a site clips its update, pays for it from a ledger of its own, and sends it with noise. Nothing
else of the result leaves the site, and the run ends when the budget does.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.dxo_filter import DXOFilter
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import EventScope, FedEventHeader, FilterKey, FLContextKey, ReturnCode
from nvflare.apis.fl_exception import UnsafeJobError
from nvflare.apis.shareable import make_reply
from nvflare.apis.utils.task_utils import get_filters

from dpnoise import Error, ParameterError
from dpnoise.accounting import Ledger, ZcdpCost, zcdp_epsilon, zcdp_rho
from dpnoise.sgd import NoisyGradient

__all__ = ["GaussianPrivacy"]

_TASK: Final = "dpnoise_nvflare.task"
_FLOATS: Final = ("float16", "float32", "float64")

Arrays = dict[str, NDArray[Any]]


class GaussianPrivacy(DXOFilter):
    """A filter for the results of a site's tasks: the update is clipped, paid for, and gets exact Gaussian noise.

    An update is 2/noise_multiplier**2-zCDP for neighbours that differ in all that the site has: any update may stand
    in the place of any other. The updates that a ledger pays for are (epsilon, delta)-differentially private together.

    Parameters
    ----------
    clip_norm : float
        The largest L2 norm of a clipped update, over all of its arrays; from 2**-80 to 2**80.
    noise_multiplier : float
        The ratio of the standard deviation of the noise to the largest norm of a clipped update, from 2**-20 to 2**11.
        It counts half, since two updates can be twice that norm apart.
    ledger : str
        The file of the site's `dpnoise.accounting.Ledger`, on a local disk. It is made if it does not exist; one that
        exists must have the same budget. A relative path starts at the site's workspace; NVFlare's simulator and POC
        mode delete that, and need a path elsewhere. Where the file is lost, so are its spends.
    epsilon : float
        The privacy parameter of all that the ledger pays for: positive and finite.
    delta : float
        The privacy parameter of all that the ledger pays for: between 0 and 1, both excluded. Choose it much smaller
        than one over the number of people.

    Raises
    ------
    ParameterError, TypeError
        When a parameter is out of range or of another type, or when the budget is below the cost of one update.

    Notes
    -----
    The filter takes results of the kind WEIGHT_DIFF, whose arrays are float16, float32 or float64. It passes on their
    names, shapes and dtypes, which are public, and their numbers with noise. Arrays of integers and booleans, such as
    counters of batches, become zeros, so that they stay those of the model. Metadata and headers are dropped. An error
    in place of a result is passed on as ``EXECUTION_EXCEPTION``, whatever it was.

    The update is clipped and rounded to a grid as `dpnoise.sgd.clip_and_sum` does: an update with a NaN or an infinity
    counts as zeros. It is paid for before the noise is drawn. NVFlare sends the same bytes again when a transfer fails,
    which costs nothing; a task that a site carries out again is paid again.

    Where no update can be sent, since the budget is spent, the ledger cannot be used, the result is of another kind, or
    two of these filters would get it, the filter raises NVFlare's ``UnsafeJobError``: the site sends that code instead
    of a result, and the server aborts the job. The log of the site says why. It has a line for each update, too, with
    its epsilon and what remains.

    NVFlare calls a filter of a job for the tasks that are named with it, and takes ``"*"`` for the name of a task. So
    the filter also holds back the result of any other task, and a task for another site, as in swarm learning: each
    halts the run. Events for the server, such as metrics of experiment tracking, stay at the site.

    References
    ----------
    Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy".

    Examples
    --------
    >>> from dpnoise_nvflare import GaussianPrivacy
    >>> privacy = GaussianPrivacy(clip_norm=1.0, noise_multiplier=4.0, ledger="budget.db", epsilon=8.0, delta=1e-6)
    """

    def __init__(self, clip_norm: float, noise_multiplier: float, ledger: str, epsilon: float, delta: float) -> None:
        super().__init__(None, None)
        self._mechanism = NoisyGradient(clip_norm=clip_norm, noise_multiplier=noise_multiplier, expected_batch_size=1)
        # The sensitivity is twice that of a row that is added or removed.
        self._rho, self._budget = 4 * self._mechanism.rho, zcdp_rho(epsilon=epsilon, delta=delta)
        if self._budget < self._rho:
            least = zcdp_epsilon(self._rho, delta=delta)
            raise ParameterError(
                f"epsilon must be above {least:.4g}, the cost of one update with this noise_multiplier and delta, got "
                f"{epsilon!r}"
            )
        if not isinstance(ledger, str) or not ledger:
            raise ParameterError(f"ledger must be the path of a file, as a str, got {ledger!r}")
        # NVFlare writes the configuration of a job from attributes of these names, and fails at NumPy's numbers.
        self.clip_norm, self.noise_multiplier, self.ledger = float(clip_norm), float(noise_multiplier), ledger
        self.epsilon, self.delta = float(epsilon), float(delta)

    def process(self, shareable: Any, fl_ctx: Any) -> Any:
        """Return what is sent in place of a result.

        Parameters
        ----------
        shareable : nvflare.apis.shareable.Shareable
            The result of a task: an update, or an error.
        fl_ctx : nvflare.apis.fl_context.FLContext
            The context of the run.

        Returns
        -------
        nvflare.apis.shareable.Shareable
            The update with noise, or an error; nothing else of the result is in it.

        Raises
        ------
        UnsafeJobError
            When no update can be sent. Nothing was drawn then.
        """
        if shareable.get_return_code() != ReturnCode.OK:
            return make_reply(ReturnCode.EXECUTION_EXCEPTION)
        try:
            if len(_filters_of(fl_ctx)) > 1:
                raise ParameterError(
                    "one GaussianPrivacy must filter a result, got more, of which the next would clip the noise of the "
                    "one before: where the privacy.json of a site has one, leave it out of jobs for that site"
                )
            update = DXO(DataKind.WEIGHT_DIFF, _arrays_of(shareable)).to_shareable()
            return super().process(update, fl_ctx)
        except Error as error:
            reason = f"no update leaves this site, and the run is halted: {error}"
            self.log_error(fl_ctx, reason)
            raise UnsafeJobError(reason) from None

    def process_dxo(self, dxo: Any, shareable: Any, fl_ctx: Any) -> Any:
        """Pay for an update, and give it with noise.

        Parameters
        ----------
        dxo : nvflare.apis.dxo.DXO
            The update, which `process` has checked.
        shareable : nvflare.apis.shareable.Shareable
            What the update came in, which is not read.
        fl_ctx : nvflare.apis.fl_context.FLContext
            The context of the run.

        Returns
        -------
        nvflare.apis.dxo.DXO
            The update with noise.
        """
        floats = {name: array for name, array in dxo.data.items() if array.dtype.kind == "f"}
        row = np.concatenate([array.ravel() for array in floats.values()])
        self._pay(fl_ctx)
        numbers = self._mechanism.release(row[np.newaxis])
        ends = np.cumsum([array.size for array in floats.values()])[:-1]
        parts = zip(floats.items(), np.split(numbers, ends), strict=True)
        with np.errstate(all="ignore"):  # of numbers with noise that float16 cannot hold
            noisy = {name: part.reshape(array.shape).astype(array.dtype, copy=False) for (name, array), part in parts}
        # A counter moves by so much more than weights that in the row it would leave nothing of them.
        still = {name: np.zeros_like(array) for name, array in dxo.data.items() if name not in floats}
        return DXO(DataKind.WEIGHT_DIFF, noisy | still)

    def handle_event(self, event_type: str, fl_ctx: Any) -> None:
        """Hold back what would leave the site past the filter.

        Parameters
        ----------
        event_type : str
            NVFlare's name of the event.
        fl_ctx : nvflare.apis.fl_context.FLContext
            The context of the run.
        """
        leaving = []
        if event_type == EventType.BEFORE_TASK_RESULT_FILTER:  # after it, a component that streams may be called first
            if not _filters_of(fl_ctx):
                leaving = [fl_ctx.get_prop(FLContextKey.TASK_RESULT)]
        elif event_type == EventType.BEFORE_TASK_DATA_FILTER:
            fl_ctx.set_prop(_TASK, fl_ctx.get_prop(FLContextKey.TASK_DATA), private=True, sticky=False)
        elif event_type == EventType.AFTER_TASK_DATA_FILTER:
            if fl_ctx.get_prop(FLContextKey.FILTER_DIRECTION) == FilterKey.OUT:
                # A task for another site. NVFlare may send it as it was before the filters.
                leaving = [fl_ctx.get_prop(_TASK), fl_ctx.get_prop(FLContextKey.TASK_DATA)]
            fl_ctx.remove_prop(_TASK)
        if fl_ctx.get_prop(FLContextKey.EVENT_SCOPE) == EventScope.FEDERATION:  # of any name, also of those above
            event = fl_ctx.get_prop(FLContextKey.EVENT_DATA)
            event.set_header(FedEventHeader.DIRECTION, "in")  # NVFlare sends no event that has come in
        leaving = [held for held in leaving if held is not None]
        for held in leaving:
            held.clear()
            held.update(make_reply(ReturnCode.UNSAFE_JOB))
        if leaving:
            self.log_error(
                fl_ctx,
                "nothing leaves here, and the run is halted: GaussianPrivacy must filter every result of a site, so "
                "give it to sites, not to the server, as an output filter, and name all tasks with it; swarm learning, "
                "with tasks of sites for sites, is not supported",
            )

    def _pay(self, fl_ctx: Any) -> None:
        root = Path(fl_ctx.get_prop(FLContextKey.WORKSPACE_OBJECT).get_root_dir())
        path = root / self.ledger
        if (deleted := _deleted(root.resolve(), fl_ctx)) and path.resolve().is_relative_to(deleted):
            raise ParameterError(
                f"ledger must be a path outside {str(deleted)!r}, which NVFlare's simulator and POC mode delete, such "
                f"as '/home/me/{{SITE_NAME}}.db', got {self.ledger!r}"
            )
        ledger = Ledger(path, rho=self._budget)
        # The cost is for any two data sets, so for the ledger's neighbours, too.
        cost = ZcdpCost(self._rho, relation=ledger.relation, person=ledger.person)
        names = (FLContextKey.CURRENT_RUN, FLContextKey.TASK_NAME, FLContextKey.TASK_ID)
        ledger.spend(cost, " ".join(str(fl_ctx.get_prop(name)) for name in names))
        remaining = ledger.remaining.rho
        more = Fraction(str(remaining)) // Fraction(str(self._rho))  # as the ledger counts
        self.log_info(
            fl_ctx,
            f"paid for an update: epsilon {zcdp_epsilon(self._rho, delta=self.delta):.4g} by itself, at delta "
            f"{self.delta:g}, which is rho {self._rho:.4g}; rho {float(remaining):.4g} of {self._budget:.4g} "
            f"remains in {path}, for {more} more",
        )


def _deleted(root: Path, fl_ctx: Any) -> Path | None:
    """Return the folder with the workspaces of all sites, where NVFlare deletes that between runs."""
    if fl_ctx.get_prop(FLContextKey.SIMULATE_MODE):
        return root.parent
    # NVFlare marks no workspace as one of POC mode: FOLDER/{data,project.yml,PROJECT/prod_00/site-1}.
    folder = root.parent.parent.parent
    return folder if (folder / "project.yml").exists() and (folder / "data").exists() else None


def _filters_of(fl_ctx: Any) -> list[GaussianPrivacy]:
    """Return those that NVFlare calls for the result of the present task."""
    name, task = "task_result_filters", str(fl_ctx.get_prop(FLContextKey.TASK_NAME))
    of_job = getattr(fl_ctx.get_prop(FLContextKey.RUNNER), name, {})
    filters = get_filters(name, fl_ctx, of_job, task, FilterKey.OUT)
    return [one for one in filters if isinstance(one, GaussianPrivacy)]


def _arrays_of(shareable: Any) -> Arrays:
    """Return the arrays of an update, or refuse what is none; no message shows a number."""
    try:
        dxo = from_shareable(shareable)
    except ValueError:
        raise ParameterError("the result of a task must be a DXO of kind WEIGHT_DIFF, got none") from None
    if dxo.data_kind != DataKind.WEIGHT_DIFF:
        raise ParameterError(
            f"the result of a task must be of kind WEIGHT_DIFF, got {getattr(dxo.data_kind, 'value', dxo.data_kind)}: "
            "send differences of weights (params_transfer_type DIFF of the Client API), and no metrics without weights"
        )
    arrays = {}
    for name, given in dxo.data.items():
        known = isinstance(given, np.ndarray | np.generic | float | int)
        number = 0 if type(given) is int else given  # NumPy chooses the dtype of an int by its value
        dtype = (array := np.asarray(number)).dtype if known else type(given)
        if not known or (dtype not in _FLOATS and dtype.kind not in "iub"):
            raise ParameterError(
                f"arrays must be NumPy's, of {', '.join(_FLOATS)}, integers or booleans, got {dtype} for {name!r}: "
                "convert it, or leave it out, as NVFlare's ExcludeVars with a list of names does as an earlier filter"
            )
        arrays[name] = array
    if not sum(array.size for array in arrays.values() if array.dtype.kind == "f"):
        raise ParameterError("an update must have at least one number of floating point, got none")
    return arrays
