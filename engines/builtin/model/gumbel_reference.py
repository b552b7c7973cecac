"""Sampling by the Gumbel-max trick with hashed noise: every device draws the same tokens.

``argmax(logits / temperature + g)`` with ``g = -log(-log(u))`` is a draw from
``softmax(logits / temperature)`` (Gumbel 1954). Here ``u`` is a pure function of seed, request,
position and token, so that neither the batch nor its order matters: three rounds of MurmurHash3's
32-bit finaliser (Appleby 2011) make a key of the first three, a fourth mixes in the token. The
upper 23 bits are used, so ``u`` is at most 1 - 2**-24 and ``g`` at most 16.7.
"""

from typing import TypeVar

import torch
from torch import Tensor

Bits = TypeVar("Bits", int, Tensor)

_MASK = 0xFFFFFFFF
GOLDEN_32 = 0x9E3779B9
REQUEST_FACTOR = 0x9E3779B1
POSITION_FACTOR = 0x85EBCA77


def sample_reference(
    logits: Tensor, temperature: float, seed: int, request_index: Tensor, position: Tensor
) -> Tensor:
    """int32 ``[N]`` for ``logits`` ``[N, vocab_size]`` and int64 ``[N]`` twice, in float32.

    Of equal values the lowest id wins; NaN counts as -inf. Temperature 0 takes the largest logit.
    Indices count modulo 2**32.
    """
    values = logits.float()
    if temperature:
        keys = row_keys(seed, request_index, position)
        values = values * (1.0 / temperature) + gumbel_noise(keys, logits.shape[1])
    values = values.masked_fill(values.isnan(), float("-inf"))
    return values.argmax(1).int()


def seed_key(seed: int) -> int:
    """A seed of up to 64 bits as 32; no tensor is made, as it is asked for in every step."""
    return _fmix32(_fmix32((seed >> 32) + GOLDEN_32 & _MASK) ^ (seed & _MASK))


def row_keys(seed: int, request_index: Tensor, position: Tensor) -> Tensor:
    """int64 ``[N]``, each below 2**32."""
    request = request_index * REQUEST_FACTOR & _MASK
    place = position * POSITION_FACTOR & _MASK
    return _fmix32(_fmix32(request ^ seed_key(seed)) ^ place)


def gumbel_noise(keys: Tensor, vocab_size: int) -> Tensor:
    """float32 ``[N, vocab_size]`` for int64 ``[N]``."""
    token = torch.arange(vocab_size, device=keys.device) * GOLDEN_32
    bits = _fmix32(keys[:, None] + token & _MASK) >> 9
    # Of 24 bits the last + 0.5 would round to 1, whose noise is infinite; of 23 it is exact.
    uniform = (bits.float() + 0.5) * 2.0**-23
    return -torch.log(-torch.log(uniform))


def _fmix32(h: Bits) -> Bits:
    h = h ^ h >> 16
    h = h * 0x85EBCA6B & _MASK  # int64 wraps; the lower 32 bits are right all the same
    h = h ^ h >> 13
    h = h * 0xC2B2AE35 & _MASK
    return h ^ h >> 16
