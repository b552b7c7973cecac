"""A scratch repository of twelve commits, four of which change what a step costs.

    cd tests/harness/tracking
    python planted_history.py make FOLDER         the repository alone
    python planted_history.py gate --output DIR   each commit through gcbench gate
    python planted_history.py same --times 20     a commit against itself

The engine is this checkout's; what is planted stands in `COMMITS`. The last line of output of
``gate`` and ``same`` is one JSON document.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[3]

ENGINE = "engines/builtin/engine.py"
SCHEDULER = "engines/builtin/scheduler.py"

PROCESS = "    def _process(self, step: ScheduledStep, output: ModelRunnerOutput) -> StepOutput:\n"
INIT = "        table = RequestTable(config)\n"

STEP = "        clock, stamps = self.clock, self.phase_stamps\n"

NOTES = """\
        self._notes = [{"row": row, "tags": None} for row in step.output.rows.tolist()]
"""
FORGET = "        self._notes = []\n"
PLACES = """\
        place = 0
        for _ in range(len(step.output.rows)):
            place ^= 1
"""
QUICK_CHECKSUM = "        zlib.crc32(self._padding[1])\n"
SLOW_CHECKSUM = "        zlib.crc32(self._padding[0])\n"

QUICK_BYTES = {"per_request": 560_000, "columnar": 125_000}
"""What each step checksums from the start on. A request that is looped over costs more than a
column, so a tenth of its time is more too."""
SLOW_BYTES = {"per_request": 280_000, "columnar": 65_000}
"""What the seventh commit adds to it."""


class Edit(NamedTuple):
    """``after`` takes the place of ``before``, where that stands first in the file."""

    file: str
    before: str
    after: str


class Commit(NamedTuple):
    """``kind``: what a gate should say of it."""

    subject: str
    kind: str
    edits: list[Edit]


COMMITS = [
    Commit("Speak of planning", "same", [Edit(ENGINE, "Schedule and launch", "Plan and launch")]),
    Commit(
        "Rename a local",
        "same",
        [
            Edit(ENGINE, "unchanged: BoolArray", "still: BoolArray"),
            Edit(ENGINE, "if unchanged.all() else unchanged", "if still.all() else still"),
        ],
    ),
    Commit(
        "Keep a note of each request until the step is over",
        "worse: objects",
        [
            Edit(ENGINE, INIT, "        self._notes: list[dict[str, int | None]] = []\n" + INIT),
            Edit(ENGINE, STEP, FORGET + STEP),
            Edit(ENGINE, PROCESS, PROCESS + NOTES),
        ],
    ),
    Commit("Say whom it follows", "same", [Edit(SCHEDULER, '"""', '"""As vLLM has it. ')]),
    Commit("Check each row's place", "worse: bytecodes", [Edit(ENGINE, PROCESS, PROCESS + PLACES)]),
    Commit(
        "Say what is needed of time",
        "same",
        [Edit(ENGINE, "import time\n", "import time  # perf_counter_ns\n")],
    ),
    Commit(
        "Checksum the step once more",
        "worse: C code",
        [Edit(ENGINE, QUICK_CHECKSUM, QUICK_CHECKSUM + SLOW_CHECKSUM)],
    ),
    Commit(
        "Set a condition apart",
        "same",
        [
            Edit(
                ENGINE,
                "if self.while_device_busy is not None:",
                "if (self.while_device_busy) is not None:",
            )
        ],
    ),
    Commit(
        "Checksum the step no more than it needs",
        "better: C code",
        [Edit(ENGINE, QUICK_CHECKSUM, "")],
    ),
    Commit("Note in the README", "same", [Edit("README.md", "history", "history, with a note")]),
    Commit("Type a local", "same", [Edit(ENGINE, "lag = self", "lag: int = self")]),
    Commit("White space", "same", [Edit(SCHEDULER, "\n\n\nclass ", "\n\n\n\nclass ")]),
]


def make(folder: Path, commits: Sequence[Commit] = COMMITS) -> list[str]:
    """Make the repository; the commits' hashes, oldest first, the one they stand on included.

    Raises ValueError where the engine is no longer what `COMMITS` expects.
    """
    shutil.copytree(
        ROOT / "engines", folder / "engines", ignore=shutil.ignore_patterns("__pycache__")
    )
    (folder / "README.md").write_text("A scratch history.\n")
    sizes = f"({SLOW_BYTES}[config.delivery], {QUICK_BYTES}[config.delivery])"
    checksummed = [
        Edit(ENGINE, "import time\n", "import time\nimport zlib\n"),
        Edit(ENGINE, INIT, f"        self._padding = [bytes(n) for n in {sizes}]\n" + INIT),
        Edit(ENGINE, PROCESS, PROCESS + QUICK_CHECKSUM),
    ]
    _git(folder, "init", "--quiet", "--initial-branch", "main")
    hashes = [_commit(folder, "An engine that checksums each step", checksummed)]
    return hashes + [_commit(folder, commit.subject, commit.edits) for commit in commits]


def _commit(folder: Path, subject: str, edits: list[Edit]) -> str:
    for edit in edits:
        text = (folder / edit.file).read_text()
        if edit.before not in text:
            raise ValueError(f"{edit.file} has no {edit.before!r} any more: plant it elsewhere")
        (folder / edit.file).write_text(text.replace(edit.before, edit.after, 1))
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--allow-empty", "--message", subject)
    return _git(folder, "rev-parse", "HEAD")


def _git(folder: Path, *arguments: str) -> str:
    who = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "A"), ("EMAIL", "a@example.org"))
    }
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env=os.environ | who | {"GIT_CONFIG_GLOBAL": os.devnull},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def run_gate(repo: Path, base: str, head: str, output: Path, flags: list[str]) -> dict[str, object]:
    """One gate in a process of its own: verdict, sentences, exit status and seconds."""
    began = time.perf_counter()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "harness",
            "gate",
            base,
            head,
            "--repo",
            str(repo),
            "--output",
            str(output),
            "--json",
            "-",
            *flags,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - began
    if not done.stdout:
        sys.exit(f"gcbench gate said: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    return {
        "verdict": result["verdict"],
        "status": done.returncode,
        "seconds": round(seconds, 1),
        "conclusions": result["conclusions"],
        "cells": {cell["id"]: _times(cell["timing"]) for cell in result["cells"] if cell["timing"]},
    }


def _times(timing: dict[str, Any]) -> list[str]:
    arms = [timing["steady"]]
    if by := timing["attribution"]:
        arms += [by["control"], by["code"], by["collector"]]
    return [
        f"{arm['ratio']:.4f} ({arm['ci95'][0]:.4f}-{arm['ci95'][1]:.4f}) {arm['verdict']} "
        f"after {arm['rounds']}"
        for arm in arms
    ]


def main() -> None:
    """Do what is asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["make", "gate", "same"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--output", type=Path, default=Path("results/runs"))
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of commits, from 1")
    asked, flags = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.folder or Path(scratch) / "repository"
        hashes = make(folder)
        said = []
        if asked.what == "gate":
            for number, commit in enumerate(COMMITS, start=1):
                if asked.only and number not in asked.only:
                    continue
                found = run_gate(folder, *hashes[number - 1 : number + 1], asked.output, flags)
                said.append({"commit": number, "subject": commit.subject, "kind": commit.kind})
                said[-1] |= found
                print(json.dumps(said[-1], indent=1, ensure_ascii=False), flush=True)
        elif asked.what == "same":
            for number in range(asked.times):
                seed = ["--seed", str(number)]
                said.append(run_gate(folder, hashes[0], hashes[0], asked.output, [*seed, *flags]))
                print(json.dumps(said[-1], ensure_ascii=False), flush=True)
        print(json.dumps(said, ensure_ascii=False))


if __name__ == "__main__":
    main()
