"""Federated learning with Flower and exact noise: `DifferentialPrivacyServerSideFixedClipping` and `LocalDpMod`.

A program imports them instead of Flower's. The strategy wrapper gives central privacy, at the level of clients: it
clips each client's update on a grid, adds the updates up as integers, and adds exact noise to that sum. The modifier
gives local privacy: a client sends its own update with exact noise.

Both protect the arrays of a model, and nothing else that a client sends. The strategy wrapper drops the rest. Arrays of
integers and booleans, such as counters of batches, stay those of the model: what clients make of them is dropped.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Final

import numpy as np
from flwr import app
from flwr.clientapp import mod as mods
from flwr.clientapp.mod import centraldp_mods as failures
from flwr.serverapp import strategy as strategies
from flwr.serverapp.strategy import strategy_utils as checks
from numpy.typing import NDArray

from dpnoise import DiscreteGaussian, ParameterError
from dpnoise.sgd import NoisyGradient

__all__ = ["DifferentialPrivacyServerSideFixedClipping", "LocalDpMod"]

_log: Final = logging.getLogger("flwr")
_NEED_EACH_REPLY: Final = (
    strategies.Bulyan,
    strategies.FedMedian,
    strategies.FedTrimmedAvg,
    strategies.FedXgbBagging,
    strategies.FedXgbCyclic,
    strategies.MultiKrum,  # and Krum
    strategies.QFedAvg,
)

Arrays = Mapping[str, NDArray[Any]]


class DifferentialPrivacyServerSideFixedClipping(strategies.DifferentialPrivacyServerSideFixedClipping):
    """Flower's wrapper of that name, with an exact sum of updates and exact noise.

    A round is 1/(2 noise_multiplier**2)-zCDP for neighbours that differ by one reply, or by none in its place: an
    error, or nothing at all. `dpnoise.sgd.epsilon_spent` computes the cost of rounds, with a ``sample_rate`` of 1.

    Parameters
    ----------
    strategy : flwr.serverapp.strategy.FedAvg
        The strategy that is wrapped: `FedAvg`, or a strategy that goes on from its average, like `FedAvgM`, `FedProx`
        and `FedAdam`.
    noise_multiplier : float
        The ratio of the standard deviation of the noise to the sensitivity of the sum; from 2**-20 to 2**11.
    clipping_norm : float
        The largest L2 norm of a clipped update, over all arrays of the model; from 2**-80 to 2**80.
    num_sampled_clients : int
        The number of clients that are asked in a round, from 1 to 2**53. It is the divisor of the noisy sum, and a
        public constant.
    accountant : flwr.supercore.privacy_accounting.PrivacyAccountant, optional
        Flower's account of the privacy loss of all rounds: a round is paid before its noise is drawn, and one that
        would exceed the budget is refused. Its sampling method must be no-amplification, and ``strategy`` must have the
        ``aggregate_train`` of `FedAvg`.

    Raises
    ------
    ParameterError, ValueError, InconsistentMessageReplies
        Where the host raises an error; when ``strategy`` needs each reply; by ``configure_train``, when an array of the
        model is of another dtype than float16, float32, float64, integers and booleans; and by ``aggregate_train``,
        when a reply does not fit the model, or replies have different weights. No error shows anything of a reply, and
        nothing was drawn or paid; that there is one says that a client sent such a reply.

    Notes
    -----
    The update of a client is its arrays of floating point minus those of the model, and is clipped as
    `dpnoise.sgd.clip_and_sum` does: an update with a NaN or an infinity counts as zeros, and so does a reply with an
    error, which makes the host skip the round. The sum with noise is divided and added to the model, and ``strategy``
    gets the result as a single reply of weight 1 without other metrics. So whatever it does is post-processing. Each
    round makes a release, also without any reply. Clients are not asked to evaluate the model, since their metrics
    would have no noise.

    References
    ----------
    McMahan, Ramage, Talwar and Zhang (2018), "Learning differentially private recurrent language models", algorithm 1,
    with the estimator of a fixed denominator.

    Examples
    --------
    >>> from flwr.serverapp.strategy import FedAvg
    >>> from dpnoise_flower import DifferentialPrivacyServerSideFixedClipping
    >>> strategy = DifferentialPrivacyServerSideFixedClipping(
    ...     FedAvg(), noise_multiplier=1.1, clipping_norm=0.5, num_sampled_clients=100
    ... )
    """

    def __init__(
        self,
        strategy: Any,
        noise_multiplier: float,
        clipping_norm: float,
        num_sampled_clients: int,
        *,
        accountant: Any = None,
    ) -> None:
        super().__init__(strategy, noise_multiplier, clipping_norm, num_sampled_clients, accountant=accountant)
        if not isinstance(strategy, strategies.FedAvg) or isinstance(strategy, _NEED_EACH_REPLY):
            raise ParameterError(
                "strategy must be FedAvg or a strategy that goes on from its average, which is all that is released, "
                f"got {type(strategy).__name__}"
            )
        self._mechanism()

    def configure_train(self, server_round: int, arrays: Any, config: Any, grid: Any) -> Any:
        """Check the dtypes of the model, and ask clients to train it, as the host does.

        Parameters
        ----------
        server_round : int
            The number of the round, which the host counts.
        arrays : flwr.app.ArrayRecord
            The model: at least one float16, float32 or float64, and integers and booleans, which stay as they are.
        config : flwr.app.ConfigRecord
            The settings that are sent to clients with the model.
        grid : flwr.serverapp.Grid
            The host's connection to the clients.

        Returns
        -------
        iterable of flwr.app.Message
            A message for each client that is asked.
        """
        if kept := [key for key, array in _arrays_of(arrays).items() if not _moves(array)]:
            _log.info("configure_train: arrays of integers and booleans stay as they are: %s", ", ".join(kept))
        return super().configure_train(server_round, arrays, config, grid)

    def aggregate_train(self, server_round: int, replies: Iterable[Any]) -> tuple[Any, Any]:
        """Let the wrapped strategy go on from the model with the noisy mean of the updates.

        Parameters
        ----------
        server_round : int
            The number of the round, which the host counts.
        replies : iterable of flwr.app.Message
            The clients' replies, with errors among them: each has the arrays of the model, and the same weight as the
            others.

        Returns
        -------
        tuple
            The arrays of the new model and its metrics, which ``strategy`` returns for the single reply with noise;
            None and None when an accountant was given and no client was asked.
        """
        event = self._pop_pending_event(server_round)
        if self.accountant is not None and event is None:  # no client was asked
            return None, None
        model = _arrays_of(self.current_arrays)
        contents = [reply.content for reply in replies if reply.has_content()]
        self._check_weights(contents)
        mechanism, sums = self._mechanism(), np.zeros(_size(model), np.int64)
        for content in contents:
            (record,) = content.array_records.values()
            sums += mechanism.clipped_sum(_update(record, model))
        self._compose_release(event)
        mean = mechanism.add_noise(sums, dtype=np.float64)
        content = app.RecordDict(
            {
                self.strategy.arrayrecord_key: _moved(model, mean),
                "metrics": app.MetricRecord({self.strategy.weighted_by_key: 1.0}),
            }
        )
        reply = app.Message(content=content, dst_node_id=0, message_type=app.MessageType.TRAIN)
        arrays, metrics = self.strategy.aggregate_train(server_round, [reply])
        if arrays:
            # The strategies compute in floating point.
            arrays.update({key: app.Array(array) for key, array in model.items() if not _moves(array)})
        return arrays, metrics

    def configure_evaluate(self, server_round: int, arrays: Any, config: Any, grid: Any) -> Any:
        """Ask no client to evaluate the model: metrics would have no noise.

        Parameters
        ----------
        server_round : int
            The number of the round, which the host counts.
        arrays : flwr.app.ArrayRecord
            The model, which is not sent.
        config : flwr.app.ConfigRecord
            The settings of the evaluation, which are not sent.
        grid : flwr.serverapp.Grid
            The host's connection to the clients, which is not used.

        Returns
        -------
        list
            No messages.
        """
        _log.info("configure_evaluate: clients are not asked, since their metrics would have no noise")
        return []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Any]) -> None:
        """Drop the metrics of clients.

        Parameters
        ----------
        server_round : int
            The number of the round, which the host counts.
        replies : iterable of flwr.app.Message
            The clients' replies, which are not read.
        """

    def _mechanism(self) -> NoisyGradient:
        return _gradient(self.clipping_norm, self.noise_multiplier, self.num_sampled_clients)

    def _check_weights(self, contents: list[Any]) -> None:
        if not contents:
            return
        key = self.strategy.weighted_by_key
        checks.validate_message_reply_consistency(contents, key, check_arrayrecord=True)
        if len({metrics[key] for content in contents for metrics in content.metric_records.values()}) > 1:
            raise ParameterError(
                f"{key!r} must be the same in all replies: the weight of a client must not exceed that of others, for "
                "which the noise is, and tells how many examples it has"
            )


class LocalDpMod(mods.LocalDpMod):
    """Flower's modifier of that name: a client clips its update and adds exact noise to it.

    The arrays of a reply are (epsilon, delta)-differentially private, for neighbours that differ in all that the client
    has: any update may stand in the place of any other. The other records of the reply are as the client made them.

    Parameters
    ----------
    clipping_norm : float
        The largest L2 norm of a clipped update, over all arrays of the model; from 2**-80 to 2**80.
    sensitivity : float
        The largest L2 distance of two updates: finite, and at least ``2 * clipping_norm``. A larger one makes more
        noise.
    epsilon : float
        The privacy parameter of one reply: positive and finite. The standard deviation of the noise is from 2**-20 to
        2**40 steps of the grid, which for the least sensitivity and a delta of 1e-5 allows an epsilon from 0.03.
    delta : float
        The privacy parameter of one reply: between 0 and 1, both excluded. Choose it much smaller than one over the
        number of people.

    Raises
    ------
    ParameterError, ValueError
        When a parameter is out of range. When an array of the model is of another dtype than float16, float32, float64,
        integers and booleans, or the reply does not fit the model, the client raises the error, and Flower sends one to
        the server.

    Notes
    -----
    The update of a client is its arrays of floating point minus those of the model, and is clipped and rounded to a
    grid as `dpnoise.sgd.clip_and_sum` does: an update with a NaN or an infinity counts as zeros. Noise is that of
    `dpnoise.DiscreteGaussian` in steps of the grid, for twice the sensitivity on the grid. Each reply is a release, and
    the losses of rounds add up.

    References
    ----------
    Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy".

    Examples
    --------
    >>> from flwr.clientapp import ClientApp
    >>> from dpnoise_flower import LocalDpMod
    >>> client = ClientApp(mods=[LocalDpMod(clipping_norm=1.0, sensitivity=2.0, epsilon=4.0, delta=1e-6)])
    """

    def __init__(self, clipping_norm: float, sensitivity: float, epsilon: float, delta: float) -> None:
        super().__init__(clipping_norm, sensitivity, epsilon, delta)
        _gradient(clipping_norm)
        if not 2 * clipping_norm <= sensitivity < math.inf:
            raise ParameterError(
                f"sensitivity must be finite and at least 2 * clipping_norm, {2 * clipping_norm!r}, since any update "
                f"may stand in the place of any other, got {sensitivity!r}"
            )
        self._mechanisms(1)

    def __call__(self, msg: Any, ctxt: Any, call_next: Any) -> Any:
        """Let the client train, and give its reply with the noisy update.

        Parameters
        ----------
        msg : flwr.app.Message
            The message of the server, with the arrays of the model as its only record of arrays.
        ctxt : flwr.app.Context
            The context of the client, which is passed on.
        call_next : callable
            The next modifier, or the client itself: ``call_next(msg, ctxt)`` returns the reply.

        Returns
        -------
        flwr.app.Message
            The reply with noisy arrays, or Flower's error when a message has not one record of arrays, or the reply
            other arrays than the model.
        """
        if len(msg.content.array_records) != 1:
            return failures._handle_multi_record_err("LocalDpMod", msg, app.ArrayRecord)
        (sent,) = msg.content.array_records.values()
        model = _arrays_of(sent)
        reply = call_next(msg, ctxt)
        if reply.has_error():
            return reply
        if len(reply.content.array_records) != 1:
            return failures._handle_multi_record_err("LocalDpMod", reply, app.ArrayRecord)
        ((key, received),) = reply.content.array_records.items()
        if list(received) != list(model):
            return failures._handle_array_key_mismatch_err("LocalDpMod", reply)
        clipping, noise = self._mechanisms(_size(model))
        steps = noise.release(clipping.clipped_sum(_update(received, model)))
        reply.content[key] = _moved(model, np.multiply(steps, clipping.granularity))
        return reply

    def _mechanisms(self, d: int) -> tuple[NoisyGradient, DiscreteGaussian]:
        """Return what clips an update of d numbers, and what adds the noise in steps of its grid."""
        clipping = _gradient(self.clipping_norm)
        distance = max(2 * Fraction(clipping.sensitivity(d)), Fraction(float(self.sensitivity)))
        steps = math.ceil(distance / Fraction(clipping.granularity))
        return clipping, DiscreteGaussian(epsilon=self.epsilon, delta=self.delta, sensitivity=steps)


def _gradient(clipping_norm: float, noise_multiplier: float = 1.0, num_sampled_clients: int = 1) -> NoisyGradient:
    """Make the mechanism of updates; its errors have the host's names of parameters."""
    try:
        return NoisyGradient(
            clip_norm=clipping_norm, noise_multiplier=noise_multiplier, expected_batch_size=num_sampled_clients
        )
    except (ParameterError, TypeError) as error:
        text = str(error).replace("clip_norm", "clipping_norm")
        raise type(error)(text.replace("expected_batch_size", "num_sampled_clients")) from None


