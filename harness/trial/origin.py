"""What a trial's figures are of beside its cell: machine, interpreter, code and packages."""

import sys
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import engines
from harness.machine.describe import code_identity, describe, distribution_version
from harness.machine.interpreter import this_interpreter

MEASURES = (
    "gcbench",
    "workloads",
    "harness/axes.py",
    "harness/files.py",
    "harness/format.py",
    "harness/metrics.py",
    "harness/collector",
    "harness/machine",
    "harness/statistics/percentile.py",
    "harness/running",
    "harness/trial",
)
"""What measures, as paths below the root that this file is in."""

_SOURCES = (".json", ".py", ".toml")
_PACKAGES = ("msgspec", "numpy", "psutil", "tokenizers", "torch", "transformers", "triton", "vllm")


def origin(package: str) -> dict[str, Any]:
    """The fields of a `TrialResult` that say so; ``package`` is the engine's own."""
    folder = Path(engines.__file__).resolve().parent
    root, commit = code_identity(folder.parent)
    return {
        "interpreter": str(this_interpreter()),
        "code_root": root,
        "code_commit": commit,
        "code_sha256": sources_sha256(folder),
        "dependencies": dependencies(package),
        "machine": describe(),
    }


def sources_sha256(*engines: Path) -> str:
    """SHA-256 over the files that decide a figure: those of the engines and what measures."""
    root = Path(__file__).resolve().parents[2]
    total = sha256()
    for part in (*engines, *(root / name for name in MEASURES)):
        below = sorted(part.rglob("*")) if part.is_dir() else [part]
        for path in (path for path in below if path.suffix in _SOURCES and path.is_file()):
            name = path.relative_to(part.parent).as_posix()
            content = path.read_bytes()
            total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()


def dependencies(package: str) -> dict[str, str]:
    """Versions of the installed packages that a trial may import, by name.

    ``package``: the engine's own, which may be a checkout; then its commit stands there. Beside
    it stands a hash over all that is installed: nobody knows which of a hundred packages decide.
    """
    found = {name: distribution_version(name) for name in _PACKAGES}
    name = package.rpartition("/")[2]
    own = sys.modules.get(name)
    if name != engines.__name__ and own is not None and own.__file__:
        root = Path(own.__file__).resolve().parents[1]
        found[name] = code_identity(root)[1] or found.get(name, "")
        found["all packages"] = _all_packages()
    return {name: installed for name, installed in found.items() if installed}


def _all_packages() -> str:
    """SHA-256, shortened, over name and version of each package that can be imported."""
    names = sorted({f"{each.name}=={each.version}" for each in distributions()})
    return sha256("\n".join(names).encode()).hexdigest()[:12]
