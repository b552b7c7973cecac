"""Churns processes below `gcbench probe` for hours and compares what it says with their own hooks.

Beside it, storms of connections on both servers (storms.py).

python tests/soak [--hours H] [--seed N] [--pause SECONDS]

Status 1 where an image differs, which a line names, or where the watcher or a server grows.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from churn import may_make_namespaces  # noqa: E402
from compared import Seen, compare, images_in  # noqa: E402
from flat import Sample, Sampler, grown, seconds_between_samples  # noqa: E402
from truth import FOLDER_VARIABLE  # noqa: E402

from harness.probed.read_log import LogReader  # noqa: E402

MOST_DESCRIPTORS = 256
SAYS_URL = re.compile(r"http://\S+/metrics")
STARTS_WITHIN_SECONDS = 60.0


def main() -> int:
    """Soak; 1 where it was not as it should be."""
    asked = _arguments()
    storms = [sys.executable, str(HERE / "storms.py"), str(asked.hours * 3600), str(asked.seed)]
    with (
        tempfile.TemporaryDirectory(prefix="soak-") as folder,
        subprocess.Popen(storms, stdout=subprocess.PIPE, text=True) as beside,
    ):
        probe = _soak(asked, Path(folder))
        print(beside.communicate()[0], end="")
        return probe or beside.returncode


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=1.0, metavar="H")
    parser.add_argument(
        "--seed", type=int, default=int(time.time()) // 86_400, metavar="N", help="[the day's]"
    )
    parser.add_argument(
        "--pause", type=float, default=0.3, metavar="SECONDS", help="between two jobs [0.3]"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="copy what was recorded there")
    return parser.parse_args()


def _soak(asked: argparse.Namespace, folder: Path) -> int:
    seconds = asked.hours * 3600
    log, document = folder / "log", folder / "result.json"
    truth = folder / "truth"
    command = ["sh", "-c", f'ulimit -n {MOST_DESCRIPTORS}; exec "$@"', "sh"]
    command += [sys.executable, "-m", "harness", "probe", "--every", "0", "--prometheus", "0"]
    command += ["--log", str(log), "--json", str(document), "--", sys.executable]
    command += [str(HERE / "churn.py"), "all", str(asked.seed), str(seconds), str(asked.pause)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), FOLDER_VARIABLE: str(truth)}
    print(f"{asked.hours:g} hours by seed {asked.seed}", flush=True)
    if not may_make_namespaces():
        print("no PID namespace and no recycled PID: this user may make no namespace")
    with (
        (folder / "said").open("w+") as said,
        subprocess.Popen(
            command, cwd=ROOT, env=environment, stderr=said, start_new_session=True
        ) as process,
    ):
        try:
            samples = _samples(process, _url(folder / "said", process), seconds)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        print((folder / "said").read_text(), f"gcbench probe ended with {process.returncode}.")
        return 1
    if asked.keep:
        shutil.copytree(folder, asked.keep, dirs_exist_ok=True)
    collections = LogReader(log).read()
    by_pid: dict[int, list[Seen]] = {}
    ends = collections.start_ns + collections.duration_ns
    rows = zip(collections.pid, collections.start_ns, ends, collections.generation, strict=True)
    for pid, begin, end, generation in rows:
        by_pid.setdefault(int(pid), []).append(Seen(int(begin), int(end), int(generation)))
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    result = json.loads(document.read_text())
    compared = compare(images_in(truth), by_pid, result, namespace)
    for what, number in compared.figures.items():
        print(f"{number:12,}  {what}")
    return _verdict(compared.first_difference, samples)


def _url(said: Path, process: "subprocess.Popen[bytes]") -> str:
    until = time.monotonic() + STARTS_WITHIN_SECONDS
    while process.poll() is None and time.monotonic() < until:
        if found := SAYS_URL.search(said.read_text()):
            return found[0]
        time.sleep(0.1)
    raise RuntimeError(f"gcbench probe did not begin: {said.read_text()}")


def _samples(process: "subprocess.Popen[bytes]", url: str, seconds: float) -> list[Sample]:
    """Of the watcher, until it has ended."""
    sampler = Sampler()
    while True:
        with suppress(OSError):
            with urllib.request.urlopen(url, timeout=30) as answer:
                text = answer.read().decode()
            names = "resident_memory_bytes", "open_fds", "cpu_seconds_total"
            sampler.take(*(_value(text, name) for name in names))
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds_between_samples(seconds))
            return sampler.samples


def _value(text: str, name: str) -> float:
    (value,) = re.findall(rf"^gcbench_probe_process_{name} (\S+)$", text, re.MULTILINE)
    return float(value)


def _verdict(difference: str, samples: list[Sample]) -> int:
    if grows := grown(samples):
        print(f"The watcher grows: {grows}.")
    print(difference or "Every image that both saw has the same collections.")
    return int(bool(difference or grows))


if __name__ == "__main__":
    sys.exit(main())
