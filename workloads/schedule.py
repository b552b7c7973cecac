"""A workload realised: arrays that say what every engine is asked, in what order and when."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from workloads.files.archive import content_sha256, read_archive, write_archive
from workloads.prompt_tokens import stream_token_ids
from workloads.requests import NO_SEGMENTS, Int32Array, Int64Array, Segments
from workloads.schedule_checks import (
    check_arrays,
    check_limits,
    check_segments,
    check_stopping,
    default_if_plain,
    read_only,
)

SCHEDULE_SCHEMA = "gcbench.schedule/1"
"""Changes when the encoding under the hash does, or the meaning of a field."""

Retain = Literal["step", "finish"]
"""How long the consumer keeps a request's outputs: for the step, or until it has finished."""

_DTYPES: dict[str, np.dtype[Any]] = {
    "prompt_lens": np.dtype(np.int32),
    "output_lens": np.dtype(np.int32),
    "arrival_seconds": np.dtype(np.float64),
    "num_accepted": np.dtype(np.int8),
    "priorities": np.dtype(np.int32),
    "previous_turn": np.dtype(np.int32),
    "segment_counts": np.dtype(np.int32),
    "segment_streams": np.dtype(np.int64),
    "segment_lens": np.dtype(np.int32),
}

_SETTINGS: dict[str, object] = {"min_tokens": 0, "ignore_eos": True, "stop": ()}
"""Came later, as did the arrays that may be empty: hashed where they are not as by default."""


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """What is asked, request by request; two schedules are equal when their ``sha256`` is.

    ``prompt_lens``, ``output_lens``: int32 ``[N]`` tokens, 1 or more. ``arrival_seconds``:
    float64 ``[N]`` from the start, non-decreasing. ``max_concurrency``: requests in flight at
    most, 0 for no cap. ``num_accepted``: int8 ``[T]``, the table of tokens a decode step yields.
    ``token_seed``: decides the prompts' tokens. ``bad_rows``: rows of a trace left out.

    ``priorities``: int32 ``[N]``, smaller goes first; empty where all are 0. ``previous_turn``:
    int32 ``[N]``, the earlier request whose end each waits for, -1 for none; empty where none
    waits. ``segment_*``: what the prompts are made of (`Segments`), empty where each has a stream
    of its own. ``min_tokens``, ``ignore_eos``, ``stop``: as in vLLM's SamplingParams.

    Arrays are copied and read-only; ``name`` and ``bad_rows`` are not hashed. Raises ValueError.
    """

    name: str
    prompt_lens: Int32Array
    output_lens: Int32Array
    arrival_seconds: NDArray[np.float64]
    max_concurrency: int
    num_accepted: NDArray[np.int8]
    token_seed: int
    stop_token_ids: tuple[int, ...]
    retain: Retain
    bad_rows: int = 0
    priorities: Int32Array = field(default_factory=lambda: NO_SEGMENTS.counts)
    previous_turn: Int32Array = field(default_factory=lambda: NO_SEGMENTS.counts)
    segment_counts: Int32Array = field(default_factory=lambda: NO_SEGMENTS.counts)
    segment_streams: Int64Array = field(default_factory=lambda: NO_SEGMENTS.streams)
    segment_lens: Int32Array = field(default_factory=lambda: NO_SEGMENTS.lens)
    min_tokens: int = 0
    ignore_eos: bool = True
    stop: tuple[str, ...] = ()
    sha256: str = field(init=False)
    _segment_starts: Int64Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        arrays = default_if_plain(
            {name: read_only(name, getattr(self, name), _DTYPES[name]) for name in _DTYPES}
        )
        for name, array in arrays.items():
            object.__setattr__(self, name, array)
        for name in ("stop_token_ids", "stop"):
            if isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be several values, not one text")
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.retain not in get_args(Retain):
            raise ValueError(f"retain {self.retain!r} must be one of {get_args(Retain)}")
        check_arrays(arrays)
        check_segments(self.segments, self.prompt_lens)
        check_limits(self.max_concurrency, self.token_seed)
        check_stopping(self.stop_token_ids, self.stop, self.min_tokens)
        object.__setattr__(self, "_segment_starts", self.segments.starts())
        object.__setattr__(self, "sha256", content_sha256(self._arrays(), self._settings()))

    @property
    def num_requests(self) -> int:
        """How many requests there are."""
        return len(self.prompt_lens)

    @property
    def max_model_len(self) -> int:
        """Tokens of the longest request, prompt and output together."""
        return int((self.prompt_lens + self.output_lens).max())

    @property
    def total_output_tokens(self) -> int:
        """Output tokens of all requests where none stops early."""
        return int(self.output_lens.sum(dtype=np.int64))

    @property
    def segments(self) -> Segments:
        """What the prompts are made of."""
        return Segments(self.segment_counts, self.segment_streams, self.segment_lens)

    def prompt_segments(self, i: int) -> list[tuple[int, int]]:
        """Prompt ``i`` as (stream, tokens from its start), one after the other.

        Raises IndexError where there is no request ``i``.
        """
        if not 0 <= i < self.num_requests:
            raise IndexError(f"there is no request {i} among {self.num_requests:,}")
        if not len(self.segment_counts):
            return [(i, int(self.prompt_lens[i]))]
        start = self._segment_starts[i]
        own = slice(start, start + self.segment_counts[i])
        return list(
            zip(self.segment_streams[own].tolist(), self.segment_lens[own].tolist(), strict=True)
        )

    def prompt_token_ids(self, i: int, vocab_size: int = 50257) -> Int32Array:
        """Tokens of prompt ``i``, int32 ``[prompt_len]``: a function of its segments and the seed.

        Raises IndexError where there is no request ``i``.
        """
        return np.concatenate(
            [
                stream_token_ids(self.token_seed, stream, tokens, vocab_size)
                for stream, tokens in self.prompt_segments(i)
            ]
        )

    def head(self, n: int) -> "Schedule":
        """The first ``n`` requests, or all where there are fewer. Raises ValueError below 1."""
        if n < 1:
            raise ValueError(f"the head of a schedule has at least 1 request, not {n}")
        num_segments = int(self.segment_counts[:n].sum(dtype=np.int64))
        return replace(
            self,
            prompt_lens=self.prompt_lens[:n],
            output_lens=self.output_lens[:n],
            arrival_seconds=self.arrival_seconds[:n],
            priorities=self.priorities[:n],
            previous_turn=self.previous_turn[:n],
            segment_counts=self.segment_counts[:n],
            segment_streams=self.segment_streams[:num_segments],
            segment_lens=self.segment_lens[:num_segments],
        )

    def save(self, path: Path | str) -> None:
        """Write an ``.npz`` file, whole or not at all. Raises OSError."""
        unhashed = {"name": self.name, "bad_rows": self.bad_rows, "sha256": self.sha256}
        write_archive(Path(path), self._arrays(), self._settings() | unhashed)

    @classmethod
    def load(cls, path: Path | str) -> "Schedule":
        """Read what `save` wrote. Raises ValueError where it is missing, damaged or foreign."""
        arrays, header = read_archive(Path(path))
        schema, sha256 = header.pop("schema", None), header.pop("sha256", None)
        if schema != SCHEDULE_SCHEMA:
            raise ValueError(
                f"{path}: expected a schedule of format {SCHEDULE_SCHEMA}, found {schema!r}; "
                "make it anew with this version"
            )
        try:
            fields: dict[str, Any] = arrays | header
            schedule = cls(**fields)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: not a usable schedule, {error}; make it anew") from None
        if schedule.sha256 != sha256:
            raise ValueError(f"{path}: the content does not match its hash; make it anew")
        return schedule

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = {name: getattr(self, name) for name in _DTYPES}
        return {name: array for name, array in arrays.items() if len(array)}

    def _settings(self) -> dict[str, object]:
        later = {name: getattr(self, name) for name in _SETTINGS}
        return {
            "schema": SCHEDULE_SCHEMA,
            "max_concurrency": self.max_concurrency,
            "token_seed": self.token_seed,
            "stop_token_ids": self.stop_token_ids,
            "retain": self.retain,
        } | {name: value for name, value in later.items() if value != _SETTINGS[name]}
