"""What a program or a file is told while something runs."""

from harness.cli.nightly_run import NightProgress
from harness.tracking.nightly.result import MeasuredCommit


def test_a_commit_that_was_not_measured_is_one_line(capfd):
    reason = "asv ended with status 1: " + ", ".join(["no environment"] * 20)
    failed = MeasuredCommit(commit="a" * 40, subject="Change 7", seconds=1.0, reason=reason)
    with NightProgress("measuring", 1, quiet=False) as progress:
        progress.on_commit(failed)
    (line,) = capfd.readouterr().err.splitlines()
    assert line == f"not measured: aaaaaaaaaa Change 7: {reason}"
