"""A clock that vLLM reads where steps take no time, each of them as long as one of a model's.

vLLM's statistics look for the bucket of each latency, bound by bound. So what a step executes
depends on how long steps take, and on the clock of a traced run no two would be counted alike.
"""

import sys
import time
from functools import partial
from operator import getitem
from types import SimpleNamespace
from typing import Any

STEP_SECONDS = 0.018
"""A decode step of an 8B model: between the first two bounds of vLLM's inter-token latencies."""


def script_time(engine: Any) -> None:
    """Have the modules of vLLM read the clock, and each step of an ``LLMEngine`` pass it on."""
    now = [time.time()]
    read = partial(getitem, now, 0)  # in C, as what it stands for: nothing to be counted
    clock = SimpleNamespace(**vars(time) | {"time": read, "monotonic": read})
    for name, module in list(sys.modules.items()):
        if name.startswith("vllm.") and vars(module).get("time") is time:
            vars(module)["time"] = clock

    def step() -> Any:
        now[0] += STEP_SECONDS
        # Looked up each time, for `stages` may have put another in its place.
        return type(engine).step(engine)

    engine.step = step
