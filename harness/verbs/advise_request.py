"""What advice is asked for: the best settings, whether their rules hold, where they matter."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from harness.axes import AXES, Value
from harness.experiment.crossover_run import FIXED
from harness.statistics.paired_ratio import FEWEST_PAIRS
from harness.verbs.request import Flag, TimedRequest, fields, spelled

AdviceQuestion = Literal["best", "predict", "models"]

POLICIES: list[Value] = [
    "as_is",
    "freeze",
    "threshold:10000/10/10",
    "freeze+threshold:10000/20/20",
    "freeze+threshold:50000/20/20",
    "disabled",
]
"""What is tried: the baseline first, then what engines in the field do, then a bound."""

MODELS = (
    "opt-125m-h200-measured",
    "llama-3-8b-h200-measured",
    "llama-3-70b-fp8-4xh100",
    "qwen3-235b-fp8-4xh100",
    "deepseek-v3-8xh200",
)
"""Modelled devices that are asked about where none is named."""

_DEFAULTS: Mapping[AdviceQuestion, Mapping[str, list[Value]]] = {
    "best": {"gc": POLICIES, "heap_objects": [700_000]},
    "predict": {
        "workload": ["opt125m-48-300"],
        "device": ["null"],
        "gc": ["default", "threshold:10000/10/10", "freeze"],
    },
    "models": {
        "workload": ["churn"],
        "representation": ["list_of_lists", "flat_arrays"],
        "delivery": ["per_request", "columnar"],
        "batch_size": [1, 8, 32, 256, 1024],
        "heap_objects": [0, 700_000],
    },
}
_OF_TIMES = {"rounds", "tolerance"}
_OWN: Mapping[AdviceQuestion, set[str]] = {
    "best": _OF_TIMES | {"first_rounds"},
    "predict": set(),
    "models": _OF_TIMES | {"step_ms", "check"},
}
"""The fields that say something for a question and not for all of them."""


class AdviseRequest(TimedRequest, frozen=True, kw_only=True):
    """One of three questions, with defaults of its own for the axes.

    ``models``: modelled devices with commas between them, "" where the question is another.
    ``tolerance``: in per cent.
    """

    defaults: ClassVar[Mapping[str, list[Value]]] = _DEFAULTS["best"]

    predict: Annotated[
        bool,
        Flag(
            "Instead, predict how often the collector runs under each policy and hold that "
            "against what it does; counts only.",
            section="Options",
            is_main=True,
        ),
    ] = False
    models: str = ""
    step_ms: Annotated[
        list[str],
        Flag(
            "With --models: one more, whose step takes so long; may be repeated.",
            section="Options",
            is_main=True,
            metavar="MS",
        ),
    ] = []
    check: Annotated[
        int | None,
        Flag(
            "With --models: predictions to try on a modelled device, at a batch between two "
            "others.  [default: 1]",
            least=0,
            most=100,
        ),
    ] = None
    rounds: Annotated[
        int | None,
        Flag(
            "Of the measurement that decides.  [default: 7; with --models 5, at each point]",
            is_main=True,
            least=FEWEST_PAIRS,
            most=10_000,
        ),
    ] = None
    first_rounds: Annotated[
        int, Flag("Of the one that looks for the best candidate.", least=FEWEST_PAIRS, most=10_000)
    ] = 3
    tolerance: Annotated[
        float,
        Flag(
            "An interval within it reads `same`; with --models a change of as much matters.",
            metavar="PCT",
            least=0,
            most=99,
        ),
    ] = 2.0

    @property
    def question(self) -> AdviceQuestion:
        """Which one."""
        return "predict" if self.predict else "models" if self.models else "best"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.predict and self.models:
            raise ValueError("--predict and --models ask two questions; ask one at a time")
        if self.models:
            if not self.tolerance:
                raise ValueError(
                    "--tolerance 0: with --models it says what matters; give more than 0"
                )
            if axis := next((name for name in self.axes if name in FIXED), ""):
                flag = AXES[axis].flag
                raise ValueError(f"{flag}: takes no value with --models; leave one of them out")
        others = set[str]().union(*_OWN.values()) - _OWN[self.question]
        for field in fields(type(self)):
            if field.name in others and getattr(self, field.name) != field.default:
                flag = spelled(field.name)
                if self.question == "best" and field.name in _OWN["models"]:
                    raise ValueError(f"{flag}: is of --models; give that, too")
                raise ValueError(
                    f"{flag}: says nothing with --{self.question}; leave one of them out"
                )

    def values(self, axis: str) -> list[Value]:
        """The values of an axis."""
        if self.models and axis in FIXED:
            fixed: Value = FIXED[axis]
            return [fixed]
        own = _DEFAULTS[self.question].get(axis, [AXES[axis].default])
        return list(self.axes.get(axis) or own)
