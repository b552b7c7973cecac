"""SGLang's releases: what its one environment holds, and how its host path is imported."""

from pathlib import Path

from engines.prepared.project import Installer, Project
from engines.prepared.releases import PreparedReleases

_PINNED = "0.5.23"
_OLDEST = "0.4.6"
# Imported by some release on the way to its scheduler. What SGLang itself requires would bring
# torch with CUDA, and kernels; the stubs stand for those.
_PACKAGES = (
    "torch",
    "aiohttp",
    "apache-tvm-ffi",
    "compressed-tensors",
    "dill",
    "einops",
    "fastapi",
    "gguf",
    "interegular",
    "ipython",
    "llguidance",
    "msgspec",
    "numpy",
    "openai",
    "openai-harmony",
    "orjson",
    "packaging",
    "partial-json-parser",
    "pillow",
    "prometheus-client",
    "psutil",
    "pybase64",
    "pydantic",
    "python-multipart",
    "pyzmq",
    "regex",
    "requests",
    "sentencepiece",
    "setproctitle",
    "tiktoken",
    "tokenizers",
    "transformers",
    "triton",
    "uvicorn",
    "uvloop",
    "watchfiles",
    "xgrammar",
    "xxhash",
    "zstandard",
)
# What a trial needs that SGLang does not: mode `wire` compares messages with it.
_OF_TRIALS = ("rapidfuzz",)


def _install(environment: Installer) -> None:
    environment.install(*_PACKAGES, *_OF_TRIALS)


SGLANG = PreparedReleases(
    Project(
        name="SGLang",
        package="sglang",
        source="python/sglang",
        pinned=_PINNED,
        oldest=_OLDEST,
        why_oldest="none before " + _OLDEST + " was tried",
        first=_OLDEST,
        size="2.1 GB",
        locks=Path(__file__).with_name("locked"),
        install=_install,
        imports="from engines.sglang.shims import import_host_path; import_host_path()",
        variables={},
        # From 0.5.11 on it looks, while it is imported, for the folders of kernels to compile.
        suffixes=(".py", ".cuh"),
    )
)
