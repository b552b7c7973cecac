"""vLLM's scheduler and output processor under random schedules: run by `random_schedules`.

``python random_schedules_of_vllm.py MODEL_FOLDER SEED…`` prints a JSON object a line for each seed:
``digests``, one of everything a step handed out, ``counts`` of what came up, and an ``error``
or "".
"""

import hashlib
import json
import os
import random
import sys
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

MODEL = sys.argv[1]
_BLOCK = 16
_MOST_STEPS = 3_000


@dataclass
class Drawn:
    """What a seed settles before the first step."""

    rng: random.Random
    is_async: bool = field(init=False)
    caching: bool = field(init=False)
    num_drafts: int = field(init=False)
    runner: str = field(init=False)
    num_blocks: int = field(init=False)
    num_seqs: int = field(init=False)
    num_batched_tokens: int = field(init=False)
    policy: str = field(init=False)
    log_stats: bool = field(init=False)
    has_images: bool = field(init=False)
    num_requests: int = field(init=False)

    def __post_init__(self) -> None:
        draw = self.rng
        self.is_async = draw.random() < 0.5
        self.caching = draw.random() < 0.6
        self.num_drafts = draw.choice((0, 0, 1, 3))
        self.runner = draw.choice("01")
        self.num_blocks = draw.randint(20, 120)
        self.num_seqs = draw.choice((4, 16, 64))
        self.num_batched_tokens = draw.choice((64, 128, 1_024))
        self.policy = draw.choice(("fcfs", "fcfs", "priority"))
        self.log_stats = draw.random() < 0.5
        self.has_images = self.runner == "1" and draw.random() < 0.3
        self.num_requests = draw.randint(10, 60)


class Schedule:
    """One seed: requests come, are aborted and end, and each step is digested."""

    def __init__(self, seed: int) -> None:
        self.drawn = drawn = Drawn(random.Random(seed))
        self.rng = drawn.rng
        os.environ["VLLM_USE_V2_MODEL_RUNNER"] = drawn.runner
        config = _config_of(drawn)
        self.scheduler = _scheduler_of(config, drawn)
        self.front_end = OutputProcessor(None, log_stats=drawn.log_stats)
        self.hasher = get_request_block_hasher(_BLOCK, sha256) if drawn.caching else None
        self.common = [self.rng.randrange(50_000) for _ in range(48)]
        self.counts: Counter[str] = Counter()
        self.digests: list[str] = []
        self.now = 0.0

    def run(self) -> None:
        """Until all have ended."""
        scheduler, in_flight = self.scheduler, deque[Any]()
        depth = 2 if self.drawn.is_async else 1
        left = self.drawn.num_requests
        while (left or scheduler.has_requests() or in_flight) and len(self.digests) < _MOST_STEPS:
            self.now += 0.02
            while left and self.rng.random() < 0.4:
                left -= 1
                self._add(left)
            self._abort_some()
            planned = None
            if scheduler.has_requests():
                self.counts["steps"] += 1
                planned = scheduler.schedule()
                self._note(_of_plan(planned))
                self.counts["preemptions"] += len(planned.preempted_req_ids or ())
                in_flight.append((planned, self._sampled(planned)))
            if in_flight and (
                len(in_flight) == depth or not planned or not planned.total_num_scheduled_tokens
            ):
                self._finish(*in_flight.popleft())

    def _add(self, number: int) -> None:
        draw = self.rng
        length = draw.choice((draw.randint(1, 20), draw.randint(20, 150), 48, 64))
        prompt = [draw.randrange(50_000) for _ in range(length)]
        if draw.random() < 0.4:
            prompt = (self.common + prompt)[: max(length, 2)]
        sampling = SamplingParams(
            max_tokens=draw.randint(1, 80),
            min_tokens=0,
            ignore_eos=draw.random() < 0.5,
            stop_token_ids=[7] if draw.random() < 0.3 else None,
            detokenize=False,
            output_kind=draw.choice(list(RequestOutputKind)),
        )
        sampling.update_from_generation_config({}, 2)
        name = f"r{number}"
        asked = EngineCoreRequest(
            request_id=name,
            external_req_id=name,
            prompt_token_ids=prompt,
            mm_features=self._images(length) if self.drawn.has_images else None,
            sampling_params=sampling,
            pooling_params=None,
            arrival_time=self.now,
            lora_request=None,
            cache_salt=None,
            data_parallel_rank=None,
            priority=draw.randrange(3),
        )
        self.front_end.add_request(asked, None)
        self.scheduler.add_request(Request.from_engine_core_request(asked, self.hasher))
        self.counts["requests"] += 1

    def _images(self, length: int) -> list[Any] | None:
        if length < 24 or self.rng.random() < 0.5:
            return None
        self.counts["images"] += 1
        start = self.rng.randrange(length - 16)
        return [
            MultiModalFeatureSpec(
                data=MultiModalKwargsItem({}),
                modality="image",
                identifier=f"i{self.rng.randrange(8)}",
                mm_position=PlaceholderRange(offset=start, length=16),
            )
        ]

    def _abort_some(self) -> None:
        live = sorted(self.scheduler.requests)
        if live and self.rng.random() < 0.03:
            name = self.rng.choice(live)
            self.counts["aborts"] += 1
            self.scheduler.finish_requests([name], RequestStatus.FINISHED_ABORTED)
            self.front_end.abort_requests([name], internal=True)

    def _sampled(self, planned: Any) -> Any:
        """What a model would have said of the step: tokens, some of the drafts among them."""
        names = list(planned.num_scheduled_tokens)
        tokens = []
        for name in names:
            if self.scheduler.requests[name].is_prefill_chunk:
                tokens.append([])
                continue
            drafts = len(planned.scheduled_spec_decode_tokens.get(name, ()))
            held = 1 + self.rng.randint(0, drafts)
            tokens.append([self.rng.randrange(100) for _ in range(held)])
        return ModelRunnerOutput(
            req_ids=names,
            req_id_to_index={name: index for index, name in enumerate(names)},
            sampled_token_ids=tokens,
        )

    def _finish(self, planned: Any, sampled: Any) -> None:
        stats = IterationStats() if self.drawn.log_stats else None
        if stats is not None:
            stats.iteration_timestamp = self.now
        found = self.scheduler.update_from_output(planned, sampled)
        if self.drawn.num_drafts and not self.drawn.is_async:
            self.scheduler.update_draft_token_ids(self._drafts(planned))
        for client, outputs in sorted(found.items()):
            for each in outputs.outputs:  # by vLLM's clock, which no two runs share
                each.events = None
            self._note(client, outputs.outputs, sorted(outputs.finished_requests or ()))
            seen = self.front_end.process_outputs(outputs.outputs, self.now, stats)
            for each in seen.request_outputs:
                each.metrics = None
            self._note(seen.request_outputs, seen.reqs_to_abort)
            self.counts["outputs"] += len(outputs.outputs)
        if stats is not None:
            self._note(stats.num_generation_tokens, len(stats.inter_token_latencies_iter))
            self._note([round(each, 9) for each in stats.inter_token_latencies_iter])
        self._note(self.scheduler.kv_cache_manager.block_pool.get_num_free_blocks())

    def _drafts(self, planned: Any) -> Any:
        names = list(planned.num_scheduled_tokens)
        most = self.drawn.num_drafts
        return DraftTokenIds(names, [[9] * self.rng.randint(0, most) for _ in names])

    def _note(self, *seen: Any) -> None:
        self.digests.append(hashlib.sha256(repr(seen).encode()).hexdigest()[:16])


