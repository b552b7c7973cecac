"""A run under load as programs read it: a trial's result, and what there is to say beside it."""

import msgspec

from harness.load.attribution import Attribution
from harness.load.server_metrics import Scrape
from harness.load.task import Asked, ClientHealth
from harness.load.validity import Finding
from harness.trial.spec import TrialResult

SCHEMA = "gcbench.load/2"


class LoadResult(msgspec.Struct, frozen=True, kw_only=True):
    """``outcomes`` by name add up to ``num_requests``; ``num_attempted``: those of which nobody but
    the server decided how they end; ``num_completed``: of which all figures are. ``messages``: what
    the first failures of a kind said. ``broken``: the rules that make it invalid, none where it is
    valid.
    ``server_collections``: rise over the run of what `/metrics` counts of collections and pauses.
    ``attribution``: what made slow waits; None without the log of `gcbench probe`.
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
    notes: list[str]
    attribution: Attribution | None = None
    is_complete: bool = True
    schema: str = SCHEMA

    @property
    def is_valid(self) -> bool:
        """Whether its figures are the server's."""
        return not self.broken
