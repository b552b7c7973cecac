"""Where trials of an installed engine run: as it is installed, or with a tree's package first."""

from pathlib import Path

from engines.interpreter import import_path, interpreter
from engines.protocol import Launch, TreeError

_CODE_ROOT = Path(__file__).parents[1]


def launch_package(package: str, python: str, release: str) -> Launch:
    """This interpreter or the one asked for; ``release`` is a tree whose ``package`` it imports.

    ``package``: its path below the tree, "toy" or "src/toy"; the tree may also be the folder that
    it is in. Raises ValueError where there is no such interpreter, TreeError where it is not there.
    """
    path = [_CODE_ROOT]  # first: beside the package there may be an `engines` of theirs
    if release:
        path.append(_folder(package, Path(release).expanduser()).parent)
    return Launch(interpreter(python), import_path(*path))


def _folder(package: str, tree: Path) -> Path:
    for folder in (tree / package, tree / Path(package).name):
        if folder.is_dir():
            return folder.resolve()
    raise TreeError(str(tree), f"no {package}/ there; give the top folder of a tree that has it")
