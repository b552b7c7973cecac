"""What a step cannot do without: bytes that must move, operations that must be done."""

from dataclasses import dataclass

from engines.builtin.model.config import ModelConfig
from engines.protocol import Int32Array, Int64Array


@dataclass(slots=True)
class Work:
    """Added up over steps. A multiply-add is two operations; in ``bytes`` every weight that is
    multiplied counts once a step, keys and values of each request's context once, and logits
    twice, written and read.

    The LM head counts for sampled tokens alone; query i of a chunk meets the keys up to its own.
    """

    model: ModelConfig
    itemsize: int
    num_ranks: int
    bytes: float = 0.0
    flops: float = 0.0

    def done(self) -> dict[str, float]:
        """So far, and of this rank's share."""
        return {"bytes": self.bytes / self.num_ranks, "flops": self.flops / self.num_ranks}

    def add(self, num_queries: Int32Array, seq_lens: Int64Array, num_sampled: int) -> None:
        """One step more: ``[num_reqs]`` each, and the tokens sampled of them."""
        model = self.model
        head_flops = 2.0 * model.vocab_size * model.hidden_size
        queries = int(num_queries.sum())
        pairs = int(num_queries @ (2 * seq_lens + 1 - num_queries)) / 2
        self.flops += (
            queries * (model.flops_per_token - head_flops)
            + num_sampled * head_flops
            + pairs * model.attention_flops_per_token_pair
        )
        self.bytes += (
            model.flops_per_token / 2 * self.itemsize
            + int(seq_lens.sum()) * model.kv_bytes_per_token(self.itemsize)
            + 2.0 * num_sampled * model.vocab_size * self.itemsize
        )
