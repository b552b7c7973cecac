"""SGLang's classes, made in the words of the release at hand; what it lacks is left out."""

import inspect
import json
from array import array
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from engines.prepared.features import ANY_TEXT, NEVER_STOPS, Features, read_features
from engines.protocol import EngineConfig, SamplingParams
from engines.sglang.loop import pausing

LOOPS = {"inline": "event_loop_normal", "overlapped": "event_loop_overlap"}
"""SGLang's event loops, by the way of output processing that each is."""

VOCAB_SIZE = 50_257
"""GPT-2's, as that of the other engines without a model."""

_FEATURES = ("stop", "stop-token", "grammar")

MARGIN = 8
"""Tokens that a step under way may write past a request's last."""


def features_asked(config: EngineConfig) -> Features:
    """What every request asks for. Raises ValueError for what is not known."""
    return read_features(config, _FEATURES)


def pool_tokens(config: EngineConfig) -> int:
    """Tokens of the KV cache: as many as were asked for, or more than ever fill it.

    A full one makes releases up to 0.5.5 evict in each step, which then costs a quarter more.
    """
    longest = config.max_num_seqs * (config.max_model_len + MARGIN)
    return config.num_gpu_blocks_override or 6 * longest + 4096


def vocab_size(config: EngineConfig) -> int:
    """Of the model; no token is so large, and what is ends a request."""
    return max(VOCAB_SIZE, config.vocab_size)


def write_model(folder: Path, config: EngineConfig) -> None:
    """The config of a model as small as can be; it has no weights."""
    from engines.sglang.no_model import MODEL_CLASS

    model = {
        "architectures": [MODEL_CLASS],
        "model_type": "llama",
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "vocab_size": vocab_size(config),
        "max_position_embeddings": config.max_model_len + MARGIN,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "torch_dtype": "bfloat16",
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": None,  # a request that heeds it has it among its stop tokens
    }
    (folder / "config.json").write_text(json.dumps(model))


def server_args(config: EngineConfig, model: Path, tokenizer: Path | None) -> Any:
    """A server's arguments, on a CPU; without a ``tokenizer`` there is no text."""
    from sglang.srt.server_args import ServerArgs

    asked = {
        "model_path": str(model),
        "load_format": "dummy",
        "dtype": "bfloat16",
        "device": "cpu",
        "attention_backend": "torch_native",
        "sampling_backend": "pytorch",
        "grammar_backend": "xgrammar" if features_asked(config).has_grammar else "none",
        "disable_cuda_graph": True,
        "skip_tokenizer_init": tokenizer is None,
        "tokenizer_path": str(tokenizer or model),
        "skip_server_warmup": True,
        "log_level": "error",
        "decode_log_interval": 1 << 30,  # no step of forty is to work out what nobody logs
        "watchdog_timeout": 1e6,  # a collector may be told to take its time
        "mem_fraction_static": 0.9,  # of what other programs leave, the most that a pool may take
        "random_seed": 1,
        "stream_interval": 1,
        "page_size": 1,
        "context_length": config.max_model_len + MARGIN,
        "max_running_requests": config.max_num_seqs,
        "max_total_tokens": pool_tokens(config),
        "chunked_prefill_size": config.max_num_batched_tokens,
        "max_prefill_tokens": config.max_num_batched_tokens,
    }
    if config.setup == "lean":  # else as the release ships
        asked |= {
            "disable_radix_cache": not config.enable_prefix_caching,
            "disable_overlap_schedule": config.output_processing == "inline",
        }
    return _made(ServerArgs, asked)


def socket_names(args: Any) -> Any:
    """Of a release's processes."""
    from sglang.srt.server_args import PortArgs

    ports = PortArgs.init_new(args)
    if hasattr(args, "resolve_in_place"):  # from 0.5.20 on arguments are published, once resolved
        args.resolve_in_place()
    return ports


def publish(args: Any, role: str) -> None:
    """Make the arguments known as a release's process of this role does."""
    from sglang.srt.managers import scheduler as module

    if hasattr(module, "SpawnRanks"):  # from 0.5.21 on
        whole = module.SpawnRanks(world_rank=0, dp_rank=None, gpu_id=0)
        module.publish(args, role=role, ranks=whole)
    elif hasattr(module, "publish"):
        module.publish(args, role=role)


def scheduler(args: Any, ports: Any) -> Any:
    """The release's own, with its worker and model runner in this process."""
    from sglang.srt.managers import scheduler as module

    from engines.sglang.no_model import register_no_model

    register_no_model()
    takes = inspect.signature(module.Scheduler.__init__).parameters
    asked: dict[str, Any] = {name: 0 for name in takes if name.endswith("_rank")}
    undivided = {"gpu_id": 0, "dp_rank": None}
    asked |= {name: value for name, value in undivided.items() if name in takes}
    return module.Scheduler(args, ports, **asked)


def runner_of(scheduler: Any) -> Any:
    """The release's own; a worker with a forward thread has another that has it."""
    worker = scheduler.tp_worker
    return getattr(worker, "worker", worker).model_runner


