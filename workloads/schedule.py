"""A workload realised: arrays that say what every engine is asked, in what order and when."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from workloads import prompt_tokens
from workloads.archive import content_sha256, read_archive, write_archive
from workloads.lengths import MAX_TOKENS

SCHEDULE_SCHEMA = "gcbench.schedule/1"
"""Changes when the encoding under the hash does, or the meaning of a field."""

Retain = Literal["step", "finish"]
"""How long the consumer keeps a request's outputs: for the step, or until it has finished."""

_DTYPES: dict[str, np.dtype[Any]] = {
    "prompt_lens": np.dtype(np.int32),
    "output_lens": np.dtype(np.int32),
    "arrival_seconds": np.dtype(np.float64),
    "num_accepted": np.dtype(np.int8),
}


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """What is asked, request by request; two schedules are equal when their ``sha256`` is.

    ``prompt_lens``, ``output_lens``: int32 ``[N]`` tokens, 1 or more. ``arrival_seconds``:
    float64 ``[N]`` from the start, non-decreasing. ``max_concurrency``: requests in flight at
    most, 0 for no cap. ``num_accepted``: int8 ``[T]``, the table of tokens a decode step yields.
    ``token_seed``: decides the prompts' tokens. ``bad_rows``: rows of a trace left out.
    Arrays are copied and read-only; ``name`` and ``bad_rows`` are not hashed. Raises ValueError.
    """

    name: str
    prompt_lens: NDArray[np.int32]
    output_lens: NDArray[np.int32]
    arrival_seconds: NDArray[np.float64]
    max_concurrency: int
    num_accepted: NDArray[np.int8]
    token_seed: int
    stop_token_ids: tuple[int, ...]
    retain: Retain
    bad_rows: int = 0
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        for name, dtype in _DTYPES.items():
            object.__setattr__(self, name, _read_only(name, getattr(self, name), dtype))
        object.__setattr__(self, "stop_token_ids", tuple(self.stop_token_ids))
        self._validate()
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

    def prompt_token_ids(self, i: int, vocab_size: int = 50257) -> NDArray[np.int32]:
        """Tokens of prompt ``i``, int32 ``[prompt_len]``: a function of (``token_seed``, ``i``).

        Raises IndexError where there is no request ``i``.
        """
        if not 0 <= i < self.num_requests:
            raise IndexError(f"there is no request {i} among {self.num_requests:,}")
        return prompt_tokens.prompt_token_ids(
            self.token_seed, i, int(self.prompt_lens[i]), vocab_size
        )

    def head(self, n: int) -> "Schedule":
        """The first ``n`` requests, or all where there are fewer. Raises ValueError below 1."""
        if n < 1:
            raise ValueError(f"the head of a schedule has at least 1 request, not {n}")
        return replace(
            self,
            prompt_lens=self.prompt_lens[:n],
            output_lens=self.output_lens[:n],
            arrival_seconds=self.arrival_seconds[:n],
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
        return {name: getattr(self, name) for name in _DTYPES}

    def _settings(self) -> dict[str, object]:
        return {
            "schema": SCHEDULE_SCHEMA,
            "max_concurrency": self.max_concurrency,
            "token_seed": self.token_seed,
            "stop_token_ids": self.stop_token_ids,
            "retain": self.retain,
        }

    def _validate(self) -> None:
        if self.num_requests == 0 or len(self.num_accepted) == 0:
            raise ValueError("a schedule needs at least one request and one accepted-token count")
        lengths = {name: len(getattr(self, name)) for name in list(_DTYPES)[:3]}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"arrays of one schedule must be of one length, these are {lengths}")
        for name in ("prompt_lens", "output_lens"):
            tokens = getattr(self, name)
            if tokens.min() < 1 or tokens.max() > MAX_TOKENS:
                raise ValueError(f"{name} must be between 1 and {MAX_TOKENS:,} tokens")
        if self.num_accepted.min() < 1:
            raise ValueError("num_accepted must be 1 or more")
        if (
            not np.isfinite(self.arrival_seconds).all()
            or self.arrival_seconds[0] < 0
            or (np.diff(self.arrival_seconds) < 0).any()
        ):
            raise ValueError("arrival_seconds must be finite, 0 or more and non-decreasing")
        if self.max_concurrency < 0:
            raise ValueError(f"max_concurrency {self.max_concurrency} must be 0 or more")
        if not 0 <= self.token_seed < 2**63:
            raise ValueError(f"token_seed {self.token_seed} must be between 0 and 2**63 - 1")
        if any(token < 0 for token in self.stop_token_ids):
            raise ValueError(f"stop_token_ids {self.stop_token_ids} must be 0 or more")
        if self.retain not in get_args(Retain):
            raise ValueError(f"retain {self.retain!r} must be one of {get_args(Retain)}")


def _read_only(name: str, values: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A read-only copy as ``dtype``; refuses values that would not survive the conversion."""
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
