"""What no engine could replay is refused when a schedule is made."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.recipe.limits import MAX_SECONDS, MAX_TOKENS
from workloads.requests import Int32Array, Segments


def read_only(name: str, values: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A read-only copy as ``dtype``. Raises ValueError where the conversion would change values."""
    array = np.array(values)
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be a one-dimensional array of numbers")
    with np.errstate(invalid="ignore"):
        copy: NDArray[Any] = array.astype(dtype)
    if not np.array_equal(copy, array, equal_nan=True):
        raise ValueError(f"{name} has values that do not fit {dtype}")
    copy += dtype.type(0)  # -0.0 becomes 0.0: equal values must hash alike
    copy.setflags(write=False)
    return copy


def default_if_plain(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Empty those that say no more than empty ones would: equal schedules must hash alike."""
    plain = set()
    if not arrays["priorities"].any():
        plain.add("priorities")
    if (arrays["previous_turn"] == -1).all():
        plain.add("previous_turn")
    streams = arrays["segment_streams"]
    if (
        (arrays["segment_counts"] == 1).all()
        and np.array_equal(streams, np.arange(len(streams)))
        and np.array_equal(arrays["segment_lens"], arrays["prompt_lens"])
    ):
        plain |= {"segment_counts", "segment_streams", "segment_lens"}
    return {name: array[:0] if name in plain else array for name, array in arrays.items()}


def check_arrays(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise ValueError where a schedule's arrays, by name, contradict each other or themselves."""
    if not len(arrays["prompt_lens"]) or not len(arrays["num_accepted"]):
        raise ValueError("a schedule needs at least one request and one accepted-token count")
    needed = {name: len(arrays[name]) for name in ("prompt_lens", "output_lens", "arrival_seconds")}
    optional = {
        name: len(arrays[name]) for name in ("priorities", "previous_turn", "segment_counts")
    }
    lengths = needed | {name: length for name, length in optional.items() if length}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"arrays of one schedule must be of one length, these are {lengths}")
    for name in ("prompt_lens", "output_lens"):
        tokens = arrays[name]
        if tokens.min() < 1 or tokens.max() > MAX_TOKENS:
            raise ValueError(f"{name} must be between 1 and {MAX_TOKENS:,} tokens")
    if arrays["num_accepted"].min() < 1:
        raise ValueError("num_accepted must be 1 or more")
    seconds = arrays["arrival_seconds"]
    if not (np.isfinite(seconds).all() and seconds[0] >= 0 and (np.diff(seconds) >= 0).all()):
        raise ValueError("arrival_seconds must be finite, 0 or more and non-decreasing")
    if seconds[-1] > MAX_SECONDS:
        raise ValueError(f"arrival_seconds must be at most {MAX_SECONDS:g}, which is 317 years")
    previous = arrays["previous_turn"]
    if (previous < -1).any() or (previous >= np.arange(len(previous))).any():
        raise ValueError("previous_turn must be an earlier request's number, or -1")


def check_segments(segments: Segments, prompt_lens: Int32Array) -> None:
    """Raise ValueError where these are not what prompts of such lengths are made of."""
    counts, streams, lens = segments
    if not len(counts) == len(streams) == len(lens) == 0:
        if len(counts) == 0 or counts.min() < 1:
            raise ValueError("segment_counts must be 1 or more for each request")
        if not counts.sum(dtype=np.int64) == len(streams) == len(lens):
            raise ValueError("segment_streams and segment_lens must be of as many as are counted")
        if streams.min() < 0 or lens.min() < 1:
            raise ValueError("segment_streams must be 0 or more and segment_lens 1 or more")
        sums = np.add.reduceat(lens, segments.starts(), dtype=np.int64)
        if not np.array_equal(sums, prompt_lens):
            raise ValueError("segment_lens must sum to prompt_lens, request by request")


def check_limits(max_concurrency: int, token_seed: int) -> None:
    """Raise ValueError where one is out of its range."""
    if max_concurrency < 0:
        raise ValueError(f"max_concurrency {max_concurrency} must be 0 or more")
    if not 0 <= token_seed < 2**63:
        raise ValueError(f"token_seed {token_seed} must be between 0 and 2**63 - 1")


def check_stopping(stop_token_ids: tuple[int, ...], stop: tuple[str, ...], min_tokens: int) -> None:
    """Raise ValueError where these can be no request's."""
    if any(token < 0 for token in stop_token_ids):
        raise ValueError(f"stop_token_ids {stop_token_ids} must be 0 or more")
    if not all(isinstance(text, str) and text for text in stop):
        raise ValueError("stop must be strings of at least one character each, found an empty one")
    if not 0 <= min_tokens <= MAX_TOKENS:
        raise ValueError(f"min_tokens {min_tokens} must be between 0 and {MAX_TOKENS:,}")
