"""What does the version of Python change in the main job?

One result of `make compare ARGS="--json FILE"` for each version, measured one after the other on
the same machine. Throughputs of two versions stand side by side without a verdict, and counts of
two versions never compare.

    python -m benchmarks.pythons results/published/main-job-py3.*.json --image pythons.png

The last line of output is one JSON document.
"""

import argparse
import json
from pathlib import Path

from harness.experiment.result import CellResult, ExperimentResult
from harness.experiment.store import load_experiment

SHOWN = (
    ("list_of_lists", "per_request"),
    ("list_of_arrays", "per_request"),
    ("flat_arrays", "per_request"),
    ("flat_arrays", "columnar"),
)
POLICIES = ("default", "freeze", "disabled")
COLOURS = ("#d55e00", "#56b4e9", "#0072b2")


def cell_of(result: ExperimentResult, representation: str, delivery: str, gc: str) -> CellResult:
    """The cell with these axes."""
    asked = {"representation": representation, "delivery": delivery, "gc": gc}
    (found,) = (cell for cell in result.cells if asked.items() <= cell.axes.items())
    return found


def row(python: str, cell: CellResult, ratio: float | None) -> str:
    """A row of the table in docs/pythons.md."""
    medians = {name: metric.median or 0.0 for name, metric in cell.metrics.items()}
    counts = "/".join(f"{medians[f'gc_collections_gen{g}']:,.0f}" for g in range(3))
    gain = "–" if ratio is None else f"×{ratio:.2f}"
    host = 1e6 * medians["host_time_per_request_step"]
    return (
        f"| {python} | `{cell.axes['representation']}` · {cell.axes['delivery']} · "
        f"{cell.axes['gc']} | {medians['request_throughput']:,.0f} | {gain} | {host:.2f} | "
        f"{counts} | {100 * medians['gc_pause_share']:.1f} % |"
    )


def draw(results: dict[str, ExperimentResult], path: Path) -> None:
    """Throughput by shape, a panel a version, a bar a policy; all panels on one scale."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout="constrained", facecolor="white")
    panels = figure.subplots(1, len(results), sharey=True, squeeze=False)[0]
    for axes, (python, result) in zip(panels, results.items(), strict=True):
        for place, policy in enumerate(POLICIES):
            heights = [
                cell_of(result, *shape, policy).metrics["request_throughput"].median
                for shape in SHOWN
            ]
            at = [x + 0.27 * (place - 1) for x in range(len(SHOWN))]
            axes.bar(at, heights, width=0.25, color=COLOURS[place], label=f"--gc {policy}")
        names = [f"{shape}\n{delivery}" for shape, delivery in SHOWN]
        axes.set_xticks(range(len(SHOWN)), names, fontsize=7)
        axes.set_title(f"CPython {python}", loc="left", fontsize=11)
        axes.grid(axis="y", color="#e1e4e8")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("requests per second (modelled device)")
    panels[0].legend(loc="upper left", frameon=False, fontsize=8)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Print the table, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--image", type=Path)
    arguments = parser.parse_args()
    results = {r.machine.python: r for r in map(load_experiment, arguments.results)}
    print(
        "| Python | cell | req/s | against lists, default | host µs per request and step "
        "| collections g0/g1/g2 | pauses |"
    )
    print("|---|---|---|---|---|---|---|")
    for python, result in results.items():
        ratios = {each.candidate: each.ratio for each in result.comparisons}
        for shape in SHOWN:
            for policy in POLICIES[:2]:
                cell = cell_of(result, *shape, policy)
                print(row(python, cell, ratios.get(cell.id)))
    if arguments.image:
        draw(results, arguments.image)
    medians = {
        python: {cell.id: cell.metrics["request_throughput"].median for cell in result.cells}
        for python, result in results.items()
    }
    print(json.dumps({"metric": "request_throughput", "median": medians}))


if __name__ == "__main__":
    main()
