"""A gcbench command that gets Ctrl-C at one of its own operations, which are counted.

    python interrupted_command.py NUMBER|WORD ARGUMENT... --output FOLDER

Operations are what it writes to FOLDER, and each process that it starts. A NUMBER below 0 lets it
come to its end; a WORD is of the process's command. How many operations there were is written to
FOLDER.operations.
"""

import os
import signal
import sys
from pathlib import Path

from harness.cli.main import main

_FILES = ("open", "os.mkdir", "os.rename", "os.remove")


def watch(moment: str, folder: str) -> list[str]:
    """Send this process SIGINT at an operation; the operations so far."""
    seen = list[str]()

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in _FILES:
            flags = arguments[2] if event == "open" else os.O_WRONLY
            is_written = isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))
            if not (is_written and str(arguments[0]).startswith(f"{folder}/")):
                return
        elif event != "subprocess.Popen":
            return
        seen.append(event)
        command = arguments[1] if event == "subprocess.Popen" else []
        if moment == str(len(seen) - 1) or (isinstance(command, list) and moment in command):
            os.kill(os.getpid(), signal.SIGINT)

    sys.addaudithook(hook)
    return seen


if __name__ == "__main__":
    # What a script has started in the background has Ctrl-C ignored, and hands that down.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = sys.argv[-1]
    operations = watch(sys.argv[1], folder)
    sys.argv[:] = ["gcbench", *sys.argv[2:]]
    status = main(sys.argv[1:])
    Path(f"{folder}.operations").write_text(str(len(operations)))
    sys.exit(status)
