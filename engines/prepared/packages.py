"""Packages installed as pip would: by uv, in seconds, where it can be had and told the same.

As a script, into its Python's own environment: packages.py REQUIREMENT... [-e PATH]. Imports
nothing of ours, for then nothing is installed.
"""

import ast
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

# uv reads none of pip's settings. These it takes as flags, a word each, and as variables.
_FLAGS = {
    "index-url": "--default-index",
    "extra-index-url": "--index",
    "find-links": "--find-links",
    "constraint": "--constraints",
    "trusted-host": "--allow-insecure-host",
}
_VARIABLES = {
    "cert": "SSL_CERT_FILE",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "proxy": "ALL_PROXY",
    "retries": "UV_HTTP_RETRIES",
    "timeout": "UV_HTTP_TIMEOUT",
}
_WITHOUT_EFFECT = {
    "break-system-packages",
    "cache-dir",
    "compile",
    "config-file",
    "disable-pip-version-check",
    "no-cache-dir",
    "no-color",
    "no-compile",
    "no-input",
    "progress-bar",
    "quiet",
    "require-virtualenv",
    "root-user-action",
    "verbose",
}


_NAME_PIPS_FILES = ("HOME", "PIP_CONFIG_FILE", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME")


def pip_settings() -> dict[str, str]:
    """pip's options by long name: those of its files, and over them the environment's."""
    of_environment = {
        name.removeprefix("PIP_").lower().replace("_", "-"): value
        for name, value in os.environ.items()
        if name.startswith("PIP_")
    }
    return _of_files(*map(os.environ.get, _NAME_PIPS_FILES)) | of_environment


@cache  # pip takes a quarter of a second, and each of many releases asks
def _of_files(*_named: str | None) -> dict[str, str]:
    command = [sys.executable, "-m", "pip", "config", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[str, dict[str, str]] = {"global": {}, "install": {}}
    for line in done.stdout.splitlines():
        name, _, value = line.partition("=")
        section, _, option = name.rpartition(".")
        if section in found:
            found[section][option] = str(ast.literal_eval(value))
    return found["global"] | found["install"]


def is_on(value: str) -> bool:
    """Whether pip takes a setting's value for true."""
    return value.lower() in ("1", "true", "yes", "on")


def uv_install(python: str) -> tuple[list[str], dict[str, str]] | None:
    """The command, to which requirements are added, for that Python's environment; its variables.

    None where uv is missing or does not know one of pip's settings.
    """
    said = {name: value for name, value in pip_settings().items() if name not in _WITHOUT_EFFECT}
    without_index = is_on(said.pop("no-index", ""))
    beside = Path(sys.executable).with_name("uv")
    uv = shutil.which("uv") or (str(beside) if beside.is_file() else None)
    if uv is None or not said.keys() <= _FLAGS.keys() | _VARIABLES.keys():
        return None
    flags = [f"{_FLAGS[name]}={word}" for name in _FLAGS for word in said.get(name, "").split()]
    # pip takes the newest version of all indexes.
    flags += ["--no-index"] if without_index else ["--index-strategy=unsafe-best-match"]
    env = {_VARIABLES[name]: said[name] for name in _VARIABLES if name in said} | os.environ
    return [uv, "pip", "install", *flags, "--python", python], env


def main(requirements: list[str]) -> int:
    """Exit status."""
    pip = [sys.executable, "-m", "pip", "install", "-qq"]
    if not shutil.which("uv"):
        subprocess.run([*pip, "uv"], capture_output=True, check=False)
    if found := uv_install(sys.executable):
        command, env = found
        done = subprocess.run([*command, *requirements], env=env, capture_output=True, check=False)
        if done.returncode == 0:
            return 0
    return subprocess.run([*pip, *requirements], check=False).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
