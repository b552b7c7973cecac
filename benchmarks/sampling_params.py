"""How many bytes is an empty SamplingParams of vLLM, pickled as its executor pickles?

vLLM #6241 counted 611 in 2024, and asked why they are sent for each request in each step. Each
release is asked in an interpreter of its own; it must have been prepared, by
``gcbench releases vllm VERSION --prepare``. Of a release that is too old to be prepared the one
file with the class is taken out of its wheel, which is downloaded (150 MB), and read by itself:
so it can be of 0.5.1, which #6241 speaks of, where that of 0.6.0 needs the rest of vLLM.

    python -m benchmarks.sampling_params 0.5.1 0.10.2 0.12.0 0.33.0

Names are those of modules, classes and fields, and how they are referred to; framing is what the
pickle takes besides. The last line of output is one JSON document.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.version import Version

from engines.vllm.launch import launch_vllm
from engines.vllm.releases import VLLM
from harness.machine.describe import code_identity

_ROOT = Path(__file__).parents[1]
_ASK = """
import json, pickle
from vllm.sampling_params import SamplingParams
from engines.pickle_fields import pickle_fields
data = pickle.dumps(SamplingParams(), 5)
print(json.dumps({"bytes": len(data), "fields": pickle_fields(data)}))
"""


def of_release(release: str) -> dict[str, int]:
    """Bytes in all, of names, of framing, and of the values."""
    if Version(release) >= Version(VLLM.project.oldest):
        where = launch_vllm("", release)
        said = _ask(where.interpreter, {**where.environment, "VLLM_LOGGING_LEVEL": "ERROR"})
    else:
        with tempfile.TemporaryDirectory() as folder:
            extract(release, ["vllm/sampling_params.py"], Path(folder))
            said = _ask(sys.executable, {"PYTHONPATH": f"{folder}{os.pathsep}{_ROOT}"})
    names, framing = said["fields"].pop("(names)"), said["fields"].pop("(rest)")
    values = sum(said["fields"].values())
    return {"bytes": said["bytes"], "names": names, "values": values, "framing": framing}


def _ask(interpreter: str, environment: Mapping[str, str]) -> Any:
    done = subprocess.run(
        [interpreter, "-P", "-c", _ASK],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def extract(release: str, modules: Sequence[str], folder: Path) -> None:
    """A package vllm in ``folder`` that has some of a release's modules, out of its wheel."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        f"vllm=={release}",
        "--dest",
        str(folder),
    ]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder, modules)
    for module in modules:
        (folder / module).with_name("__init__.py").touch()


def main() -> None:
    """Ask each release that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("releases", nargs="+", metavar="RELEASE", type=Version)
    found = {}
    print(f"{'release':>8}  {'bytes':>5}  {'names':>5}  {'values':>6}  {'framing':>7}")
    for release in map(str, parser.parse_args().releases):
        found[release] = each = of_release(release)
        print(
            f"{release:>8}  {each['bytes']:>5}  {each['names']:>5}  {each['values']:>6}  "
            f"{each['framing']:>7}",
            flush=True,
        )
    print(json.dumps({"code_commit": code_identity(_ROOT)[1], **found}))


if __name__ == "__main__":
    main()
