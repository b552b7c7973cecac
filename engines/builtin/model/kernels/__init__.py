"""`Ops` in Triton, one kernel a file. Importing this imports Triton."""

from torch import Tensor

from engines.builtin.model import ForwardBatch
from engines.builtin.model.kernels.activation import silu_and_mul
from engines.builtin.model.kernels.cache_write import rotate_and_cache
from engines.builtin.model.kernels.decode_tokens import decode_tokens
from engines.builtin.model.kernels.norms import add_layer_norm, add_rms_norm
from engines.builtin.model.kernels.paged_decode import paged_decode
from engines.builtin.model.kernels.paged_prefill import paged_prefill
from engines.builtin.model.kernels.to_host import to_host


class TritonOps:
    """Kernels on the current CUDA device and stream; none reads a tensor's values on the host, so
    all may be captured in a graph after a first call has compiled them.
    """

    add_layer_norm = staticmethod(add_layer_norm)
    add_rms_norm = staticmethod(add_rms_norm)
    silu_and_mul = staticmethod(silu_and_mul)
    rotate_and_cache = staticmethod(rotate_and_cache)
    decode_tokens = staticmethod(decode_tokens)
    to_host = staticmethod(to_host)

    @staticmethod
    def attention(q: Tensor, cache: Tensor, batch: ForwardBatch, scale: float) -> Tensor:
        """By splits of the keys where every request has one query, by tiles of queries if not."""
        if batch.max_query_len == 1:
            return paged_decode(q, cache, batch, scale)
        return paged_prefill(q, cache, batch, scale)
