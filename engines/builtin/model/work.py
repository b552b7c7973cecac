"""What a step cannot do without: bytes that must move, operations that must be done."""

from dataclasses import dataclass

import numpy as np

from engines.builtin.model.config import ModelConfig
from engines.protocol import Int32Array, Int64Array


@dataclass(slots=True)
class Work:
    """Added up over steps. A multiply-add is two operations; every weight that is multiplied counts
    once a step, keys and values of each request's context once, and logits twice, written and read.

    The LM head counts for sampled tokens alone; query i of a chunk meets the keys up to its own.
    """

    model: ModelConfig
    itemsize: int
    num_ranks: int
    num_steps: int = 0
    num_queries: int = 0
    num_cached: int = 0
    num_pairs: int = 0
    num_sampled: int = 0

    def done(self) -> dict[str, float]:
        """So far, of this rank's share, as `StepEngine.device_stats` names it."""
        model = self.model
        head_flops = 2 * model.vocab_size * model.hidden_size
        linear_bytes = self.num_steps * model.flops_per_token // 2 * self.itemsize
        linear_flops = (
            self.num_queries * (model.flops_per_token - head_flops) + self.num_sampled * head_flops
        )
        attention_bytes = self.num_cached * model.kv_bytes_per_token(self.itemsize)
        attention_flops = self.num_pairs * model.attention_flops_per_token_pair
        logits_bytes = 2 * self.num_sampled * model.vocab_size * self.itemsize
        of_all_ranks = {
            "bytes": linear_bytes + attention_bytes + logits_bytes,
            "flops": linear_flops + attention_flops,
            "linear_bytes": linear_bytes,
            "linear_flops": linear_flops,
            "attention_bytes": attention_bytes,
            "attention_flops": attention_flops,
        }
        return {name: amount / self.num_ranks for name, amount in of_all_ranks.items()}

    def add(
        self, num_queries: Int32Array, seq_lens: Int32Array | Int64Array, num_sampled: int
    ) -> None:
        """One step more: ``[num_reqs]`` each, and the tokens sampled of them."""
        self.num_steps += 1
        self.num_queries += int(num_queries.sum())
        self.num_cached += int(seq_lens.sum())
        # A chunk's last query meets all its context, each one before it a key fewer.
        keys_met = 2 * seq_lens + 1 - num_queries
        self.num_pairs += int(np.matmul(num_queries, keys_met, dtype=np.int64)) // 2
        self.num_sampled += num_sampled