def _of_plan(planned: Any) -> list[Any]:
    """What the model runner reads of a step; sets by their order."""
    return [
        (name, sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value)
        for name, value in sorted(vars(planned).items())
    ]


def _config_of(drawn: Drawn) -> Any:
    asked: dict[str, Any] = {}
    if drawn.num_drafts:
        asked["speculative_config"] = {
            "method": "ngram_gpu" if drawn.is_async else "ngram",
            "num_speculative_tokens": drawn.num_drafts,
            "prompt_lookup_max": 2,
        }
    arguments = EngineArgs(
        model=MODEL,
        skip_tokenizer_init=True,
        load_format="dummy",
        enforce_eager=True,
        max_model_len=512,
        block_size=_BLOCK,
        max_num_seqs=drawn.num_seqs,
        max_num_batched_tokens=drawn.num_batched_tokens,
        enable_chunked_prefill=True,
        enable_prefix_caching=drawn.caching,
        async_scheduling=drawn.is_async,
        scheduling_policy=drawn.policy,
        **asked,
    )
    return arguments.create_engine_config()


def _scheduler_of(config: Any, drawn: Drawn) -> Any:
    config.cache_config.num_gpu_blocks = drawn.num_blocks
    spec = FullAttentionSpec(block_size=_BLOCK, num_kv_heads=1, head_size=1, dtype=torch.float32)
    kinds = AsyncScheduler if drawn.is_async else Scheduler
    scheduler = kinds(
        config,
        KVCacheConfig(drawn.num_blocks, [], [KVCacheGroupSpec(["layer"], spec)]),
        StructuredOutputManager(config),
        block_size=_BLOCK,
        hash_block_size=_BLOCK,
        log_stats=drawn.log_stats,
    )
    assert scheduler.use_v2_model_runner == (drawn.runner == "1")
    if drawn.has_images:
        scheduler.max_num_encoder_input_tokens = 64
        scheduler.encoder_cache_manager = EncoderCacheManager(cache_size=96)
    return scheduler


if __name__ == "__main__":
    import torch
    from vllm import SamplingParams
    from vllm.engine.arg_utils import EngineArgs
    from vllm.multimodal.inputs import MultiModalFeatureSpec, MultiModalKwargsItem, PlaceholderRange
    from vllm.sampling_params import RequestOutputKind
    from vllm.utils.hashing import sha256
    from vllm.v1.core.encoder_cache_manager import EncoderCacheManager
    from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
    from vllm.v1.core.sched.async_scheduler import AsyncScheduler
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.engine import EngineCoreRequest
    from vllm.v1.engine.output_processor import OutputProcessor
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
    from vllm.v1.metrics.stats import IterationStats
    from vllm.v1.outputs import DraftTokenIds, ModelRunnerOutput
    from vllm.v1.request import Request, RequestStatus
    from vllm.v1.structured_output import StructuredOutputManager

    os.environ["PYTHONHASHSEED"] = "0"  # of the hash that a request's first block begins with
    init_none_hash(sha256)
    for seed in map(int, sys.argv[2:]):
        schedule, error = Schedule(seed), ""
        try:
            schedule.run()
        except Exception as raised:  # of a tree that is wrong, and so of what the two are held to
            error = repr(raised)
        found = {"digests": schedule.digests, "counts": schedule.counts, "error": error}
        print(json.dumps({"seed": seed} | found), flush=True)
