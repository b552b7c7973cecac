"""One trial: what it is asked (`Trial`), what it answers (`TrialResult`), both as versioned JSON.

A cell is a point of the grid; a trial is a cell run once, in one mode, with one seed.
"""

from typing import Literal

import msgspec

from engines.protocol import Setting
from harness.axes import Cell
from harness.collector.callers import CollectorCall
from harness.collector.result import PhasePauses, ProcessResult
from harness.collector.sites import CollectionSites
from harness.machine.describe import Machine
from harness.trial.arrival_fidelity import SentArrivals
from harness.trial.growing_lines import GrowingLine
from harness.trial.long_run import LongRun
from harness.trial.messages import Messages
from harness.trial.output_hashes import OutputHashes, QualifiedName, RanFunction
from harness.trial.steady_state import SteadyState
from harness.trial.step_costs import CFunctionCost, StageCosts, StepCosts

TRIAL_SCHEMA = "gcbench.trial/1"
TRIALS_SCHEMA = "gcbench.trials/1"
TRIAL_RESULT_SCHEMA = "gcbench.trial-result/1"

REFUSED = 3
"""Exit status of a trial's process that says in one sentence why it cannot be run."""

READY, PAUSED, GO = b"ready\n", b"paused\n", b"go\n"
"""A trial's process says the first when it is prepared and the second when a slice of its window
is over; it measures when it is told the third."""

Mode = Literal[
    "timing",
    "counts",
    "long_run",
    "probed",
    "tracked",
    "memory",
    "leaks",
    "opcodes",
    "grid",
    "instructions",
    "outputs",
    "sites",
    "cadence",
    "wire",
    "stages",
    "stage_bytecodes",
]
"""timing: probe on, counter phase varied by seed. counts: collections by `gc.get_stats()`, no
probe, fixed phase. long_run: the schedule served again and again under the cell's collector, for
the rate of full passes. probed: as counts, with the probe, to see what watching changes. sites: as
counts, with a look at what each collection finds. The others have the collector off. tracked:
tracked objects counted after each phase. memory: every allocation traced. leaks: nothing watched,
what is left counted at the end. opcodes: every bytecode traced. grid: the same at a few batch sizes
and contexts, beside the schedule. instructions: those of the machine, counted by callgrind.
outputs: what each step gives written down, and which functions run. cadence: the collector's count
of young objects followed through every step. wire: every message between scheduler and workers
kept. stages: CPU time of each stage of a step in each of the engine's processes, collector on.
stage_bytecodes: the same in bytecodes."""


class Trial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything a process needs to run one cell once.

    ``max_steps`` ends it early, 0 never; ``rows_path`` is where it leaves its rows, "" nowhere.
    After every ``slice_steps`` steps (0: never) it waits to be told, so that trials can take
    turns on one core; the time between is nobody's. ``trace_every``: in mode ``opcodes``, trace one
    step in so many of all steps; 0: a few at full batch. ``lines_of``: in mode ``outputs``, by file
    and name, functions of which it says which lines run. ``is_exact``: the cell is one thread with
    no clock, which no other of its own can keep waiting for a core. ``gc_cycle``: see
    `harness.collector.phase.Phase`; for trials that are timed.
    """

    cell: Cell
    schedule_path: str
    schedule_sha256: str
    mode: Mode = "timing"
    seed: int = 0
    max_steps: int = 0
    rows_path: str = ""
    slice_steps: int = 0
    trace_every: int = 0
    lines_of: list[QualifiedName] = []
    is_exact: bool = False
    gc_cycle: float = 0.0
    schema: str = TRIAL_SCHEMA


class TrialBatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a trial's interpreter is asked: one trial, or several of which each is run in a fork.

    ``shared`` is what forks have in common: an interpreter, in which each builds its engine; with
    nearly all of the smallest heap; or an engine that is built before. Nothing: there is no fork.
    ``preload``: a module that such an interpreter imports beside the engine's class, "" for none.
    ``at_once`` forks run side by side; ``news``: descriptor of the socket on which each is told of.
    """

    trials: list[Trial]
    shared: Literal["nothing", "interpreter", "heap", "engine"] = "nothing"
    preload: str = ""
    at_once: int = 1
    news: int = -1
    schema: str = TRIALS_SCHEMA


class TrialResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one trial measured. ``invalid`` says in one sentence why it must not be used, and
    ``recurs`` that another try would be invalid too.

    The hashes are over all requests' tokens, finish reasons, numbers of tokens and texts; that of
    texts is "" where there is no detokenizer. Tokens of one ``script`` are the same; of none,
    lengths are what can agree.
    ``code_sha256`` is over the files that decide figures, ``dependencies`` are versions by name;
    with ``machine``, ``interpreter`` and ``code_commit`` they say what a figure is of.
    ``stage_seconds``: where its process's seconds went, see `harness.trial.stage_seconds`.
    ``window_seconds``: of the window, without the pauses between slices. ``waited_share``: of the
    window, while the trial was ready and another had its core; None where nobody tells.
    ``step_host_ns``: host time of each step, where the window had slices.
    ``delivered``: how requests arrived, None where none came by themselves. ``engine_state``: the
    engine's switches as read back from it, where it can be asked. ``collector_calls``: in mode
    ``leaks``, the lines that called the collector, and ``growing_lines``, those whose bytes grow;
    ``messages``: in mode ``wire``, what crossed, a
    record a direction. ``stages``: in modes ``stages`` and ``stage_bytecodes``, what each stage
    took. ``pauses``: in which phase collections began, where the probe was on.
    ``node``: on which of several machines it ran, "" on this one; ``block``: with which trials, of
    its group and round, it ran there. Only trials of one block are paired.
    ``costs``: in mode ``opcodes``, what each function took; ``c_functions``: in mode
    ``instructions``, what each one in C; ``grid_steps``: in mode ``grid``, bytecodes of each
    decode step that was traced; ``sites``: in mode ``sites``, which
    lines made what the collections found; ``young``: in mode ``cadence``, how the count of young
    objects moved, one change for each bytecode that moved it, packed; ``long_run``: in that mode.
    ``outputs`` and ``ran``: in mode ``outputs``, what steps have given, and functions that ran
    meanwhile; none where a thread could not be looked into.
    """

    cell: Cell
    mode: Mode
    seed: int
    metrics: dict[str, float | None]
    processes: list[ProcessResult]
    tokens_sha256: str
    finish_sha256: str
    lengths_sha256: str = ""
    text_sha256: str = ""
    script: str = ""
    interpreter: str
    code_root: str
    code_commit: str
    code_sha256: str = ""
    dependencies: dict[str, str] = {}
    machine: Machine | None = None
    wall_seconds: float
    stage_seconds: dict[str, float] = {}
    window_seconds: float = 0.0
    waited_share: float | None = None
    step_host_ns: list[int] = []
    steady_state: SteadyState | None = None
    delivered: SentArrivals | None = None
    engine_state: dict[str, Setting] = {}
    collector_calls: list[CollectorCall] = []
    growing_lines: list[GrowingLine] = []
    messages: list[Messages] = []
    stages: StageCosts | None = None
    pauses: list[PhasePauses] = []
    costs: StepCosts | None = None
    c_functions: list[CFunctionCost] = []
    grid_steps: list[int] = []
    sites: CollectionSites | None = None
    young: bytes = b""
    long_run: LongRun | None = None
    outputs: OutputHashes | None = None
    ran: list[RanFunction] = []
    invalid: str = ""
    recurs: bool = False
    node: str = ""
    block: str = ""
    schema: str = TRIAL_RESULT_SCHEMA


class TrialFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A trial that gave no result, and why, in one sentence."""

    cell: Cell
    mode: Mode
    seed: int
    kind: Literal["crashed", "timed_out", "killed", "refused"]
    reason: str
