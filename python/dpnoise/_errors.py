"""The exceptions, under one base. The native module raises these, too."""

from __future__ import annotations

__all__ = ["Error", "HaltedError", "LedgerError", "NoErrorBound", "ParameterError", "RandomnessError"]


class Error(Exception):
    """The base of all exceptions that dpnoise defines."""

    __module__ = "dpnoise"


class ParameterError(Error, ValueError):
    """A parameter or input cannot be used. Nothing was drawn and no budget was spent."""

    __module__ = "dpnoise"


class LedgerError(Error):
    """A ledger cannot be used: the file is no ledger, damaged, of another budget, read-only, locked or gone."""

    __module__ = "dpnoise.accounting"


class RandomnessError(Error, RuntimeError):
    """The source of randomness failed. Nothing was released."""

    __module__ = "dpnoise"


class HaltedError(Error, RuntimeError):
    """An object that allows a limited number of uses, or one process, cannot be used any more."""

    __module__ = "dpnoise"


class NoErrorBound(Error):
    """How far answers are off cannot be bounded beforehand. The message says why, and what can be asked instead."""

    __module__ = "dpnoise"
