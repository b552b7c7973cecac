"""From logits to tokens, and to their log-probabilities, without waiting for the device."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from engines.protocol import Sampling

Draw = Callable[[Tensor, float, int, Tensor, Tensor], Tensor]
"""``(logits [N, V], temperature, seed, request_index [N], position [N]) -> int32 [N]`` by the
Gumbel-max method: the greatest of logits / temperature + noise, where the noise is a function of
(seed, request, position, token). Temperature 0: the greatest logit."""


_ROWS = 64
"""Restricted together, where each has its own: sorted logits take several times their memory."""


class TokenLogprobs(NamedTuple):
    """Of ``N`` sampled tokens, on the device: ``token_ids`` int32 and ``logprobs`` float32 ``[N,
    num_logprobs + 1]``, the sampled token before the most probable; its ``ranks`` int32 ``[N]``.
    """

    token_ids: Tensor
    logprobs: Tensor
    ranks: Tensor


class Sampler:
    """Draws the same token for a request and position in whatever batch, but for rounding."""

    def __init__(self, sampling: Sampling, seed: int, draw: Draw) -> None:
        self._sampling = sampling
        self._seed = seed
        self._draw = draw

    def sample(
        self, logits: Tensor, request_index: Tensor, position: Tensor, own: Tensor | None = None
    ) -> Tensor:
        """int32 ``[N]`` for logits ``[N, vocab_size]``; ``request_index``, ``position`` int64.

        ``own`` float64 ``[N, 3]``: temperature, top-k and top-p of each.
        """
        if own is not None:
            each_row = (logits, own, request_index, position)
            parts = zip(*(each.split(_ROWS) for each in each_row), strict=True)
            return torch.cat(
                [
                    self._draw(
                        _restrict_each(part.float(), *asked.unbind(-1)), 1.0, self._seed, *rest
                    )
                    for part, asked, *rest in parts
                ]
            )
        temperature, top_k, top_p, _ = self._sampling
        if temperature and (top_k or top_p < 1):
            logits = _restrict(logits.float() / temperature, top_k, top_p)
            temperature = 1.0
        return self._draw(logits, temperature, self._seed, request_index, position)


def _restrict(logits: Tensor, top_k: int, top_p: float) -> Tensor:
    """Everything but the likeliest tokens at -inf, in vLLM's order: top-k, then top-p of those.

    The likeliest are kept until their probabilities reach ``top_p``, one at least.
    """
    if top_k:
        top_k = min(top_k, logits.shape[-1])
        likeliest, token_ids = logits.topk(top_k)
    else:
        likeliest, token_ids = logits.sort(descending=True)
    if top_p < 1:
        probabilities = likeliest.softmax(-1)
        before = probabilities.cumsum(-1) - probabilities
        likeliest = likeliest.masked_fill(before >= top_p, -torch.inf)
    return torch.full_like(logits, -torch.inf).scatter_(-1, token_ids, likeliest)


def _restrict_each(logits: Tensor, temperature: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
    """Logits over their temperatures, restricted as by `_restrict`, each as its own row says.

    Of a greedy row only the likeliest token is left, and no noise can change what is drawn.
    """
    is_greedy = temperature == 0
    logits = logits / torch.where(is_greedy, 1.0, temperature).float()[:, None]
    likeliest, token_ids = logits.sort(descending=True, stable=True)
    top_k = torch.where(is_greedy, 1, torch.where(top_k == 0, logits.shape[-1], top_k))
    rank = torch.arange(logits.shape[-1], device=logits.device)
    likeliest = likeliest.masked_fill(rank >= top_k[:, None], -torch.inf)
    probabilities = likeliest.softmax(-1)
    before = probabilities.cumsum(-1) - probabilities
    likeliest = likeliest.masked_fill((before >= top_p[:, None]) & (rank > 0), -torch.inf)
    return torch.full_like(logits, -torch.inf).scatter_(-1, token_ids, likeliest)


def token_logprobs(logits: Tensor, sampled: Tensor, num_logprobs: int) -> TokenLogprobs:
    """Of ``sampled`` int32 ``[N]``, by the logits ``[N, vocab_size]`` as the model gave them."""
    logprobs = logits.float().log_softmax(-1)
    own = logprobs.gather(-1, sampled[:, None].long())
    best = logprobs.topk(num_logprobs)
    return TokenLogprobs(
        torch.cat([sampled[:, None], best.indices.int()], -1),
        torch.cat([own, best.values], -1),
        (logprobs >= own).sum(-1, dtype=torch.int32),
    )
