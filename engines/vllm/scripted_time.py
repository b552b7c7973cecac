"""vLLM's statistics look for the bucket of each latency, bound by bound, on a scripted clock."""

from typing import Any

from engines.scripted_clock import script_clock


def script_time(engine: Any) -> None:
    """Have the modules of vLLM read the clock, and each step of an ``LLMEngine`` pass it on."""
    pass_on = script_clock("vllm", "time", "monotonic")

    def step() -> Any:
        pass_on()
        # Looked up each time, for `stages` may have put another in its place.
        return type(engine).step(engine)

    engine.step = step
