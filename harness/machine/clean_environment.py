"""The environment of a process that measures: none of the user's switches for Python in it."""

import os
import re

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


_OF_A_SHELL = re.compile(
    r"_|OLDPWD|PWD|SHLVL|SHELL_SESSION_ID|TMPDIR|TERM|TERM_\w+|COLORTERM|COLUMNS|LINES|WINDOWID"
    r"|STY|TMUX\w*|SSH_\w+|XDG_SESSION_\w+|DBUS_SESSION_BUS_ADDRESS|GPG_\w+|INVOCATION_ID"
    r"|JOURNAL_STREAM|PYTEST_CURRENT_TEST|GCBENCH_LEASE"
    r"|(ACTIONS|BUILDKITE|GITHUB|RUNNER)_\w+"
)
"""Names of what is another in each terminal, session or job and is no setting of a program."""


def lasting_environment() -> dict[str, str]:
    """The clean one, less what changes from shell to shell and from job to job."""
    clean = clean_environment()
    return {name: value for name, value in clean.items() if not _OF_A_SHELL.fullmatch(name)}