def turns(scheduler: Any) -> Any:
    """An iterator, each step of which is a turn of the scheduler's event loop."""
    kept: list[Any] = []
    for name in LOOPS.values():
        loop = pausing(getattr(type(scheduler), name))
        setattr(scheduler, name, lambda loop=loop: kept.append(loop(scheduler)))
    if hasattr(scheduler, "run_event_loop"):
        scheduler.run_event_loop()
    else:
        getattr(scheduler, LOOPS["overlapped" if scheduler.enable_overlap else "inline"])()
    (found,) = kept
    next(found)
    return found


def count_retractions(tell: Callable[[int], object]) -> None:
    """Tell of each time how many requests lose their rows, for the pool is full."""
    from sglang.srt.managers.schedule_batch import ScheduleBatch

    retract = ScheduleBatch.retract_decode

    def retract_decode(*args: Any, **kwargs: Any) -> Any:
        found = retract(*args, **kwargs)
        tell(len(found[0]))
        return found

    ScheduleBatch.retract_decode = retract_decode


def receive_by(scheduler: Any, take: Callable[[], list[Any]]) -> None:
    """Have a scheduler ask ``take`` for new requests."""
    if hasattr(scheduler, "request_receiver"):  # of slots, so its class it is
        type(scheduler.request_receiver).recv_requests = lambda *_, **__: take()
    else:
        scheduler.recv_requests = take


def receive_from(scheduler: Any, instead: Callable[[Any], Any]) -> None:
    """Have a scheduler receive from what ``instead`` makes of its socket."""
    receiver = getattr(scheduler, "request_receiver", scheduler)
    socket = instead(receiver.recv_from_tokenizer)
    object.__setattr__(receiver, "recv_from_tokenizer", socket)  # a frozen one's, too


def send_by(scheduler: Any, to: str, giver: Callable[[Any], Any]) -> None:
    """Have a scheduler send ``to`` "tokenizer" or "detokenizer" by another function.

    ``giver`` gets the one that sends and returns the one to be called in its place.
    """
    channels, name = getattr(scheduler, "ipc_channels", scheduler), f"send_to_{to}"
    sender = getattr(channels, name)
    if hasattr(sender, "send_output"):
        give = giver(sender.send_output)
        sender.send_output = lambda output, *_: give(output)
    else:
        setattr(scheduler, name, _Sender(giver(sender.send_pyobj)))


class _Sender:
    """In the place of a socket, up to 0.5.4."""

    def __init__(self, give: Callable[[Any], object]) -> None:
        self.send_pyobj = give


def sampling(params: SamplingParams, config: EngineConfig, features: Features) -> dict[str, Any]:
    """How a request is sampled, in SGLang's words."""
    stops = list(params.stop_token_ids)
    if not params.ignore_eos and config.eos_token_id >= 0:
        stops.append(config.eos_token_id)
    if features.has_stop_token:
        stops.append(vocab_size(config))  # which no token is
    return {
        "max_new_tokens": params.max_tokens,
        "temperature": 0.0,
        "ignore_eos": not stops,  # SGLang then heeds no stop token at all
        "stop_token_ids": stops or None,
        "stop": [NEVER_STOPS] if features.has_stop else None,
        "regex": ANY_TEXT if features.has_grammar else None,
    }


NUMBER_DIGITS = 10
"""Of what a request is called, those that are its number."""


def next_rid(request: int, last: str | None) -> str:
    """What a request is called: never twice alike, for some releases keep what they know of one
    that has ended; and none begins with another, for some abort whatever begins so.
    """
    times = int(last[NUMBER_DIGITS:]) + 1 if last else 0
    return f"{request:0{NUMBER_DIGITS}}{times:06}"


def request(rid: str, prompt: list[int], sampling: Mapping[str, Any], tokenizer: Any) -> Any:
    """As the tokenizer's process sends it; ``tokenizer``: None where there is no text."""
    from sglang.srt.managers.io_struct import TokenizedGenerateReqInput
    from sglang.srt.sampling.sampling_params import SamplingParams as TheirParams

    theirs = TheirParams(**sampling)
    theirs.normalize(tokenizer)
    annotation = TokenizedGenerateReqInput.__annotations__["input_ids"]
    asked = {
        "rid": rid,
        "input_text": "",
        "input_ids": array("q", prompt) if "array" in str(annotation) else prompt,
        "input_embeds": None,
        "mm_inputs": None,
        "token_type_ids": None,
        "sampling_params": theirs,
        "return_logprob": False,
        "logprob_start_len": -1,
        "top_logprobs_num": 0,
        "token_ids_logprob": None,
        "stream": True,
    }
    return _made(TokenizedGenerateReqInput, asked)


def abort(rid: str) -> Any:
    """What ends a request."""
    from sglang.srt.managers.io_struct import AbortReq

    return AbortReq(rid=rid)


def _made(kind: Any, asked: Mapping[str, Any]) -> Any:
    if is_dataclass(kind):
        known = {field.name for field in fields(kind)}
    else:
        known = set(getattr(kind, "__struct_fields__", ()) or inspect.signature(kind).parameters)
    return kind(**{name: value for name, value in asked.items() if name in known})