def _arrays_of(record: Any) -> Arrays:
    """Return the arrays of a record, or refuse those of other dtypes than a model has."""
    arrays = {key: array.numpy() for key, array in record.items()}
    for key, array in arrays.items():
        if array.dtype not in (np.float16, np.float32, np.float64) and array.dtype.kind not in "iub":
            raise ParameterError(
                f"arrays must be float16, float32, float64, integers or booleans, got {record[key].dtype} for {key!r}: "
                "cast it, or leave it out of the record"
            )
    if not _size(arrays):
        raise ParameterError(
            "arrays must have at least one number of floating point, got none: those of the model go to configure_train"
        )
    return arrays


def _moves(array: NDArray[Any]) -> bool:
    """Say whether an array is part of the update.

    A counter moves by so much more than weights that an update with it would be clipped to nearly nothing.
    """
    return array.dtype.kind == "f"


def _size(model: Arrays) -> int:
    """Return how many numbers an update has."""
    return sum(array.size for array in model.values() if _moves(array))


def _update(record: Any, model: Arrays) -> list[NDArray[Any]]:
    """Return the update of a client, a row of each array."""
    try:
        received = _arrays_of(record)
        fits = _kinds(received) == _kinds(model)
    except Exception:  # whatever it says, the client may have chosen it
        fits = False
    if not fits:
        raise ParameterError(
            "arrays of a reply must have the keys and shapes of those of the model, and be of floating point, integers "
            "or booleans as those are"
        ) from None
    with np.errstate(all="ignore"):  # a warning would tell of a single client
        return [np.subtract(received[key], array)[np.newaxis] for key, array in model.items() if _moves(array)]


def _kinds(arrays: Arrays) -> dict[str, tuple[tuple[int, ...], str]]:
    return {key: (array.shape, array.dtype.kind) for key, array in arrays.items()}


def _moved(model: Arrays, update: NDArray[Any]) -> Any:
    """Return the model with an update that has noise, in the model's dtypes."""
    moved, start = app.ArrayRecord(), 0
    for key, array in model.items():
        if _moves(array):
            part = update[start : start + array.size]
            start += array.size
            with np.errstate(all="ignore"):
                array = np.asarray(array + part.reshape(array.shape), array.dtype)
        moved[key] = app.Array(array)
    return moved
