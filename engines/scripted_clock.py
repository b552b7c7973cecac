"""A clock that somebody's modules read where steps take no time, each as long as one of a model's.

What an engine executes may depend on how long steps take, and on the clock of a traced run no two
would be counted alike.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from operator import getitem
from types import SimpleNamespace

STEP_SECONDS = 0.018
"""A decode step of an 8B model: between the first two bounds of vLLM's inter-token latencies."""


def script_clock(package: str, *readers: str) -> Callable[[], None]:
    """Have the modules of a package that are loaded read it by these functions of `time`.

    What is returned passes a step's time on.
    """
    # At a whole second: between two of its times there is then always the same to the last digit,
    # and a text that has such a time in it is as long.
    now = [float(int(time.time()))]
    read = partial(getitem, now, 0)  # in C, as what it stands for: nothing to be counted
    clock = SimpleNamespace(**vars(time) | dict.fromkeys(readers, read))
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{package}.") and vars(module).get("time") is time:
            vars(module)["time"] = clock

    def pass_on() -> None:
        now[0] += STEP_SECONDS

    return pass_on
