"""Mode ``outputs``: what each step gives each request, written down, and which functions ran."""

import hashlib
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from engines.protocol import Delivered, HasStreams, Int64Array, StepEngine, StepOutput
from harness.files import writing
from harness.trial.answers import Answers
from harness.trial.client import take
from harness.trial.output_hashes import OUTPUT_COLUMNS, OUTPUT_KINDS, OutputHashes, RanFunction
from harness.trial.ran_functions import functions_that_ran, note_functions
from harness.trial.watch import Extent, Watching
from workloads.files.whole_file import replacing


class Entry(NamedTuple):
    """What a request was given. ``place``: the how many-th of its kind; from 0, as steps."""

    kind: int
    request: int
    place: int
    step: int
    value: int


class OutputWatch(Watching):
    """Looks at each step's outputs before the client does, and changes nothing about them."""

    def __init__(self, engine: StepEngine, extent: Extent) -> None:
        self._engine = engine
        self._entries: list[Entry] = []
        self._num_of: dict[tuple[int, int], int] = {}
        self._owed: list[tuple[int, int, int]] = []
        """Step, request and number of tokens for which there was no object."""
        self._num_steps = 0
        self._lines_of = frozenset(extent.lines_of)
        self.ran: list[RanFunction] = []

    def window_opens(self) -> None:
        """From here on functions are noted, in each process of the engine, if any are asked for."""
        if self._lines_of:
            self._engine.collective_rpc(note_functions, self._lines_of)

    def step(self) -> StepOutput:
        """A step of the engine, its outputs written down."""
        output = self._engine.step()
        each = [self._look(delivered) for delivered in output.delivered]
        self._num_steps += 1
        return output._replace(delivered=each)

    def _look(self, delivered: Delivered) -> Delivered:
        indices = delivered.request_index.tolist()
        outputs = self._outputs(delivered, indices)
        are_objects = len(outputs) > 0 and hasattr(outputs[0], "outputs")
        if are_objects:
            for output in outputs:
                self._take(output)
        else:
            counts = delivered.num_tokens.tolist()
            self._owed += zip([self._num_steps] * len(indices), indices, counts, strict=True)
        reasons = zip(delivered.finished.tolist(), delivered.finish_reasons.tolist(), strict=True)
        for request, reason in reasons:
            self._add("reasons", request, reason)
            if not are_objects:
                self._take_logprobs(request)
        return delivered._replace(outputs=outputs)

    def _outputs(self, delivered: Delivered, indices: list[int]) -> Any:
        """The step's own, or from the requests' streams, from which nobody else then gets them."""
        if len(delivered.outputs) or not indices or not isinstance(self._engine, HasStreams):
            return delivered.outputs
        try:
            return take(delivered, self._engine.request_stream)
        except ValueError:  # requests have none
            return delivered.outputs

    def _take(self, output: Any) -> None:
        """An object for a request, shaped and named as vLLM's `RequestOutput`."""
        completion = output.outputs[0]
        name = getattr(output, "request_index", None)
        request = int(output.request_id) if name is None else int(name)
        tokens = completion.token_ids
        for token in [tokens] if isinstance(tokens, int) else tokens:
            self._add("tokens", request, int(token))
        if text := getattr(completion, "text", ""):
            self._add("text", request, _hash(text.encode(errors="surrogatepass")))
        self._add_logprobs(request, getattr(completion, "logprobs", None) or ())

    def _take_logprobs(self, request: int) -> None:
        """Those that an engine without objects has of a request that ends."""
        asked = getattr(self._engine, "output_logprobs", None)
        if asked is not None:
            try:
                self._add_logprobs(request, asked(request))
            except (ValueError, KeyError):  # none were asked for
                return

    def _add_logprobs(self, request: int, positions: Iterable[Mapping[int, Any]]) -> None:
        for position in positions:
            each = sorted(
                (int(token), float(np.float32(one.logprob)), int(one.rank or 0))
                for token, one in position.items()
            )
            self._add("logprobs", request, _hash(b"".join(struct.pack("=qfq", *e) for e in each)))

    def _add(self, kind: str, request: int, value: int, step: int = -1) -> None:
        number = OUTPUT_KINDS.index(kind)
        place = self._num_of.get((number, request), 0)
        self._num_of[number, request] = place + 1
        step = self._num_steps if step < 0 else step
        self._entries.append(Entry(number, request, place, step, value))

    def window_closes(self, answers: Answers) -> None:
        """Tokens that came without an object are those that the engine has of the request."""
        if self._lines_of:
            self.ran = functions_that_ran(self._engine.collective_rpc)
        tokens = answers.held_tokens
        for step, request, count in self._owed:
            first = self._num_of.get((0, request), 0)
            mine = tokens[request] if request < len(tokens) else None
            if mine is not None:
                for token in mine[first : first + count].tolist():
                    self._add("tokens", request, token, step)

    def results(self, num_rows: Int64Array) -> dict[str, float | None]:
        """None."""
        return {}

    def outputs(self, path: str) -> OutputHashes:
        """Hashes of the log, which is kept at ``path`` unless that is ""."""
        log = np.array(sorted(self._entries), np.int64).reshape(-1, len(OUTPUT_COLUMNS))
        if path:
            whole = Path(path)
            with writing(whole), replacing(whole) as temporary, temporary.open("wb") as file:
                np.savez_compressed(file, log=log)
        of = {kind: log[log[:, 0] == number] for number, kind in enumerate(OUTPUT_KINDS)}
        said = [OUTPUT_COLUMNS.index(name) for name in ("request", "place", "value")]
        hashes = {kind: _sha256(rows[:, said]) if len(rows) else "" for kind, rows in of.items()}
        requests, counts = np.unique(of["tokens"][:, 1], return_counts=True)
        return OutputHashes(counts=_sha256(np.stack([requests, counts])), path=path, **hashes)


def _hash(data: bytes) -> int:
    return int.from_bytes(hashlib.sha256(data).digest()[:7], "big")


def _sha256(rows: Int64Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(rows).tobytes()).hexdigest()
