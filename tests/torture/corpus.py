"""Real files of every kind that gcbench reads, small, and what each is read by."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from commands import ROOT, Ended, run, run_forked
from planted_nights import EXACT, TIMING, Nights, noisy
from scratch_repository import Repository
from surroundings import Surroundings

TINY = [
    "--device",
    "null",
    "--num-requests",
    "4",
    "--output-lens",
    "4",
    "--batch-size",
    "4",
    "--heap-objects",
    "0",
    "--representation",
    "list_of_lists",
    "--delivery",
    "per_request",
    "--quiet",
]
COMPARE = ["compare", *TINY, "--gc", "default,disabled", "--rounds", "1", "--no-counting"]
_NIGHTS = 8
_LIMIT_SECONDS = 600.0
_TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:15:{second:02}.6805900,{30 + second},{4 + second}\n" for second in range(40, 46)
)


@dataclass(frozen=True, slots=True)
class Corpus:
    """A checkout with two commits of our engines, and in its ``results`` all that can be read."""

    checkout: Path

    @property
    def results(self) -> Path:
        return self.checkout / "results"

    @property
    def paths(self) -> list[Path]:
        """What a command line may name."""
        return [
            self.results / name
            for name in (
                "runs",
                "nights",
                "nights/asv.conf.json",
                "result.json",
                "workload.toml",
                "trace.jsonl",
                "trace.csv",
                "experiment.toml",
                "triage.toml",
                "profile.toml",
                "model",
            )
        ]

    def copy_to(self, folder: Path) -> "Corpus":
        """Another, whose results may be spoiled; the commits are the same, nothing checked out."""
        folder.mkdir()
        (folder / ".git").symlink_to(self.checkout / ".git")
        made = Corpus(folder)
        shutil.copytree(self.results, made.results, symlinks=True)
        return made

    def experiment(self) -> str:
        """The name of the comparison in ``runs``."""
        (folder,) = (self.results / "runs").iterdir()
        return folder.name


def make_corpus(place: Surroundings, *, is_measured: bool) -> Corpus:
    """Measure, plant and copy. ``is_measured``: with real trials, which take some seconds."""
    made = Corpus(place.folder / "checkout")
    repository = Repository(made.checkout)
    ignored = shutil.ignore_patterns("__pycache__", "vllm")
    shutil.copytree(ROOT / "engines", made.checkout / "engines", ignore=ignored)
    (made.checkout / ".gitignore").write_text("results\n")
    repository.commit("engines")
    repository.commit("another", engines__another="1\n")
    files = made.results
    nights = Nights(files / "nights", _NIGHTS)
    nights.plant([(EXACT, [[100, 0]] * _NIGHTS), (TIMING, noisy([1.0] * _NIGHTS))])
    # A night that has a commit to measure says at once that it cannot.
    (files / "nights" / "asv.conf.json").write_text(
        json.dumps(
            {
                "version": 1,
                "project": "toy",
                "repo": ".",
                "branches": ["main"],
                "environment_type": "none",
            }
        )
    )
    for name, source in {
        "result.json": "results/published/main-job.json",
        "workload.toml": "workloads/catalog/multi-turn.toml",
        "experiment.toml": "harness/experiment/catalog/padding.toml",
        "profile.toml": "engines/builtin/device/profiles/opt-125m-h200.toml",
    }.items():
        shutil.copy(ROOT / source, files / name)
    shutil.copytree(ROOT / "engines" / "model_configs" / "opt-tiny", files / "model")
    (files / "trace.csv").write_text(_TRACE)
    (files / "triage.toml").write_text(
        f'[[acknowledged]]\nseries = "suite.*"\ncommit = "{nights.hashes[3]}"\nreason = "seen"\n'
    )
    _must_run(
        [
            "list",
            "workloads",
            "burst",
            "--num-requests",
            "20",
            "--mooncake",
            str(files / "trace.jsonl"),
        ],
        place,
        run_forked,
    )
    _must_run(
        [*COMPARE, "--output", str(files / "runs")], place, run if is_measured else run_forked
    )
    return made


def _must_run(words: Sequence[str], place: Surroundings, way: Callable[..., Ended]) -> None:
    ended = way(words, place, _LIMIT_SECONDS)
    assert ended.status == 0, ended.err
