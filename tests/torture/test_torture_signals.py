"""Some signals at random moments, many by `make torture`.

A file of its own: a process of tests takes whole files, and the command lines take another.
"""

import pytest
from test_torture import hold


@pytest.mark.slow
def test_some_signals_hold():
    hold("signals", 8)
