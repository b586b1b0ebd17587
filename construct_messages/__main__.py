"""`python -m construct_messages`: the command line without its script."""

import sys

from construct_messages.cli import main

if __name__ == "__main__":
    sys.exit(main())
