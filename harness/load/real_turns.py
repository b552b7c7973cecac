"""Later turns of conversations, asked with what the server answered before."""

from collections.abc import Callable, Iterator

import numpy as np

from engines.openai.outcome import WHOLE
from engines.openai.request_body import Prompt, words_of
from engines.openai.response import Response
from engines.protocol import Int32Array, Int64Array
from workloads.schedule import Schedule

_ROLES = ("user", "assistant")


class RealTurns:
    """``requests`` int64 ``[N]``: a process's own, ``previous_turn`` int32 ``[N]`` among them.

    ``prompt_as``: as in a `Question`. In the place of an answer that is not whole, or that brought
    no token ids where ids are sent, stands what the workload has for it.
    """

    def __init__(
        self,
        schedule: Schedule,
        requests: Int64Array,
        previous_turn: Int32Array,
        prompt_as: str,
        vocab_size: int,
    ) -> None:
        self._prompt_as = prompt_as
        self._schedule, self._requests, self._vocab_size = schedule, requests, vocab_size
        self._answer_lens: list[int] = schedule.output_lens[requests].tolist()
        self._followers: dict[int, list[int]] = {}
        for request, previous in enumerate(previous_turn.tolist()):
            self._followers.setdefault(previous, []).append(request)
        # What user and server have said by turns, up to the question of a request.
        self._said: dict[int, list[Int32Array | str]] = {}

    def after(
        self, request: int, read: Callable[[int], Response]
    ) -> Iterator[tuple[int, Int32Array, Prompt | None]]:
        """Each turn that waits for this one, and its prompt as `request_bytes` takes it.

        ``read``: what a request was answered, once it has ended.
        """
        for follower in self._followers.get(request, ()):
            old, new = self._prompt(request), self._prompt(follower)
            end = len(old) + self._answer_lens[request]
            answer = self._answer(read(request), new[len(old) : end])
            said = [*self._said.pop(request, [old]), answer, new[end:]]
            self._said[follower] = said
            yield follower, *self._as_prompt(said)

    def _prompt(self, request: int) -> Int32Array:
        """As the workload has it."""
        return self._schedule.prompt_token_ids(int(self._requests[request]), self._vocab_size)

    def _answer(self, response: Response, stand_in: Int32Array) -> Int32Array | str:
        if response.outcome not in WHOLE:
            return stand_in
        if self._prompt_as == "ids":
            return np.array(response.token_ids, np.int32) if response.token_ids else stand_in
        return response.text

    def _as_prompt(self, said: list[Int32Array | str]) -> tuple[Int32Array, Prompt | None]:
        ids = np.concatenate([each for each in said if not isinstance(each, str)])
        if self._prompt_as == "ids":
            return ids, None
        texts = [each if isinstance(each, str) else words_of(each) for each in said]
        if self._prompt_as == "text":
            return ids, " ".join(texts)
        return ids, [
            {"role": _ROLES[place % 2], "content": text} for place, text in enumerate(texts)
        ]
