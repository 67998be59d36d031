"""The optimizers of Opacus, with sums and noise on a grid."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache, wraps
from typing import Any, Final

import numpy as np
import torch
from opacus import optimizers
from opacus.optimizers import optimizer as flags

from dpnoise import ParameterError, samplers
from dpnoise.extend import root
from dpnoise.hazmat import ScriptedRng, SeededRng
from dpnoise.sgd import noise_multipliers
from dpnoise_opacus._clipping import Tensor, clipped_sums, clipped_sums_on_device, mechanism

Parts = list[tuple[list[Any], float]]

# A mechanism keeps its noise tables, which take longer to compute than the noise of a small model, and steps repeat.
_kept_mechanism: Final = lru_cache(maxsize=256, typed=True)(mechanism)


def check_generator(given: Any, name: str) -> None:
    """Refuse generators that could repeat or reveal the noise."""
    if given is not None and not isinstance(given, SeededRng | ScriptedRng):
        raise ValueError(
            f"{name} must be None, since anybody who knows a seed can subtract the noise, or for tests a generator of "
            f"dpnoise.hazmat, got {type(given).__name__}"
        )


def check_noise(max_grad_norm: Any, noise_multiplier: Any) -> None:
    """Refuse parameters that are out of range, by the names that they have in Opacus."""
    norms = max_grad_norm if isinstance(max_grad_norm, list | tuple) else [max_grad_norm]
    for norm in norms:
        try:
            mechanism(norm.item() if isinstance(norm, torch.Tensor) else norm, noise_multiplier)
        except (ParameterError, TypeError) as error:
            raise type(error)(str(error).replace("clip_norm", "max_grad_norm")) from None


class DPOptimizer(optimizers.DPOptimizer):
    """Opacus's ``DPOptimizer`` with sums and noise on a grid.

    A step is 1/(2 noise_multiplier**2)-zCDP for neighbours that differ by one example of the batch, added or removed;
    with Poisson subsampling it costs less, see Opacus's accountants.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        The optimizer that makes the step, from noisy gradients.
    noise_multiplier : float
        The ratio of the standard deviation of the noise to the sensitivity of the sum; from 2**-20 to 2**11.
    max_grad_norm : float
        The largest L2 norm of a clipped gradient, over all parameters of the model, from 2**-80 to 2**80: a gradient
        above it is scaled down to it.
    expected_batch_size : int or None
        The divisor of the noisy sum, a public constant: the average size of a batch. None is allowed where
        ``loss_reduction`` is "sum", which does not divide.
    loss_reduction : {"mean", "sum"}, default "mean"
        How the loss adds up the losses of examples: by their mean, so that the noisy sum is divided by
        ``expected_batch_size``, or by their sum.
    generator : generator of `dpnoise.hazmat`, optional
        For tests only: makes the noise reproducible. Who knows its seed can subtract the noise. By default each step
        draws a fresh key from the operating system.
    secure_mode : bool, default False
        The host's switch for secure noise. It has no effect: noise is always secure.
    **kwargs : object
        Parameters of other optimizers, which `PrivacyEngine` passes on. They are ignored.

    Raises
    ------
    ValueError
        Where the host raises it; for another ``generator``; and in a step, when ``max_grad_norm`` has changed since the
        first of several batches that are to make one step.

    Notes
    -----
    ``summed_grad`` of a parameter is a tensor of integers: steps of the grid. A gradient with a NaN or an infinity
    counts as zeros.
    """

    def __init__(
        self,
        optimizer: Any,
        *,
        noise_multiplier: float,
        max_grad_norm: Any,
        expected_batch_size: int | None,
        loss_reduction: str = "mean",
        generator: Any = None,
        secure_mode: bool = False,
        **kwargs: Any,
    ) -> None:
        check_generator(generator, "generator")
        super().__init__(
            optimizer,
            noise_multiplier=noise_multiplier,
            max_grad_norm=max_grad_norm,
            expected_batch_size=expected_batch_size,
            loss_reduction=loss_reduction,
            generator=generator,
            secure_mode=secure_mode,
            **kwargs,
        )
        self._clip_norms: list[float] = []
        self._noise_multipliers()

    def clip_and_accumulate(self) -> None:
        """Clip per-sample gradients, and add them to ``summed_grad`` in whole steps of the grid."""
        for p in self.params:
            flags._check_processed_flag(p.grad_sample)
            flags._check_processed_flag(p.summed_grad)  # a sum of it and others would not have this mark
        parts = self._parts()
        norms = [norm for _, norm in parts]
        if all(p.summed_grad is None for p in self.params):
            self._clip_norms = norms
        elif norms != self._clip_norms:
            raise ValueError("max_grad_norm must not change between batches that make one step")
        for params, norm in parts:
            sums = self._clipped_sums([self._get_flat_grad_sample(p) for p in params], norm)
            for p, more in zip(params, sums, strict=True):
                flags._mark_as_processed(p.grad_sample)
                p.summed_grad = more if p.summed_grad is None else p.summed_grad + more

    def add_noise(self) -> None:
        """Add discrete Gaussian noise on the grid, and give the result as ``grad``."""
        for p in self.params:
            flags._check_processed_flag(p.summed_grad)
        # The base optimizer uses every gradient, even one without noise.
        for p in self._frozen():
            p.grad = None
        parts = zip(self._parts(), self._clip_norms, self._noise_multipliers(), strict=True)
        for (params, _), norm, noise_multiplier in parts:
            sums = torch.cat([p.summed_grad.reshape(-1).to(params[0].device) for p in params])
            wide = any(p.dtype == torch.float64 for p in params)
            noisy = self._noisy(sums, norm, noise_multiplier, np.float64 if wide else np.float32)
            for p, grad in zip(params, noisy.split([p.numel() for p in params]), strict=True):
                p.grad = grad.view_as(p).to(p)
                flags._mark_as_processed(p.summed_grad)

    def _frozen(self) -> list[Any]:
        return [p for group in self.param_groups for p in group["params"] if not p.requires_grad]

    def _parts(self) -> Parts:
        """Return the groups of parameters that are clipped together, and their norms."""
        return [(self.params, float(self.max_grad_norm))]

    def _effective_noise_multiplier(self) -> float:
        return float(self.noise_multiplier)

    def _noise_multipliers(self) -> list[float]:
        """Return the noise multiplier of each part, or raise an error for one that is out of range."""
        if any(p.is_complex() for p in self.params):
            raise TypeError("parameters must be real, got complex ones")
        parts = self._parts()
        norms = [norm for _, norm in parts]
        check_noise(norms, self.noise_multiplier)
        widths = [sum(p.numel() for p in params) for params, _ in parts]
        return noise_multipliers(norms, widths, self._effective_noise_multiplier())

    def _clipped_sums(self, gradients: list[Tensor], norm: float) -> list[Tensor]:
        return clipped_sums(gradients, norm)

    def _noisy(self, sums: Tensor, norm: float, noise_multiplier: float, dtype: Any) -> Tensor:
        noisy = _kept_mechanism(norm, noise_multiplier).add_noise(sums.cpu().numpy(), dtype=dtype, rng=self.generator)
        return torch.from_numpy(noisy).to(sums.device)


class DPPerLayerOptimizer(DPOptimizer, optimizers.DPPerLayerOptimizer):
    """Opacus's ``DPPerLayerOptimizer``, with a norm for each parameter, with sums and noise on grids.

    All parameters get noise of the same standard deviation: ``noise_multiplier`` times the root of the sum of the
    squares of their sensitivities.

    A step is 1/(2 noise_multiplier**2)-zCDP for neighbours that differ by one example of the batch, added or removed;
    with Poisson subsampling it costs less, see Opacus's accountants.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        The optimizer that makes the step, from noisy gradients.
    noise_multiplier : float
        The ratio of the standard deviation of the noise to the sensitivity of all sums together; from 2**-20 to 2**11.
    max_grad_norm : list of float
        The largest L2 norm of a clipped gradient, for each parameter of the model that requires a gradient, in their
        order; each from 2**-80 to 2**80.
    expected_batch_size : int or None
        The divisor of the noisy sum, a public constant: the average size of a batch. None is allowed where
        ``loss_reduction`` is "sum", which does not divide.
    loss_reduction : {"mean", "sum"}, default "mean"
        How the loss adds up the losses of examples: by their mean, so that the noisy sum is divided by
        ``expected_batch_size``, or by their sum.
    generator : generator of `dpnoise.hazmat`, optional
        For tests only: makes the noise reproducible. Who knows its seed can subtract the noise. By default each step
        draws a fresh key from the operating system.
    secure_mode : bool, default False
        The host's switch for secure noise. It has no effect: noise is always secure.
    **kwargs : object
        Parameters of other optimizers, which `PrivacyEngine` passes on. They are ignored.

    Raises
    ------
    ValueError
        Where the host raises it; for another ``generator``; and in a step, when ``max_grad_norm`` has changed:
        schedulers of it would not change the clipping.
    """

    def _parts(self) -> Parts:
        if self.max_grad_norm != torch.norm(torch.Tensor(self.max_grad_norms), p=2).item():
            raise ValueError("max_grad_norm cannot be changed where each parameter has a norm of its own")
        return [([p], float(norm)) for p, norm in zip(self.params, self.max_grad_norms, strict=True)]


class AdaClipDPOptimizer(DPOptimizer, optimizers.AdaClipDPOptimizer):
    """Opacus's ``AdaClipDPOptimizer``, which adapts ``max_grad_norm``, with sums, counts and noise on grids.

    Besides the gradient it releases the number of unclipped examples of the batch minus the number of clipped ones,
    with discrete Gaussian noise of ``2 * unclipped_num_std``. The share of unclipped examples is estimated with the
    expected batch size, as in the paper; the host uses the size of the batch, which is private. Both releases together
    are 1/(2 noise_multiplier**2)-zCDP, for neighbours that differ by one example of the batch, added or removed.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        The optimizer that makes the step, from noisy gradients.
    noise_multiplier : float
        The noise multiplier of both releases together: from 2**-20 to 2**11, and below ``2 * unclipped_num_std``. The
        noise of the gradient is larger, to pay for the count.
    target_unclipped_quantile : float
        The share of examples that are to stay unclipped: ``max_grad_norm`` falls while more are, and rises while fewer
        are.
    clipbound_learning_rate : float
        How fast the norm adapts: in each step it is multiplied by ``exp(-clipbound_learning_rate * (unclipped -
        target_unclipped_quantile))``, where ``unclipped`` is the estimated share of unclipped examples.
    max_clipbound : float
        The largest norm to which ``max_grad_norm`` adapts; above ``min_clipbound``.
    min_clipbound : float
        The smallest norm to which ``max_grad_norm`` adapts.
    unclipped_num_std : float
        Half the standard deviation of the noise of the released count, in examples; from 2**-10 to 2**19.
    max_grad_norm : float
        The largest L2 norm of a clipped gradient in the first step, over all parameters of the model. In every step it
        is from 2**-80 to 2**80.
    expected_batch_size : int
        The average size of a batch, a public constant: the divisor of the noisy sum where ``loss_reduction`` is "mean",
        and of the count. It is needed with "sum", too.
    loss_reduction : {"mean", "sum"}, default "mean"
        How the loss adds up the losses of examples: by their mean, so that the noisy sum is divided by
        ``expected_batch_size``, or by their sum.
    generator : generator of `dpnoise.hazmat`, optional
        For tests only: makes the noise reproducible. Who knows its seed can subtract the noise. By default each step
        draws a fresh key from the operating system.
    secure_mode : bool, default False
        The host's switch for secure noise. It has no effect: noise is always secure.
    **kwargs : object
        Parameters of other optimizers, which `PrivacyEngine` passes on. They are ignored.

    Raises
    ------
    ValueError
        Where the host raises it; for another ``generator``; without ``expected_batch_size``; and in a step, when
        ``max_grad_norm`` has changed since the first of several batches that are to make one step.

    References
    ----------
    Andrew, Thakkar, McMahan and Ramaswamy (2021), "Differentially private learning with adaptive clipping", theorem 1.
    """

    @wraps(optimizers.AdaClipDPOptimizer.__init__, assigned=())  # type: ignore[misc]
    def __init__(self, optimizer: Any, **parameters: Any) -> None:
        super().__init__(optimizer, **parameters)
        self._balance = 0  # the number of unclipped examples minus the number of clipped ones
        if self.expected_batch_size is None:
            raise ValueError("expected_batch_size must be given where max_grad_norm is adaptive")
        if not 2.0**-10 <= self.unclipped_num_std <= 2.0**19:
            raise ParameterError(f"unclipped_num_std must be from 2**-10 to 2**19, got {self.unclipped_num_std!r}")

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Clear gradients and counts, except during an incomplete step.

        Parameters
        ----------
        set_to_none : bool, default False
            Whether gradients become None, and not zeros. Gradients of examples become None in any case.
        """
        super().zero_grad(set_to_none)
        if not self._is_last_step_skipped:
            self._balance = 0

    def add_noise(self) -> None:
        """Add noise to gradients and to the count."""
        super().add_noise()
        # From here on the host's attributes hold nothing private.
        self.sample_size = self.expected_batch_size * self.accumulated_iterations
        # The grid is much finer than the steps of the count, since the accounting is for continuous noise.
        noise = samplers.gaussian(2 * self.unclipped_num_std, granularity=2.0**-20, rng=self.generator)
        self.unclipped_num = torch.tensor((self.sample_size + self._balance + noise) / 2)

    def _effective_noise_multiplier(self) -> float:
        loss = Fraction(self.noise_multiplier) ** -2 - Fraction(2 * self.unclipped_num_std) ** -2
        if loss <= 0:
            raise ParameterError(
                f"noise_multiplier must be smaller than 2 * unclipped_num_std, got {self.noise_multiplier!r}"
            )
        return root(1 / loss)

    def _clipped_sums(self, gradients: list[Tensor], norm: float) -> list[Tensor]:
        sums, unclipped = clipped_sums_on_device(gradients, norm)
        self._balance += 2 * unclipped - len(gradients[0])
        return sums


