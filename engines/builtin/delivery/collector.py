"""A request's stream, as vLLM's: outputs that nobody has taken yet become one."""

import asyncio
from typing import Any

from engines.builtin.delivery.outputs import RequestOutput


class RequestOutputCollector:
    """Holds one output at most."""

    __slots__ = ("_output", "_ready")

    def __init__(self) -> None:
        self._output: RequestOutput | None = None
        self._ready = asyncio.Event()

    def put(self, output: RequestOutput) -> None:
        """Hand an output over; it is added to the one that still lies there."""
        if self._output is None:
            self._output = output
            self._ready.set()
        else:
            _add(self._output, output)

    def get_nowait(self) -> RequestOutput | None:
        """Take what lies there, None where nothing does."""
        output = self._output
        if output is not None:
            self._output = None
            self._ready.clear()
        return output

    async def get(self) -> RequestOutput:
        """Take what lies there, or wait for it."""
        while (output := self.get_nowait()) is None:
            await self._ready.wait()
        return output


def _add(output: RequestOutput, later: RequestOutput) -> None:
    completion: Any
    new: Any
    (completion,), (new,) = output.outputs, later.outputs
    # The lists may be the step's own, in its representation.
    completion.token_ids = _as_list(completion.token_ids) + _as_list(new.token_ids)
    completion.text += new.text
    if new.logprobs is not None:
        completion.logprobs.extend(new.logprobs)
    completion.finish_reason = new.finish_reason
    output.finished = later.finished


def _as_list(token_ids: int | list[int]) -> list[int]:
    return [token_ids] if isinstance(token_ids, int) else token_ids
