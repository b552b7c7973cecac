"""Print what became better or worse in stored results: python examples/changes.py [RESULTS]."""

import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.tracking import history  # noqa: E402
from harness.tracking.changes import latest_changes  # noqa: E402
from harness.tracking.judge_figures import judge_all  # noqa: E402
from harness.tracking.reruns import by_series  # noqa: E402
from harness.tracking.triage import NOTHING_SAID  # noqa: E402


def main() -> None:
    """One line per series whose verdict says that something happened."""
    results = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests" / "golden" / "asv"
    read = history.load_history(results)
    if read.problems:
        print(f"{len(read.problems)} things could not be read: {read.problems[0]}; …")
    verdicts, _ = judge_all(read.figures, by_series(read.reruns), NOTHING_SAID, date.today())
    changes = latest_changes(read.figures, verdicts)
    moved = changes[changes["verdict"].isin(["worse", "better", "changed", "suspicious"])]
    for row in moved.itertuples():
        print(f"{row.verdict:<10} ×{row.ratio:.3f}  {row.series}")
    print(f"{len(moved)} of {len(changes)} series moved between their last two commits.")


if __name__ == "__main__":
    main()
