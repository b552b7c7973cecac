"""Drafts are tokens to compute like any other, so none may stand past ``max_model_len``."""

from itertools import product

import numpy as np
import pytest
from harness_free import MODES, null_config

from engines.builtin.device import DeviceBatch
from engines.builtin.engine import Engine
from engines.builtin.worker import NOBODY, NewRequests, SchedulerOutput
from engines.builtin.worker.runner import ModelRunner
from engines.protocol import SamplingParams

NONE = np.empty(0, np.int32)
ONE_ROW = np.zeros(1, np.int32)


class Recorded:
    """A device whose batches are kept."""

    def __init__(self, device) -> None:
        self._device = device
        self.batches: list[DeviceBatch] = []

    def launch(self, batch: DeviceBatch):
        self.batches.append(batch)
        return self._device.launch(batch)


def one_row(num_scheduled: int, new: NewRequests = NOBODY) -> SchedulerOutput:
    return SchedulerOutput(
        ONE_ROW, np.array([num_scheduled], np.int32), None, new, NONE, NONE, NONE
    )


@pytest.mark.parametrize("device", ["null", "modelled"])
@pytest.mark.parametrize(("drafted", "prompt"), [*product([2, 3, 6], [1, 30, 47])])
def test_no_token_is_computed_past_the_longest_request(device, drafted, prompt):
    """All drafts are accepted; of the last step but as many as there are places left."""
    longest = 48
    config = null_config(max_model_len=longest, num_accepted=(drafted,), device=device)
    runner = ModelRunner(config)
    runner.device = recorded = Recorded(runner.device)
    new = NewRequests([0], [0], [np.zeros(prompt, np.int32)], [0], [0])
    length = prompt
    for scheduled in (one_row(prompt, new), *[one_row(drafted)] * longest):
        step = runner.launch(scheduled)
        sampled = runner.handoff(step, runner.wait(step)).sampled
        length += len(sampled[0])
        if length >= longest:
            break
    assert length == longest
    contexts = [int(batch.context[0]) for batch in recorded.batches]
    assert contexts[-1] == longest - 1, "what the last token samples is not computed"
    counts = [int(batch.num_scheduled[0]) for batch in recorded.batches[1:]]
    assert all(count == drafted for count in counts[:-1])
    assert counts == [] or 1 <= counts[-1] <= drafted


@pytest.mark.parametrize("mode", MODES)
def test_modes_take_as_many_steps_to_the_longest_request(mode):
    """With two steps under way too, though the scheduler does not know where the second begins."""
    engine = Engine(null_config(num_accepted=(6,), output_processing=mode))
    engine.add_request(0, np.zeros(4, np.int32), SamplingParams(60))
    counts = []
    while engine.has_unfinished_requests():
        for delivered in engine.step().delivered:
            counts += delivered.num_tokens.tolist()
    assert counts == [1, *[6] * 9, 5]
