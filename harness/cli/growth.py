"""The road of ``gcbench releases --explain``: a trial a release, then what came in where."""

from collections.abc import Sequence
from pathlib import Path

from engines.vllm.releases import layer
from harness.axes import Cell, values, worth_mentioning
from harness.cli.exit_codes import ExitCode
from harness.cli.say import say
from harness.cli.session import Session, command_line
from harness.experiment.outcomes import Trials
from harness.experiment.plan import counting_plan
from harness.experiment.run import INTERRUPTED
from harness.experiment.store import write_json
from harness.explain.growth import Growth, arrivals, version_cost
from harness.explain.result import Side
from harness.explain.sides import BY_FUNCTION, read_side
from harness.files import write_output
from harness.machine.describe import describe
from harness.machine.interrupts import held_interrupts
from harness.report.growth import growth_answer, growth_candidates, growth_header, growth_tables
from harness.report.growth_image import growth_image
from harness.report.image_file import image_suffix
from harness.report.markdown import table_markdown
from harness.report.release_label import release_label
from harness.report.release_lines import release_name
from harness.report.terminal import make_console, print_lines, print_pairs, print_table

_ROWS = 20


def one_cell_a_release(cells: Sequence[Cell]) -> None:
    """Raises ValueError where a release would have several figures."""
    if len({cell.release for cell in cells}) < len(cells):
        raise ValueError("--explain: takes one value an axis; several for the releases alone")


def explain_growth(
    session: Session,
    cells: list[Cell],
    failures: Sequence[str],
    markdown_path: str | None,
    image_path: str | None,
) -> ExitCode:
    """Count each cell's release by function and say what came in where."""
    runner = session.runner
    name = runner.new_name("growth")
    ran = session.run(
        counting_plan(name, cells, [BY_FUNCTION], runner.schedule_hashes, runner.seed)
    )
    trials = Trials(ran.plan, ran.outcomes)
    found = [
        read_side(trials, cell, label, str(layer(cell.release)))
        for cell, label in zip(cells, _labels(cells), strict=True)
    ]
    sides = [side for side in found if isinstance(side, Side)]
    notes = [INTERRUPTED] if ran.is_interrupted else []
    notes += [f"Left out: {why}." for why in (*failures, *(s for s in found if isinstance(s, str)))]
    with held_interrupts():
        result = Growth(
            name=name,
            command=command_line(),
            machine=describe(),
            workload=runner.workloads[0],
            axes={
                axis: value
                for axis, value in worth_mentioning(values(cells[0])).items()
                if axis not in ("workload", "release", "gc")
            },
            versions=[version_cost(side) for side in sides],
            arrivals=arrivals(sides),
            notes=[*notes, *session.notes],
        )
        write_json(runner.output / name / "growth.json", result)
        try:
            _write(result, markdown_path, image_path if not ran.is_interrupted else None)
            session.write_json(result)
        finally:
            if session.shows_tables:
                show(result)
    if ran.is_interrupted:
        say("interrupted; what is said is of the trials that had ended")
        return ExitCode.INTERRUPTED
    return ExitCode.MEASURED if sides else ExitCode.NOT_MEASURED


def show(result: Growth) -> None:
    """Print it: the answer first."""
    console = make_console()
    if result.versions:
        print_lines("", growth_answer(result), console, style="bold")
        for table in growth_tables(result, _ROWS):
            print_table(table, console)
        print_lines("On record as new there", growth_candidates(result), console)
    print_lines("Notes", result.notes, console)
    console.print()
    print_pairs(growth_header(result), console)


def _labels(cells: Sequence[Cell]) -> list[str]:
    """What each release is called; a path whose version is there already, by its last part."""
    labels: list[str] = []
    for cell in cells:
        label = release_label(cell.release)
        labels.append(release_name(cell.release) if label in labels else label)
    return labels


def _write(result: Growth, markdown_path: str | None, image_path: str | None) -> None:
    if not result.versions:
        return
    if markdown_path:
        parts = [" ".join(growth_answer(result))]
        parts += map(table_markdown, growth_tables(result, _ROWS))
        parts.append("\n".join(f"- {line}" for line in growth_candidates(result)))
        write_output(
            markdown_path, "\n\n".join(filter(None, parts)).encode() + b"\n", "--markdown FILE"
        )
    if image_path:
        image = growth_image(result, image_suffix(Path(image_path)))
        write_output(image_path, image, "--image FILE")
