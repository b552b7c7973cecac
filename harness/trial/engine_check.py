"""The inside of ``gcbench doctor --engine``: serves a few requests and says what an engine does."""

import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import psutil

from engines.adapted import AdaptedClass, BreachError
from engines.adapter import Adapter
from engines.protocol import EngineClass, EngineConfig, SamplingParams, StepEngine, StepOutput
from engines.registry import ENGINES
from harness.axes import AXES
from harness.machine.doctor.finding import DoctorFinding
from harness.trial.request_costs import Cost, Meter

_LENS = (1, 2, 5, 9, 3, 7)
"""Output tokens of the requests of a crowd; the batch has room for four."""
_ABORTS = ((0, (3, 5)), (1, (2, 4)), (2, (2, 3)), (4, (3, 5)))
"""After which step some of a crowd are aborted: waiting, at their first tokens, amid them."""
_NUM_SERVED = 2 * (2 + len(_ABORTS)) * len(_LENS)
"""By two engines."""
_MOST_STEPS = 1000
_CONFIG = EngineConfig(max_num_seqs=4, max_model_len=32, device="", representation="")

_OPTIONAL = {
    "abort_request": "an aborted request would end at once, and gate would count what that costs; "
    "now it runs on to its end",
    "scheduler_stats": "compare would show preemptions and the hit rate of the prefix cache",
    "handoff_bytes": "compare would show what a step's tokens take in memory",
}
"""Methods of an adapter that need not be written, and what each would add."""


class _BreachError(Exception):
    """What an engine does that its contract does not allow, in a sentence, and what to do."""

    def __init__(self, what: str, todo: str) -> None:
        super().__init__(what)
        self.finding = DoctorFinding("bad", "contract", what, todo)


class _Crowds:
    """Requests that are served one crowd after another, each by numbers of its own."""

    def __init__(self, engine: StepEngine) -> None:
        self._engine = engine
        self._next = 0
        self._aborted: set[int] = set()

    def serve(self, aborted: Sequence[int] = (), after: int = 0) -> None:
        """One crowd, of which some are aborted after that step. Raises _BreachError."""
        engine, first = self._engine, self._next
        self._next += len(_LENS)
        left = {first + place: length for place, length in enumerate(_LENS)}
        for index, length in left.items():
            prompt = np.arange(1, 4, dtype=np.int32)
            engine.add_request(index, prompt, SamplingParams(max_tokens=length))
        gone = {first + place for place in aborted}
        idle = 0
        for number in range(_MOST_STEPS):
            if not engine.has_unfinished_requests():
                break
            made = self._look(engine.step(), left)
            idle = 0 if made else idle + 1
            if number == after:
                self._aborted = gone & left.keys()
                for index in self._aborted:
                    engine.abort_request(index)
                    del left[index]
        else:
            if had := [index for index, missing in left.items() if missing <= 0]:
                raise _BreachError(
                    f"request {had[0]} has all its tokens and has not ended",
                    "name each request in NewTokens.finished in the step that ends it",
                )
            if idle > _MOST_STEPS / 2 and left:
                raise _BreachError(
                    f"in {idle:,} steps step() has made nothing, and {len(left)} requests wait",
                    "run one step of the engine in each call",
                )
            raise _BreachError(
                f"after {_MOST_STEPS:,} steps has_unfinished_requests() is still True"
                + ", and no request waits" * (not left),
                "count only requests that have neither ended nor been aborted",
            )
        if left:
            raise _BreachError(
                f"has_unfinished_requests() is False, and request {min(left)} has not ended",
                "name each request in NewTokens.finished in the step that ends it",
            )

    def _look(self, output: StepOutput, left: dict[int, int]) -> bool:
        """Whether it has brought tokens."""
        for delivered in output.delivered:
            named = delivered.request_index.tolist()
            if (twice := next((each for each in named if named.count(each) > 1), -1)) >= 0:
                raise _BreachError(
                    f"step() names request {twice} more than once",
                    "give all tokens that a step has for a request as one sequence",
                )
            for index, count in zip(named, delivered.num_tokens.tolist(), strict=True):
                if index not in left:
                    raise _BreachError(
                        f"step() brings tokens of request {index}, {self._why_gone(index)}",
                        "name requests by the first argument of add_request",
                    )
                left[index] -= count
            for index in delivered.finished.tolist():
                self._end(index, left)
        return output.num_rows > 0

    def _end(self, index: int, left: dict[int, int]) -> None:
        missing = left.pop(index, None)
        if missing is None:
            raise _BreachError(
                f"step() ends request {index}, {self._why_gone(index)}",
                "name a request in NewTokens.finished once",
            )
        got = len(self._engine.output_token_ids(index))
        if missing:
            raise _BreachError(
                f"request {index} ended after {got} tokens and was to get {got + missing}",
                "generate params.max_tokens tokens where params.ignore_eos is True",
            )

    def _why_gone(self, index: int) -> str:
        return "which was aborted" if index in self._aborted else "which has ended or was not added"


