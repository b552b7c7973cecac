"""Machine instructions: what callgrind writes, and that what it counts is what was executed."""

import json
import subprocess
import sys
from itertools import pairwise

import pytest
from valgrind import NEEDS_VALGRIND

from harness.metrics import METRICS
from harness.trial.callgrind import parse_dump, read_dump
from harness.trial.modes import MODES

DUMP = """\
# callgrind format
positions: line
events: Ir
summary: 1030

ob=/usr/lib/libz.so.1.2.13
fl=???
fn=crc32_z
0 700

ob=/opt/lib/libpython3.11.so.1.0
fl=ceval.c
fn=_PyEval_EvalFrameDefault
1630 20
cob=/usr/lib/libz.so.1.2.13
cfi=???
cfn=crc32_z
calls=10 0
1631 700
fi=object.h
133 5
fe=ceval.c
1632 5
fn=_PyEval_EvalFrameDefault'2
1630 300

totals: 1030
"""

PROGRAM = """\
import json, os, zlib
from types import SimpleNamespace
import numpy as np
from harness.trial.instructions import InstructionWatch

DATA = bytes(4096)

def serve(num_calls, num_steps):
    def step():
        for _ in range(num_calls):
            zlib.crc32(DATA)
    watch = InstructionWatch(SimpleNamespace(step=step))
    zlib.crc32(DATA)
    watch.window_opens()
    for _ in range(num_steps):
        watch.step()
    watch.steps_end()
    for _ in range(50):
        zlib.crc32(DATA)
    metrics = watch.results(np.full(num_steps, 2))
    return metrics, [each for each in watch.c_functions if each.name == "crc32_z"]

for calls in 1, 2, 3, 4:
    if not os.fork():
        print(json.dumps(serve(calls, 5)), flush=True)
        os._exit(0)
    os.wait()
"""


def test_a_function_has_its_own_instructions_and_those_of_its_recursion():
    assert parse_dump(DUMP) == {
        ("crc32_z", "libz.so.1.2.13"): 700,
        ("_PyEval_EvalFrameDefault", "libpython3.11.so.1.0"): 330,
    }


def test_a_process_that_callgrind_does_not_run_has_no_count(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ValueError, match=r"callgrind has not written .*; is it run by valgrind\?"):
        read_dump()


@pytest.mark.slow
@NEEDS_VALGRIND
def test_instructions_rise_by_as_much_with_each_call_of_a_step(tmp_path, monkeypatch):
    """And not with what is called before the window or after it."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    ran = subprocess.run(
        [*MODES["instructions"].under, sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
    )
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    checksums = [of_crc[0][2] for _, of_crc in found]
    assert checksums == [n * checksums[0] for n in (1, 2, 3, 4)]
    totals = [metrics["instructions_per_request_step"] for metrics, _ in found]
    first, *others = (after - before for before, after in pairwise(totals))
    assert others == pytest.approx(
        [first] * 2, rel=METRICS["instructions_per_request_step"].noise_floor
    )
    assert checksums[0] < first < 1.5 * checksums[0]
