"""Replacements for the mechanisms of other libraries, with the hosts' arguments: the noise is exact and secure.

- `dpnoise.backends.opacus`: ``pip install 'dpnoise[opacus]'``

A backend is imported by its full name, and imports its host: ``from dpnoise.backends.opacus import PrivacyEngine``.
"""
