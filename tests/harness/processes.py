"""Processes that tests start: how they are to begin, and whether they have ended."""

import signal

import psutil


def is_alive(process: psutil.Process) -> bool:
    """Not so one that has ended and that nobody has asked for its status yet."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


HEARS_CTRL_C = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
"""For `Popen`: a test run that a script has put in the background has Ctrl-C ignored, and hands
that down."""
