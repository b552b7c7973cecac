"""Bytecodes per request and step in the stages that `vllm_v1` models, of an engine by name.

Run by the interpreter of either engine; prints them as JSON, the engine core's stage first.
"""

import json
import sys

import numpy as np

from engines.protocol import EngineConfig, SamplingParams, StepEngine
from gcbench.opcodes import OpcodeCounter

BATCH_SIZE, NUM_TOKENS = 64, 24
COUNTED = range(8, 14)
"""Steps with the whole batch, in which no request needs a block."""


class Stage:
    """Counts a method of ``owner`` while ``is_on``."""

    def __init__(self, owner: type, name: str) -> None:
        self.counter = OpcodeCounter()
        self.is_on = False
        original = getattr(owner, name)

        def counted(own, *args, **kwargs):
            if not self.is_on:
                return original(own, *args, **kwargs)
            with self.counter:
                return original(own, *args, **kwargs)

        setattr(owner, name, counted)


def built_in(config: EngineConfig) -> tuple[StepEngine, list[Stage]]:
    from engines.builtin.delivery.processor import OutputProcessor
    from engines.builtin.engine import Engine
    from engines.builtin.token_store.vllm_v1 import CoreRequests

    stages = [Stage(CoreRequests, "append"), Stage(OutputProcessor, "process")]
    return Engine(config), stages


def vllms(config: EngineConfig) -> tuple[StepEngine, list[Stage]]:
    from engines.vllm.settings import set_environment

    set_environment(engine_core="in-process", host_path=True)
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.engine.output_processor import OutputProcessor

    from engines.vllm.host_path import HostPathEngine

    stages = [Stage(Scheduler, "update_from_output"), Stage(OutputProcessor, "process_outputs")]
    return HostPathEngine(config), stages


def measure(engine: StepEngine, stages: list[Stage]) -> list[float]:
    for index in range(BATCH_SIZE):
        prompt = np.arange(5, 12, dtype=np.int32)
        engine.add_request(index, prompt, SamplingParams(NUM_TOKENS))
    step = 0
    while engine.has_unfinished_requests():
        for stage in stages:
            stage.is_on = step in COUNTED
        engine.step()
        step += 1
    engine.shutdown()
    return [stage.counter.num_opcodes / len(COUNTED) / BATCH_SIZE for stage in stages]


if __name__ == "__main__":
    name = sys.argv[1]
    delivery = "vllm_v1" if name == "builtin" else "per_request"
    config = EngineConfig(
        max_num_seqs=BATCH_SIZE, max_model_len=64, device="null", delivery=delivery
    )
    print(json.dumps(measure(*(built_in if name == "builtin" else vllms)(config))))
