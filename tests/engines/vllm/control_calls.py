"""What the tests of the control socket run in other processes: pickled by name, so a module."""

import os
from multiprocessing.connection import Connection
from threading import Lock


def serve(gate: Connection) -> None:
    """Be one of vLLM's processes: load the plug-in when the gate says so, end when it closes."""
    from engines.vllm.plugin import general

    try:
        gate.recv()
        general()
        gate.send("reported")
        gate.recv()
    except EOFError:
        return


def describe(process, *args):
    return process.role, os.getpid(), args


def fail(process, role):
    if process.role == role:
        raise LookupError("no such weight", role)


def fail_with_what_cannot_cross(_process):
    raise RuntimeError(Lock())


def answer_what_cannot_cross(_process):
    return Lock()
