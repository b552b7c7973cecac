"""What a body asks for, as the engine takes it: prompts as token ids, and sampling parameters."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engines.builtin.delivery.choice import check_params
from engines.builtin.device.choice import device_class, prompt_vocab_size
from engines.builtin.logprobs import parse_logprobs
from engines.builtin.model.sampling import parse_sampling
from engines.protocol import EngineConfig, Int32Array, Sampling, SamplingParams
from engines.server.errors import ApiError
from engines.server.request_bodies import ChatBody, CompletionBody, Generate, StreamOptions
from engines.server.tokenizer import TextTokenizer, conversation

_COMPLETION_MAX_TOKENS = 16
"""OpenAI's default, and vLLM's. A chat goes on until the context is full."""


_GREEDY_BELOW = 1e-5
"""A temperature below is 0, as in vLLM."""


class AskedPrompt(NamedTuple):
    """A prompt and what is asked of its output; ``is_copy``: another choice (``n``) of the same.

    ``echoed``: the text that is shown before the output's. ``num_logprobs``: the most probable
    tokens that are shown beside each, None for no log-probabilities.
    """

    prompt: Int32Array
    params: SamplingParams
    is_copy: bool = False
    echoed: str = ""
    num_logprobs: int | None = None


class Prompts:
    """Reads bodies for one engine; raises ApiError 400 where it could never serve them, as
    more than ``most`` prompts, for which there is room. What is far too much is not worked on.
    """

    def __init__(self, config: EngineConfig, tokenizer: TextTokenizer, most: int) -> None:
        self._config, self._most = config, most
        self._tokenizer = tokenizer
        self._samples = device_class(config).has_model
        self._engines = parse_sampling(config.sampling)
        self._vocab_size = max(prompt_vocab_size(config), tokenizer.num_ids)

    async def of_completion(self, body: CompletionBody) -> list[AskedPrompt]:
        """One for each choice of each prompt."""
        most = _COMPLETION_MAX_TOKENS if body.max_tokens is None else body.max_tokens
        found = []
        for ids in await self._completion_ids(body):
            choices = self._choices(body, ids, most)
            echoed = self._tokenizer.decode(ids) if body.echo else ""
            found += [each._replace(echoed=echoed) for each in choices]
        return found

    async def of_chat(self, body: ChatBody) -> list[AskedPrompt]:
        """The conversation as one prompt."""
        (ids,) = await self.encoded(conversation(body.messages))
        most = body.max_completion_tokens
        return self._choices(body, ids, body.max_tokens if most is None else most)

    async def _completion_ids(self, body: CompletionBody) -> list[Sequence[int]]:
        prompt = body.prompt
        if isinstance(prompt, str):
            return [*await self.encoded(prompt)]
        if all(isinstance(each, int) for each in prompt):
            return [prompt]  # type: ignore[list-item]
        if len(prompt) > self._most:
            raise ApiError(
                400,
                f"{len(prompt):,} prompts, and this server has room for {self._most:,}",
                param="prompt",
            )
        if all(isinstance(each, str) for each in prompt):
            return [*await self.encoded(*prompt)]  # type: ignore[arg-type]
        if all(isinstance(each, list) for each in prompt):
            return prompt  # type: ignore[return-value]
        raise ApiError(400, "prompt: texts and token ids in one list", param="prompt")

    async def encoded(self, *texts: str) -> list[list[int]]:
        """Token ids of each; ApiError 400 where one is longer than any that could be served."""
        most = self._config.max_model_len * self._tokenizer.longest_token
        if most and (longest := max(map(len, texts))) > most:
            raise ApiError(
                400,
                f"this model's maximum context length is {self._config.max_model_len} tokens, and "
                f"no text of {longest:,} characters has so few",
                param="prompt",
                code="context_length_exceeded",
            )
        return await self._tokenizer.encode(*texts)

    def _choices(
        self, body: CompletionBody | ChatBody, ids: Sequence[int], max_tokens: int | None
    ) -> list[AskedPrompt]:
        asked, copies = self._asked(body, ids, max_tokens), (body.n or 1) - 1
        return [asked, *[asked._replace(is_copy=True)] * copies]

    def _asked(
        self, body: CompletionBody | ChatBody, ids: Sequence[int], max_tokens: int | None
    ) -> AskedPrompt:
        for name, value in body.unsupported().items():
            raise ApiError(400, f"{name} {value!r} is not supported", param=name)
        if body.stream_options not in (None, StreamOptions()) and not body.stream:
            raise ApiError(400, "stream_options without stream", param="stream_options")
        is_greedy = body.temperature is not None and body.temperature < _GREEDY_BELOW
        if is_greedy and (body.n or 1) > 1:
            raise ApiError(400, "n must be 1 at temperature 0", param="n")
        if not ids:
            raise ApiError(400, "a prompt of no tokens", param="prompt")
        if (largest := max(ids)) >= self._vocab_size:
            raise ApiError(
                400,
                f"token id {largest} is out of vocabulary, which has {self._vocab_size} ids",
                param="prompt",
            )
        longest = self._config.max_model_len
        if max_tokens is None:
            max_tokens = max(longest - len(ids), 1)
        if max_tokens < 1:
            raise ApiError(400, "max_tokens must be at least 1", param="max_tokens")
        if len(ids) + max_tokens > longest:
            raise ApiError(
                400,
                f"this model's maximum context length is {longest} tokens; you asked for "
                f"{len(ids) + max_tokens}: {len(ids)} of the prompt and {max_tokens} of the output",
                param="max_tokens",
                code="context_length_exceeded",
            )
        return AskedPrompt(
            np.array(ids, np.int32),
            self._params(body, max_tokens),
            num_logprobs=self._num_logprobs(body),
        )

    def _num_logprobs(self, body: CompletionBody | ChatBody) -> int | None:
        wanted, most = body.num_logprobs, parse_logprobs(self._config.logprobs)
        if wanted is None or (most.shape != "none" and 0 <= wanted <= most.num_logprobs):
            return wanted
        there = f"{most.num_logprobs} at most" if most.shape != "none" else "none"
        raise ApiError(
            400,
            f"logprobs {wanted}: this server has {there}; --axis logprobs=arrays:K serves K",
            param="logprobs",
        )

    def _sampling(self, body: Generate) -> Sampling | None:
        """How the body wants its tokens drawn, None where that is how the engine draws them.

        What it leaves open is the engine's.
        """
        temperature, top_k, top_p, _ = self._engines
        if body.temperature is not None:
            temperature = body.temperature
        if temperature < _GREEDY_BELOW:
            own = Sampling()
        else:
            own = Sampling(
                temperature,
                top_k if body.top_k is None else max(body.top_k, 0),
                top_p if body.top_p is None else body.top_p,
                -1 if body.seed is None else body.seed % 2**32,
            )
        return None if own == self._engines else own

    def _params(self, body: Generate, max_tokens: int) -> SamplingParams:
        stop = [body.stop] if isinstance(body.stop, str) else body.stop or []
        params = SamplingParams(
            max_tokens=max_tokens,
            min_tokens=body.min_tokens or 0,
            stop_token_ids=tuple(body.stop_token_ids or ()),
            stop=tuple(stop),
            include_stop_str_in_output=bool(body.include_stop_str_in_output),
            ignore_eos=bool(body.ignore_eos),
            sampling=self._sampling(body) if self._samples else None,
        )
        try:
            check_params(0, params, self._config)
        except ValueError as error:
            raise ApiError(400, str(error).removeprefix("request 0: ")) from None
        return params
