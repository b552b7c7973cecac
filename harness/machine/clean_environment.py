"""The environment of a process that measures: none of the user's switches for Python in it."""

import os

_KEPT = frozenset({"PYTHONPATH", "PYTHONHOME"})
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def clean_environment() -> dict[str, str]:
    """This process's, less switches of Python, with one thread for the numeric libraries."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTHON") or name in _KEPT
    }
    return kept | _ONE_THREAD
