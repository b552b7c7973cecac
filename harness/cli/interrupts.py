"""Puts Ctrl-C off while something is written that is to be there whole."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Raise a KeyboardInterrupt that comes inside at the end instead.

    A mask would not do: where another thread takes the signal, Python raises in this one.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or current_thread() is not main_thread():
        yield  # it is ignored, or somebody else's
        return
    came = []
    signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
