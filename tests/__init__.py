# A package, not just a folder: diffprivlib, which benchmarks compare with, installs a package `tests` of its own, which
# processes that a test starts would find instead.
