"""``python -m turnkeeper``: the command line."""

import sys

from turnkeeper.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
