"""``python -m harness``: the command line, or the inside of a trial."""

import os
import sys


def main() -> int:
    """Run what was asked for; the exit status."""
    if sys.argv[1:] == ["trial"]:  # imports no more than a trial needs: its heap is measured
        from harness.trial.process import main as trial_main

        status = trial_main()
        sys.stderr.flush()
        os._exit(status)  # taking a large heap down object by object can last longer than the trial
    from harness.cli.main import main as cli_main

    return cli_main()


if __name__ == "__main__":
    sys.exit(main())
