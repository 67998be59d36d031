from __future__ import annotations

import warnings
from functools import wraps
from typing import Any

from opacus import privacy_engine as engine

from dpnoise_opacus._optimizers import REPLACED, check_generator, check_noise
from dpnoise_opacus._sampling import secure


class PrivacyEngine(engine.PrivacyEngine):
    """Opacus's ``PrivacyEngine`` with sums and noise on a grid, and batches by secure randomness.

    Parameters
    ----------
    accountant : {"prv", "rdp", "gdp"}, default "prv"
        The host's accountant, which states the spent epsilon: by privacy-loss distributions, by Rényi divergences, or
        by Gaussian differential privacy.
    secure_mode : bool, default False
        Noise and Poisson subsamples are always secure. When True, the order of examples with ``poisson_sampling=False``
        is secure, too, and generators of `dpnoise.hazmat` are refused.
    """

    def __init__(self, *, accountant: str = "prv", secure_mode: bool = False) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Secure RNG turned off")
            super().__init__(accountant=accountant)  # without torchcsprng
        self.secure_mode = secure_mode

    @wraps(engine.PrivacyEngine.make_private, assigned=())
    def make_private(
        self,
        *,
        module: Any,
        data_loader: Any,
        noise_multiplier: float,
        max_grad_norm: Any,
        poisson_sampling: bool = True,
        noise_generator: Any = None,
        grad_sample_mode: str = "hooks",
        rand_on_empty: bool = False,
        **others: Any,
    ) -> Any:
        """Make model, optimizer and data loader private, as the host does and with its arguments.

        `make_private_with_epsilon` calls this method, too.

        Parameters
        ----------
        module : torch.nn.Module
            The model, whose parameters are real. It is wrapped, so that it computes the gradient of each example.
        optimizer : torch.optim.Optimizer
            The optimizer of the model's parameters, which makes the steps from noisy gradients.
        criterion : torch.nn.Module, default CrossEntropyLoss()
            The loss for ghost clipping, which is refused; otherwise it has no effect.
        data_loader : torch.utils.data.DataLoader
            The loader of the training data. Its batch size over the number of examples is the sampling rate. It has no
            generator, except where ``poisson_sampling`` and ``secure_mode`` are False.
        noise_multiplier : float
            The ratio of the standard deviation of the noise to the sensitivity of the sum; from 2**-20 to 2**11.
        max_grad_norm : float or list of float
            The largest L2 norm of a clipped gradient, from 2**-80 to 2**80: over the whole model, or with "per_layer" a
            list with one for each parameter of the model that requires a gradient.
        batch_first : bool, default True
            Whether the first axis of the model's inputs is that of the examples, and not the second.
        loss_reduction : {"mean", "sum"}, default "mean"
            How the loss adds up the losses of examples: by their mean, so that the noisy sum is divided by the expected
            batch size, or by their sum.
        poisson_sampling : bool, default True
            Whether batches are Poisson subsamples, for which the accountants are right, drawn with secure coins.
            Otherwise the loader's own batches remain.
        clipping : {"flat", "per_layer", "adaptive"}, default "flat"
            Whether the whole gradient of an example is clipped, or that of each parameter, or the whole by a norm that
            adapts to the gradients.
        noise_generator : generator of `dpnoise.hazmat`, optional
            For tests only: makes the noise reproducible. Who knows its seed can subtract the noise. By default each
            step draws a fresh key from the operating system.
        grad_sample_mode : {"hooks", "functorch", "ew"}, default "hooks"
            How the host computes the gradients of examples.
        wrap_model : bool, default True
            Whether the model is wrapped. Otherwise the host adds hooks to it, and returns an object that removes them.
        rand_on_empty : bool, default False
            Whether the host fills an empty batch with a made-up example: it must be False.
        **kwargs : float
            The parameters that `AdaClipDPOptimizer` has besides those above, for adaptive clipping; otherwise without
            effect.

        Returns
        -------
        tuple
            The wrapped model, or the object that removes the hooks; the private optimizer, one of those of this module;
            and the data loader with its batches.

        Raises
        ------
        ValueError
            Where the host raises it; and for options that cannot be exact: ``grad_sample_mode`` "ghost" and
            "ghost_fsdp", and FSDP, where gradients of examples are added up in floating point; ``rand_on_empty``, since
            a made-up example in an empty batch doubles the sensitivity; a ``noise_generator`` that is not of
            `dpnoise.hazmat`, and a ``data_loader`` with a generator.
        ParameterError
            When ``noise_multiplier`` is not from 2**-20 to 2**11 or ``max_grad_norm`` not from 2**-80 to 2**80.
        """
        if "ghost" in grad_sample_mode:
            raise ValueError(
                f"grad_sample_mode must be 'hooks', 'functorch' or 'ew', got {grad_sample_mode!r}, which adds up the "
                "gradients of a batch in floating point, where rounding can raise the sensitivity"
            )
        if isinstance(module, engine.FSDPModule):
            raise ValueError("module must not be an FSDPModule, whose gradients are added up in floating point")
        if rand_on_empty:
            raise ValueError("rand_on_empty must be False: a made-up example in an empty batch doubles the sensitivity")
        if (poisson_sampling or self.secure_mode) and data_loader.generator is not None:
            raise ValueError("data_loader must have no generator, since anybody who knows its seed knows the batches")
        check_generator(noise_generator, "noise_generator")
        check_noise(max_grad_norm, noise_multiplier)
        return super().make_private(
            module=module,
            data_loader=data_loader,
            noise_multiplier=noise_multiplier,
            max_grad_norm=max_grad_norm,
            poisson_sampling=poisson_sampling,
            noise_generator=noise_generator,
            grad_sample_mode=grad_sample_mode,
            **others,
        )

    def _prepare_data_loader(self, data_loader: Any, *, poisson_sampling: bool, **others: Any) -> Any:
        prepared = super()._prepare_data_loader(data_loader, poisson_sampling=poisson_sampling, **others)
        return secure(prepared) if poisson_sampling or self.secure_mode else prepared

    def _prepare_optimizer(
        self,
        *,
        optimizer: Any,
        distributed: bool = False,
        clipping: str = "flat",
        noise_generator: Any = None,
        grad_sample_mode: str = "hooks",
        **parameters: Any,
    ) -> Any:
        replaced = engine.get_optimizer_class(
            clipping=clipping, distributed=distributed, grad_sample_mode=grad_sample_mode
        )
        if isinstance(optimizer, engine.DPOptimizer):
            optimizer = optimizer.original_optimizer
        return REPLACED[replaced](
            optimizer=optimizer, generator=noise_generator, secure_mode=self.secure_mode, **parameters
        )
