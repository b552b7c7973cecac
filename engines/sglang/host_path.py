"""SGLang's own host path, release by release, with no GPU: its scheduler without a forward pass."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

from engines.adapted import AdaptedEngine
from engines.builtin.registries import SCHEDULING_POLICIES
from engines.prepared.launch import launch_prepared, prepare_once
from engines.protocol import (
    SCRIPT,
    ContradictionError,
    EngineConfig,
    EngineState,
    Int32Array,
    Launch,
    Releases,
    StageCost,
    StageMeter,
    Traits,
)
from engines.sglang.detokenizer import DETOKENIZER
from engines.sglang.dialect import LOOPS, MARGIN, features_asked, pool_tokens
from engines.sglang.driver import Driver
from engines.sglang.read_back import scheduler_state
from engines.sglang.releases import SGLANG
from engines.stages import ProcessStages

_FEW = 12
"""The longest requests that a small pool has room for: enough that what SGLang counts on their
ending early lets in more of them, where their outputs are at least a quarter of them.
"""
_DETOKENIZERS = ("none", DETOKENIZER)
_SETUPS = ("lean", "served")


class SglangHostPath(AdaptedEngine):
    """Scheduler, radix cache, KV allocators, event loop and detokenizer of SGLang, in one process.

    Ours are the tokens, which come in the place of the model runner's forward pass and sampler.
    """

    has_wait_hook = False
    package = "python/sglang"
    axes = frozenset(
        {
            "detokenizer",
            "features",
            "max_num_batched_tokens",
            "num_gpu_blocks_override",
            "output_processing",
            "prefix_caching",
            "setup",
            "tokenizer",
        }
    )
    own_values: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "representation": (),
        "device": ("null",),
        "detokenizer": _DETOKENIZERS,
        "output_processing": tuple(LOOPS),
        "setup": _SETUPS,
    }
    shapes = (("", "per_request"),)

    def __init__(self, config: EngineConfig) -> None:
        if _has_text(config):
            config = replace(config, detokenizer=DETOKENIZER)
        self._driver = Driver(config)
        super().__init__(self._driver, config)
        # Tokens that no grammar takes are others.
        self.script = "" if features_asked(config).has_grammar else SCRIPT
        if self._driver.reader is not None:
            # No override: where nobody makes texts it would be counted with each request's end.
            self.output_token_ids = self._forget_all  # type: ignore[method-assign]
        self._config = config

    @staticmethod
    def complete(config: EngineConfig) -> EngineConfig:
        """Fill in what was left open.

        Raises ValueError where a part is unknown or a number impossible, ContradictionError where
        parts do not go together.
        """
        for flag, asked, own in (
            ("--device ", config.device or "null", ("null",)),
            ("--axis detokenizer=", config.detokenizer, _DETOKENIZERS),
            ("--output-processing ", config.output_processing, tuple(LOOPS)),
            ("--axis setup=", config.setup, _SETUPS),
        ):
            if asked not in own:
                raise ValueError(f"{flag}{asked}: sglang-hostpath has {', '.join(own)}; use that")
        if config.representation:
            raise ValueError(
                f"--representation {config.representation}: SGLang's tokens are a tensor, and it "
                "makes lists of it; leave it out"
            )
        features_asked(config)
        SCHEDULING_POLICIES.check(config.scheduling_policy)
        if config.max_num_seqs < 1:
            raise ValueError(f"batch size {config.max_num_seqs}: must be at least 1")
        if max(config.num_accepted) > 1:
            raise ContradictionError(
                "several tokens per step: sglang-hostpath does not speculate; leave acceptance out"
            )
        is_lean = config.setup == "lean"
        if not is_lean and (config.output_processing != "inline" or config.enable_prefix_caching):
            raise ContradictionError(
                f"--axis setup={config.setup} with --output-processing or --axis prefix-caching: "
                "the release decides those; leave them out, or ask for --axis setup=lean"
            )
        if (room := pool_tokens(config)) < config.max_model_len + MARGIN:
            raise ValueError(
                f"--axis num-gpu-blocks-override={room}: SGLang's pages hold a token each here, "
                f"and a request has up to {config.max_model_len}; give more"
            )
        return replace(config, device="null", device_profile="")

    @staticmethod
    def traits(config: EngineConfig) -> Traits:
        """Without a clock, a thread or a second process; most of its time it imports.

        ZeroMQ's threads, behind which the detokenizer is, are not in a fork.
        """
        return Traits(
            is_exact=True,
            takes_gpu=False,
            can_pause=True,
            outlives_fork=not _has_text(config),
            trace_every=16,
            ways=_ways(_FEW * (config.max_model_len + MARGIN)),
        )

    @staticmethod
    def launch(python: str, release: str) -> Launch:
        """The interpreter asked for or the prepared one, with a release or a tree first."""
        return launch_prepared(SGLANG, python, release or SGLANG.PINNED)

    @staticmethod
    def releases() -> Releases:
        """Those on the package index."""
        return SGLANG

    @staticmethod
    def prepare(release: str) -> None:
        """As `prepare_once`."""
        prepare_once(SGLANG, release)

    def output_text(self, request_index: int) -> str:
        """A finished request's text. Raises ValueError without a detokenizer."""
        if self._config.detokenizer == "none":
            return super().output_text(request_index)
        return self._driver.text(request_index)

    def _forget_all(self, request_index: int) -> Int32Array:
        self._driver.forget_text(request_index)
        return super().output_token_ids(request_index)

    def begin_stages(self, meter: Callable[[], StageMeter]) -> None:
        """Count them from now on."""
        from engines.sglang.stages import STAGES

        self._stages = ProcessStages(meter(), STAGES)

    def end_stages(self) -> list[StageCost]:
        """Of this process; there is no other."""
        return self._stages.end(self.role)

    def read_back(self) -> EngineState:
        """What the scheduler and its parts turned out to be."""
        return scheduler_state(self._config, self._driver)


def _has_text(config: EngineConfig) -> bool:
    """Whether there is a detokenizer, asked for or needed for what was asked for."""
    return (
        config.detokenizer != "none"
        or config.setup == "served"
        or features_asked(config).needs_text
    )


def _ways(small_pool: int) -> tuple[dict[str, str | int], ...]:
    """Whose requests must not end early has room for all of them set aside, and the rest waits;
    of others some are retracted.
    """
    is_small: dict[str, str | int] = {"num_gpu_blocks_override": small_pool}
    return (
        {"prefix_caching": "on"},
        {"output_processing": "overlapped"},
        {"max_num_batched_tokens": 64},
        is_small,
        is_small | {"features": "stop-token"},
        {"detokenizer": DETOKENIZER},
        {"features": "stop"},
        {"features": "grammar"},
        {"setup": "served"},
    )
