"""A function of anybody's as what is compared: how often it is called, its lines, and advice."""

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec.structs import asdict, replace

from engines.call.first_call import call_seconds
from harness.experiment.advice import best, snippet
from harness.experiment.result import ExperimentResult
from harness.explain.result import ExplainResult
from harness.verbs.caller import Caller
from harness.verbs.compare import CompareRequest, compare_cells
from harness.verbs.explain import ExplainRequest, NothingCountedError, count_costs
from harness.verbs.request import GridRequest

_STEP_SECONDS = 0.002
"""Of calls in a step: far more than a turn costs, and far less than a machine stays the same."""
_WINDOW_SECONDS = 0.8
_MOST_CALLS = 1000
"""In a step."""
_STEPS = 8, 400


class CallComparison(NamedTuple):
    """What `compare --call` answers: costs are those of each function, counted in one trial."""

    comparison: ExperimentResult
    costs: list[ExplainResult]
    advice: str


def compare_function(request: CompareRequest, caller: Caller) -> CallComparison:
    """Compare the functions of ``call`` under each policy. Raises as `compare_cells`."""
    asked = with_calls(request, caller)
    comparison, costs = compare_cells(asked, caller), list[ExplainResult]()
    if comparison.is_complete and request.counting:
        of_grid = {name: value for name, value in asdict(asked).items() if name in _SHARED}
        for target in asked.axes["engine"]:
            axes = {name: asked.axes[name] for name in _FIXED} | {"engine": [target]}
            lines = ExplainRequest(**of_grid | {"axes": axes, "rows": 5})
            try:
                costs.append(count_costs(lines, caller))
            except NothingCountedError as error:
                caller.say(f"no lines of {target}: {error}")
                if error.is_interrupted:
                    break
    advice = _advice(comparison)
    if len(asked.axes["engine"]) > 1:
        advice += " What the functions return is not compared: whether they do the same is yours."
    return CallComparison(comparison, costs, advice)


_SHARED = {name for name in GridRequest.__struct_fields__ if name != "axes"}
_FIXED = ("workload", "batch_size")


def with_calls(request: CompareRequest, caller: Caller) -> CompareRequest:
    """The same of engines that call the functions, so often that a window is worth timing.

    The slowest decides. Raises ValueError for what cannot be called, or flags of other engines.
    """
    targets = [each.strip() for each in request.call.split(",")]
    if given := next((name for name in ("engine", "workload") if name in request.axes), ""):
        raise ValueError(f"--{given}: has no meaning with --call, which is both; leave it out")
    python, release = (str(request.values(name)[0]) for name in ("python", "release"))
    with caller.working("calling each function for the first time"):
        seconds = max(call_seconds(target, python, release) for target in targets)
    calls = min(max(round(_STEP_SECONDS / seconds), 1), _MOST_CALLS)
    least, most = _STEPS
    steps = min(max(round(_WINDOW_SECONDS / (calls * seconds)), least), most)
    axes: dict[str, Any] = {
        "representation": [""],
        "delivery": ["per_request"],
        "heap_objects": [0],
        **request.axes,
        "engine": targets,
        "workload": ["calls"],
        "batch_size": [request.num_requests or calls],
    }
    return replace(
        request,
        call="",
        axes=axes,
        num_requests=request.num_requests or calls,
        output_lens=request.output_lens or str(steps),
        decide=request.decide or "host_time_per_request_step",
    )


def spelled_call(call: str | Callable[[], object]) -> str:
    """How a fresh interpreter finds it. Raises ValueError for what only this one has."""
    if isinstance(call, str):
        return call
    module, name = getattr(call, "__module__", None), getattr(call, "__qualname__", "")
    if not module or module == "__main__" or not all(n.isidentifier() for n in name.split(".")):
        raise ValueError(
            f"{call!r}: a fresh interpreter cannot import it; put a function of a name into a "
            "module of its own"
        )
    return f"{module}:{name}"


def _advice(comparison: ExperimentResult) -> str:
    """What `advise` would say of these trials, in a sentence."""
    if len({cell.axes["gc"] for cell in comparison.cells}) < 2 or not comparison.comparisons:
        return "none, for no collector policy was compared with another; give --gc two, and rounds."
    chosen = best(comparison)
    found = next((each for each in comparison.comparisons if each.candidate == chosen), None)
    if found is None or found.verdict != "better":
        return "No collector policy is shown to be better than the baseline: leave it as it is."
    cell = next(each for each in comparison.cells if each.id == chosen)
    lines = "; ".join(snippet(str(cell.axes["gc"]), 1).split("\n")[3:])
    sets = f": {lines}, once the process is warm" if lines else ""
    engine = cell.axes["engine"]
    return (
        f"{chosen} is better{sets}. `gcbench advise --engine {engine} --axis workload=calls` "
        "measures it a second time."
    )
