"""A standard output that is a full disk, for commands that a test runs in its own process."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def full_standard_output(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Point descriptor 1 at a device that is full."""
    kept, device = os.dup(1), os.open("/dev/full", os.O_WRONLY)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", sys.__stdout__)
            os.dup2(device, 1)
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(device)
