"""The axes of a grid, one table: a `Cell` has a value for each.

What an axis is called, what values it has, its default, what help says of it and which field of
`EngineConfig` it decides stand here and nowhere else. Which of them it takes an engine says.
"""

from collections.abc import Mapping
from typing import Annotated, NamedTuple, get_args, get_type_hints

import msgspec

Value = str | int

OF_EVERY_ENGINE = frozenset({"model", "device", "representation", "batch_size", "max_model_len"})
"""Axes of the engine that each takes; of the others it says which."""


class Axis(NamedTuple):
    """What is said of an axis beside its field of `Cell`; the last three are read off that.

    ``decides``: the field of `EngineConfig` that it becomes, "" where the engine does not see it.
    ``is_silent``: at its default reports do not mention it, for then there is nothing of the kind.
    ``overrules``: axes that say nothing where this one is not at its default. ``least``: of a
    number. ``section``: of the help; ``is_main``: it has a flag of its own, where
    `--axis NAME=VALUES` gives the others.
    """

    help: str
    decides: str = ""
    is_silent: bool = True
    overrules: tuple[str, ...] = ()
    least: int = 0
    section: str = "Engine"
    is_main: bool = False
    name: str = ""
    kind: type[str] | type[int] = str
    default: Value = ""

    @property
    def flag(self) -> str:
        """As the command line has it: "--batch-size", or "--axis wire-spin"."""
        return f"--{'' if self.is_main else 'axis '}{self.name.replace('_', '-')}"

    def said(self, *values: Value) -> str:
        """The same as one text, for a sentence."""
        return " ".join(self.words(*values))

    def words(self, *values: Value) -> list[str]:
        """What the command line says for these values."""
        text = ",".join(map(str, values))
        name = self.name.replace("_", "-")
        return [f"--{name}", text] if self.is_main else ["--axis", f"{name}={text}"]


