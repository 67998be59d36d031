"""What the tests of clients take from those of the core."""

from tests.conftest import memory_path as memory_path
from tests.conftest import pytest_collection_finish as pytest_collection_finish
