"""``python -m harness``: the command line, or the inside of a trial."""

import os
import signal
import sys
from typing import Any

from harness.missing_package import missing_package

_WRONG_USAGE = 2
_REFUSED = 3
_INTERRUPTED = 130
"""As in harness.trial.spec and harness.cli.exit_codes, which may be what cannot be imported."""
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""As in harness.machine.interrupts, before anything of it can be imported."""


def main() -> int:
    """Run what was asked for; the exit status."""
    is_trial = sys.argv[1:] == ["trial"]
    usual = [] if is_trial else [n for n in _INTERRUPTS if signal.getsignal(n) != signal.SIG_IGN]
    try:
        _obey(usual, signal.default_int_handler)
        if is_trial:  # imports no more than a trial needs: its heap is measured
            from harness.trial.process import main as run
        else:
            from harness.cli.main import main as run
        status = run()
        _obey(usual, signal.SIG_IGN)  # the status is known; the interpreter still has to end
    except (EOFError, ImportError, AttributeError) as error:
        from harness.cut_bytecode import cut_bytecode  # no part of a trial's heap
        from harness.other_engines import other_engines

        sentence = missing_package(error) or cut_bytecode(error)
        sentence = sentence or (other_engines(error) if is_trial else "")
        if not sentence:
            raise
        print(sentence if is_trial else f"gcbench: {sentence}", file=sys.stderr)
        status = _REFUSED if is_trial else _WRONG_USAGE
    except KeyboardInterrupt:  # while modules are imported, or once more while a command ends
        if is_trial:
            raise
        _obey(usual, signal.SIG_IGN)
        print("interrupted", file=sys.stderr)
        status = _INTERRUPTED
    if is_trial:
        sys.stderr.flush()
        os._exit(status)  # taking a large heap down object by object can last longer than the trial
    return status


def _obey(numbers: list[signal.Signals], handler: Any) -> None:
    for number in numbers:
        signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main())
