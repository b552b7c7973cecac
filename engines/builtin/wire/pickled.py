"""Only what is new in a step, pickled with protocol 5, as vLLM's executor encodes its messages."""

import pickle

from engines.builtin.wire import Buffer, Stateless
from engines.builtin.wire.unpickle import unpickle
from engines.builtin.worker import ModelRunnerOutput, SchedulerOutput
from engines.pickle_fields import pickle_fields
from engines.protocol import EngineConfig


class Pickled(Stateless):
    """Each message whole, whatever changed since the last."""

    step_fields = tokens_fields = staticmethod(pickle_fields)

    def __init__(self, config: EngineConfig) -> None:
        pass

    def encode_step(self, step: SchedulerOutput) -> list[Buffer]:
        """`pickle.dumps`."""
        return [pickle.dumps(step, protocol=5)]

    def decode_step(self, data: memoryview) -> SchedulerOutput:
        """`pickle.loads`."""
        step: SchedulerOutput = unpickle(data)
        return step

    def encode_tokens(self, output: ModelRunnerOutput) -> list[Buffer]:
        """`pickle.dumps`."""
        return [pickle.dumps(output, protocol=5)]

    def decode_tokens(self, data: memoryview) -> ModelRunnerOutput:
        """`pickle.loads`."""
        output: ModelRunnerOutput = unpickle(data)
        return output
