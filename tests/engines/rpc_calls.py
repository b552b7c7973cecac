"""What the tests call in an engine's processes: pickled by name, so in a module of its own."""

import os
import signal


def describe(process):
    return process.role, os.getpid()


def count_busy(process):
    """Count calls of the hook in its process, next to it."""
    process.num_busy = 0

    def count():
        process.num_busy += 1

    process.while_device_busy = count


def read_busy(process):
    return process.num_busy


def die_when_busy(process):
    if process.role == "worker":
        process.while_device_busy = lambda: signal.raise_signal(signal.SIGKILL)


def fail(process, role):
    if process.role == role:
        raise LookupError("no such weight")


def refuse(process, role: str, sentence: str) -> None:
    if process.role == role:
        raise ValueError(sentence)
