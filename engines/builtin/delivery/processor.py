"""The output processor: a step's tokens go through the stages, and requests that end come out."""

from time import perf_counter_ns

from engines.builtin.delivery.stage import EndedOutput, Processed, Stage, Stages, StepTokens
from engines.builtin.request_table import Request


class OutputProcessor:
    """Knows requests by slot: a preemption is nothing to it. Slots may be any small numbers."""

    def __init__(self, stages: Stages) -> None:
        self._text, self._logprobs = stages.text, stages.logprobs
        given: list[Stage] = [stage for stage in stages if stage is not None]
        self._stages = list(dict.fromkeys(given))  # one can be two of them
        self._leaves_more = stages.text is not None or stages.logprobs is not None

    def add(self, request: Request) -> None:
        """Start a request's output; nobody else has its slot."""
        for stage in self._stages:
            stage.add(request)

    def process(self, step: StepTokens) -> Processed:
        """Take a step through the stages; those who end with it are let go of."""
        began = perf_counter_ns()
        processed = Processed(step, step.num_tokens, step.finished, step.reasons)
        for stage in self._stages:
            stage.process(step, processed)
        if len(processed.finished):
            slots = step.slots[processed.finished].tolist()
            if self._leaves_more:
                processed.ended = [self._ended(slot) for slot in slots]
            for slot in slots:
                self.remove(slot)
        processed.processing_ns = perf_counter_ns() - began
        return processed

    def _ended(self, slot: int) -> EndedOutput:
        text, logprobs = self._text, self._logprobs
        return EndedOutput(
            None if text is None else text.num_tokens(slot),
            None if text is None else text.text(slot),
            None if logprobs is None else logprobs.logprobs(slot),
        )

    def remove(self, slot: int) -> None:
        """Let go of a request."""
        for stage in self._stages:
            stage.remove(slot)
