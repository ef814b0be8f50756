"""Entry point of `python -m mt VERB`, which does the same as `mt-service VERB`."""

import sys

from mt.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
