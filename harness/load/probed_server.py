"""The collections of a server that runs under `gcbench probe --log`, beside a run under load."""

import socket
import time
from contextlib import suppress
from pathlib import Path

import psutil

from engines.openai.target import Target
from harness import format as fmt
from harness.load.observed import Observed
from harness.machine.boot import boot_id
from harness.probed.read_log import Collections, LogReader

_STALE_SECONDS = 5.0
_WAIT_SECONDS = 5.0
_LOOK_SECONDS = 0.2


def check_log(log: LogReader, target: Target) -> None:
    """Refuse before a run what could not be joined with it after it.

    Raises StoreError where it is no log, ValueError where it is of another boot or its program has
    ended, or where the server is on another host: nothing compares the clocks of two.
    """
    path, found = log.path, log.read()
    _check_boot(path, found, boot_id())
    if not _is_here(target.host):
        raise ValueError(
            f"--probe {path}: {target.host} is not an address of this machine, and moments of two "
            "machines cannot be compared; run gcbench load on the server's, or leave --probe out"
        )
    silent = (time.monotonic_ns() - found.read_ns) / 1e9
    if silent > _STALE_SECONDS:
        raise ValueError(
            f"--probe {path}: nothing has been written for {fmt.seconds(silent)}, so its program "
            f"has ended; start the server with gcbench probe --log {path} -- COMMAND"
        )


def collections_of(log: LogReader, observed: Observed) -> tuple[Collections, list[str]]:
    """The log, once it reaches the run's end, and what it lacks.

    Raises StoreError, and ValueError where it is of another boot.
    """
    end_ns = max(int(observed.recording.ended_ns.max(initial=0)), observed.start_ns)
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        found = log.read()
        _check_boot(log.path, found, observed.boot_id)
        missing = (end_ns - found.read_ns) / 1e9
        is_over = time.monotonic_ns() - found.read_ns > _STALE_SECONDS * 1e9
        if missing <= 0 or is_over or time.monotonic() > deadline:
            break
        time.sleep(_LOOK_SECONDS)
    notes = list(found.notes)
    if missing > 0:
        notes.append(f"Collections in the last {fmt.seconds(missing)} of the run are not known.")
    if found.began_ns > observed.start_ns:
        missing = (found.began_ns - observed.start_ns) / 1e9
        notes.append(f"Collections in the first {fmt.seconds(missing)} of the run are not known.")
    return found, notes


def _check_boot(path: Path, found: Collections, boot: str) -> None:
    if not boot or found.boot_id != boot:
        raise ValueError(
            f"--probe {path}: it was written on another machine or before a reboot, and moments of "
            "two boots cannot be compared; name the log of the server that this run asked"
        )


def _is_here(host: str) -> bool:
    own = {
        each.address.partition("%")[0] for all_ in psutil.net_if_addrs().values() for each in all_
    }
    with suppress(OSError):
        found = {str(each[4][0]).partition("%")[0] for each in socket.getaddrinfo(host, None)}
        return any(each in own or each.startswith("127.") for each in found)
    return True  # that it cannot be found is said by whoever asks it
