"""``python -m dpnoise`` is the command line."""

import sys

from dpnoise.cli import program

if __name__ == "__main__":
    sys.exit(program())
