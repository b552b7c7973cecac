"""Some signals at random moments, each day others, many by `make torture`.

A file of its own: a process of tests takes whole files, and the command lines take another.
"""

import pytest
from test_torture import hold_today


@pytest.mark.slow
def test_the_signals_of_this_day_hold():
    hold_today("signals", 8)
