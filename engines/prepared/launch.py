"""Where trials of a prepared release run: which interpreter, and what comes first on its path."""

from pathlib import Path

from engines.interpreter import import_path, interpreter
from engines.prepared.releases import PreparedReleases
from engines.protocol import Launch
from engines.release_names import is_version

_CODE_ROOT = Path(__file__).parents[2]


def launch_prepared(releases: PreparedReleases, python: str, release: str, *path: Path) -> Launch:
    """The interpreter asked for, or the one of the base.

    First on its path is the ``release``, a version that was prepared or the path of a tree, then
    gcbench, then ``path``. Raises ValueError where one of them is not there.
    """
    first = [releases.layer(release)] if release else []
    if python:
        chosen = interpreter(python)
    elif (prepared := releases.base_interpreter()) is not None:
        chosen = str(prepared)
    else:
        name, package = releases.project.name, releases.project.package
        raise ValueError(
            f"there is no {name} here: run `make {package}` (gcbench releases {package} "
            "--prepare), or name an interpreter that has it by --axis python"
        )
    return Launch(chosen, import_path(*first, _CODE_ROOT, *path))


def prepare_once(releases: PreparedReleases, release: str) -> None:
    """Make a version's layer and base, if they are not there; a tree is or is not.

    Raises ReleaseError.
    """
    if not is_version(release):
        return
    try:
        launch_prepared(releases, "", release)
    except ValueError:
        releases.prepare_release(release, lambda words: None)
