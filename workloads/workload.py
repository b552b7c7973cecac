"""What is asked for, before it is realised: distributions or a trace, and how outputs are kept."""

from typing import Literal

import msgspec
import numpy as np

from workloads.arrival_check import ArrivalCheck, check_arrivals
from workloads.recipe.acceptance import Acceptance, FixedAcceptance
from workloads.recipe.arrivals import Arrivals
from workloads.recipe.conversations import SharedPrefix, Turns
from workloads.recipe.lengths import Lengths
from workloads.recipe.limits import MAX_REQUESTS
from workloads.recipe.priorities import Priorities
from workloads.requests import NO_SEGMENTS, Requests
from workloads.schedule import Retain, Schedule
from workloads.schedule_checks import check_stopping
from workloads.traces import TraceError
from workloads.traces.trace import Trace

ModelName = Literal["opt-125m", "llama-3-8b"]
"""Which modelled profile suits the workload."""

_STREAMS = (
    "prompt_lens",
    "output_lens",
    "arrivals",
    "acceptance",
    "tokens",
    "turns",
    "groups",
    "priorities",
)
"""One random stream each, told apart by its place here: append, never reorder."""


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A seeded recipe for a schedule.

    With a ``trace``, lengths, arrival times and the number of requests are the trace's, except
    those given here (``num_requests`` counts from the window's start, in ``max_requests``' stead).
    Without one, ``num_requests``, ``prompt_lens`` and ``output_lens`` are needed, and requests
    arrive all at once unless ``arrivals`` says otherwise.

    With ``turns``, ``prompt_lens`` are the user's tokens of a turn and ``arrivals`` those of the
    conversations; with a ``shared_prefix``, ``prompt_lens`` are of what follows it. Raises
    ValueError.
    """

    name: str
    reason: str = ""
    num_requests: int | None = None
    prompt_lens: Lengths | None = None
    output_lens: Lengths | None = None
    arrivals: Arrivals | None = None
    acceptance: Acceptance = FixedAcceptance(1)
    turns: Turns | None = None
    shared_prefix: SharedPrefix | None = None
    priorities: Priorities | None = None
    retain: Retain = "step"
    model: ModelName = "opt-125m"
    stop_token_ids: tuple[int, ...] = ()
    stop: tuple[str, ...] = ()
    min_tokens: int = 0
    ignore_eos: bool = True
    trace: Trace | None = None

    def __post_init__(self) -> None:
        needed = ("num_requests", "prompt_lens", "output_lens")
        missing = [name for name in needed if getattr(self, name) is None]
        if self.trace is None and missing:
            raise ValueError(f"{' and '.join(missing)} must be given, or a trace to take them from")
        if self.trace is not None and self.turns is not None:
            raise ValueError("turns make conversations, and a trace has its own; leave one out")
        if self.num_requests is not None and not 1 <= self.num_requests <= MAX_REQUESTS:
            raise ValueError(
                f"num_requests {self.num_requests:,} must be between 1 and {MAX_REQUESTS:,}"
            )
        check_stopping(self.stop_token_ids, self.stop, self.min_tokens)

    def realise(self, seed: int) -> Schedule:
        """The schedule of this seed: the same in any process.

        Each part draws from a stream of its own, so changing one leaves the others as they were.
        Raises ValueError for a negative seed, TraceError for a trace that cannot be used.
        """
        if seed < 0:
            raise ValueError(f"seed {seed} must be 0 or more")
        requests = self._requests(seed)
        n = len(requests.prompt_lens)
        priorities = (
            np.zeros(n, np.int32)
            if self.priorities is None
            else self.priorities.sample(_rng(seed, "priorities"), n)
        )
        return Schedule(
            name=self.name,
            prompt_lens=requests.prompt_lens,
            output_lens=requests.output_lens,
            arrival_seconds=requests.arrival_seconds,
            max_concurrency=0 if self.arrivals is None else self.arrivals.max_concurrency,
            num_accepted=self.acceptance.table(_rng(seed, "acceptance")),
            token_seed=int(_rng(seed, "tokens").integers(2**63, dtype=np.uint64)),
            stop_token_ids=self.stop_token_ids,
            retain=self.retain,
            bad_rows=requests.bad_rows,
            priorities=priorities,
            previous_turn=requests.previous_turn,
            segment_counts=requests.segments.counts,
            segment_streams=requests.segments.streams,
            segment_lens=requests.segments.lens,
            min_tokens=self.min_tokens,
            ignore_eos=self.ignore_eos,
            stop=self.stop,
        )

    @property
    def gap_cv(self) -> float | None:
        """What the gaps' CV is asked to be; None where arrivals are recorded or have no gaps."""
        return None if self.arrivals is None else self.arrivals.gap_cv

    def check_arrivals(self, schedule: Schedule) -> ArrivalCheck:
        """Look at a schedule's arrivals, of conversations where there are turns.

        By the clock on which their rate is constant; `arrival_check.deviations` from ``gap_cv``
        judges.
        """
        seconds = schedule.arrival_seconds
        if len(schedule.previous_turn):
            seconds = seconds[schedule.previous_turn < 0]
        return check_arrivals(
            seconds if self.arrivals is None else self.arrivals.stationary(seconds)
        )

    def _requests(self, seed: int) -> Requests:
        """Recorded or drawn, then joined to conversations and given their prefixes."""
        requests = self._recorded()
        n = len(requests.prompt_lens)
        if self.prompt_lens is not None:
            drawn = self.prompt_lens.sample(_rng(seed, "prompt_lens"), n)
            requests = requests._replace(prompt_lens=drawn, segments=NO_SEGMENTS)
        if self.output_lens is not None:
            drawn = self.output_lens.sample(_rng(seed, "output_lens"), n)
            requests = requests._replace(output_lens=drawn)
        if self.arrivals is not None:
            times = self.arrivals.sample(_rng(seed, "arrivals"), n)
            requests = requests._replace(arrival_seconds=times)
        if self.turns is not None:
            requests = self.turns.converse(requests, _rng(seed, "turns"))
        if self.shared_prefix is not None:
            requests = self.shared_prefix.prepend(requests, _rng(seed, "groups"))
        return requests

    def _recorded(self) -> Requests:
        """What the trace says; without one, ``num_requests`` at time 0 with lengths to be drawn."""
        if self.trace is None:
            n = self.num_requests or 0
            return Requests(np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n))
        if self.num_requests is None:
            return self.trace.read()
        requests = msgspec.structs.replace(self.trace, max_requests=self.num_requests).read()
        available = len(requests.prompt_lens)
        if available < self.num_requests:
            raise TraceError(
                f"{self.trace.path}: the window has {available:,} requests, {self.num_requests:,} "
                "were asked for; ask for fewer or widen the window"
            )
        return requests


def _rng(seed: int, stream: str) -> np.random.Generator:
    sequence = np.random.SeedSequence(seed, spawn_key=(_STREAMS.index(stream),))
    return np.random.Generator(np.random.PCG64(sequence))
