"""Which settings are best, whether their rules hold, and where they matter."""

from harness.experiment.advice import Advice
from harness.experiment.crossover import CrossoverResult
from harness.explain.cadence import CadenceResult
from harness.verbs.advise_best import advise_best
from harness.verbs.advise_models import advise_models
from harness.verbs.advise_predict import advise_predict
from harness.verbs.advise_request import AdviseRequest
from harness.verbs.caller import Caller


def give_advice(request: AdviseRequest, caller: Caller) -> Advice | CadenceResult | CrossoverResult:
    """Answer the question that is asked. Raises ValueError for what cannot be measured."""
    match request.question:
        case "best":
            return advise_best(request, caller)
        case "predict":
            return advise_predict(request, caller)
        case "models":
            return advise_models(request, caller)
