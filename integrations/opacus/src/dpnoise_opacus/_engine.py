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
        The host's accountant, which states the spent epsilon.
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
