"""Install packages into this Python's environment: .ci/packages.py REQUIREMENT... [-e PATH].

By uv, in seconds, where it can be had and heeds what pip was told on this machine; otherwise by
pip, in minutes.
"""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

PIP = (sys.executable, "-m", "pip")
# uv reads none of pip's settings. These it takes as flags, a word each, and as variables.
FLAGS = {
    "index-url": "--default-index",
    "extra-index-url": "--index",
    "find-links": "--find-links",
    "constraint": "--constraints",
    "trusted-host": "--allow-insecure-host",
}
VARIABLES = {
    "cert": "SSL_CERT_FILE",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "proxy": "ALL_PROXY",
    "retries": "UV_HTTP_RETRIES",
    "timeout": "UV_HTTP_TIMEOUT",
}
WITHOUT_EFFECT = {
    "break-system-packages", "cache-dir", "compile", "config-file", "disable-pip-version-check",
    "no-cache-dir", "no-color", "no-compile", "no-input", "progress-bar", "quiet",
    "require-virtualenv", "root-user-action", "verbose",
}  # fmt: skip


def pip_settings() -> dict[str, str]:
    """What pip was told for this machine: in its files, and over them in the environment."""
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=True)
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in listed.stdout.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if section in sections and name not in WITHOUT_EFFECT:
            sections[section][name] = str(ast.literal_eval(value))
    return sections["global"] | sections["install"] | sections[":env:"]


def main(requirements: list[str]) -> int:
    """Exit status."""
    said = pip_settings()
    no_index = said.pop("no-index", "").lower() in {"1", "true", "yes", "on"}
    if said.keys() <= FLAGS.keys() | VARIABLES.keys() and (uv := find_uv()):
        flags = [f"{FLAGS[name]}={word}" for name in FLAGS for word in said.get(name, "").split()]
        # pip takes the newest version of all indexes.
        flags += ["--no-index"] if no_index else ["--index-strategy=unsafe-best-match"]
        env = {VARIABLES[name]: said[name] for name in VARIABLES if name in said} | os.environ
        command = [uv, "pip", "install", *flags, "--python", sys.executable, *requirements]
        if subprocess.run(command, env=env, capture_output=True, check=False).returncode == 0:
            return 0
    return subprocess.run([*PIP, "install", "-qq", *requirements], check=False).returncode


def find_uv() -> str | None:
    """The user's, or one that is installed here for it."""
    if found := shutil.which("uv"):
        return found
    done = subprocess.run([*PIP, "install", "-qq", "uv"], capture_output=True, check=False)
    return None if done.returncode else str(Path(sys.executable).with_name("uv"))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
