"""Where trials of a function run: an interpreter that finds it as ``python -m`` would here."""

from pathlib import Path

from engines.interpreter import import_path, interpreter
from engines.protocol import Launch, TreeError

_CODE_ROOT = Path(__file__).parents[2]


def launch_call(python: str, release: str) -> Launch:
    """This interpreter or the one asked for; it looks in ``release``, a folder, first.

    Raises ValueError where there is no such folder or interpreter.
    """
    path = [_CODE_ROOT, Path.cwd()]
    if release:
        tree = Path(release).expanduser()
        if not tree.is_dir():
            raise TreeError(release, "no folder; give the one that holds the package")
        path.insert(0, tree.resolve())
    return Launch(interpreter(python), import_path(*path))
