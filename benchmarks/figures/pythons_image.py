"""The picture of the main job on several versions of Python, measured in turns."""

from harness.experiment.result import ExperimentResult
from harness.render.image_file import image_bytes

SHOWN = (
    ("list_of_lists", "per_request"),
    ("flat_arrays", "per_request"),
    ("flat_arrays", "columnar"),
)
COLOURS = {"default": "#d55e00", "freeze": "#56b4e9"}
"""By collector policy, in the order in which they are drawn."""


def pythons_image(result: ExperimentResult) -> bytes:
    """Throughput by shape, a panel a version, a bar a policy, all on one scale: a PNG file.

    Imports matplotlib when called.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout="constrained", facecolor="white")
    pythons = list(dict.fromkeys(str(cell.axes["python"]) for cell in result.cells))
    panels = figure.subplots(1, len(pythons), sharey=True, squeeze=False)[0]
    for axes, python in zip(panels, pythons, strict=True):
        for place, policy in enumerate(COLOURS):
            heights = [_throughput(result, python, *shape, policy) for shape in SHOWN]
            at = [x + 0.27 * (place - 0.5) for x in range(len(SHOWN))]
            axes.bar(at, heights, width=0.25, color=COLOURS[policy], label=f"--gc {policy}")
        names = [f"{shape}\n{delivery}" for shape, delivery in SHOWN]
        axes.set_xticks(range(len(SHOWN)), names, fontsize=7)
        axes.set_title(f"CPython {python}", loc="left", fontsize=11)
        axes.grid(axis="y", color="#e1e4e8")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("requests per second (modelled device)")
    panels[0].legend(loc="upper left", frameon=False, fontsize=8)
    return image_bytes(figure, ".png", "pythons")


def _throughput(
    result: ExperimentResult, python: str, representation: str, delivery: str, gc: str
) -> float:
    asked = {"python": python, "representation": representation, "delivery": delivery, "gc": gc}
    (cell,) = (cell for cell in result.cells if asked.items() <= cell.axes.items())
    return cell.metrics["request_throughput"].value or 0.0