class Cell(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One point of the grid. A field is an axis, in the order in which a grid is crossed.

    Where the default is "" the engine fills in its own.
    """

    workload: Annotated[
        str,
        Axis(
            "Names, .toml files or traces (.csv, .jsonl).",
            is_silent=False,
            section="Workload",
            is_main=True,
        ),
    ] = "opt125m-48-200"
    engine: Annotated[
        str,
        Axis(
            "builtin; vllm-hostpath, sglang-hostpath (all but the model); vllm; or one of yours.",
            is_silent=False,
            is_main=True,
        ),
    ] = "builtin"
    release: Annotated[
        str,
        Axis(
            "Source trees that hold the engine's package, or prepared versions of vLLM or SGLang.",
            section="vLLM",
            is_main=True,
        ),
    ] = ""
    model: Annotated[
        str, Axis("A shipped config or a model's folder; the workload names one.", "model")
    ] = ""
    dtype: Annotated[
        str,
        Axis(
            "Of cpu and cuda: auto, float32, bfloat16 or float16.", "dtype", section="Real devices"
        ),
    ] = "auto"
    sampling: Annotated[
        str,
        Axis(
            "Of cpu and cuda: greedy or TEMPERATURE[:TOP_K[:TOP_P]].",
            "sampling",
            section="Real devices",
        ),
    ] = "greedy"
    enforce_eager: Annotated[
        str,
        Axis(
            "Of cuda: off, or on: no CUDA graphs, as in vLLM.",
            "enforce_eager",
            section="Real devices",
        ),
    ] = "off"
    tensor_parallel: Annotated[
        int,
        Axis(
            "Ranks: each in a process, but for rank 0 of --worker driver.",
            "tensor_parallel_size",
            least=1,
            section="Real devices",
        ),
    ] = 1
    device: Annotated[
        str,
        Axis(
            "modelled (a wait is the accelerator), null (no time), cpu, cuda.",
            "device",
            is_main=True,
        ),
    ] = ""
    device_profile: Annotated[
        str, Axis("Modelled accelerator: a name or a .toml file.", "device_profile")
    ] = ""
    representation: Annotated[
        str,
        Axis(
            "Shapes in which sampled tokens are handed over; some engines have their own or none "
            "(gcbench list engines).",
            "representation",
            section="What to compare",
            is_main=True,
        ),
    ] = ""
    delivery: Annotated[
        str,
        Axis(
            "per_request (a lean loop), columnar (the batch at once) or vllm_v1 (vLLM's objects "
            "and loops).",
            "delivery",
            is_silent=False,
            section="What to compare",
            is_main=True,
        ),
    ] = "per_request"
    gc: Annotated[
        str,
        Axis(
            "Collector policies, combined with +, e.g. freeze+threshold:50000/20/20.",
            is_silent=False,
            section="What to compare",
            is_main=True,
        ),
    ] = "default"
    batch_size: Annotated[
        int,
        Axis(
            "Most requests in a batch (vLLM's max_num_seqs).",
            "max_num_seqs",
            is_silent=False,
            least=1,
            is_main=True,
        ),
    ] = 1024
    max_model_len: Annotated[
        int, Axis("Most tokens of one request; 0: those of the longest.", "max_model_len")
    ] = 0
    max_num_batched_tokens: Annotated[
        int, Axis("Token budget of a step; 0: 8,192, or the batch.", "max_num_batched_tokens")
    ] = 0
    num_gpu_blocks_override: Annotated[
        int, Axis("KV blocks; 0: what the device's memory holds.", "num_gpu_blocks_override")
    ] = 0
    prefix_caching: Annotated[
        str,
        Axis("off, or on: prompts share the blocks of equal prefixes.", "enable_prefix_caching"),
    ] = "off"
    scheduler: Annotated[
        str,
        Axis(
            "live, or replayed: decisions recorded beforehand, as of a scheduler that costs "
            "nothing.",
            "scheduler",
        ),
    ] = "live"
    scheduling_policy: Annotated[
        str, Axis("fcfs or priority.", "scheduling_policy", is_silent=False)
    ] = "fcfs"
    detokenizer: Annotated[
        str, Axis("none, decode_stream (one call per token, as vLLM) or byte_table.", "detokenizer")
    ] = "none"
    tokenizer: Annotated[str, Axis("A tokenizer.json; a small one is shipped.", "tokenizer")] = ""
    logprobs: Annotated[
        str, Axis("none, lists:K (vLLM's dictionaries) or arrays:K (vLLM #28245).", "logprobs")
    ] = "none"
    features: Annotated[
        str,
        Axis(
            "What each request asks for beside: none, or of stop, grammar, of SGLang stop-token "
            "and, of vLLM, samples:N, lora:N and kv-connector, with + between.",
            "features",
        ),
    ] = "none"
    request_streams: Annotated[
        str, Axis("none, or collector: a stream for each request, as vLLM.", "request_streams")
    ] = "none"
    output_processing: Annotated[
        str,
        Axis(
            "inline; overlapped with the next step; in a thread or process of its own.",
            "output_processing",
            is_silent=False,
            section="What to compare",
            is_main=True,
        ),
    ] = "inline"
    num_scheduler_steps: Annotated[
        int, Axis("Forward passes per scheduling, as in vLLM's V0.", "num_scheduler_steps", least=1)
    ] = 1
    worker: Annotated[
        str,
        Axis(
            "Where the runner lives: in-process; process, one per rank; or driver, rank 0 with "
            "the scheduler and the others in processes.",
            "worker",
            is_silent=False,
            is_main=True,
        ),
    ] = "in-process"
    wire: Annotated[
        str,
        Axis(
            "What crosses to worker processes: a format, or FORMAT+TRANSPORT.",
            "wire",
            is_silent=False,
            is_main=True,
        ),
    ] = "pickle"
    wire_spin: Annotated[
        str, Axis("Seconds to poll shared memory before sleeping, or auto.", "wire_spin")
    ] = "auto"
    front_end: Annotated[
        str,
        Axis(
            "vLLM's: llm (LLMEngine), or async (AsyncLLM, as behind its API server).",
            "front_end",
            section="vLLM",
        ),
    ] = "llm"
    log_stats: Annotated[
        str,
        Axis("vLLM's statistics: off, or on, as in its API server.", "log_stats", section="vLLM"),
    ] = "off"
    engine_core: Annotated[
        str,
        Axis(
            "vLLM's engine core: in-process with its front end, or process.",
            "engine_core",
            is_silent=False,
            section="vLLM",
        ),
    ] = "in-process"
    setup: Annotated[
        str,
        Axis(
            "Switches: lean, off unless a flag asks for one; shipped, of vLLM: async scheduling "
            "and prefix caching as is the release's default, statistics on; or served, of SGLang "
            "too: the release's defaults behind its API server's code.",
            "setup",
            overrules=("output_processing", "prefix_caching", "log_stats"),
            section="vLLM",
        ),
    ] = "lean"
    heap_objects: Annotated[
        int,
        Axis(
            "Fill the heap up to so many tracked objects, as a server has.",
            section="What to compare",
            is_main=True,
        ),
    ] = 0
    python: Annotated[
        str,
        Axis(
            "Interpreters that have what gcbench needs: paths, or versions such as 3.12.",
            section="What to compare",
        ),
    ] = ""
    copy: int = 0
    """No axis: tells equal cells apart where one is measured against itself."""


def _table() -> dict[str, Axis]:
    hints = get_type_hints(Cell, include_extras=True)
    table = {}
    for field in msgspec.structs.fields(Cell):
        match get_args(hints[field.name]):
            case (kind, Axis() as axis):
                table[field.name] = axis._replace(name=field.name, kind=kind, default=field.default)
    return table


AXES = _table()
"""Every axis by its name, in the order of the fields."""


def values(cell: Cell) -> dict[str, Value]:
    """A cell's value on each axis."""
    return {name: getattr(cell, name) for name in AXES}


def worth_mentioning(point: Mapping[str, Value]) -> dict[str, Value]:
    """Those values that say that something is there; axes that are not known are kept."""
    at_default = {name for name, axis in AXES.items() if point.get(name) == axis.default}
    overruled = {
        other for name in AXES.keys() & point.keys() - at_default for other in AXES[name].overrules
    }
    return {
        name: value
        for name, value in point.items()
        if name not in overruled and not (name in at_default and AXES[name].is_silent)
    }
