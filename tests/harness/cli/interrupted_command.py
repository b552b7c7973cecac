"""A gcbench command that gets Ctrl-C at one of its own operations, which are counted.

    python interrupted_command.py NUMBER|WORD ARGUMENT... --output FOLDER

Operations are what it writes to FOLDER, and each process that it starts. A NUMBER below 0 lets it
come to its end; a WORD is of the process's command. How many operations there were is written to
FOLDER.operations.
"""

import signal
import sys
from pathlib import Path

from crash_points import CHANGES, Act, Operation, interrupt, watch

from harness.cli.main import main


def interrupt_at(moment: str) -> Act:
    """Send this process SIGINT at an operation, by its number or by a word of a command."""

    def act(number: int, operation: Operation) -> None:
        command = operation.what if operation.kind == "spawn" else []
        if moment == str(number) or (isinstance(command, list) and moment in command):
            interrupt(operation)

    return act


if __name__ == "__main__":
    # What a script has started in the background has Ctrl-C ignored, and hands that down.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = sys.argv[-1]
    operations = watch(interrupt_at(sys.argv[1]), (*CHANGES, "spawn"), folder)
    sys.argv[:] = ["gcbench", *sys.argv[2:]]
    status = main(sys.argv[1:])
    Path(f"{folder}.operations").write_text(str(len(operations)))
    sys.exit(status)
