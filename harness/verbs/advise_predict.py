"""Whether the collector runs when its rules say that it should."""

from msgspec.structs import replace

from harness.axes import values, worth_mentioning
from harness.experiment.grid import varying
from harness.experiment.outcomes import Trials
from harness.experiment.plan import counting_plan
from harness.experiment.result import cell_id
from harness.explain.cadence import CADENCE_MODES, Cadence, CadenceResult, read_cadence
from harness.not_measured import NotMeasured
from harness.result.result import keep_result
from harness.verbs.advise_request import AdviseRequest
from harness.verbs.caller import Caller
from harness.verbs.quiet import NOT
from harness.verbs.session import Session


def advise_predict(request: AdviseRequest, caller: Caller) -> CadenceResult:
    """Count what each policy's collector does, and what CPython's rules say that it would do."""
    session = Session(replace(request, wait=NOT), caller)
    cells, runner = session.grid.cells, session.runner
    name = runner.new_name("cadence")
    ran = session.run(
        counting_plan(name, cells, CADENCE_MODES, runner.schedule_hashes, runner.seed)
    )
    trials, differing = Trials(ran.plan, ran.outcomes), varying(cells) or ["gc"]
    found = [read_cadence(trials, cell, cell_id(cell, differing)) for cell in cells]
    cadences = [each for each in found if isinstance(each, Cadence)]
    about = session.about(name)
    missing = [each.reason for each in found if isinstance(each, NotMeasured)]
    about["left_out"] = [*missing, *about["left_out"]]
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
    keep_result(request.output, result)
    return result
