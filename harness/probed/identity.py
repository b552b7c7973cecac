"""Who a Python process is, and why one has no probe, by what Linux says of it."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from gcbench import probe

START_UP = Path(probe.__file__).parent / "start_up"
"""The folder that goes first on PYTHONPATH."""
_INTERPRETER = re.compile(r"python|pypy")
_WITH_VALUE = "WX"
"""Options of the interpreter that take the next word."""
_PARTS = {
    "multiprocessing.resource_tracker": "resource tracker",
    "multiprocessing.forkserver": "fork server",
    "multiprocessing.spawn": "spawned child",
}


def is_python(executable: str) -> bool:
    """Whether a program is an interpreter, by its file's name."""
    return bool(_INTERPRETER.match(Path(executable).name))


def name_of(command: Sequence[str], multiprocessing_name: str = "") -> str:
    """A process's name: its own title, `multiprocessing`'s, its module or its script."""
    if not command or not is_python(command[0]):
        return Path(command[0]).name if command else "python"
    if multiprocessing_name:
        return multiprocessing_name
    for module, name in _PARTS.items():
        if any(module in word for word in command[1:]):
            return name
    options, rest = _split(command)
    if options.endswith("m") and rest:
        return rest[0]
    if options.endswith("c") or not rest:
        return "python -c" if options.endswith("c") else "python"
    return Path(rest[0]).name


def _split(command: Sequence[str]) -> tuple[str, list[str]]:
    """The interpreter's options as letters, up to ``c`` or ``m``, and the words behind them."""
    letters, words = "", list(command[1:])
    while words and words[0].startswith("-") and len(words[0]) > 1:
        word = words.pop(0)
        if word.startswith("--"):
            continue
        for at, letter in enumerate(word[1:], start=2):
            if letter in _WITH_VALUE:
                if at == len(word) and words:
                    words.pop(0)
                break
            letters += letter
            if letter in "cm":
                return letters, [*filter(None, [word[at:]]), *words]
    return letters, words


def why_not_probed(
    process: psutil.Process, folder: Path, command: Sequence[str], error: int | None = None
) -> str:
    """Why an interpreter has no ring, in words that follow "because".

    ``command``: what it was started with, empty where that is not known. ``error``: an errno.
    """
    if error is not None:
        return f"no ring could be made in {folder}: {os.strerror(error)}"
    environment, version, user = None, None, os.geteuid()
    with suppress(psutil.Error, OSError):
        version = _version(process.exe())
        user = process.uids().effective
        environment = process.environ()
    if user != os.geteuid():
        return "it runs as another user"
    # One that ends shows an empty environment before it is gone, and an empty command with it.
    if not command_of(process):
        environment = None
    if not command:
        return "it ended before it could be looked at"
    return _why(_split(command)[0], environment, version, folder)


def command_of(process: psutil.Process) -> list[str]:
    """The words that it shows by now; none once it has ended."""
    with suppress(psutil.Error, OSError):
        return process.cmdline()
    return []


def _why(
    options: str,
    environment: Mapping[str, str] | None,
    version: tuple[int, int] | None,
    folder: Path,
) -> str:
    if version and version < probe.OLDEST_PYTHON:
        return f"Python {'.'.join(map(str, version))} is too old: the probe needs 3.8"
    if "S" in options:
        return "-S leaves out what starts the probe; start it without"
    if environment is not None and environment.get(probe.PROBE_VARIABLE) != str(folder):
        return f"who started it has taken {probe.PROBE_VARIABLE} out of its environment"
    install = "install gcbench where it runs, and it is probed all the same"
    if {"I", "E"} & set(options):
        return f"-{'I' if 'I' in options else 'E'} ignores PYTHONPATH; {install}"
    if environment is not None:
        path = environment.get("PYTHONPATH", "").split(os.pathsep)
        if str(START_UP) not in path:
            return f"who started it has given it another PYTHONPATH; {install}"
    return "it is still starting, or C code has forked it and it has collected nothing since"


def _version(executable: str) -> tuple[int, int] | None:
    """As the name of the interpreter's file has it, which is seldom without."""
    found = re.search(r"python(\d)\.(\d+)$", Path(executable).name)
    return (int(found[1]), int(found[2])) if found else None
