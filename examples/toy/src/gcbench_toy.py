"""A toy engine, whose tokens cross as a list for each request or as one array."""

from array import array

from toy.scheduler import Scheduler, Sequence

from engines.adapter import Adapter, NewTokens
from engines.protocol import Traits


class Toy(Adapter):
    package = "src/toy"
    representations = ("lists", "one_array")
    traits = Traits(is_exact=True, can_pause=True)

    def __init__(self, config):
        self.scheduler = Scheduler(config.max_num_seqs)
        self.as_array = config.representation == "one_array"

    def add_request(self, request, prompt_token_ids, params):
        self.scheduler.add(Sequence(request, int(prompt_token_ids[-1]), params.max_tokens))

    def has_unfinished_requests(self):
        return bool(self.scheduler.waiting or self.scheduler.running)

    def step(self):
        batch, ended = self.scheduler.step()
        if self.as_array:
            tokens = array("i", (each.last_token for each in batch))
        else:
            tokens = [[each.last_token] for each in batch]
        return NewTokens([each.name for each in batch], tokens, [each.name for each in ended])

    def shutdown(self):
        pass
