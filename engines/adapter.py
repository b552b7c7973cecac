"""The base class of an engine that lives in another distribution: four methods to write."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.protocol import EngineConfig, FinishReason, SamplingParams, Traits


class NewTokens(NamedTuple):
    """What a step has made.

    ``requests``: the numbers of the requests that got tokens. ``tokens``: of each its new token,
    or a sequence of them; gcbench hands this object on as it is, so give the engine's own.
    ``finished``: the numbers of those that ended with this step. ``finish_reasons``: why, of each;
    empty where all ended by their length. ``device_ns``: of the step, nanoseconds for which it
    waited for a device.
    """

    requests: Sequence[int]
    tokens: Sequence[Any]
    finished: Sequence[int] = ()
    finish_reasons: Sequence[FinishReason] = ()
    device_ns: int = 0


class Adapter:
    """An engine as gcbench drives it; built in each trial's process by ``YourAdapter(config)``.

    The class attributes say what it is. Each has a value that is always safe.
    """

    package: ClassVar[str] = ""
    """Path of the engine's package in its repository, such as "toy" or "src/toy", which `gate`,
    `bisect` and ``--release`` measure. "": the top package that this class is in."""
    representations: ClassVar[tuple[str, ...]] = ()
    """What ``--representation`` can be, ``config.representation`` says which; the first is the
    default. None: the engine has one shape, without a name."""
    devices: ClassVar[tuple[str, ...]] = ("null",)
    """What ``--device`` can be. "null": nothing stands for the forward pass, or a stub of no
    length. A real or modelled one by any other name."""
    axes: ClassVar[frozenset[str]] = frozenset()
    """More axes that it takes, such as "prefix_caching", by their names in `EngineConfig` too."""
    traits: ClassVar[Traits] = Traits()
    """What it can do. ``Traits(is_exact=True)``: counts repeat to the digit, because it has no
    clock, no thread and no second process."""
    repeats_tokens: ClassVar[bool] = True
    """Whether a request gets the same tokens in each run, however the engine is configured; runs
    where it got others are not compared. False: a model makes them, and sums in another order."""
    vocab_size: ClassVar[int] = 32_000
    """Token ids of the prompts that it is given are below it."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config

    @abstractmethod
    def add_request(
        self, request: int, prompt_token_ids: NDArray[np.int32], params: SamplingParams
    ) -> None:
        """Queue a request, which gcbench names by the number ``request`` from now on.

        It must get ``params.max_tokens`` tokens, whatever they are, where ``params.ignore_eos``.
        Raises ValueError where it can never be served.
        """

    @abstractmethod
    def step(self) -> NewTokens | None:
        """Run one step; None where it has made nothing."""

    @abstractmethod
    def has_unfinished_requests(self) -> bool:
        """Whether another step has anything to do."""

    @abstractmethod
    def shutdown(self) -> None:
        """End its threads and processes; safe to call twice."""

    def abort_request(self, request: int) -> None:
        """End a request that waits or runs. What steps still say of it is dropped.

        Where this is not written it runs on to its end.
        """
        raise NotImplementedError

    def scheduler_stats(self) -> Mapping[str, int]:
        """``num_preemptions``, ``prefix_cache_queries`` and ``prefix_cache_hits`` (tokens) so far;
        leave out what it does not count.
        """
        return {}

    def handoff_bytes(self, tokens: Sequence[Any]) -> int | None:
        """Memory of `NewTokens.tokens`, Python objects included; None: unknown."""
        return None
