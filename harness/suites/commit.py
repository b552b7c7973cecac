"""The commit that is measured: where the environment that asv has made keeps its engines."""

import sys
from pathlib import Path

import harness.suites


def installed_tree() -> Path:
    """The folder that has the ``engines`` of what is installed in the interpreter that asv started.

    Raises ValueError where it has none.
    """
    # asv's copy of the package looked before this checkout came first on the path.
    tree: Path | None = sys.modules.get("suites", harness.suites).INSTALLED
    if tree is None:
        raise ValueError(
            f"{sys.executable} has no gcbench installed, so there is no commit to measure; let asv "
            "make the environment, or install the commit there"
        )
    return tree
