"""Small plots of counts for a terminal, drawn in block characters: complete without colour."""

from collections.abc import Sequence
from math import ceil

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def columns(values: Sequence[float], height: int) -> list[str]:
    """Lines of a column a value, the top one first; the largest fills ``height`` lines.

    What is above zero shows, however small.
    """
    top = max(values, default=0) or 1
    eighths = [ceil(8 * height * value / top) for value in values]
    return [
        "".join(_EIGHTHS[min(max(filled - 8 * line, 0), 8)] for filled in eighths)
        for line in reversed(range(height))
    ]


def strokes(values: Sequence[float]) -> str:
    """A line of a stroke a value, from the lowest of them to the highest: "▁▁▂▁█▇"."""
    low = min(values)
    span = max(values) / 2 - low / 2  # halves: a difference might be beyond the largest float
    shares = ((value / 2 - low / 2) / span if span else 0.0 for value in values)
    return "".join(_EIGHTHS[1 + round(7 * share)] for share in shares)


def panel(
    title: str, values: Sequence[float], top: str, ends: tuple[str, str], *, height: int = 5
) -> list[str]:
    """A plot with its title above, the largest value's label and both ends' of the axis below."""
    width = len(values)
    margin = max(len(top), 2)
    labels = [top, *[""] * (height - 1)]
    left, right = ends
    axis = f"{left}{right:>{max(width - len(left), len(right) + 1)}}"
    return [
        title,
        *(
            f"{label:>{margin}} │{line.rstrip()}"
            for label, line in zip(labels, columns(values, height), strict=True)
        ),
        f"{0:>{margin}} └{'─' * width}",
        f"{'':>{margin}}  {axis}",
    ]


def beside(left: Sequence[str], right: Sequence[str], width: int) -> list[str]:
    """Two plots of equal height side by side, ``width`` columns each."""
    return [f"{a:<{width}}{b}".rstrip() for a, b in zip(left, right, strict=True)]
