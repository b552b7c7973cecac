"""How many bytes is an empty SamplingParams of vLLM, pickled as its executor pickles?

vLLM #6241 counted 611 in 2024, and asked why they are sent for each request in each step. Each
release is asked in an interpreter of its own; it must have been prepared, by
``gcbench releases vllm VERSION --prepare``.

    python -m benchmarks.sampling_params 0.10.2 0.12.0 0.33.0

Names are those of modules, classes and fields, and how they are referred to; framing is what the
pickle takes besides. The last line of output is one JSON document.
"""

import json
import os
import subprocess
import sys

from engines.vllm.launch import launch

_ASK = """
import json, pickle
from vllm.sampling_params import SamplingParams
from engines.pickle_fields import pickle_fields
data = pickle.dumps(SamplingParams(), 5)
print(json.dumps({"bytes": len(data), "fields": pickle_fields(data)}))
"""


def of_release(release: str) -> dict[str, int]:
    """Bytes in all, of names, of framing, and of the values."""
    where = launch("", release)
    environment = {**os.environ, **where.environment, "VLLM_LOGGING_LEVEL": "ERROR"}
    command = [where.interpreter, "-P", "-c", _ASK]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    said = json.loads(done.stdout.splitlines()[-1])
    names, framing = said["fields"].pop("(names)"), said["fields"].pop("(rest)")
    values = sum(said["fields"].values())
    return {"bytes": said["bytes"], "names": names, "values": values, "framing": framing}


def main() -> None:
    """Ask each release that is named."""
    found = {}
    print(f"{'release':>8}  {'bytes':>5}  {'names':>5}  {'values':>6}  {'framing':>7}")
    for release in sys.argv[1:]:
        found[release] = each = of_release(release)
        print(f"{release:>8}  {each['bytes']:>5}  {each['names']:>5}  {each['values']:>6}  "
              f"{each['framing']:>7}", flush=True)  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    main()
