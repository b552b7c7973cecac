"""How near did an H200's steps come to the least that their parts take one after the other?

    python -m benchmarks.serial_shares

From results/published/gpu/gpu-aims.json alone, whose trials ran when a device said all that it had
moved and computed, and no parts. Those of a whole workload follow from its lengths: what is not
matrix products and logits is attention. The rates are those of the same trials, then the best of
five bursts before the window, not what the GPU sustained in it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from engines.builtin.model.config import load_model
from engines.builtin.model.work import Work
from harness.trial.compute_metrics import SerialLimits, serial_limits
from workloads.catalog import load_workload

AIMS = Path(__file__).parents[1] / "results" / "published" / "gpu" / "gpu-aims.json"
ITEMSIZE = 2
"""Bytes of a weight, a key or a logit: both models ran in 16 bits."""


class Trial(NamedTuple):
    """``work``: as `StepEngine.device_stats` names it; ``seconds``: of the device."""

    workload: str
    prompts_at_once: bool
    work: dict[str, float]
    seconds: float

    @property
    def shares(self) -> SerialLimits:
        """Of the device's time."""
        limits = serial_limits(self.work)
        assert limits is not None
        return SerialLimits(*(part / self.seconds for part in limits))


def trial(stored: Mapping[str, Any]) -> Trial:
    """One of the file's."""
    metrics = stored["metrics"]
    workload = load_workload(stored["workload"])
    schedule = workload.realise(seed=0)
    seconds = metrics["device_time_per_step"] * metrics["num_steps"]
    work = Work(
        load_model(workload.model).config,
        ITEMSIZE,
        num_ranks=1,
        # The last of overlapped steps launches nothing.
        num_steps=int(metrics["num_steps"]) - 1,
        # The last token of each request is sampled and not computed.
        num_queries=int((schedule.prompt_lens + schedule.output_lens - 1).sum()),
        num_sampled=int(schedule.output_lens.sum()),
    ).done()
    for kind, name, rate in (
        ("bytes", "achieved_bandwidth", "copy_bytes_per_second"),
        ("flops", "achieved_flops", "matmul_flops_per_second"),
    ):
        done = metrics[name] * seconds
        work[f"attention_{kind}"] = done - work[kind]
        work[kind] = done
        work[rate] = metrics[name] / metrics[f"{name}_share"]
    at_once = "--max-num-batched-tokens" in stored["flags"]
    return Trial(stored["workload"], at_once, work, seconds)


def main() -> None:
    """Print a row a trial, in per cent of the device's time."""
    print(f"{'':36}{'products':>10}{'attention':>11}{'rest':>6}{'in all':>8}")
    for stored in json.loads(AIMS.read_bytes())["workloads"]:
        one = trial(stored)
        what = one.workload + (", prompts at once" if one.prompts_at_once else "")
        linear, attention, rest = (100 * share for share in one.shares)
        whole = linear + attention + rest
        print(f"{what:36}{linear:10.1f}{attention:11.1f}{rest:6.1f}{whole:8.1f}")


if __name__ == "__main__":
    main()
