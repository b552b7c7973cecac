"""Signals at random moments, to a command and to the processes that it starts.

Afterwards nothing of it lives, what it has written is whole, and the same command with --resume
goes on: what was stored before stays the same file, and no trial is lost.
"""

import shlex
import signal
import subprocess
import time
from functools import cached_property
from random import Random

from attempts import Tried
from commands import status_of
from corpus import Corpus
from nights import Nights
from resumption import Whole, resumed
from sent import BY_SIGNAL, SIGNALS, send_after, shown
from surroundings import Surroundings, damaged, half_written
from targets import LIMIT_SECONDS, RUN, TARGETS, Target, start

from engines.cache import cache_root
from engines.vllm.releases import VLLM
from harness.experiment.store import INCOMPLETE_FILE


class Bench:
    """What the attempts share. Lets each target run once, when it is first wanted."""

    def __init__(self, corpus: Corpus, common: Surroundings) -> None:
        self.corpus, self._common = corpus, common
        self._whole: dict[str, Whole] = {}
        self.targets = [each for each in TARGETS if each.name != "releases" or _has_vllm()]

    def whole(self, target: Target) -> Whole:
        if target.name not in self._whole:
            place = Surroundings(self._common.folder / target.name.replace(" ", "-"))
            began = time.monotonic()
            process = start(target, place, self.corpus)
            status = status_of(process, LIMIT_SECONDS)
            assert status == 0, f"{target.name}: {(place.folder / 'err').read_text()}"
            seconds = time.monotonic() - began
            stored = frozenset(path.name for path in place.runs.glob("*/trials/*"))
            self._whole[target.name] = Whole(seconds, stored)
        return self._whole[target.name]

    @cached_property
    def nights(self) -> "Nights":
        return Nights(self._common)


def _has_vllm() -> bool:
    return (cache_root() / "vllm" / VLLM.PINNED).is_dir()


def attempt(random: Random, place: Surroundings, bench: Bench) -> Tried:
    """One signal, at one moment."""
    (target,) = random.choices(bench.targets, [each.weight for each in bench.targets])
    name = random.choice(SIGNALS)
    share = random.random()
    if target.name == "nightly":
        return bench.nights.attempt(random, name, share, place)
    whole = bench.whole(target)
    process = start(target, place, bench.corpus)
    moment = share * whole.seconds
    was_sent = send_after(process, name, moment, place, target.victim)
    what = f"{name} after {moment:.2f} s to {target.victim or 'gcbench'} of: " + shlex.join(
        ["gcbench", *target.words]
    )
    found = _how_it_ended(process, target, name if was_sent else "", place)
    is_killed = not target.victim and name == "KILL" and was_sent
    found += place.left(temporary=not is_killed) + damaged(place.runs)
    if not is_killed:
        found += half_written(place.runs)
    if target.resumes and not found:
        found += resumed(target, place, bench.corpus, whole)
    elif is_killed and not found and any(place.temporary.iterdir()):
        again = start(Target("run", RUN), place, bench.corpus)  # what is left goes with the next
        if status := status_of(again, LIMIT_SECONDS):
            found.append(f"the next run ended with {status}")
        found += place.left()
    return Tried((target.name, shown(name)), what, found)


def _how_it_ended(
    process: "subprocess.Popen[bytes]", target: Target, name: str, place: Surroundings
) -> list[str]:
    status = status_of(process, LIMIT_SECONDS)
    err = (place.folder / "err").read_text(errors="replace")
    # One of its processes that is ended is a trial without a result, or one that is run again.
    may = {0, 3} if target.victim else BY_SIGNAL[name] | {0}
    found = [f"it ended with {status}: {err.strip()[-300:]}"] if status not in may else []
    if status == -getattr(signal, f"SIG{name or 'KILL'}") != -signal.SIGKILL:
        found += [f"{name} ended it at work" for _ in place.runs.glob(f"*/{INCOMPLETE_FILE}")]
    return found + (["a traceback"] if "Traceback" in err else [])
