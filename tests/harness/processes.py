"""Whether a process of a test's has ended."""

import psutil


def is_alive(process: psutil.Process) -> bool:
    """Not so one that has ended and that nobody has asked for its status yet."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
