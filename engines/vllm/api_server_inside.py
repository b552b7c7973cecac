"""The inside of `api_server`: vLLM's API server, in an interpreter that has a release.

Reads one line of JSON from standard input: the engine's configuration, the folder that the parent
has made, the address, and the key by which processes of one trial know each other.
"""

import json
import os
import runpy
import sys
from dataclasses import fields
from multiprocessing import current_process
from typing import Any
from urllib.parse import urlsplit

from engines.protocol import EngineConfig
from engines.vllm.settings import CONTROL_VARIABLE, set_environment

_API_SERVER = "vllm.entrypoints.openai.api_server"


def flags(arguments: dict[str, Any]) -> list[str]:
    """Fields of vLLM's ``EngineArgs`` as its command line has them."""
    words = []
    for name, value in arguments.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            text = json.dumps(value) if isinstance(value, dict) else str(value)
            words += [f"--{flag}", text]
    return words


def main() -> None:
    """Report to the parent and serve until a signal comes."""
    asked = json.loads(sys.stdin.readline())
    current_process().authkey = bytes.fromhex(asked["authkey"])
    config = asked["config"] | {"num_accepted": tuple(asked["config"]["num_accepted"])}
    set_environment(engine_core="process", host_path=True)

    from vllm.engine.arg_utils import AsyncEngineArgs

    from engines.vllm.control import answer
    from engines.vllm.dialect import known_arguments
    from engines.vllm.host_path import host_path_arguments

    arguments = host_path_arguments(
        EngineConfig(**config),
        AsyncEngineArgs,
        device_log=f"{asked['folder']}/device-log",
        tokenizer_folder=f"{asked['folder']}/tokenizer",
    )
    # Not every switch that is off by default can be switched off.
    default = {field.name: field.default for field in fields(AsyncEngineArgs)}
    known = known_arguments(AsyncEngineArgs, arguments).items()
    given = {name: value for name, value in known if value != default[name]}
    answer(os.environ[CONTROL_VARIABLE], "frontend")
    address = urlsplit(asked["url"])
    sys.argv = [
        "api_server",
        "--host",
        address.hostname,
        "--port",
        str(address.port),
        "--disable-uvicorn-access-log",
        *flags(given),
    ]
    runpy.run_module(_API_SERVER, run_name="__main__")


if __name__ == "__main__":
    main()
