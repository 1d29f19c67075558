"""``python -m lc_memory``: the demo; with arguments the same as ``lc-memory``."""

import sys

from lc_memory.cli import main

if __name__ == "__main__":
    main(sys.argv[1:] or ["demo"])
