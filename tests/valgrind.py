"""Whether callgrind can count here."""

import platform
import shutil

import pytest

NEEDS_VALGRIND = pytest.mark.skipif(
    shutil.which("valgrind") is None or platform.machine() != "x86_64",
    reason="instructions are counted by valgrind, on x86_64",
)
