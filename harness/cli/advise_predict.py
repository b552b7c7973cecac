"""``gcbench advise --predict``: whether the collector runs when its rules say that it should."""

from typing import Any

from harness.axes import values, worth_mentioning
from harness.cli.exit_codes import ExitCode
from harness.cli.say import say
from harness.cli.session import Session
from harness.cli.tell import tell
from harness.experiment.grid import varying
from harness.experiment.outcomes import Trials
from harness.experiment.plan import counting_plan
from harness.experiment.result import cell_id
from harness.experiment.store import write_json
from harness.explain.cadence import MODES, Cadence, CadenceResult, read_cadence
from harness.result.result import RESULT_FILE


def advise_predict(flags: dict[str, Any]) -> ExitCode:
    """Count what each policy's collector does, and what CPython's rules say that it would do."""
    session = Session(flags | {"anyway": True})
    cells, runner = session.grid.cells, session.runner
    name = runner.new_name("cadence")
    ran = session.run(counting_plan(name, cells, MODES, runner.schedule_hashes, runner.seed))
    trials, differing = Trials(ran.plan, ran.outcomes), varying(cells) or ["gc"]
    found = [read_cadence(trials, cell, cell_id(cell, differing)) for cell in cells]
    cadences = [each for each in found if isinstance(each, Cadence)]
    about = session.about(name)
    about["left_out"] = [*(each for each in found if isinstance(each, str)), *about["left_out"]]
    result = CadenceResult(
        **about,
        axes={
            axis: value
            for axis, value in worth_mentioning(values(cells[0])).items()
            if axis not in differing
        },
        cadences=cadences,
        notes=session.notes,
        is_complete=not ran.is_interrupted,
    )
    write_json(runner.output / name / RESULT_FILE, result)
    tell(result, **session.told)
    if ran.is_interrupted:
        say("interrupted before everything was counted")
        return ExitCode.INTERRUPTED
    return ExitCode.MEASURED if cadences else ExitCode.NOT_MEASURED
