"""Run `mt-service rerank` from a checkout."""

import sys

from mt.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["rerank", *sys.argv[1:]]))
