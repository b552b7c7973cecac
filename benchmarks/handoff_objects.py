"""How many objects does the collector track of what the runner hands over in a step?

vLLM #26368 counts a list per request, one list where the rows are arrays, and none where they are
one matrix and its counts, two fields of vLLM's record. So the record of a shape that has one is not
counted, as vLLM's own `ModelRunnerOutput` is not; all that lies in it is.

    python -m benchmarks.handoff_objects --batch-size 1024

The last line of output is one JSON document.
"""

import argparse
import gc
import json
from pathlib import Path
from typing import Any

import numpy as np

from engines.builtin.registries import REPRESENTATIONS
from harness.machine.describe import code_identity

_ROOT = Path(__file__).parents[1]


def tracked_objects(sampled: Any) -> int:
    """Lists and what is in them, by what the collector follows; an array is one object."""
    is_record = isinstance(sampled, tuple) and hasattr(sampled, "_fields")
    waiting, count = (list(sampled) if is_record else [sampled]), 0
    while waiting:
        each = waiting.pop()
        count += gc.is_tracked(each)
        if isinstance(each, list | tuple):
            waiting += each
    return count


def main() -> None:
    """Count for each shape."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch-size", type=int, default=1024)
    batch_size = parser.parse_args().batch_size
    tokens = np.arange(batch_size, dtype=np.int32).reshape(batch_size, 1)
    found = {}
    for name in REPRESENTATIONS.names():
        found[name] = tracked_objects(REPRESENTATIONS.load(name)().from_device(tokens, None))
        print(f"{name:>16}  {found[name]:>6,}")
    print(json.dumps({"code_commit": code_identity(_ROOT)[1], **found}))


if __name__ == "__main__":
    main()