class DistributedDPOptimizer(DPOptimizer, optimizers.DistributedDPOptimizer):
    """Opacus's ``DistributedDPOptimizer`` with sums and noise on a grid.

    The workers' sums are added up as integers; the first worker adds noise, and sends the result to all.

    A step is 1/(2 noise_multiplier**2)-zCDP for neighbours that differ by one example of all workers' batches, added or
    removed; with Poisson subsampling it costs less, see Opacus's accountants.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        The optimizer that makes the step, from noisy gradients.
    noise_multiplier : float
        The ratio of the standard deviation of the noise to the sensitivity of the sum; from 2**-20 to 2**11.
    max_grad_norm : float
        The largest L2 norm of a clipped gradient, over all parameters of the model, from 2**-80 to 2**80: a gradient
        above it is scaled down to it.
    expected_batch_size : int or None
        The divisor of the noisy sum on each worker, a public constant: the average size of a batch. None is allowed
        where ``loss_reduction`` is "sum", which does not divide.
    loss_reduction : {"mean", "sum"}, default "mean"
        How the loss adds up the losses of examples: by their mean, so that the noisy sum is divided by
        ``expected_batch_size``, or by their sum.
    generator : generator of `dpnoise.hazmat`, optional
        For tests only: makes the noise reproducible. Who knows its seed can subtract the noise. By default each step
        draws a fresh key from the operating system.
    secure_mode : bool, default False
        The host's switch for secure noise. It has no effect: noise is always secure.
    **kwargs : object
        Parameters of other optimizers, which `PrivacyEngine` passes on. They are ignored.

    Raises
    ------
    ValueError
        Where the host raises it; for another ``generator``; and in a step, when ``max_grad_norm`` has changed since the
        first of several batches that are to make one step.
    """

    def reduce_gradients(self) -> None:
        """Divide the gradients, which are the same on all workers now."""
        if self.loss_reduction == "mean":
            for p in self.params:
                p.grad /= self.world_size

    def _noisy(self, sums: Tensor, norm: float, noise_multiplier: float, dtype: Any) -> Tensor:
        torch.distributed.reduce(sums, dst=0)
        if self.rank == 0:
            noisy = super()._noisy(sums, norm, noise_multiplier, dtype)
        else:
            noisy = torch.from_numpy(np.empty(len(sums), dtype)).to(sums.device)
        torch.distributed.broadcast(noisy, src=0)
        return noisy


