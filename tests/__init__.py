# A package, not just a folder: JAX Privacy installs a package `tests` of its own, which processes that a test starts
# would find instead.
