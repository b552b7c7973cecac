"""What asks the program to end: at any moment, but not between a thing's making and its keeping."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, what ``kill`` and a CI's time limit send, and a terminal that is closed."""


@contextmanager
def interrupts_raise() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt as Ctrl-C does, unless they are ignored."""
    if current_thread() is not main_thread():
        yield
        return
    usual = [number for number in INTERRUPTS if signal.getsignal(number) is signal.SIG_DFL]
    for number in usual:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in usual:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Raise a KeyboardInterrupt that comes inside at the end instead.

    A mask would not do: where another thread takes the signal, Python raises in this one.
    """
    raising = [
        number for number in INTERRUPTS if signal.getsignal(number) is signal.default_int_handler
    ]
    if not raising or current_thread() is not main_thread():
        yield  # they are ignored, or somebody else's
        return
    came = []
    for number in raising:
        signal.signal(number, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        for number in raising:
            signal.signal(number, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt
