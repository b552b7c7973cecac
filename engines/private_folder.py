"""Temporary folders that nobody else can read, for sockets above all."""

import os
import tempfile

_LONGEST_ROOT = 70
"""A socket's path may have 107 bytes, and a temporary folder's alone can have more."""


def private_folder(name: str) -> str:
    """Make ``gcbench-NAME-…`` for this user alone; whoever asks for it removes it."""
    short = len(os.fsencode(tempfile.gettempdir())) <= _LONGEST_ROOT
    return tempfile.mkdtemp(prefix=f"gcbench-{name}-", dir=None if short else "/tmp")
