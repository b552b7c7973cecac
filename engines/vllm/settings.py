"""What gcbench tells vLLM's processes, by vLLM's own channels: configuration and environment."""

import dataclasses
import os
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from engines.protocol import EngineConfig

HOST_PATH_VARIABLE = "GCBENCH_VLLM_HOST_PATH"
"""Set where the forward pass is to be ours; read by the plug-in in each of vLLM's processes."""

CONTROL_VARIABLE = "GCBENCH_VLLM_CONTROL"
"""The socket at which vLLM's other processes report to the one that runs the trial."""

NATIVE = "native"
"""Asks for the representation that the release's own scheduler reads."""

_KEY = "gcbench"

_PLATFORMS = "vllm.platform_plugins"
_GROUPS = (_PLATFORMS, "vllm.general_plugins")

ENTRY_POINTS = Path(__file__).parent / "entry_points"
"""On the path of a trial, so that vLLM finds the plug-ins without gcbench being installed."""


def set_environment(*, engine_core: str, host_path: bool, ranks: int = 1) -> None:
    """Set what vLLM reads from the environment while it is imported and started.

    Plug-ins that the user names stay. Raises ValueError where one cannot be had, or brings a
    platform where the host path has its own.
    """
    asked = [
        name
        for name in os.environ.get("VLLM_PLUGINS", "").split(",")
        if name.strip() and name != _KEY
    ]
    fixed = {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "1" if engine_core == "process" else "0",
        # A forked process would inherit this one's heap and collector, and its plug-ins as loaded.
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        "VLLM_PLUGINS": ",".join([_KEY, *asked]),
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    os.environ.update(fixed)
    _check_plugins(asked, host_path=host_path)
    # The level of logging stays vLLM's, or the user's: it decides which statistics are kept.
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")
    if host_path:
        os.environ[HOST_PATH_VARIABLE] = "1"
    if host_path and ranks > 1:
        # Left to itself vLLM wants a NUMA node for each, and in 0.20 cannot leave them unbound;
        # the plug-in does.
        cores = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "|".join([cores] * ranks))


def _check_plugins(names: list[str], *, host_path: bool) -> None:
    """vLLM itself passes over a plug-in that it cannot load, with no more than a message."""
    for name in names:
        found = [
            (group, entry) for group in _GROUPS for entry in entry_points(group=group, name=name)
        ]
        if not found:
            raise ValueError(
                f"VLLM_PLUGINS names {name}, and no such plug-in is installed beside this vLLM; "
                "install it there, or take it out of VLLM_PLUGINS"
            )
        for group, entry in found:
            try:
                plugin = entry.load()
                platform = plugin() if group == _PLATFORMS and host_path else None
            except Exception as error:  # whatever somebody's plug-in raises
                why = f"{type(error).__name__}: {error}"
                raise ValueError(
                    f"plug-in {name} of VLLM_PLUGINS cannot be loaded ({why}); take it out of "
                    "VLLM_PLUGINS, or mend it"
                ) from None
            if platform is not None:
                raise ValueError(
                    f"plug-in {name} of VLLM_PLUGINS is a platform, {platform}, and vllm-hostpath "
                    "has its own; take it out of VLLM_PLUGINS, or measure it with --engine vllm"
                )


def additional_config(config: EngineConfig, device_log: str) -> dict[str, Any]:
    """What vLLM carries, unread, to every worker as ``additional_config``."""
    return {_KEY: {"config": dataclasses.asdict(config), "device_log": device_log}}


def gate_path(device_log: str) -> str:
    """Of the gate at which a worker waits for an asynchronous reader."""
    return f"{device_log}-gate"


def read_additional_config(vllm_config: Any) -> tuple[EngineConfig, str]:
    """The configuration and the path of the device log, on the worker's side."""
    ours = vllm_config.additional_config[_KEY]
    fields = ours["config"] | {"num_accepted": tuple(ours["config"]["num_accepted"])}
    return EngineConfig(**fields), ours["device_log"]
