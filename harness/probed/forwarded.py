"""Signals that are for the program that is watched, whoever of the two they are sent to."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from harness.machine.interrupts import INTERRUPTS

_OWN = {
    "SIGCHLD",
    "SIGPIPE",
    "SIGXFSZ",
    "SIGXCPU",  # what this process's own doing brings
    "SIGSEGV",
    "SIGBUS",
    "SIGFPE",
    "SIGILL",
    "SIGTRAP",
    "SIGSYS",
    "SIGTSTP",
    "SIGCONT",  # a terminal sends them to both, and nobody else
}
FORWARDED = signal.valid_signals() - {
    signal.SIGKILL,
    signal.SIGSTOP,
    *(signal.Signals[name] for name in _OWN),
}
"""Those that end a program, and those by which servers are told things: SIGUSR1, SIGTTIN, …"""
_OTHERS = FORWARDED - set(INTERRUPTS)


@contextmanager
def held_back() -> Iterator[set[int]]:
    """They wait to be taken one by one, in threads that begin inside, too; what was blocked before.

    A thread that would take one, of a library that is loaded, must not be there before.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    try:
        yield set(before)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def taken_one_by_one() -> Iterator[set[int]]:
    """The same around a program: once it has ended, those that came too late are forgotten.

    Only what interrupts this process, too, does so from then on: there are figures to be written.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    try:
        yield set(before)
    finally:
        while signal.sigtimedwait(FORWARDED, 0):
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, {*before, *_OTHERS})
