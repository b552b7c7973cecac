"""The program of a soak: processes that come and go in every way, drawn by a seed.

python churn.py all SEED SECONDS PAUSE makes one after another, `PAUSE` seconds apart;
python churn.py JOB SEED is one of them.
"""

import sys

from truth import STARTED, TO_BE_KILLED, tell_the_truth

if __name__ == "__main__":  # before the other imports, which collect
    tell_the_truth(TO_BE_KILLED if sys.argv[1] == "is_killed" else STARTED)

import ctypes
import gc
import multiprocessing.process
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

IN_NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc")
NS_LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
PR_SET_NAME = 15
ENOUGH_TO_BE_RENAMED = 16
"""Collections: the probe looks at a process's name at each eighth."""


def collect(draw: random.Random, at_most: int = 12) -> None:
    """A few collections that are asked for, and some that come by themselves."""
    for _ in range(draw.randint(1, at_most)):
        gc.collect(draw.randrange(3))
    kept = [[[]] for _ in range(draw.randrange(4_000))]
    kept.clear()


def forks(draw: random.Random) -> None:
    """Children of this very process, most of which collect, one after another or beside."""
    children = []
    for _ in range(draw.randint(1, 4)):
        seed, is_idle = draw.randrange(2**32), draw.random() < 0.2
        pid = os.fork()
        if not pid:
            if not is_idle:
                collect(random.Random(seed))
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)


def execs(draw: random.Random) -> None:
    """An image after another in one process."""
    collect(draw)
    if draw.random() < 0.6:
        os.execv(sys.executable, [sys.executable, __file__, "execs", str(draw.randrange(2**32))])


def crashes(draw: random.Random) -> None:
    """The interpreter ends without a word."""
    collect(draw)
    os.kill(os.getpid(), draw.choice([signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS]))


def is_killed(draw: random.Random) -> None:
    """At any moment, in a collection or between two."""
    print(flush=True)
    while True:
        gc.collect(draw.randrange(3))
        time.sleep(0.002)


def renames(draw: random.Random) -> None:
    """Calls itself otherwise, to the kernel and as `multiprocessing` does."""
    for number in range(draw.randint(1, 3)):
        name = f"worker-{draw.randrange(8)}"
        ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
        process: Any = multiprocessing.process.current_process()
        process.name = f"{name}:{number}"
        for _ in range(ENOUGH_TO_BE_RENAMED):
            gc.collect(draw.randrange(3))


def recycles(draw: random.Random) -> None:
    """Children of one PID, one after another; in a PID namespace, whose numbers are its own."""
    number = draw.randint(100, 30_000)
    for _ in range(3):
        with suppress(OSError):
            NS_LAST_PID.write_text(str(number))
        pid = os.fork()
        if not pid:
            collect(draw)
            os._exit(0)
        os.waitpid(pid, 0)


def takes_descriptors(draw: random.Random) -> None:
    """All that there are, and forks: the child has none for a ring."""
    collect(draw)
    held = []
    with suppress(OSError):
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    collect(draw)
    pid = os.fork()
    if not pid:
        collect(draw)
        os._exit(0)
    os.waitpid(pid, 0)
    for each in held:
        os.close(each)
    collect(draw)


JOBS: dict[str, tuple[int, Callable[[random.Random], None]]] = {
    "forks": (40, forks),
    "execs": (25, execs),
    "crashes": (8, crashes),
    "is_killed": (8, is_killed),
    "renames": (8, renames),
    "namespaces": (4, forks),
    "recycles": (4, recycles),
    "takes_descriptors": (3, takes_descriptors),
}
"""How often each is drawn, of 100, and what it does."""
_INSIDE = ("namespaces", "recycles")


def may_make_namespaces() -> bool:
    """Whether this user may."""
    with suppress(OSError):
        tried = subprocess.run([*IN_NAMESPACE, "true"], check=False, capture_output=True)
        return tried.returncode == 0
    return False


def run_all(draw: random.Random, seconds: float, pause: float) -> None:
    """One job after another."""
    names = [each for each in JOBS if each not in _INSIDE or may_make_namespaces()]
    shares = [JOBS[each][0] for each in names]
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        (name,) = draw.choices(names, shares)
        seed = draw.randrange(2**32)
        if name == "forks":  # of the one that has run from the beginning
            forks(random.Random(seed))
        else:
            _run_one(name, seed, draw.random() / 20)
        time.sleep(pause)


def _run_one(name: str, seed: int, killed_after: float) -> None:
    before = IN_NAMESPACE if name in _INSIDE else ()
    command = [*before, sys.executable, __file__, name, str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        if name == "is_killed":
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(killed_after)
            process.kill()


if __name__ == "__main__":
    if sys.argv[1] == "all":
        run_all(random.Random(int(sys.argv[2])), *map(float, sys.argv[3:]))
    else:
        JOBS[sys.argv[1]][1](random.Random(int(sys.argv[2])))
