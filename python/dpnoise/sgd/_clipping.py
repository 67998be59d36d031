"""Per-example clipping and summation."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._interchange import Values
from dpnoise.sgd._gradients import Floats, gradients_of, output_for


def clip_and_sum(
    gradients: Values, *, clip_norm: float, out: Floats | None = None, threads: int | None = None
) -> NDArray[Any]:
    """Clip the gradient of each example to a norm, and add the clipped gradients up.

    A gradient whose L2 norm is above ``clip_norm`` is scaled down to it, by a factor that is rounded down. The result
    is **not private**: it has no noise. `NoisyGradient` adds it.

    Parameters
    ----------
    gradients : array_like of float32 or float64, shape (n, d)
        A row for each example, with all parameters of the model; d at least 1, and n may be 0. C-contiguous arrays of
        these dtypes are read in place and must not be changed meanwhile, and so are tensors on the CPU of other
        libraries (DLPack); others are converted, float16 to float32 and integers to float64.
    clip_norm : float
        From 2**-80 to 2**80.
    out : ndarray, shape (d,), optional
        As everywhere; it shares no memory with ``gradients``.
    threads : as everywhere

    Returns
    -------
    ndarray, shape (d,)
        float32 for gradients of at most 32 bits, else float64.

    Notes
    -----
    Every coordinate of a clipped gradient is rounded to a grid, a power of two between ``clip_norm * 2**-32`` and
    ``clip_norm * 2**-31``, half to even. These multiples are added up as integers, and the exact sum is rounded to a
    float once. So the result is the same for every order of the rows, every number of threads and on every CPU; one
    example changes the sum on the grid by at most ``clip_norm`` and ``sqrt(d) / 2`` steps of the grid, in the L2 norm.

    A row with a NaN or an infinity, or whose sum of squares overflows, counts as a row of zeros, since an error would
    reveal a single example. Float64 numbers below 2**-511 and float32 numbers below 2**-126 in magnitude count as
    zeros, too. Sums of more than 2**31 times ``clip_norm`` wrap around.

    Running time and memory addresses depend on the shape, not on the numbers.

    References
    ----------
    Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar and Zhang (2016), "Deep learning with differential privacy",
    algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from dpnoise.sgd import clip_and_sum
    >>> gradients = np.array([[3.0, 4.0], [0.0, -0.5], [np.nan, 1.0]])
    >>> clip_and_sum(gradients, clip_norm=1.0).round(6)
    array([0.6, 0.3])
    """
    rows = gradients_of(gradients)
    array = output_for(rows, out)
    _native.clip_and_sum(rows, array, clip_norm, threads)
    return array
