"""Replacements for the mechanisms of other libraries, with the hosts' arguments: the noise is exact and secure."""
