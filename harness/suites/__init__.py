"""What asv runs: this checkout's harness and workloads over the engines of an installed commit.

asv takes this folder for a package ``suites`` and runs it where a commit's wheel is installed.
Two commits are compared by one harness, so this checkout comes first on the path, before anything
of gcbench is imported; only a trial's interpreter has the commit's ``engines``.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path


def _installed() -> Path | None:
    """The folder that has the ``engines`` which this interpreter finds by itself."""
    known = sys.modules.get("gcbench")
    try:
        package = Path(next(iter(import_module("gcbench").__path__)))
    except ModuleNotFoundError:  # a commit from before there was one
        places = []
    else:
        places = [package / "packages", package.parent]
    if known is None:
        sys.modules.pop("gcbench", None)  # the commit's; from here on this checkout's
    for place in places:
        if (place / "engines").is_dir():
            return place
    spec = find_spec("engines")
    return Path(spec.origin).parents[1] if spec and spec.origin else None


INSTALLED = _installed()
"""In asv's ``suites`` the commit that is measured."""

if __name__ == "suites":  # asv's name for it; everywhere else it is harness.suites
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
