"""Which test files a change may break, the nearest first: python tests/touched.py [BASE]

The change is what the working tree has that BASE has not. Test files that are named after what
changed come first, then those that few imports lead there. Without BASE the commit that passed last
is taken, which --passed FILE names; without that, or where history no longer leads to it, the last
commit from a day or more before HEAD.
"""

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from import_rules import PACKAGES, imports, modules

ROOT = Path(__file__).parents[1]
A_DAY = timedelta(days=1)


def main() -> int:
    """Print the test files, a line each, and on standard error what they were held against."""
    asked = _arguments()
    base, why = chosen_base(ROOT, asked.base, asked.passed)
    changed = changed_files(ROOT, base)
    files = sources(ROOT)
    found = touched(ROOT, files, changed)
    print(
        f"what changed since {base[:12]}, {why}: {len(changed)} files, which reach "
        f"{len(found)} test files",
        file=sys.stderr,
    )
    for path in found:
        if not asked.slow or "mark.slow" in path.read_text():
            print(path.relative_to(ROOT))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", nargs="?", default="", metavar="BASE", help="a commit")
    parser.add_argument("--passed", type=Path, metavar="FILE", help="names the last that passed")
    parser.add_argument("--slow", action="store_true", help="only files that have slow tests")
    return parser.parse_args()


def git(root: Path, *words: str, env: Mapping[str, str] | None = None) -> str:
    """What git says; a CalledProcessError where it fails."""
    return subprocess.run(
        ["git", *words], cwd=root, env=env, capture_output=True, text=True, check=True
    ).stdout.strip()


def chosen_base(root: Path, asked: str, passed: Path | None) -> tuple[str, str]:
    """The commit to hold the tree against, and why that one."""
    if asked:
        return git(root, "rev-parse", "--verify", f"{asked}^{{commit}}"), "as asked"
    if passed is not None and passed.exists():
        commit = passed.read_text().strip()
        if _is_ancestor(root, commit):
            return commit, "the last that passed here"
    head = datetime.fromisoformat(git(root, "show", "-s", "--format=%cI", "HEAD"))
    before = (head - A_DAY).isoformat()
    if commit := git(root, "rev-list", "-1", f"--before={before}", "HEAD"):
        return commit, "the last from a day before HEAD, since none is known to have passed"
    return git(root, "rev-list", "--max-parents=0", "HEAD").splitlines()[0], "the first there is"


def _is_ancestor(root: Path, commit: str) -> bool:
    words = ["git", "merge-base", "--is-ancestor", commit, "HEAD"]
    return subprocess.run(words, cwd=root, capture_output=True, check=False).returncode == 0


def changed_files(root: Path, base: str) -> list[str]:
    """Paths that differ from ``base`` or are not tracked; those that are gone too."""
    differ = git(root, "diff", "--name-only", "-z", base)
    untracked = git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return sorted({path for path in (differ + "\0" + untracked).split("\0") if path})


def sources(root: Path) -> dict[str, Path]:
    """Every Python file by the name it is imported by, and a conftest by its path.

    What lies below tests/ is imported by its file name alone, which no two files share.
    """
    files = modules(root)
    for folder in ("benchmarks", "examples", "distribution", "docs"):
        for path in sorted((root / folder).rglob("*.py")):
            files[".".join(path.relative_to(root).with_suffix("").parts)] = path
    for path in sorted((root / "tests").rglob("*.py")):
        named = path.name not in ("conftest.py", "__main__.py")
        files[path.stem if named else path.relative_to(root).as_posix()] = path
    return files


def touched(root: Path, files: Mapping[str, Path], changed: Iterable[str]) -> list[Path]:
    """Test files that lead to what changed, the nearest first."""
    changed = list(changed)
    importers: dict[str, set[str]] = {}
    for importer, imported in _edges(root, files):
        importers.setdefault(imported, set()).add(importer)
    reached = dict.fromkeys(_of_paths(root, files, changed), 0)
    edge = list(reached)
    for name in edge:  # grows meanwhile
        for importer in sorted(importers.get(name, ())):
            if importer not in reached:
                reached[importer] = reached[name] + 1
                edge.append(importer)
    words = {word for path in changed for word in _words(path)}

    def place(name: str) -> tuple[bool, int, Path]:
        return not words.intersection(_words(files[name].name)), reached[name], files[name]

    tests = [name for name in reached if files[name].name.startswith("test_")]
    return [files[name] for name in sorted(tests, key=place)]


def _words(path: str) -> set[str]:
    """What a file and its folders are called, less what many are."""
    found = set(re.findall("[a-z]+", path.rpartition(".")[0]))
    return found - {"tests", "test", "init", "conftest", "cli", *PACKAGES}


def _edges(root: Path, files: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """Who needs whom: imports, packages around what is imported, what a test starts by name."""
    for each in imports(files):
        parts = each.imported.split(".")
        for length in range(1, len(parts) + 1):
            if (name := ".".join(parts[:length])) in files:
                yield each.importer, name
    for name, path in files.items():
        yield from ((name, started) for started in _by_name(path, files) if started != name)
        yield from (
            (name, conftest)
            for folder in path.parents
            if folder.is_relative_to(root / "tests")
            and (conftest := (folder / "conftest.py").relative_to(root).as_posix()) in files
            and conftest != name
        )


def _by_name(path: Path, files: Mapping[str, Path]) -> Iterator[str]:
    """Modules that a string names, such as a registry's or a command's, and all of a folder where
    the string is made of the folder's name and a part that is not known.
    """
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Constant(value=str(text)):
                named = text.partition(":")[0]
                yield from (each for each in (named, f"{named}.__main__") if each in files)
            case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]) if text[-1:] == ".":
                yield from (each for each in files if each.startswith(text))


def _of_paths(root: Path, files: Mapping[str, Path], changed: Iterable[str]) -> Iterator[str]:
    """The modules that changed, and for another file those that name it or else lie beside it."""
    by_path = {path.relative_to(root).as_posix(): name for name, path in files.items()}
    texts = {name: path.read_text() for name, path in files.items()}
    for path in changed:
        if path.endswith(".py"):
            yield from filter(None, [by_path.get(path)])
            continue
        naming = [name for name, text in texts.items() if f'{Path(path).name}"' in text]
        beside = [name for at, name in by_path.items() if Path(at).parent == Path(path).parent]
        yield from naming or beside


if __name__ == "__main__":
    sys.exit(main())
