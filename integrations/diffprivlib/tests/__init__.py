# A package, so that tests import cases.py beside them.
