"""A request's stream, as vLLM's: outputs that nobody has taken yet become one."""

import asyncio

from engines.builtin.delivery.outputs import Output


class RequestOutputCollector:
    """Holds one output at most."""

    __slots__ = ("_output", "_ready")

    def __init__(self) -> None:
        self._output: Output | None = None
        self._ready = asyncio.Event()

    def put(self, output: Output) -> None:
        """Hand an output over; it is added to the one that still lies there."""
        if self._output is None:
            self._output = output
            self._ready.set()
        else:
            self._output.add(output)

    def get_nowait(self) -> Output | None:
        """Take what lies there, None where nothing does."""
        output = self._output
        if output is not None:
            self._output = None
            self._ready.clear()
        return output

    async def get(self) -> Output:
        """Take what lies there, or wait for it."""
        while (output := self.get_nowait()) is None:
            await self._ready.wait()
        return output
