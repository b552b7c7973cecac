"""Bringing an engine to speed before anything is measured."""

import numpy as np

from engines.protocol import StepEngine
from harness.trial.client import Streams, sampling_params, take
from workloads.schedule import Schedule


def warm_up(
    engine: StepEngine,
    schedule: Schedule,
    batch_size: int,
    num_steps: int = 8,
    streams: Streams | None = None,
) -> None:
    """Bring engine and interpreter to speed with a full batch, on requests of no one's."""
    count = min(batch_size, schedule.num_requests)
    first = schedule.num_requests
    params = sampling_params(schedule, num_steps)
    for i in range(count):
        # Back to front: a prefix cache must not know the prompts that are to come.
        prompt = np.ascontiguousarray(schedule.prompt_token_ids(i, engine.vocab_size)[::-1])
        engine.add_request(first + i, prompt, params[i])
    while engine.has_unfinished_requests():
        output = engine.step()
        take(output, streams)
        for index in output.finished.tolist():
            engine.output_token_ids(index)
