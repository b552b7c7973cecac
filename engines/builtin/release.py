"""Where trials of the built-in engine run: these engines or another tree's, this harness."""

from hashlib import sha256
from pathlib import Path

from engines.cache import cache_root
from engines.interpreter import import_path, interpreter
from engines.protocol import Launch, TreeError

_CODE_ROOT = Path(__file__).parents[2]


def launch_builtin(python: str, release: str) -> Launch:
    """This interpreter or the one asked for; a ``release`` is a tree whose ``engines`` run in it.

    Workloads and harness are this tree's in either case. Raises ValueError where the path holds
    no gcbench, or there is no such interpreter.
    """
    path = [_CODE_ROOT]  # no interpreter finds it by itself, and another one may have another
    if release:
        path.insert(0, _engines_alone(Path(release).expanduser()))
    return Launch(interpreter(python), import_path(*path))


def _engines_alone(tree: Path) -> Path:
    """A folder that has the tree's ``engines`` and nothing else of gcbench in it."""
    engines = tree / "engines"
    if not (engines / "builtin" / "engine.py").is_file():
        why = "no engines/builtin there; give the top folder of a gcbench tree"
        raise TreeError(str(tree), why)
    engines = engines.resolve()
    alone = cache_root() / "engines" / sha256(str(engines).encode()).hexdigest()[:16]
    try:
        alone.mkdir(parents=True, exist_ok=True)
        if not (alone / "engines").is_symlink():
            (alone / "engines").symlink_to(engines)
    except FileExistsError:
        pass  # another process has just made it
    except OSError as error:
        raise ValueError(
            f"cannot write to {alone}: {error.strerror}; set GCBENCH_CACHE to another folder"
        ) from error
    return alone
