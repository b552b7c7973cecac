"""vLLM's own API server over the host path, with a line to each of its processes."""

import dataclasses
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from multiprocessing import current_process
from pathlib import Path
from typing import Any

from engines.openai.plain_get import wait_for
from engines.openai.target import parse_target
from engines.prepared.tokenizer_folder import make_tokenizer_folder
from engines.private_folder import private_folder
from engines.protocol import EngineConfig, EngineDeadError
from engines.tied_process import start_tied
from engines.vllm.control import Control
from engines.vllm.device_log import DeviceLog
from engines.vllm.launch import launch_vllm

_INSIDE = "engines.vllm.api_server_inside"
_FIRST_SECONDS, _LAST_SECONDS = 900, 30.0


class ApiServer:
    """A release's API server on a free port of this machine, its worker in the engine core.

    ``said`` gets what it prints. Raises EngineDeadError where it ends or does not answer.
    """

    def __init__(self, config: EngineConfig, release: str, said: Path) -> None:
        self._folder = private_folder("vllm")
        self._control = Control(self._folder)  # its socket is in the environment from here on
        self.url = f"http://127.0.0.1:{free_port()}"
        DeviceLog(f"{self._folder}/device-log", create=True)
        make_tokenizer_folder(Path(self._folder, "tokenizer"), config.tokenizer)
        asked = {
            "config": dataclasses.asdict(config),
            "folder": self._folder,
            "url": self.url,
            "authkey": current_process().authkey.hex(),
        }
        where = launch_vllm("", release)
        with said.open("wb") as output:
            self._process = start_tied(
                [where.interpreter, "-P", "-m", _INSIDE],
                env={**os.environ, **where.environment},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            assert self._process.stdin is not None
            with self._process.stdin as line:
                line.write(json.dumps(asked).encode() + b"\n")
            self._wait_until_up(said)
            self._control.wait_for(["frontend", "engine"])
        except BaseException:
            self.shutdown()
            raise

    def _wait_until_up(self, said: Path) -> None:
        for _ in range(_FIRST_SECONDS):
            if wait_for(parse_target(self.url), 1.0):
                return
            if self._process.poll() is not None:
                lines = said.read_text(errors="replace").split("\n")
                why = next((line for line in reversed(lines) if line.strip()), "it said nothing")
                raise EngineDeadError(f"vLLM's API server has ended: {why.strip()}")
        raise EngineDeadError(f"vLLM's API server does not answer within {_FIRST_SECONDS} s")

    def collective_rpc(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Call ``function(process, *args)`` in the API server, then in the engine core."""
        return self._control.rpc(function, args)

    def shutdown(self) -> None:
        """End its processes; safe to call twice."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_LAST_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
        self._control.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def free_port() -> int:
    """A TCP port of this machine on which nothing listens now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port
