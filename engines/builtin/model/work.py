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
    num_steps: int = 0
    num_queries: int = 0
    num_cached: int = 0
    num_pairs: int = 0
    num_sampled: int = 0

    def done(self) -> dict[str, float]:
        """So far, and of this rank's share."""
        model = self.model
        head_flops = 2 * model.vocab_size * model.hidden_size
        flops = (
            self.num_queries * (model.flops_per_token - head_flops)
            + self.num_sampled * head_flops
            + self.num_pairs * model.attention_flops_per_token_pair
        )
        num_bytes = (
            self.num_steps * model.flops_per_token // 2 * self.itemsize
            + self.num_cached * model.kv_bytes_per_token(self.itemsize)
            + 2 * self.num_sampled * model.vocab_size * self.itemsize
        )
        return {"bytes": num_bytes / self.num_ranks, "flops": flops / self.num_ranks}

    def add(self, num_queries: Int32Array, seq_lens: Int64Array, num_sampled: int) -> None:
        """One step more: ``[num_reqs]`` each, and the tokens sampled of them."""
        self.num_steps += 1
        self.num_queries += int(num_queries.sum())
        self.num_cached += int(seq_lens.sum())
        self.num_pairs += int(num_queries @ (2 * seq_lens + 1 - num_queries)) // 2
        self.num_sampled += num_sampled
