"""What is asked for, before it is realised: distributions or a trace, and how outputs are kept."""

from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from workloads.acceptance import Acceptance, FixedAcceptance
from workloads.arrivals import Arrivals
from workloads.lengths import Lengths
from workloads.schedule import Retain, Schedule
from workloads.traces import AzureTrace, TraceError, TraceRequests

Int32Array = NDArray[np.int32]

MAX_REQUESTS = 10_000_000

Model = Literal["opt-125m", "llama-3-8b"]
"""Which modelled profile suits the workload."""

_STREAMS = ("prompt_lens", "output_lens", "arrivals", "acceptance", "tokens")
"""One random stream each, told apart by its place here: append, never reorder."""


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A seeded recipe for a schedule.

    With a ``trace``, lengths, arrival times and the number of requests are the trace's, except
    those given here (``num_requests`` counts from the window's start, in ``max_requests``' stead).
    Without one, ``num_requests``, ``prompt_lens`` and ``output_lens`` are needed, and requests
    arrive all at once unless ``arrivals`` says otherwise. Raises ValueError.
    """

    name: str
    reason: str = ""
    num_requests: int | None = None
    prompt_lens: Lengths | None = None
    output_lens: Lengths | None = None
    arrivals: Arrivals | None = None
    acceptance: Acceptance = FixedAcceptance(1)
    retain: Retain = "step"
    model: Model = "opt-125m"
    stop_token_ids: tuple[int, ...] = ()
    trace: AzureTrace | None = None

    def __post_init__(self) -> None:
        needed = ("num_requests", "prompt_lens", "output_lens")
        missing = [name for name in needed if getattr(self, name) is None]
        if self.trace is None and missing:
            raise ValueError(f"{' and '.join(missing)} must be given, or a trace to take them from")
        if self.num_requests is not None and not 1 <= self.num_requests <= MAX_REQUESTS:
            raise ValueError(
                f"num_requests {self.num_requests:,} must be between 1 and {MAX_REQUESTS:,}"
            )
        if any(token < 0 for token in self.stop_token_ids):
            raise ValueError("stop_token_ids must be 0 or more")

    def realise(self, seed: int) -> Schedule:
        """The schedule of this seed: the same in any process.

        Each part draws from a stream of its own, so changing one leaves the others as they were.
        Raises ValueError for a negative seed, TraceError for a trace that cannot be used.
        """
        if seed < 0:
            raise ValueError(f"seed {seed} must be 0 or more")
        recorded = self._recorded()
        n = len(recorded.prompt_lens)

        def sample(lengths: Lengths | None, stream: str, otherwise: Int32Array) -> Int32Array:
            return otherwise if lengths is None else lengths.sample(_rng(seed, stream), n)

        return Schedule(
            name=self.name,
            prompt_lens=sample(self.prompt_lens, "prompt_lens", recorded.prompt_lens),
            output_lens=sample(self.output_lens, "output_lens", recorded.output_lens),
            arrival_seconds=recorded.arrival_seconds
            if self.arrivals is None
            else self.arrivals.sample(_rng(seed, "arrivals"), n),
            max_concurrency=0 if self.arrivals is None else self.arrivals.max_concurrency,
            num_accepted=self.acceptance.table(_rng(seed, "acceptance")),
            token_seed=int(_rng(seed, "tokens").integers(2**63, dtype=np.uint64)),
            stop_token_ids=self.stop_token_ids,
            retain=self.retain,
            bad_rows=recorded.bad_rows,
        )

    def _recorded(self) -> TraceRequests:
        """What the trace says; without one, ``num_requests`` at time 0 with lengths to be drawn."""
        if self.trace is None:
            n = self.num_requests or 0
            return TraceRequests(np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n), 0)
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
