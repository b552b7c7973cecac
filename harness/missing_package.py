"""What a bare ``pip install gcbench`` leaves out, said in one sentence where it is wanted."""

import sys

BENCH = frozenset(
    {
        "aiohttp",
        "click",
        "httptools",
        "jinja2",
        "matplotlib",
        "msgspec",
        "numpy",
        "pandas",
        "perfetto",
        "prometheus_client",
        "psutil",
        "pyarrow",
        "rapidfuzz",
        "rich",
        "safetensors",
        "scipy",
        "tokenizers",
        "tomli_w",
        "unearth",
        "uvloop",
        "zmq",
    }
)
"""The packages of the extra ``bench`` in pyproject.toml, as they are imported."""

_OTLP = (
    "opentelemetry",
    "opentelemetry.exporter",
    "opentelemetry.exporter.otlp",
    "opentelemetry.exporter.otlp.proto.http",
    "opentelemetry.sdk",
)
"""The first that is not there, where another program has brought some of them."""

_NEEDED_BY = {
    **dict.fromkeys(_OTLP, "--otlp"),
    "perfetto": "--perfetto",
    "ray": "--cluster",
    "torch": "a device with a model, or the shape tensor,",
}
"""Who needs a package which measuring does not."""

_OTHER_EXTRAS = {**dict.fromkeys(_OTLP, "otlp"), "ray": "cluster", "torch": "torch"}
"""The extra that brings a package which ``bench`` does not."""


def missing_package(error: BaseException) -> str:
    """What to install where ``error`` says that a package of an extra is not there, else ""."""
    if not isinstance(error, ModuleNotFoundError) or error.name not in {*BENCH, *_OTHER_EXTRAS}:
        return ""
    return (
        f"{sys.executable} has no {error.name}, which "
        f"{_NEEDED_BY.get(error.name, 'measuring')} needs; run "
        f"{sys.executable} -m pip install 'gcbench[{_OTHER_EXTRAS.get(error.name, 'bench')}]'"
    )
