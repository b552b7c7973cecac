"""Which requests were served as well as somebody wants: service-level objectives, and goodput."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.trial.recorder import RequestStamps
from harness.trial.request_metrics import token_seconds

OBJECTIVES = ("ttft", "tpot", "e2el")


class Goodput(msgspec.Struct, frozen=True, kw_only=True):
    """``objectives``: milliseconds at most, by name. ``good``: completed requests that kept each;
    ``share``: of those attempted; ``per_second``: of the run's time, None where it took none.
    """

    objectives: dict[str, float]
    good: int
    share: float
    per_second: float | None


def parse_objectives(text: str) -> dict[str, float]:
    """Read ``ttft:200,tpot:20``, milliseconds as in vLLM's ``--goodput``. Raises ValueError."""
    found: dict[str, float] = {}
    for each in text.replace(" ", ",").split(","):
        name, _, limit = each.partition(":")
        try:
            found[name] = float(limit)
        except ValueError:
            found[name] = 0
        if name not in OBJECTIVES or not 0 < found[name] < 1e9:
            raise ValueError(
                f"--goodput {text}: give NAME:MILLISECONDS with commas between them, of "
                f"{', '.join(OBJECTIVES)}"
            )
    return found


def kept(requests: RequestStamps, objectives: dict[str, float]) -> NDArray[np.bool_]:
    """Which requests were completed and kept each objective, bool ``[N]``.

    A request of one token has TPOT 0; otherwise one whose TPOT nobody knows keeps none.
    """
    first, last, sent = (
        each / 1e6 for each in (requests.first_ns, requests.last_ns, requests.sent_ns)
    )
    seconds = token_seconds(requests.first_ns, requests.last_ns, requests.num_tokens)
    tpot = np.nan_to_num(seconds * 1e3, nan=np.inf)
    tpot[(requests.num_tokens == 0) | (requests.num_tokens == 1)] = 0
    values = {"ttft": first - sent, "tpot": tpot, "e2el": last - sent}
    good: NDArray[np.bool_] = requests.finish_reason >= 0
    for name, limit in objectives.items():
        good = good & (values[name] <= limit)
    return good


def goodput(
    requests: RequestStamps, objectives: dict[str, float], attempted: int, seconds: float
) -> Goodput | None:
    """It, None where no objective is given. ``seconds``: from the first sending to the last token
    of a completed request.
    """
    if not objectives:
        return None
    good = int(kept(requests, objectives).sum())
    return Goodput(
        objectives=objectives,
        good=good,
        share=good / attempted if attempted else 0.0,
        per_second=good / seconds if seconds else None,
    )