class SimpleDistributedPerLayerOptimizer(
    DPPerLayerOptimizer, DistributedDPOptimizer, optimizers.SimpleDistributedPerLayerOptimizer
):
    """Opacus's optimizer of that name, with sums and noise on grids: `DPPerLayerOptimizer` on several workers.

    All parameters get noise of the same standard deviation: ``noise_multiplier`` times the root of the sum of the
    squares of their sensitivities. The workers' sums are added up as integers; the first worker adds noise, and sends
    the result to all.

    A step is 1/(2 noise_multiplier**2)-zCDP for neighbours that differ by one example of all workers' batches, added or
    removed; with Poisson subsampling it costs less, see Opacus's accountants.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        The optimizer that makes the step, from noisy gradients.
    noise_multiplier : float
        The ratio of the standard deviation of the noise to the sensitivity of all sums together; from 2**-20 to 2**11.
    max_grad_norm : list of float
        The largest L2 norm of a clipped gradient, for each parameter of the model that requires a gradient, in their
        order; each from 2**-80 to 2**80.
    expected_batch_size : int or None
        The divisor of the noisy sum on each worker, a public constant: the average size of a batch. None is allowed
        where ``loss_reduction`` is "sum", which does not divide.
    loss_reduction : {"mean", "sum"}, default "mean"
        How the loss adds up the losses of examples: by their mean, so that the noisy sum is divided by
        ``expected_batch_size``, or by their sum.
    generator : generator of `dpnoise.hazmat`, optional
        For tests only: makes the noise reproducible. Who knows its seed can subtract the noise. By default each step
        draws a fresh key from the operating system.
    secure_mode : bool, default False
        The host's switch for secure noise. It has no effect: noise is always secure.
    **kwargs : object
        Parameters of other optimizers, which `PrivacyEngine` passes on. They are ignored.

    Raises
    ------
    ValueError
        Where the host raises it; for another ``generator``; and in a step, when ``max_grad_norm`` has changed:
        schedulers of it would not change the clipping.
    """


REPLACED: Final = {
    ours.__bases__[-1]: ours
    for ours in (
        DPOptimizer,
        DPPerLayerOptimizer,
        AdaClipDPOptimizer,
        DistributedDPOptimizer,
        SimpleDistributedPerLayerOptimizer,
    )
}
"""Our replacement for each optimizer of the host."""
