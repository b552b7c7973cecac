"""How SGLang really runs, read off its scheduler and the parts that it has made."""

from typing import Any

from engines.protocol import EngineConfig, EngineState, Setting
from engines.sglang.detokenizer import DETOKENIZER
from engines.sglang.dialect import features_asked, pool_tokens, runner_of
from engines.sglang.driver import Driver
from engines.sglang.grammar import backend_of


def scheduler_state(config: EngineConfig, driver: Driver) -> EngineState:
    """The switches that decide what a step costs, beside what was asked for."""
    scheduler, reader = driver.scheduler, driver.reader
    args = scheduler.server_args
    runner = runner_of(scheduler)
    cache = scheduler.tree_cache
    found: dict[str, Setting] = {
        "scheduler": _class_name(scheduler),
        "output_processing": "overlapped" if scheduler.enable_overlap else "inline",
        "forward_thread": "counted" if hasattr(scheduler.tp_worker, "forward_thread") else "none",
        "prefix_cache": _class_name(cache),
        "enable_prefix_caching": not getattr(cache, "disable", True),
        "num_kv_tokens": int(scheduler.max_total_num_tokens),
        "page_size": int(scheduler.page_size),
        "max_num_seqs": int(scheduler.max_running_requests),
        "max_num_batched_tokens": int(scheduler.chunked_prefill_size or 0),
        "max_prefill_tokens": int(scheduler.max_prefill_tokens),
        "stream_interval": int(args.stream_interval),
        "schedule_policy": str(args.schedule_policy),
        "attention_backend": str(args.attention_backend),
        "kv_allocator": _class_name(runner.token_to_kv_pool_allocator),
        "tokenizer": "none" if scheduler.tokenizer is None else _class_name(scheduler.tokenizer),
    }
    grammars = backend_of(scheduler)
    found["grammar_backend"] = "none" if grammars is None else _class_name(grammars)
    found["detokenizer"] = "none" if reader is None else DETOKENIZER
    if reader is not None:
        found["detokenizer_manager"] = reader.detokenizer.class_name
    if driver.server is not None:
        found["served_by"] = driver.server.served_by
    asked: dict[str, Setting] = {
        "num_kv_tokens": pool_tokens(config),
        "page_size": 1,
        "max_num_seqs": config.max_num_seqs,
        "max_num_batched_tokens": config.max_num_batched_tokens,
        "stream_interval": 1,
        "detokenizer": config.detokenizer,
    }
    if config.setup == "lean":
        asked["output_processing"] = config.output_processing
        asked["enable_prefix_caching"] = config.enable_prefix_caching
    if not features_asked(config).has_grammar:
        asked["grammar_backend"] = "none"
    if reader is None:
        asked["tokenizer"] = "none"
    return EngineState(found, asked)


def _class_name(part: Any) -> str:
    return f"{type(part).__module__}.{type(part).__qualname__}"
