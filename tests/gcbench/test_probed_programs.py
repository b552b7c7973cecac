"""The probe in an interpreter of its own: what it records, and that nothing else is changed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gcbench import probe
from harness.probed.ring import COLLECTED, CPU_NS, DURATION_NS, GENERATION, START_NS, Ring
from harness.probed.run import probed_environment

HOOK = """
import gc
import time

counted = [0, 0, 0]


def hook(phase, info):
    if phase == "stop":
        counted[info["generation"]] += 1


gc.callbacks.append(hook)
began = time.monotonic_ns()
"""
"""A `sitecustomize` of the program's own, which counts from ``began`` on."""


@pytest.fixture
def rings(tmp_path) -> Path:
    folder = tmp_path / "rings"
    folder.mkdir()
    return folder


BASE = str(Path(sys.base_prefix, "bin", "python3"))
"""An interpreter in which gcbench is not installed, so that no .pth file starts the probe."""


def run(
    script: str, rings: Path, site: str | None = HOOK, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Run a script under the probe, with a `sitecustomize` of its own, if any."""
    own = rings.parent / "own"
    own.mkdir(exist_ok=True)
    (own / "sitecustomize.py").write_text(site or "")
    if site is None:
        (own / "sitecustomize.py").unlink()
    environment = probed_environment(rings, {**os.environ, "PYTHONPATH": str(own)})
    return subprocess.run(
        [python, "-c", script], env=environment, capture_output=True, text=True, check=False
    )


def said(script: str, rings: Path) -> list[int]:
    done = run(script, rings)
    assert (done.returncode, done.stderr) == (0, "")
    counts: list[int] = json.loads(done.stdout.splitlines()[-1])
    return counts


def read(rings: Path) -> list[Ring]:
    return [Ring(path) for path in sorted(rings.glob("*.ring"))]


def counts(ring: Ring, began: int = 0) -> list[int]:
    records = ring.take(has_ended=True)
    generations = records[records[:, START_NS] >= began, GENERATION]
    return [int((generations == each).sum()) for each in range(3)]


REPORT = """
from sitecustomize import began, counted
import os
os.write(1, str([*counted, began]).encode())
os._exit(0)
"""


def test_it_counts_what_a_hook_of_the_programs_own_counts(rings):
    script = f"""
import gc
kept = [[[]] for _ in range(50_000)]
gc.collect()
gc.collect(1)
gc.disable()
{REPORT}
"""
    *own, began = said(script, rings)
    (ring,) = read(rings)
    assert counts(ring, began) == own
    assert min(own) >= 1
    assert ring.lost().collections.tolist() == [0, 0, 0]
    assert ring.python == sys.version.split()[0]
    assert ring.command[1:3] == ["-c", script]


def test_a_record_has_the_moment_the_length_and_what_was_freed(rings):
    script = """
import gc, os, time
gc.disable()
gc.collect()
for _ in range(100):
    cycle = []
    cycle.append(cycle)
del cycle
before = time.perf_counter_ns()
gc.collect(0)
os.write(1, b'[%d, %d]' % (before, time.perf_counter_ns()))
os._exit(0)
"""
    before, after = said(script, rings)
    (ring,) = read(rings)
    last = ring.take(has_ended=True)[-1]
    assert before <= last[START_NS]
    assert last[START_NS] + last[DURATION_NS] <= after
    assert 0 < last[CPU_NS] <= after - before
    assert (last[GENERATION], last[COLLECTED]) == (0, 100)


def test_what_other_callbacks_do_is_in_no_pause(rings):
    script = """
import gc, os, time
gc.disable()
stamps = []


def other(phase, info):
    stamps.append(time.perf_counter_ns())


gc.callbacks.append(other)  # behind the probe's
gc.callbacks.insert(0, other)  # and before it
gc.collect(0)
del stamps[:]
gc.collect(0)
assert gc.callbacks[1] is other and gc.callbacks[-2] is other
os.write(1, b'[%d, %d]' % (stamps[1], stamps[2]))
os._exit(0)
"""
    last_at_start, first_at_end = said(script, rings)
    (ring,) = read(rings)
    last = ring.take(has_ended=True)[-1]
    assert last_at_start <= last[START_NS]
    assert last[START_NS] + last[DURATION_NS] <= first_at_end


def test_a_full_ring_loses_moments_and_no_count(rings):
    more = 1000
    script = f"""
import gc
gc.disable()
for _ in range({probe.CAPACITY} + {more}):
    gc.collect(0)
gc.collect(1)
{REPORT}
"""
    *own, began = said(script, rings)
    (ring,) = read(rings)
    lost = ring.lost()
    recorded = counts(ring, began)
    assert sum(recorded) <= probe.CAPACITY
    assert [a + b for a, b in zip(recorded, lost.collections.tolist(), strict=True)] == own
    assert lost.collections[0] >= more
    assert lost.collections[1] == 1
    ring.forget()
    assert not ring.path.exists()
    assert [each.tolist() for each in ring.lost()] == [each.tolist() for each in lost]
    assert lost.pause_ns[1] == lost.longest_ns[1] > 0
    assert lost.longest_ns[0] <= lost.pause_ns[0]


def test_a_reader_that_keeps_up_loses_nothing(rings):
    """The ring is gone through several times, read by turns with the process that writes."""
    script = f"""
import gc, sys
gc.disable()
for _ in range(5):
    for _ in range({probe.CAPACITY // 2}):
        gc.collect(0)
    print(flush=True)
    sys.stdin.readline()
"""
    environment = probed_environment(rings, {**os.environ, "PYTHONPATH": ""})
    with subprocess.Popen(
        [sys.executable, "-c", script],
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        taken, ring = [], None
        for _ in range(5):
            process.stdout.readline()
            ring = ring or read(rings)[0]
            taken += [ring.take(), ring.take()]  # nothing at the first look, all at the second
            process.stdin.write("\n")
            process.stdin.flush()
    assert ring is not None
    taken.append(ring.take(has_ended=True))
    starts = [int(each) for records in taken for each in records[:, START_NS]]
    assert len(starts) >= 5 * (probe.CAPACITY // 2)
    assert starts == sorted(starts)
    assert ring.lost().collections.sum() == 0


def test_a_fork_has_a_ring_of_its_own(rings):
    script = """
import gc, os
gc.disable()
pid = os.fork()
if not pid:
    gc.collect(1)
    os._exit(0)
os.waitpid(pid, 0)
gc.collect(2)
os.write(1, b'[%d, %d]' % (os.getpid(), pid))
os._exit(0)
"""
    parent, child = said(script, rings)
    by_pid = {ring.image.pid: ring for ring in read(rings)}
    assert by_pid.keys() == {parent, child}
    assert by_pid[child].forked_from == parent
    assert counts(by_pid[child]) == [0, 1, 0]
    assert counts(by_pid[parent])[1:] == [0, 1]


def test_an_exec_has_a_ring_of_its_own(rings):
    script = "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'print([1])'])"
    said(script, rings)
    first, second = read(rings)
    assert first.image[:3] == second.image[:3]
    assert first.image.stack != second.image.stack
    assert second.command[-1] == "print([1])"


def test_descriptors_that_a_program_closes_and_uses_again_stay_its_own(rings, tmp_path):
    path = tmp_path / "written"
    script = f"""
import gc, os
os.closerange(3, 100)
file = open({str(path)!r}, "w")
file.write("kept")
pid = os.fork()
if not pid:
    gc.collect()
    os._exit(0)
os.waitpid(pid, 0)
gc.collect()
"""
    done = run(script, rings)
    assert (done.returncode, done.stderr) == (0, "")
    assert path.read_text() == "kept"
    assert len(read(rings)) == 2


@pytest.mark.parametrize("site", [HOOK, None, "raise ValueError('of its own')"])
def test_the_programs_own_sitecustomize_is_as_it_would_be(rings, site):
    """And sys.path, and what is imported, where gcbench is not installed."""
    script = """
import gc, sys
own = sys.modules.get("sitecustomize")
print(own and own.__file__, hasattr(own, "hook"), "gcbench" in str(sys.path), sys.path[1:],
      [name for name in sys.modules if "gcbench" in name])
"""
    probed = run(script, rings, site=site, python=BASE)
    own = {**os.environ, "PYTHONPATH": str(rings.parent / "own")}
    without = subprocess.run(
        [BASE, "-c", script], env=own, capture_output=True, text=True, check=False
    )
    assert probed.stdout == without.stdout
    assert probed.stderr == without.stderr


def test_without_its_variable_or_its_folder_it_does_nothing(rings):
    script = "import gc; print([len(gc.callbacks)])"
    rings.rmdir()
    assert json.loads(run(script, rings, site=None).stdout) == [0]
    start = "import gc, gcbench.probe; gcbench.probe.start(); print([len(gc.callbacks)])"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    plain = subprocess.run(
        [sys.executable, "-c", start], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(plain.stdout) == [0]


def test_where_no_ring_can_be_made_the_program_runs_and_the_reader_is_told_why(rings):
    script = """
import os, resource, subprocess, sys
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
done = subprocess.run([sys.executable, "-c", "import gc; print([len(gc.callbacks)])"])
sys.exit(done.returncode)
"""
    done = run(script, rings, site=None)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[0]\n", "")
    (told,) = [path for path in rings.iterdir() if path.suffix != ".ring"]
    assert told.suffix == ".27"  # EFBIG


OWN_STATS = """
import ctypes, gc, json, os, sys, time


def stats():
    return [each["collections"] for each in gc.get_stats()]


def tell(since, began=0):
    ran = [now - then for now, then in zip(stats(), since)]
    os.write(1, (json.dumps([os.getpid(), began, *ran]) + "\\n").encode())


gc.disable()
"""
"""Oracle of a process: what `gc.get_stats` says that it has collected since a moment."""


@pytest.mark.parametrize("fork", ["os.fork()", "ctypes.PyDLL(None).fork()"])
def test_a_fork_that_collects_at_once_writes_into_no_ring_but_its_own(rings, fork):
    """The reader has taken what its parent had, so that it would see a ring begin anew."""
    script = f"""{OWN_STATS}
began, at_start = time.monotonic_ns(), stats()
for _ in range(1000):
    gc.collect(0)
print(flush=True)
sys.stdin.readline()
gc.set_threshold(1, 1000, 1000)
os.register_at_fork(before=gc.enable)  # what is allocated in the child collects
at_fork = stats()
pid = {fork}
gc.disable()
if not pid:
    gc.collect(1)
    tell(at_fork)
    os._exit(0)
os.waitpid(pid, 0)
for _ in range(5):
    gc.collect(0)
tell(at_start, began)
os._exit(0)
"""
    environment = probed_environment(rings, {**os.environ, "PYTHONPATH": ""})
    with subprocess.Popen(
        [sys.executable, "-c", script],
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (parent,) = read(rings)
        taken = [parent.take(), parent.take()]
        out, _ = process.communicate("\n")
    taken.append(parent.take(has_ended=True))
    (child_pid, _, *of_child), (pid, began, *of_parent) = map(json.loads, out.splitlines())
    records = [each for some in taken for each in some if each[START_NS] >= began]
    assert [sum(each[GENERATION] == g for each in records) for g in range(3)] == of_parent
    by_pid = {ring.image.pid: ring for ring in read(rings)}
    assert by_pid.keys() == {pid, child_pid}
    assert by_pid[child_pid].forked_from == pid
    assert counts(by_pid[child_pid]) == of_child


@pytest.mark.slow
def test_each_process_of_a_family_has_its_own_counts(rings):
    """By Python's fork and C's in turn, at thresholds that collect in the midst of both."""
    script = f"""{OWN_STATS}
forks = [os.fork, ctypes.PyDLL(None).fork]
gc.set_threshold(7, 3, 2)
began, since = time.monotonic_ns(), stats()
for number in range(8):
    gc.enable()
    kept = [[] for _ in range(number)]
    gc.disable()
    at_fork = stats()
    pid = forks[number % 2]()
    if not pid:
        began, since = 0, at_fork
        gc.enable()
        kept = [[] for _ in range(20)]
        gc.disable()
        continue
    os.waitpid(pid, 0)
gc.collect(1)
tell(since, began)
os._exit(0)
"""
    done = run(script, rings, site=None)
    assert (done.returncode, done.stderr) == (0, "")
    told = {pid: (began, own) for pid, began, *own in map(json.loads, done.stdout.splitlines())}
    by_pid = {ring.image.pid: ring for ring in read(rings)}
    assert len(told) == 2**8
    assert told.keys() == by_pid.keys()
    for pid, (began, own) in told.items():
        assert counts(by_pid[pid], began) == own, pid


@pytest.mark.parametrize("pop", ["pop()", "pop(0)"])
def test_an_entry_that_the_program_takes_for_its_own_is_put_back(rings, pop):
    script = f"""{OWN_STATS}
def own(phase, info):
    pass


gc.callbacks.append(own)
gc.callbacks.insert(0, own)
gc.collect(0)  # the probe goes round them
gc.callbacks.{pop}
began, since = time.monotonic_ns(), stats()
for _ in range(5):
    gc.collect(1)
tell(since, began)
print(time.monotonic_ns(), flush=True)
os._exit(0)
"""
    done = run(script, rings)
    told, after = map(json.loads, done.stdout.splitlines())
    _, began, *own = told
    (ring,) = read(rings)
    records = ring.take(has_ended=True)
    records = records[records[:, START_NS] >= began]
    assert [0, len(records), 0] == own
    assert (records[:, GENERATION] == 1).all()
    assert (records[:, START_NS] + records[:, DURATION_NS] <= after).all()


@pytest.mark.parametrize("is_forked", [False, True])
def test_what_a_program_collects_without_callbacks_is_told_at_its_exit(rings, is_forked):
    script = f"""{OWN_STATS}
if {is_forked} and (pid := os.fork()):
    os.waitpid(pid, 0)
    os._exit(0)
gc.collect(0)
gc.callbacks[:] = []
since = stats()
for _ in range(13):
    gc.collect(1)
gc.collect(2)
tell(since)
"""
    done = run(script, rings, site=None)
    pid, _, *own = json.loads(done.stdout)
    (ring,) = [each for each in read(rings) if each.image.pid == pid]
    assert ring.unseen().tolist() == own == [0, 13, 1]
    assert sum(counts(ring)) >= 1


def test_a_program_that_keeps_its_callbacks_has_nothing_unseen(rings):
    run("kept = [[[]] for _ in range(20_000)]", rings)
    (ring,) = read(rings)
    assert ring.unseen().tolist() == [0, 0, 0]


def test_a_fork_without_a_descriptor_left_says_why_it_has_no_ring(rings):
    script = """
import gc, os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
try:
    while True:
        os.dup(0)
except OSError:
    pid = os.fork()
gc.collect()
if pid:
    os.write(1, b"[%d]" % pid)
    os.waitpid(pid, 0)
os._exit(0)
"""
    (child,) = said(script, rings)
    (told,) = [path.name for path in rings.iterdir() if path.suffix != ".ring"]
    assert told.startswith(f"{child}-")
    assert told.endswith(".24")  # EMFILE
