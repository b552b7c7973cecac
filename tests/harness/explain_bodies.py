"""What `gcbench explain` may have found, one of each question."""

from made_functions import SUM, function

from harness.collector.sites import AllocationSite, CollectionSites
from harness.explain.changes import function_changes
from harness.explain.growth import arrivals
from harness.explain.result import FunctionsBody, GrowthBody, Side, SitesBody
from harness.explain.version_cost import version_cost
from harness.trial.step_costs import StepCosts


def side(label: str, bytecodes: int) -> Side:
    functions = [function(SUM, "Engine.step", bytecodes=bytecodes)]
    costs = StepCosts(num_steps=2, num_rows=4, functions=functions, calls=[])
    return Side(label=label, roots=[], costs=costs, metrics={})


OLD, NEW = side("1.0", 40), side("2.0", 50)
SITE = AllocationSite(
    file="engine/step.py",
    line=7,
    type="list",
    share=1.0,
    share_error=0.0,
    pause_share=1.0,
    promoted=0,
    retained=0,
    path=[],
)
BODIES = {
    "one version": FunctionsBody(by="bytecodes", side=NEW),
    "two versions": FunctionsBody(
        by="bytecodes", side=NEW, against=OLD, changes=function_changes(OLD.costs, NEW.costs)
    ),
    "growth": GrowthBody(
        by="bytecodes",
        versions=[version_cost(OLD), version_cost(NEW)],
        arrivals=arrivals([OLD, NEW]),
    ),
    "sites": SitesBody(
        label="2.0",
        num_steps=2,
        roots=[],
        found=CollectionSites(collections=(3, 0, 0), young=30, sites=[SITE]),
    ),
}
