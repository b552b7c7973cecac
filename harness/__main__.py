"""``python -m harness``: the command line, or the inside of a trial."""

import os
import sys

from harness.missing_package import missing_package

_WRONG_USAGE = 2
_REFUSED = 3
_INTERRUPTED = 130
"""As in harness.trial.spec and harness.cli.exit_codes, which may be what cannot be imported."""


def main() -> int:
    """Run what was asked for; the exit status."""
    is_trial = sys.argv[1:] == ["trial"]
    try:
        if is_trial:  # imports no more than a trial needs: its heap is measured
            from harness.trial.process import main as run
        else:
            from harness.cli.main import main as run
        status = run()
    except (EOFError, ImportError, AttributeError) as error:
        from harness.cut_bytecode import cut_bytecode  # no part of a trial's heap
        from harness.other_engines import other_engines

        sentence = missing_package(error) or cut_bytecode(error)
        sentence = sentence or (other_engines(error) if is_trial else "")
        if not sentence:
            raise
        print(sentence if is_trial else f"gcbench: {sentence}", file=sys.stderr)
        status = _REFUSED if is_trial else _WRONG_USAGE
    except KeyboardInterrupt:  # while modules are imported; later it is the command's to handle
        if is_trial:
            raise
        print("interrupted", file=sys.stderr)
        status = _INTERRUPTED
    if is_trial:
        sys.stderr.flush()
        os._exit(status)  # taking a large heap down object by object can last longer than the trial
    return status


if __name__ == "__main__":
    sys.exit(main())