def engine_findings(name: str) -> Iterator[DoctorFinding]:
    """What is wrong with an engine, or what it can do; the first thing that is wrong is the last.

    In the interpreter that its trials run in.
    """
    engine_class: EngineClass = ENGINES.load(name)
    config = engine_class.complete(replace(_CONFIG, device=_device(engine_class)))
    try:
        seen = [_served(engine_class, config) for _ in range(2)]
    except _BreachError as breach:
        yield breach.finding
        return
    except BreachError as breach:
        what, _, todo = str(breach).rpartition("; ")
        yield DoctorFinding("bad", "contract", what, todo)
        return
    except Exception as error:
        yield DoctorFinding("bad", "contract", _raised(error), "see docs/plug-in.md")
        return
    yield DoctorFinding("ok", "contract", f"served {_NUM_SERVED} requests, all as asked")
    yield _exactness(engine_class, config, seen)
    yield _package(engine_class.package)
    if isinstance(engine_class, AdaptedClass):
        yield from _optional(engine_class.adapter)


def _device(engine_class: EngineClass) -> str:
    """Its own, or none that takes time."""
    own = engine_class.own_values.get("device", ("null",))
    return next((each for each in own if each == "null"), own[0])


class _Seen(NamedTuple):
    """What a crowd has cost, and what else ran meanwhile."""

    bytecodes: float
    threads: int
    processes: int


def _served(engine_class: EngineClass, config: EngineConfig) -> _Seen:
    """Crowds on an engine of its own, the second counted. Raises _BreachError."""
    engine = engine_class(config)
    try:
        crowds, meter = _Crowds(engine), Meter()
        crowds.serve()
        meter.call(crowds.serve)
        for after, aborted in _ABORTS:
            crowds.serve(aborted, after)
        threads = threading.active_count() - 1
        return _Seen(
            Cost.of(meter.functions()).bytecodes, threads, len(psutil.Process().children())
        )
    finally:
        engine.shutdown()


def _exactness(engine_class: EngineClass, config: EngineConfig, seen: list[_Seen]) -> DoctorFinding:
    """Whether what it says of its counts is so, as far as two engines can show."""
    claims = engine_class.traits(config).is_exact
    one, other = seen
    apart = ""
    if one.bytecodes != other.bytecodes:
        apart = f"two engines ran {one.bytecodes:,.0f} and {other.bytecodes:,.0f} bytecodes alike"
    elif other.threads or other.processes:
        apart = f"{other.threads} threads and {other.processes} processes run beside its own"
    if claims and apart:
        return DoctorFinding(
            "bad", "counts", f"{apart}, though it says is_exact", "leave is_exact out of its traits"
        )
    if claims:
        return DoctorFinding("ok", "counts", "they repeat to the digit, as it says")
    if apart:
        return DoctorFinding(
            "ok", "counts", f"{apart}: gate compares times only, and bisect has nothing to compare"
        )
    return DoctorFinding(
        "warn",
        "counts",
        "two engines ran the same bytecodes, but it does not say is_exact: gate compares times "
        "only, and bisect has nothing to compare",
        "say traits = Traits(is_exact=True) if it has no clock, no thread and no second process",
    )


def _package(package: str) -> DoctorFinding:
    """Whether there is a folder that commits can be measured by."""
    name = package.rpartition("/")[2]
    spec = find_spec(name)
    if spec is not None and spec.submodule_search_locations:
        return DoctorFinding("ok", "package", f"gate, bisect and --release take {package}/")
    return DoctorFinding(
        "warn",
        "package",
        f"there is no package {name} to import, so gate, bisect and --release have no {package}/ "
        "to take from a commit",
        'say package = "toy", or "src/toy": the engine\'s folder in its repository',
    )


def _optional(adapter: type[Adapter]) -> Iterator[DoctorFinding]:
    """What it has written of what it need not write, and what the rest would add."""
    shapes = ", ".join(adapter.representations)
    detail = shapes or "none: --representation has no meaning for it"
    yield DoctorFinding("ok", "representations", detail)
    if not adapter.traits.can_pause:
        yield DoctorFinding(
            "ok",
            "traits",
            "without can_pause trials run one after another; if nothing goes on between two steps, "
            "can_pause=True has them take turns every few steps, with tighter intervals",
        )
    for name, adds in _OPTIONAL.items():
        is_written = getattr(adapter, name) is not getattr(Adapter, name)
        yield DoctorFinding("ok", name, "written" if is_written else f"not written; with it {adds}")
    if strange := sorted(adapter.axes - AXES.keys()):
        yield DoctorFinding(
            "bad", "axes", f"{', '.join(strange)}: no such axis", "gcbench list axes shows them"
        )


def _raised(error: Exception) -> str:
    """What was raised, and at which line."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}, in {frame.name}"
    return f"{type(error).__name__}: {error} ({where})"


def main() -> int:
    """Answer the findings on the engine that is named, as JSON."""
    answer = sys.stdout.buffer
    sys.stdout = sys.stderr  # what an engine prints must not end up in the answer
    answer.write(msgspec.json.encode(list(engine_findings(sys.argv[1]))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
