"""Output processing in the front end: its own end of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from engines.builtin.delivery.choice import load_delivery
from engines.builtin.delivery.outputs import Output
from engines.builtin.delivery.stage import EndedOutput
from engines.builtin.output_processing.late import LateProcessor
from engines.builtin.output_processing.messages import decoder
from engines.protocol import EngineConfig
from engines.server import messages


class Handled(NamedTuple):
    """What came of a step: what the core is told, and an output for each request with tokens."""

    done: messages.Done
    outputs: Sequence[Output]


class OutputHandler:
    """The stages of the delivery at hand. ``num_tokens``: of all outputs so far."""

    def __init__(self, config: EngineConfig) -> None:
        delivery = load_delivery(config)
        self._decode_tokens = decoder(delivery.tokens_type).decode
        self._processor = LateProcessor(
            delivery.stages(replace(config, request_streams="collector"))
        )
        self.num_tokens = 0

    def begin(self, message: messages.Begin) -> None:
        """A request is running."""
        self._processor.add(message.request())

    def remove(self, message: messages.Remove) -> None:
        """A request was aborted."""
        self._processor.remove(message.slot)

    def step(self, message: messages.StepMessage) -> Handled:
        """Make the outputs of a step."""
        processed = self._processor.process(message.step(self._decode_tokens(message.tokens)))
        self.num_tokens += int(processed.num_tokens.sum())
        # The core wants to know where a text ended, not the text.
        processed.ended = [EndedOutput(each.num_tokens, None, None) for each in processed.ended]
        return Handled(messages.Done.of(processed), processed.outputs)
