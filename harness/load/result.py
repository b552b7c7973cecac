"""A run under load as programs read it: a trial's result, and what there is to say beside it."""

from harness.experiment.result import ExperimentResult
from harness.load.attribution import Attribution
from harness.load.by_server import ServerPart
from harness.load.distribution import Percentile
from harness.load.goodput import Goodput
from harness.load.server_metrics import Scrape
from harness.load.steady import SteadyRate
from harness.load.task import Asked, ClientHealth
from harness.load.validity import Finding
from harness.result.result import Result
from harness.trial.spec import TrialResult


class LoadResult(Result, frozen=True, kw_only=True, tag="load"):
    """``outcomes`` by name add up to ``num_requests``; ``num_attempted``: those of which nobody but
    the server decided how they end; ``num_completed``: of which all figures are. ``messages``: what
    the first failures of a kind said. ``broken``: the rules that make it invalid, none where it is
    valid. ``counted_by``: how many completed answers' tokens are counted by what (`CountSource`).
    ``server_collections``: rise over the run of what `/metrics` counts of collections and pauses.
    ``goodput``: None where no objective was given. ``percentiles``: of latencies by name.
    ``by_server``: empty where there was one. ``steady``: None where the run was too short.
    ``attribution``: what made slow waits; None without the log of `gcbench probe`. ``experiment``:
    of one trial of one cell, which others can be compared with; None where nothing was stored.
    """

    trial: TrialResult
    asked: Asked
    num_requests: int
    num_attempted: int
    num_completed: int
    outcomes: dict[str, int]
    messages: dict[str, list[str]]
    broken: list[Finding]
    clients: list[ClientHealth]
    num_pieces: int
    prompt_tokens: int
    server_collections: dict[str, float]
    scrapes: list[Scrape]
    counted_by: dict[str, int] = {}
    goodput: Goodput | None = None
    percentiles: dict[str, list[Percentile]] = {}
    by_server: list[ServerPart] = []
    steady: SteadyRate | None = None
    attribution: Attribution | None = None
    experiment: ExperimentResult | None = None

    @property
    def is_valid(self) -> bool:
        """Whether its figures are the server's."""
        return not self.broken
