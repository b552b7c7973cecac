"""What a program or a file is told while something runs."""

from harness.cli.progress import CountBar
from harness.tracking.nightly.result import MeasuredCommit
from harness.verbs.night import tell_of


def test_a_commit_that_was_not_measured_is_one_line(capfd):
    reason = "asv ended with status 1: " + ", ".join(["no environment"] * 20)
    failed = MeasuredCommit(commit="a" * 40, subject="Change 7", seconds=1.0, reason=reason)
    with CountBar("measuring", 1, quiet=False) as progress:
        tell_of(progress, failed)
    (line,) = capfd.readouterr().err.splitlines()
    assert line == f"not measured: aaaaaaaaaa Change 7: {reason}"
