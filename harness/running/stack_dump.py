"""Where a process stands: one that hangs writes its stacks itself when it is sent SIGUSR2."""

import faulthandler
import os
import signal
from pathlib import Path

from engines.protocol import EngineProcess

FOLDER_VARIABLE = "GCBENCH_STACKS"
"""Where the processes of a trial write; elsewhere the signal keeps its meaning."""

SIGNAL = signal.SIGUSR2


def dump_on_signal(_: EngineProcess | None = None) -> None:
    """From now on the signal adds all threads' stacks to a file of this process, if asked for.

    The main thread is the last. It is written in C, whatever holds the interpreter up.
    """
    if folder := os.environ.get(FOLDER_VARIABLE):
        file = Path(folder, f"stacks-{os.getpid()}").open("a")  # noqa: SIM115
        faulthandler.register(SIGNAL, file, all_threads=True)
