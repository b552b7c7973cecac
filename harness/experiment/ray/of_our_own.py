"""A Ray cluster of this machine alone, for one command."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from secrets import token_hex
from subprocess import DEVNULL

from harness.experiment.ray.address import can_connect
from harness.experiment.ray.error import ClusterError
from harness.machine.describe import cores_usable
from harness.machine.scratch import scratch_folder
from harness.running.group import Group, started

LOCAL = "local"
_OBJECT_STORE_BYTES = 80 << 20
"""Schedules and rows pass through it, megabytes each."""
_START_SECONDS = 60.0


@contextmanager
def of_our_own() -> Iterator[str]:
    """The address of a cluster of this machine alone, which ends with this process.

    Ray would start one itself, but where its driver is killed some of it stays for minutes. Nobody
    else can use it: it wants a token that is made for it.
    """
    with scratch_folder(Path("/tmp")) as folder, ExitStack() as stack:
        # In /tmp, whatever TMPDIR says: a socket's path may have 107 characters.
        stack.enter_context(_token(folder / "token"))
        options = {
            "--temp-dir": folder,
            "--node-name": LOCAL,
            "--port": 0,
            "--num-cpus": cores_usable(),
            "--object-store-memory": _OBJECT_STORE_BYTES,
            "--include-dashboard": "false",
        }
        flags = [str(word) for pair in options.items() for word in pair]
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"]
        nothing = dict.fromkeys(("stdin", "stdout", "stderr"), DEVNULL)
        head = stack.enter_context(started([*command, *flags], **nothing))
        yield _address_in(folder / "ray_current_cluster", head)


@contextmanager
def _token(path: Path) -> Iterator[None]:
    """What Ray asks of whoever connects, in a file of a folder that only this user can read."""
    path.write_text(token_hex(32))
    wanted = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(path)}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ |= wanted
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _address_in(file: Path, head: Group) -> str:
    """What a cluster that starts writes there. Raises ClusterError where it does not."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and not head.has_ended():
        if file.exists() and (address := file.read_text().strip()) and can_connect(address):
            return address
        time.sleep(0.1)
    raise ClusterError(
        f"--cluster {LOCAL}: Ray has not started within {_START_SECONDS:g} s; `ray start --head` "
        "says why"
    )
