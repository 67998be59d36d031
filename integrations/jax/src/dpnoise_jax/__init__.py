"""Exact, secure noise for programs on JAX: replacements of parts of optax and of JAX Privacy, with the hosts' names.

- `dpnoise_jax.optax`: DP-SGD, with sums of clipped gradients that are exact.
- `dpnoise_jax.jax_privacy`: privatizers, for sums in floating point and of integers.

Each module is imported by its full name: ``from dpnoise_jax.optax import dpsgd``.
"""
