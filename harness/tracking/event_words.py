"""What befell a machine, in a sentence."""

from harness import format as fmt
from harness.tracking.detect.page import MachineEvent


def event_sentence(event: MachineEvent) -> str:
    """What all series did at once, since when, and what would tell it from a commit's doing."""
    many = f"{event.benchmarks} benchmarks in {event.unit or 'one unit'} on {event.machine}"
    size = fmt.percent(event.ratio - 1, signed=True)
    first = event.commits[0][:10]
    if event.kind == "noise":
        lay = f"Machine event: {many} lay {event.ratio:.1f} times as far apart as usual"
        if len(event.commits) == 1:
            return f"{lay} on the night of {first}, which counts less."
        return f"{lay} on {len(event.commits)} nights from {first} on, which count less."
    if event.kind == "night":
        return f"Machine event: {many} were {size} together at {first} alone; it is taken out."
    since = first if len(event.commits) == 1 else f"one of {first} to {event.commits[-1][:10]}"
    told = f"Machine event: {many} are {size} together from {since} on, and no commit is blamed"
    if event.next_pair is None:
        return f"{told}: side by side the commits do not differ."
    before, after = event.next_pair
    return f"{told} until {before[:10]} and {after[:10]}, measured again side by side, differ too."
