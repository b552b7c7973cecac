"""One trial: what it is asked (`Trial`), what it answers (`TrialResult`), both as versioned JSON.

A cell is a point of the grid; a trial is a cell run once, in one mode, with one seed.
"""

from typing import Literal

import msgspec

from engines.protocol import Setting
from harness.collector.result import ProcessResult

TRIAL_SCHEMA = "gcbench.trial/1"
RESULT_SCHEMA = "gcbench.trial-result/1"

REFUSED = 3
"""Exit status of a trial's process that says in one sentence why it cannot be run."""

READY, PAUSED, GO = b"ready\n", b"paused\n", b"go\n"
"""A trial's process says the first when it is prepared and the second when a slice of its window
is over; it measures when it is told the third."""

Mode = Literal["timing", "counts", "probed", "tracked", "opcodes"]
"""timing: probe on, counter phase varied by seed. counts: collections by `gc.get_stats()`, no
probe, fixed phase. probed: the same with the probe, to see what watching changes. tracked:
collector off, counter read after each phase. opcodes: collector off, every bytecode traced."""


NOT_IN_USE = ("", 0, "off", "none", "auto", "greedy")
"""Values of an axis that say of something that it is not there."""


class Cell(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One point of the grid: a value for each axis."""

    workload: str
    engine: str = "builtin"
    release: str = ""
    model: str = ""
    dtype: str = "auto"
    sampling: str = "greedy"
    enforce_eager: str = "off"
    tensor_parallel: int = 0
    device: str = "modelled"
    device_profile: str = ""
    representation: str = "list_of_lists"
    delivery: str = "per_request"
    gc: str = "default"
    batch_size: int = 1024
    max_model_len: int = 0
    max_num_batched_tokens: int = 0
    num_gpu_blocks_override: int = 0
    prefix_caching: str = "off"
    scheduling_policy: str = "fcfs"
    detokenizer: str = "none"
    tokenizer: str = ""
    logprobs: str = "none"
    request_streams: str = "none"
    output_processing: str = "inline"
    worker: str = "in-process"
    wire: str = "pickle"
    engine_core: str = "in-process"
    heap_objects: int = 0
    python: str = ""
    copy: int = 0
    """Tells equal cells apart where one is measured against itself."""


class Trial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything a fresh interpreter needs to run one cell once.

    ``max_steps`` ends it early, 0 never; ``rows_path`` is where it leaves its rows, "" nowhere.
    After every ``slice_steps`` steps (0: never) it waits to be told, so that trials can take
    turns on one core; the time between is nobody's.
    """

    cell: Cell
    schedule_path: str
    schedule_sha256: str
    mode: Mode = "timing"
    seed: int = 0
    max_steps: int = 0
    rows_path: str = ""
    slice_steps: int = 0
    schema: str = TRIAL_SCHEMA


class TrialResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one trial measured. ``invalid`` says in one sentence why it must not be used.

    The hashes are over all requests' tokens, finish reasons and numbers of tokens. Where
    ``is_scripted``, tokens are the same in every engine; where not, lengths are what can agree.
    ``slice_host_seconds``: mean host time of a step in each slice of the window.
    ``steady_state``: its steps, or why there is none; ``delivered``: whether requests arrived as
    scheduled, "" where none came by themselves. ``engine_state``: the engine's switches as read
    back from it, where it can be asked.
    """

    cell: Cell
    mode: Mode
    seed: int
    metrics: dict[str, float | None]
    processes: list[ProcessResult]
    tokens_sha256: str
    finish_sha256: str
    lengths_sha256: str = ""
    is_scripted: bool = True
    interpreter: str
    code_root: str
    code_commit: str
    wall_seconds: float
    slice_host_seconds: list[float] = []
    steady_state: str = ""
    delivered: str = ""
    engine_state: dict[str, Setting] = {}
    invalid: str = ""
    schema: str = RESULT_SCHEMA


class TrialFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A trial that gave no result, and why, in one sentence."""

    cell: Cell
    mode: Mode
    seed: int
    kind: Literal["crashed", "timed_out", "killed", "refused"]
    reason: str
