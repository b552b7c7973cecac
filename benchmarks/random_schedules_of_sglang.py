"""SGLang's event loop under random schedules: run by `random_schedules`.

``python random_schedules_of_sglang.py SEED…`` prints a JSON object a line for each seed, as
`random_schedules_of_vllm` does. Each seed has a process, for a process has one scheduler.
"""

import hashlib
import json
import os
import random
import sys
import time
from collections import Counter
from itertools import compress
from typing import Any

import numpy as np

from engines.protocol import EngineConfig, SamplingParams
from engines.registry import ENGINES
from engines.sglang.driver import Driver
from engines.sglang.shims import import_host_path

_MOST_STEPS = 3_000
_LONGEST, _VOCAB = 160, 60


class Schedule:
    """One seed: requests come, are aborted and end, and each turn of the loop is digested."""

    def __init__(self, seed: int) -> None:
        self.rng = draw = random.Random(seed)
        config = EngineConfig(
            max_num_seqs=draw.choice((4, 16, 48)),
            max_model_len=_LONGEST,
            max_num_batched_tokens=draw.choice((64, 512, 8192)),
            num_gpu_blocks_override=draw.choice((200, 600, 1200, 0)),
            enable_prefix_caching=draw.random() < 0.5,
            output_processing=draw.choice(("inline", "overlapped")),
            device="",
            device_profile="",
            representation="",
            seed=seed,
            vocab_size=_VOCAB,
            eos_token_id=-1,
        )
        self.driver = Driver(ENGINES.load("sglang-hostpath").complete(config))
        self.scheduler = self.driver.scheduler
        self.common = np.array([draw.randrange(_VOCAB) for _ in range(48)], np.int32)
        self.live: set[int] = set()
        self.counts: Counter[str] = Counter()
        self.digests: list[str] = []
        self._watch_messages()

    def _watch_messages(self) -> None:
        sender = self.scheduler.ipc_channels.send_to_detokenizer
        give = sender.send_output

        def note(output: Any, *rest: Any) -> None:
            self.note(type(output).__name__, *map(_said, _fields(output)))
            self.counts["outputs"] += len(getattr(output, "rids", None) or ())
            reasons = getattr(output, "finished_reasons", None) or ()
            if reasons:
                ended = compress(output.retraction_counts, reasons)
                self.counts["retractions"] += sum(ended)
            give(output, *rest)

        sender.send_output = note

    def run(self) -> None:
        """Until all have ended."""
        left = self.rng.randint(20, 90)
        while (left or self.live) and self.counts["steps"] < _MOST_STEPS:
            while left and self.rng.random() < 0.4:
                left -= 1
                self._add(left)
            if self.live and self.rng.random() < 0.04:
                self._abort(self.rng.choice(sorted(self.live)))
            made = self.driver.step()
            self.counts["steps"] += 1
            if made is not None:
                self.live.difference_update(made.finished)
            running = self.scheduler.running_batch
            free = self.scheduler.token_to_kv_pool_allocator.available_size()
            held = [(each.rid, len(each.output_ids)) for each in running.reqs]
            waiting = [each.rid for each in self.scheduler.waiting_queue]
            self.note(held, waiting, free, self.scheduler.tree_cache.evictable_size())

    def _add(self, number: int) -> None:
        draw = self.rng
        length = draw.choice((draw.randint(1, 20), draw.randint(20, 90), 48, 64))
        prompt = np.array([draw.randrange(_VOCAB) for _ in range(length)], np.int32)
        if draw.random() < 0.4:
            prompt[: min(48, length - 1)] = self.common[: min(48, length - 1)]
        stops = (draw.randrange(_VOCAB),) if draw.random() < 0.3 else ()
        params = SamplingParams(draw.randint(1, 60), stop_token_ids=stops)
        self.driver.add_request(number, prompt, params)
        self.live.add(number)
        self.counts["requests"] += 1

    def _abort(self, number: int) -> None:
        self.driver.abort_request(number)
        self.live.discard(number)
        self.counts["aborts"] += 1

    def note(self, *seen: Any) -> None:
        """One digest of what was seen."""
        self.digests.append(hashlib.sha256(repr(seen).encode()).hexdigest()[:16])


def _fields(output: Any) -> list[tuple[str, Any]]:
    names = getattr(output, "__struct_fields__", None) or sorted(vars(output))
    return [(name, getattr(output, name)) for name in names]


def _said(field: tuple[str, Any]) -> tuple[str, Any]:
    """A field of a message; of objects that are sent whole, what they hold."""
    name, value = field
    if name == "time_stats" and isinstance(value, list):
        value = [sorted((key, repr(kept)) for key, kept in vars(each).items()) for each in value]
    return name, value


def _stream_some(rng: random.Random) -> None:
    """Have a part of the requests not streamed, or every few tokens."""
    from engines.sglang import dialect

    made = dialect.request

    def request(*args: Any) -> Any:
        found = made(*args)
        found.stream = rng.random() < 0.7
        found.sampling_params.stream_interval = rng.choice((None, None, 1, 3))
        return found

    dialect.request = request


def _one(seed: int) -> dict[str, Any]:
    _stream_some(random.Random(-seed))
    time.time = lambda: 1e9  # the scripted clock begins where it stands
    schedule, error = Schedule(seed), ""
    try:
        schedule.run()
    except Exception as raised:  # of a tree that is wrong, and so of what the two are held to
        error = repr(raised)
    return {"seed": seed, "digests": schedule.digests, "counts": schedule.counts, "error": error}


if __name__ == "__main__":
    import_host_path()
    for seed in map(int, sys.argv[1:]):
        if child := os.fork():
            _, status = os.waitpid(child, 0)
            if status:
                raise SystemExit(f"seed {seed} ended with {os.waitstatus_to_exitcode(status)}")
            continue
        print(json.dumps(_one(seed)), flush=True)
        os._exit(0)
