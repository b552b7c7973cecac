"""The picture of the main job on several versions of Python, measured on one machine."""

from collections.abc import Sequence

from harness.experiment.result import ExperimentResult
from harness.render.image_file import image_bytes

SHOWN = (
    ("list_of_lists", "per_request"),
    ("list_of_arrays", "per_request"),
    ("flat_arrays", "per_request"),
    ("flat_arrays", "columnar"),
)
COLOURS = {"default": "#d55e00", "freeze": "#56b4e9"}
"""By collector policy, in the order in which they are drawn."""


def pythons_image(results: Sequence[ExperimentResult]) -> bytes:
    """Throughput by shape, a panel a version, a bar a policy, all on one scale: a PNG file.

    Imports matplotlib when called.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout="constrained", facecolor="white")
    panels = figure.subplots(1, len(results), sharey=True, squeeze=False)[0]
    measured = [str(cell.axes["gc"]) for result in results for cell in result.cells]
    policies = [policy for policy in COLOURS if policy in measured]
    for axes, result in zip(panels, results, strict=True):
        for place, policy in enumerate(policies):
            heights = [_throughput(result, *shape, policy) for shape in SHOWN]
            at = [x + 0.27 * (place - (len(policies) - 1) / 2) for x in range(len(SHOWN))]
            axes.bar(at, heights, width=0.25, color=COLOURS[policy], label=f"--gc {policy}")
        names = [f"{shape}\n{delivery}" for shape, delivery in SHOWN]
        axes.set_xticks(range(len(SHOWN)), names, fontsize=7)
        axes.set_title(f"CPython {result.machine.python}", loc="left", fontsize=11)
        axes.grid(axis="y", color="#e1e4e8")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("requests per second (modelled device)")
    panels[0].legend(loc="upper left", frameon=False, fontsize=8)
    return image_bytes(figure, ".png", "pythons")


def _throughput(result: ExperimentResult, representation: str, delivery: str, gc: str) -> float:
    asked = {"representation": representation, "delivery": delivery, "gc": gc}
    (cell,) = (cell for cell in result.cells if asked.items() <= cell.axes.items())
    return cell.metrics["request_throughput"].value or 0.0
