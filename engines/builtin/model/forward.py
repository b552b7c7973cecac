"""A model on a device: its weights, its KV cache, and one step from arrays to sampled tokens."""

from typing import NamedTuple

import torch
from torch import Tensor

from engines.builtin.logprobs import parse_logprobs
from engines.builtin.model import ForwardBatch, Model, Ops, Parallel
from engines.builtin.model.architectures import build_model
from engines.builtin.model.config import ModelConfig, dtype_name, load_model
from engines.builtin.model.pass_inputs import PassInputs
from engines.builtin.model.sampler import Draw, Sampler, TokenLogprobs, token_logprobs
from engines.builtin.model.sampling import parse_sampling
from engines.builtin.model.weights import Weights
from engines.builtin.representations import PLACEHOLDER_TOKEN_ID
from engines.protocol import EngineConfig


class DeviceTokens(NamedTuple):
    """On the device: ``tokens`` int32 ``[R, max_tokens]``, -1 where there is none; of those at
    `Sampled.outputs` the log-probabilities.
    """

    tokens: Tensor
    logprobs: TokenLogprobs | None


class ForwardPass:
    """Runs steps one after the other; what a row sampled last stays here for its next."""

    def __init__(
        self, config: EngineConfig, parallel: Parallel, device: torch.device, ops: Ops, draw: Draw
    ) -> None:
        source = load_model(config.model)
        self.config: ModelConfig = source.config
        dtype: torch.dtype = getattr(torch, dtype_name(config.dtype, source.config, device.type))
        self.dtype = dtype
        self._engine = config
        self._parallel = parallel
        weights = Weights(source, device, dtype, config.seed)
        self._model: Model = build_model(source.config, weights, ops, parallel)
        self._caches: list[Tensor] = []
        self._device = device
        # Where there is text to make, every token must be one of the tokenizer's.
        self._vocab_size = source.config.vocab_size
        if config.detokenizer != "none":
            self._vocab_size = min(self._vocab_size, config.vocab_size)
        self._sampler = Sampler(parse_sampling(config.sampling), config.seed % 2**32, draw)
        self._num_logprobs = parse_logprobs(config.logprobs)
        self.last_tokens = torch.zeros(config.max_num_seqs + 1, dtype=torch.int64, device=device)

    @property
    def kv_bytes_per_token(self) -> int:
        """Of this rank's share."""
        return self.config.kv_bytes_per_token(self.dtype.itemsize) // self._parallel.size

    def allocate_cache(self, num_blocks: int) -> None:
        """The cache, a tensor a layer, zeroed."""
        shape = (
            2,
            num_blocks,
            self.config.num_key_value_heads // self._parallel.size,
            self._engine.block_size,
            self.config.head_dim,
        )
        self._caches = [
            torch.zeros(shape, dtype=self.dtype, device=self._device)
            for _ in range(self.config.num_hidden_layers)
        ]

    def release_cache(self) -> None:
        """Let go of it."""
        self._caches = []

    def logits(self, token_ids: Tensor, batch: ForwardBatch, places: Tensor | None) -> Tensor:
        """``[S, vocab_size]`` after the tokens at ``places``, of all where that is None."""
        hidden = self._model.forward(token_ids, batch, self._caches)
        if places is not None:
            hidden = hidden[places]
        return self._model.logits(hidden)[:, : self._vocab_size]

    def sample(
        self, logits: Tensor, requests: Tensor, positions: Tensor, own: Tensor | None = None
    ) -> tuple[Tensor, TokenLogprobs | None]:
        """Tokens int32 ``[S]``, and their log-probabilities where they were asked for."""
        return self._sampled(logits, self._sampler.sample(logits, requests, positions, own))

    def _sampled(self, logits: Tensor, tokens: Tensor) -> tuple[Tensor, TokenLogprobs | None]:
        shape, count = self._num_logprobs
        return tokens, None if shape == "none" else token_logprobs(logits, tokens, count)

    def step(self, inputs: PassInputs[Tensor], block_table: Tensor) -> DeviceTokens:
        """A step of any kind; ``block_table`` as in `ForwardBatch`."""
        last = self.last_tokens[inputs.last_rows]
        token_ids = inputs.token_ids.index_copy(0, inputs.last_places, last)
        batch = ForwardBatch(
            inputs.positions,
            inputs.slot_mapping,
            inputs.rows,
            inputs.seq_lens,
            inputs.query_start,
            block_table,
            inputs.max_query_len,
            inputs.max_seq_len,
        )
        width = max(self._engine.num_accepted)
        shape = (len(inputs.rows) * width + 1,)
        out = torch.full(shape, PLACEHOLDER_TOKEN_ID, dtype=torch.int32, device=self._device)
        logprobs = None
        sampled = inputs.sampled
        if len(sampled.places):
            logits = self.logits(token_ids, batch, sampled.places)
            own = sampled.own.view(torch.float64).view(-1, 3) if len(sampled.own) else None
            tokens, logprobs = self.sample(logits, sampled.requests, sampled.positions, own)
            # Of drafts that were not accepted to the last place, which is cut off.
            out[sampled.outputs] = tokens
            self.last_tokens.index_copy_(0, sampled.kept_rows, tokens[sampled.kept].long())
        else:
            hidden = self._model.forward(token_ids, batch, self._caches)
            _, logprobs = self._sampled(self._model.logits(hidden[:0]), token_ids[:0].int())
        return DeviceTokens(out[:-1].view(-1, width), logprobs)
