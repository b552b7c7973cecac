"""Which interpreter the axis `python` asks for: a path, or a version with an environment here; and
where it imports from.
"""

import os
import re
import shutil
import sys
from pathlib import Path

from engines.cache import cache_root

_VERSION = re.compile(r"3\.\d+")


def interpreter(asked: str) -> str:
    """Its path; "" is this one. Of a version it is this one, or the one that ``.ci/run`` keeps.

    Raises ValueError where there is none.
    """
    if not asked or asked == "{}.{}".format(*sys.version_info):
        return sys.executable
    if not _VERSION.fullmatch(asked):
        if shutil.which(asked) is None:
            raise ValueError(f"--axis python={asked}: no such program; give an interpreter's path")
        return asked
    kept = cache_root() / "ci" / f"python-{asked}" / "bin" / "python"
    if not kept.exists():
        raise ValueError(
            f"--axis python={asked}: no environment of this version; make one with `make install "
            f"PYTHON=python{asked} VENV={kept.parents[1]}`, as .ci/run does, or give a path"
        )
    return str(kept)


def import_path(*folders: Path) -> dict[str, str]:
    """What to set so that an interpreter looks in these folders first, then where this one was told
    to.
    """
    path = [*map(str, folders), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, path))}
