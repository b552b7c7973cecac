"""``gcbench`` and ``python -m gcbench``: the command line, whose packages no other import finds."""

import sys
from importlib import import_module

from gcbench.code_root import code_root


def main() -> int:
    """Put our packages first on the path and run the command line; the exit status."""
    sys.path.insert(0, str(code_root()))
    # By name: nothing else here imports what other people's processes must not load.
    status: int = import_module("harness.__main__").main()
    return status


if __name__ == "__main__":
    sys.exit(main())
