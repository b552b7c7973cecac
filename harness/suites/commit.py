"""The commit that is measured: where the environment that asv has made keeps its engines."""

import sys
from pathlib import Path

import harness.suites


def installed_tree() -> Path:
    """The folder from which the interpreter that asv has started imports ``engines`` by itself.

    Raises ValueError where it has none.
    """
    # asv's copy of the package looked before this checkout came first on the path.
    spec = sys.modules.get("suites", harness.suites).ENGINES
    if spec is None or spec.origin is None:
        raise ValueError(
            f"{sys.executable} has no gcbench installed, so there is no commit to measure; let asv "
            "make the environment, or install the commit there"
        )
    return Path(spec.origin).parents[1]
