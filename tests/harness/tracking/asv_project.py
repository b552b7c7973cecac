"""A project of three commits that real asv measures: where the files of tests/golden/asv are from.

`python tests/harness/tracking/asv_project.py tests/golden/asv` makes them anew: two machines, two
environments on the first, by asv's own virtualenv environments (they need a package index).
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

COSTS = (1.0, 1.0, 1.3)
"""What `toy.COST` is in each commit."""

SUITE = """
import math

import toy


def track_throughput(shape, size):
    value = size / toy.COST * (2 if shape == "flat" else 1)
    return {"samples": [value * (1 + k / 1000) for k in range(7)], "number": 1}

track_throughput.params = (["lists", "flat"], [8, 1024])
track_throughput.param_names = ["shape", "value"]
track_throughput.unit = "req/s"
track_throughput.direction = "higher"
track_throughput.kind = "timing"
track_throughput.noise_floor = 0.05
track_throughput.version = "2"


class Collections:
    params = ["default", "disabled", "broken", "left out"]
    param_names = ["gc"]
    unit = "collections"

    def track_gen0(self, gc):
        if gc == "broken":
            raise RuntimeError("planted")
        return {"default": 100 * toy.COST, "disabled": 0, "left out": math.nan}[gc]

    track_gen0.direction = "lower"
    track_gen0.kind = "exact"
    track_gen0.noise_floor = 0.01
    track_gen0.least_change = 2
    track_gen0.version = "1"


def track_bare():
    return toy.COST


def track_endless():
    return math.inf


def time_sum():
    sum(range(1000))

time_sum.repeat = 8
time_sum.number = 10
time_sum.rounds = 1


def peakmem_list():
    return [0] * 10_000


def mem_list():
    return [0] * 1000


def track_always_fails():
    raise RuntimeError("planted")
"""

# Two commits within a second, of one size: Python would run the first one's bytecode for both.
COPY_TOY = (
    'in-dir={build_dir} python -c "import shutil, sysconfig; '
    "place = sysconfig.get_path('purelib'); shutil.copy('toy.py', place); "
    "shutil.rmtree(place + '/__pycache__', ignore_errors=True)\""
)


def make(folder: Path, environments: int = 2) -> list[str]:
    """Make the project in an empty folder; its commits' hashes, the oldest first."""
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "benchmarks" / "__init__.py").touch()
    (folder / "benchmarks" / "suite.py").write_text(SUITE)
    conf = {
        "version": 1,
        "project": "toy",
        "repo": ".",
        "branches": ["HEAD"],
        "environment_type": "virtualenv",
        "pythons": [f"{sys.version_info.major}.{sys.version_info.minor}"],
        "build_command": [],
        "install_command": [COPY_TOY],
        "uninstall_command": [],
        "matrix": {"env_nobuild": {"TOY": [str(number) for number in range(environments)]}},
    }
    (folder / "asv.conf.json").write_text(json.dumps(conf, indent=4))
    _git(folder, "init", "-q", "-b", "main")
    for day, cost in enumerate(COSTS, 1):
        (folder / "toy.py").write_text(f"COST = {cost}  # day {day}\n")
        (folder / "pyproject.toml").write_text("[project]\nname = 'toy'\nversion = '1'\n")
        _git(folder, "add", "-A")
        _git(folder, "commit", "-q", "-m", f"day {day}", date=f"2026-01-0{day}T12:00:00+00:00")
    return _git(folder, "rev-list", "--reverse", "HEAD").split()


def run_asv(folder: Path, *arguments: str) -> None:
    """Run asv there with a home of its own; a failing benchmark is no error."""
    environment = {**os.environ, "HOME": str(folder / "home"), "ASV_PYTHONPATH": str(folder)}
    (folder / "home").mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "asv", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 2), done.stdout + done.stderr


def introduce(folder: Path, machine: str) -> None:
    """Tell asv of a machine; nothing is asked of the one that this runs on."""
    run_asv(
        folder,
        "machine",
        "--machine",
        machine,
        "--os",
        "Linux",
        "--arch",
        "x86_64",
        "--cpu",
        "a processor",
        "--num_cpu",
        "2",
        "--ram",
        "8",
    )


def measure_here(folder: Path, commit: str, machine: str) -> None:
    """Measure a commit in this interpreter: no environment is made, nothing is fetched."""
    _git(folder, "checkout", "-q", commit)
    introduce(folder, machine)
    run_asv(
        folder,
        "run",
        "--python=same",
        "--machine",
        machine,
        "--set-commit-hash",
        commit,
        "--launch-method",
        "spawn",
    )


def _git(folder: Path, *arguments: str, date: str = "2026-01-01T00:00:00+00:00") -> str:
    identity = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "toy"), ("EMAIL", "toy@example.invalid"), ("DATE", date))
    }
    environment = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": os.devnull}
    return subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def main(target: Path) -> None:
    """Measure every commit on two machines and put asv's results in ``target``."""
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "toy"
        commits = make(folder)
        for machine, which in (("box-a", commits), ("box-b", commits[-1:])):
            introduce(folder, machine)
            for commit in which:
                kept = ["--record-samples"] if machine == "box-b" else []
                run_asv(folder, "run", f"{commit}^!", "--machine", machine, *kept)
        target.parent.mkdir(parents=True, exist_ok=True)
        (folder / "results").rename(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
