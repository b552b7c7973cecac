"""Where trials of an installed engine run: as it is installed, or with a tree's package first."""

import os
from pathlib import Path

from engines.interpreter import interpreter
from engines.protocol import Launch, TreeError

_CODE_ROOT = Path(__file__).parents[1]


def launch_package(package: str, python: str, release: str) -> Launch:
    """This interpreter or the one asked for; ``release`` is a tree whose ``package`` it imports.

    ``package``: its path below the tree, "toy" or "src/toy"; the tree may also be the folder that
    it is in. Raises ValueError where there is no such interpreter, TreeError where it is not there.
    """
    path = [str(_CODE_ROOT)]  # first: beside the package there may be an `engines` of theirs
    if release:
        path.append(str(_folder(package, Path(release).expanduser()).parent))
    if inherited := os.environ.get("PYTHONPATH"):
        path.append(inherited)
    return Launch(interpreter(python), {"PYTHONPATH": os.pathsep.join(path)})


def _folder(package: str, tree: Path) -> Path:
    for folder in (tree / package, tree / Path(package).name):
        if folder.is_dir():
            return folder.resolve()
    raise TreeError(str(tree), f"no {package}/ there; give the top folder of a tree that has it")
