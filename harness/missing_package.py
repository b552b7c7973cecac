"""What a bare ``pip install gcbench`` leaves out, said in one sentence where it is wanted."""

import sys

BENCH = frozenset(
    {
        "click", "jinja2", "matplotlib", "msgspec", "numpy", "pandas", "psutil", "pyarrow",
        "rapidfuzz", "rich", "safetensors", "scipy", "tokenizers", "torch", "unearth", "zmq",
    }
)  # fmt: skip
"""The packages of the extra ``bench`` in pyproject.toml, as they are imported."""


def missing_package(error: BaseException) -> str:
    """What to install where ``error`` says that a package of `BENCH` is not there, else ""."""
    if not isinstance(error, ModuleNotFoundError):
        return ""
    package = (error.name or "").partition(".")[0]
    if package not in BENCH:
        return ""
    return (
        f"{sys.executable} has no {package}, which measuring needs; run "
        f"{sys.executable} -m pip install 'gcbench[bench]'"
    )
