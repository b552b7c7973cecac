"""Everything there is to test, in parts: python tests/deep.py [PART]...

Parts that have passed on this very tree are not run again, so what was interrupted goes on where it
was; a part that is named is run whatever it did before. Status 1 if a part failed; the others are
run all the same.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from touched import git

ROOT = Path(__file__).parents[1]
DONE = ROOT / "build" / "deep"
TESTS = (
    "--hypothesis-profile",
    "full",
    "--durations",
    "30",
    "--durations-min",
    "5",
    "-m",
    "not gpu",
)
BY_FILE = (
    "--maxprocesses",
    "8",
    "--dist",
    "loadfile",
    "--no-loadscope-reorder",
    "--numprocesses",
    "auto",
)
BY_FOLDER = ("--dist", "loadscope", "--numprocesses", "3")

COUNTING = ("tests/gcbench", "tests/harness/collector", "tests/harness/trial")
"""Their tests count what their process does; one process each, which is sent nothing meanwhile."""

APART = {
    "vllm": ("tests/engines/vllm", "tests/engines/sglang"),
    "kernels": ("tests/engines/model", "tests/gpu"),
    "engines": ("tests/engines",),
    "commands": ("tests/harness/cli",),
    "experiments": ("tests/harness/experiment",),
    "tracking": ("tests/harness/tracking", "tests/harness/suites"),
    "rest": ("tests",),
}
"""Folders of tests by part; what an earlier part has is not in a later one."""

TORTURE = {"lines": 150, "signals": 20, "disks": 20, "files": 60, "points": 20}

SOAK_HOURS = 1 / 6


def pytest(*words: str) -> list[str]:
    """A command that runs tests."""
    return [sys.executable, "-m", "pytest", *TESTS, *words]


def parts() -> dict[str, list[list[str]]]:
    """What each part runs, the one that takes longest first."""
    found = {}
    taken = [*COUNTING]
    for part, folders in APART.items():
        inner = [each for each in taken if any(each.startswith(f"{at}/") for at in folders)]
        found[part] = [pytest(*BY_FILE, *folders, *(f"--ignore={each}" for each in inner))]
        taken += folders
    found["counting"] = [pytest(*BY_FOLDER, *COUNTING)]
    found["torture"] = [
        [sys.executable, "tests/torture", part, "--attempts", str(attempts)]
        for part, attempts in TORTURE.items()
    ]
    found["soak"] = [[sys.executable, "tests/soak", "--hours", str(SOAK_HOURS)]]
    mutants = [sys.executable, "tests/mutants"]
    found["mutants"] = [mutants, [*mutants, "--thresholds"]]
    found["pythons"] = [[".ci/other-pythons", "not gpu"]]
    return found


def main() -> int:
    """Run the parts; 1 if one failed."""
    commands = parts()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(commands))
    asked = parser.parse_args().parts
    if unknown := set(asked) - commands.keys():
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(commands)}")
    tree, failed = tree_of(ROOT), []
    DONE.mkdir(parents=True, exist_ok=True)
    for part in asked or commands:
        passed = DONE / part
        if not asked and passed.exists() and passed.read_text() == tree:
            print(f"{part}: has passed on this tree; make deep PARTS={part} runs it again")
            continue
        passed.unlink(missing_ok=True)
        began = time.monotonic()
        print(f"{part}: begins", flush=True)
        statuses = [
            subprocess.run(each, cwd=ROOT, check=False).returncode for each in commands[part]
        ]
        if any(statuses):
            failed.append(part)
        else:
            passed.write_text(tree)
        verdict = "FAILED" if any(statuses) else "passed"
        print(f"{part}: {verdict} after {(time.monotonic() - began) / 60:.1f} minutes", flush=True)
    for part in failed:
        print(f"{part} failed; again: make deep PARTS={part}")
    return int(bool(failed))


def tree_of(root: Path) -> str:
    """What git would call the files that are here now, those that it does not know yet too."""
    with tempfile.TemporaryDirectory() as folder:
        index = {**os.environ, "GIT_INDEX_FILE": str(Path(folder) / "index")}
        git(root, "add", "--all", env=index)
        return git(root, "write-tree", env=index)


if __name__ == "__main__":
    sys.exit(main())
