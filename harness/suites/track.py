"""asv's ``track_*`` functions, made from the table of metrics: each looks up what was measured."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

from harness.experiment.store import StoreError
from harness.suites.figures import AsvFigure, Figures, figure_at
from harness.suites.grid import Tracked
from harness.suites.version import version

Function = TypeVar("Function", bound=Callable[..., Any])


def look_ups(suite: str, table: Iterable[Tracked]) -> dict[str, Callable[..., AsvFigure]]:
    """The functions by name; ``suite`` is the module with the grid, as the project names it."""
    functions = (_look_up(tracked, version(tracked, suite)) for tracked in table)
    return {function.__name__: function for function in functions}


def attributes(**values: Any) -> Callable[[Function], Function]:
    """Hangs attributes on a function; asv reads some and carries the others along."""

    def hang(function: Function) -> Function:
        for name, value in values.items():
            setattr(function, name, value)
        return function

    return hang


def one_sentence(measure: Callable[[], Figures]) -> Callable[[], Figures]:
    """Where it raises ValueError, end asv's process with that sentence and no traceback."""

    @wraps(measure)
    def setup_cache() -> Figures:
        try:
            return measure()
        except (ValueError, StoreError) as error:
            raise SystemExit(str(error)) from None

    return setup_cache


def _look_up(tracked: Tracked, version: str) -> Callable[..., AsvFigure]:
    metric = tracked.metric

    @attributes(
        params=[list(values) for values in tracked.parameters.values()],
        param_names=list(tracked.parameters),
        unit=metric.unit,
        direction=metric.direction,
        kind=metric.kind,
        noise_floor=metric.noise_floor,
        least_change=metric.least_change,
        pretty_name=metric.name.replace("_", " "),
        pretty_source=f"{metric.definition} ({metric.source})",
        version=version,
        timeout=60.0,
    )
    def look_up(figures: Figures, *point: str) -> AsvFigure:
        return figure_at(figures, metric.name, point)

    look_up.__name__ = f"track_{metric.name}"
    look_up.__doc__ = metric.definition
    return look_up
