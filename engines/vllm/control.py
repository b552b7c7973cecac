"""Calls into vLLM's other processes: they report at a socket and answer there from a thread.

The thread sleeps in a read while nothing is asked of it, so it does nothing within a window.

What crosses is pickled, and a pickle can run anything. So each end first shows the other that it
has the `authkey` which multiprocessing gives to a process and to those that it starts.
"""

import os
import select
import time
from collections.abc import Callable
from multiprocessing import AuthenticationError, current_process
from multiprocessing.connection import (
    Client,
    Connection,
    Listener,
    answer_challenge,
    deliver_challenge,
)
from threading import Thread
from typing import Any

from engines.protocol import EngineDeadError
from engines.vllm.host_process import HERE
from engines.vllm.settings import CONTROL_VARIABLE

REPORT_SECONDS = 60.0
_MOST_PROCESSES = 64
_ORDER = ("frontend", "engine", "worker")
_NO_KEY = (AuthenticationError, AssertionError)
"""Until 3.12, multiprocessing asserts that what it is sent is a challenge."""


class Control:
    """The trial's end of the connections, one for each other process of vLLM."""

    def __init__(self, folder: str) -> None:
        path = f"{folder}/control"
        # All report before the first is heard, for vLLM waits until each of them is ready.
        self._listener = Listener(path, family="AF_UNIX", backlog=_MOST_PROCESSES)
        self._connections: list[tuple[str, Connection]] = []
        os.environ[CONTROL_VARIABLE] = path

    def wait_for(self, roles: list[str]) -> None:
        """Until a process of each role has reported. Raises EngineDeadError where one does not."""
        listener = self._listener._listener._socket  # type: ignore[attr-defined]
        listener.settimeout(REPORT_SECONDS)
        while len(self._connections) < len(roles):
            try:
                connection = self._listener.accept()
            except TimeoutError:
                heard = ", ".join(role for role, _ in self._connections) or "none"
                raise EngineDeadError(
                    f"of vLLM's processes ({', '.join(roles)}) within {REPORT_SECONDS:.0f} s only "
                    f"these reported: {heard}; its plug-in was not loaded there"
                ) from None
            try:
                deliver_challenge(connection, current_process().authkey)
                answer_challenge(connection, current_process().authkey)
                self._connections.append((connection.recv(), connection))
            except _NO_KEY:
                connection.close()  # nobody that vLLM has started
            except (EOFError, OSError):
                raise EngineDeadError("a process of vLLM ended while it reported") from None
        self._connections.sort(key=lambda each: _ORDER.index(each[0]))

    def rpc(self, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
        """Call ``function(process, *args)`` in each; raises what it raised there."""
        return [
            self._call(role, connection, function, args) for role, connection in self._connections
        ]

    def _call(
        self, role: str, connection: Connection, function: Callable[..., Any], args: tuple[Any, ...]
    ) -> Any:
        try:
            connection.send((function, args))
            answer, error = connection.recv()
        except (EOFError, OSError):
            raise EngineDeadError(_have_ended([role])) from None
        if error is not None:
            raise error
        return answer

    def ended(self) -> str:
        """Which processes have ended, in one sentence, or ""."""
        roles = [role for role, connection in self._connections if _hangs_up(connection, 0)]
        return _have_ended(roles) if roles else ""

    def when_ended(self, role: str, call: Callable[[], object]) -> None:
        """Call ``call`` from a thread when the process of that role ends."""
        (connection,) = (connection for each, connection in self._connections if each == role)

        def wait() -> None:
            _hangs_up(connection, None)
            call()

        Thread(target=wait, daemon=True, name="gcbench-control").start()

    def close(self) -> None:
        """Let go of the processes and of the socket."""
        for _, connection in self._connections:
            connection.close()
        self._connections.clear()
        self._listener.close()
        os.environ.pop(CONTROL_VARIABLE, None)


def _have_ended(roles: list[str]) -> str:
    return f"vLLM's {' and '.join(roles)} process {'has' if len(roles) == 1 else 'have'} ended"


def _hangs_up(connection: Connection, timeout_ms: int | None) -> bool:
    """Whether the other end is closed by then; None waits for it. What can be read stays."""
    poller = select.poll()
    poller.register(connection, 0)
    return bool(poller.poll(timeout_ms))


def answer(path: str, role: str = "") -> None:
    """Report this process of vLLM and answer calls from now on; "": its name says its role."""
    is_core = current_process().name.startswith("EngineCore")
    HERE.role = role or ("engine" if is_core else "worker")
    connection = _connect(path)
    # From the thread, for the trial hears nobody before vLLM is ready, and that waits for this.
    Thread(target=_serve, args=(connection,), daemon=True, name="gcbench-control").start()


def _connect(path: str) -> Connection:
    deadline = time.monotonic() + REPORT_SECONDS
    while True:
        try:
            return Client(path, family="AF_UNIX")
        except BlockingIOError:  # more report at once than it has room for
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _serve(connection: Connection) -> None:
    try:
        answer_challenge(connection, current_process().authkey)
        deliver_challenge(connection, current_process().authkey)
        connection.send(HERE.role)
    except (EOFError, OSError, *_NO_KEY):
        connection.close()
        return
    while True:
        try:
            function, args = connection.recv()
        except (EOFError, OSError):
            return
        reply: tuple[Any, Exception | None]
        try:
            reply = function(HERE, *args), None
        except Exception as error:  # the caller's to raise
            reply = None, error
        try:
            connection.send(reply)
        except (OSError, EOFError):
            return
        except Exception as error:  # what cannot be pickled cannot be sent
            connection.send((None, TypeError(f"{reply} cannot cross to the trial: {error}")))
