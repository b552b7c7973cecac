"""What befell a machine, in a sentence."""

from harness import format as fmt
from harness.tracking.detect.page import MachineEvent


def event_sentence(event: MachineEvent) -> str:
    """What all series did at once, since when, and what would tell it from a commit's doing."""
    what = f"Machine event on {event.machine}: {event.benchmarks} benchmarks"
    what += f" (unit: {event.unit})" if event.unit else ""
    size = fmt.percent(event.ratio - 1, signed=True)
    first, last = event.commits[0][:8], event.commits[-1][:8]
    if event.kind == "noise":
        at = f"at {first}" if first == last else f"on {len(event.commits)} nights from {first} on"
        told = f"{what} scattered {event.ratio:.1f} times as widely as usual {at}"
        return f"{told}. What is measured on such a night has less weight in every verdict."
    if event.kind == "night":
        return f"{what} were {size} together at {first} alone. It is taken out of every series."
    since = first if first == last else f"one of {first} to {last}"
    told = f"{what} are {size} together from {since} on, and no commit is blamed"
    if event.next_pair is None:
        return f"{told}: side by side the commits do not differ."
    before, after = event.next_pair
    return f"{told} until {before[:8]} and {after[:8]}, measured again side by side, differ too."
