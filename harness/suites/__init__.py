"""What asv runs: this checkout's harness and workloads over the engines of an installed commit.

asv takes this folder for a package ``suites`` and runs it where a commit's wheel is installed.
Two commits are compared by one harness, so this checkout comes first on the path, before anything
of gcbench is imported; only a trial's interpreter has the commit's ``engines``.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

ENGINES = find_spec("engines")
"""Those that this interpreter finds by itself; in asv's ``suites`` the commit's."""

if __name__ == "suites":  # asv's name for it; everywhere else it is harness.suites
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
