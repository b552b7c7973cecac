"""What a request's client gets of a step: vLLM's objects, or a piece of the step's columns."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np

from engines.protocol import FinishReason, Int32Array

if TYPE_CHECKING:
    from engines.builtin.logprobs import RequestLogprobs


class Output(Protocol):
    """As its reader sees it, whoever has made it: named and shaped as in vLLM."""

    @property
    def request_index(self) -> int:
        """Whose."""
        ...

    @property
    def outputs(self) -> Any:
        """One completion: ``token_ids``, ``finish_reason``, ``text`` and ``logprobs``, if any."""
        ...

    @property
    def finished(self) -> bool:
        """Whether it is the last."""
        ...

    def add(self, later: "Output", /) -> None:
        """Become both: nobody has taken this one yet."""
        ...


@dataclass(slots=True)
class CompletionOutput:
    """The tokens of one completion; named and shaped as in vLLM. Tracked by the collector."""

    index: int
    token_ids: int | list[int]
    finish_reason: FinishReason | None


@dataclass(slots=True)
class DetailedOutput(CompletionOutput):
    """With what output processing adds: the text to show and the log-probabilities, if any."""

    text: str = ""
    logprobs: "RequestLogprobs | None" = None


@dataclass(slots=True)
class RequestOutput:
    """What vLLM's front end makes for a request in each step. Tracked by the collector."""

    request_index: int
    prompt_token_ids: Int32Array
    outputs: list[CompletionOutput]
    finished: bool

    def add(self, later: Output) -> None:
        """Become both."""
        add_output(self, later)


class OutputChunk(msgspec.Struct, gc=False):
    """A request's piece of a step's columns, its own completion; not tracked by the collector.

    ``token_bytes``: int32. ``text_bytes``: UTF-8 or not, from character to character. Both are
    read when somebody asks.
    """

    request_index: int
    finish_reason: FinishReason | None
    token_bytes: bytes = b""
    text_bytes: bytes = b""
    logprobs: Any = None

    @property
    def outputs(self) -> tuple["OutputChunk"]:
        """Itself."""
        return (self,)

    @property
    def finished(self) -> bool:
        """Whether it is the last."""
        return self.finish_reason is not None

    @property
    def token_ids(self) -> list[int]:
        """Python's integers."""
        token_ids: list[int] = np.frombuffer(self.token_bytes, np.int32).tolist()
        return token_ids

    @property
    def text(self) -> str:
        """What is no UTF-8 is U+FFFD."""
        return self.text_bytes.decode(errors="replace")

    def add(self, later: Output) -> None:
        """Become both: bytes of one request follow each other."""
        assert isinstance(later, OutputChunk)
        self.token_bytes += later.token_bytes
        self.text_bytes += later.text_bytes
        if later.logprobs is not None:
            self.logprobs.extend(later.logprobs)
        self.finish_reason = later.finish_reason


def add_output(output: Any, later: Output) -> None:
    """`RequestOutput.add` of vLLM: text and tokens of one completion follow each other."""
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
