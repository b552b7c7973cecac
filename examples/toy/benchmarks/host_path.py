"""Counts that repeat to the digit, of each commit: what a step runs, and the collections it causes.

Only ``src`` is the commit's; adapter and gcbench are those of whoever measures.
"""

import json
import subprocess
import sys
from pathlib import Path

COMMIT = Path(sys.prefix) / "measured"  # where asv.conf.json has put it


def setup_cache():
    found = {}
    for mode in ("counts", "opcodes"):
        command = ["gcbench", "run", "--engine", "toy", "--release", str(COMMIT), "--mode", mode]
        done = subprocess.run([*command, "--json", "-"], stdout=subprocess.PIPE, check=True)
        found |= json.loads(done.stdout)["trial"]["metrics"]
    return found


def track_bytecodes_per_request_step(found):
    return found["bytecodes_per_request_step"]


def track_gc_collections_gen0(found):
    return found["gc_collections_gen0"]


for each in (track_bytecodes_per_request_step, track_gc_collections_gen0):
    each.kind, each.direction, each.unit = "exact", "lower", "1"
