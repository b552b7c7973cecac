"""Which module may import which, read from the source without running it."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("gcbench", "workloads", "engines", "harness", "dashboards")

MAY_IMPORT = {
    "workloads": {"workloads"},
    "engines": {"engines"},
    "gcbench": {"gcbench"},
    "harness": {"harness", "engines", "workloads", "gcbench"},
    "dashboards": {"dashboards", "harness", "workloads"},
    "harness.cli": {"dashboards", "harness", "engines", "workloads", "gcbench"},
    "harness.verbs": {"dashboards", "harness", "engines", "workloads", "gcbench"},
}

ROOMS = (
    {
        "axes",
        "cut_bytecode",
        "files",
        "format",
        "metrics",
        "missing_package",
        "not_measured",
        "other_engines",
    },
    {"collector", "machine", "statistics"},
    {"result", "running"},
    {"render"},
    {"probed", "trial"},
    {"experiment"},
    {"load"},
    {"explain"},
    {"suites", "tracking"},
    {"report"},
    {"verbs"},
    {"cli"},
    {"__main__"},
)
"""Of harness, the lowest first: none knows a higher one, nor its neighbour."""

ENTRIES = (("gcbench.__main__", "harness.__main__"), ("gcbench.verbs", "harness.verbs.api"))
"""The imports by which a small package that everybody may load starts the rest."""

HEAVY = {"torch", "triton", "sglang", "vllm", "aiohttp"}
MAY_LOAD_HEAVY = (
    "engines.builtin.device",
    "engines.builtin.model",
    "engines.builtin.worker",
    "engines.builtin.representations",
    "engines.builtin.transport.gloo",
    "engines.sglang.no_model",
    "engines.vllm.core_here",
    "engines.vllm.dialect",
    "engines.vllm.empty_model",
    "engines.vllm.executor",
    "engines.vllm.null_connector",
    "engines.server",
    "engines.vllm.platform",
    "engines.vllm.runner",
    "engines.vllm.worker",
)


class Import(NamedTuple):
    """``importer`` names ``imported``; ``at_load``: as soon as it is imported itself."""

    importer: str
    imported: str
    at_load: bool


def modules(root: Path) -> dict[str, Path]:
    """Every module of the project under ``root``, by its dotted name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(files: Mapping[str, Path]) -> list[Import]:
    """All imports of these modules, in functions and for type checkers too."""
    return [
        each
        for name, path in files.items()
        for each in _of(name, ast.parse(path.read_text()), files, at_load=True)
    ]


def _of(importer: str, node: ast.AST, files: Mapping[str, Path], at_load: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                yield from (Import(importer, alias.name, at_load) for alias in names)
            case ast.ImportFrom(level=0, module=str(module), names=names):
                for alias in names:
                    inner = f"{module}.{alias.name}"
                    yield Import(importer, inner if inner in files else module, at_load)
            case ast.ImportFrom():
                yield Import(importer, "a relative import", at_load)
            case ast.Call(func=ast.Name(id="import_module"), args=[ast.Constant(value=str(name))]):
                yield Import(importer, name, at_load)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield from _of(importer, child, files, at_load=False)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                yield from _of(importer, child, files, at_load=False)
            case _:
                yield from _of(importer, child, files, at_load)


def complaints(found: Sequence[Import]) -> list[str]:
    """A sentence for each import that goes the wrong way, and for each circle."""
    said = [
        f"{each.importer} imports {each.imported}: {why}" for each in found if (why := _wrong(each))
    ]
    return said + [f"circle: {' -> '.join(circle)}" for circle in _circles(found)]


def _wrong(each: Import) -> str:
    package, other = each.importer.split(".")[0], each.imported.split(".")[0]
    if other == "a relative import":
        return "imports are absolute"
    rooms = (room for room in ("harness.cli", "harness.verbs") if _within(each.importer, room))
    may = MAY_IMPORT[next(rooms, package)]
    if other in PACKAGES and other not in may and (each.importer, each.imported) not in ENTRIES:
        return f"{package} may not know {other}"
    if other == "benchmarks":
        return "benchmarks are tools of the repository, which no wheel has"
    if package != "harness" and _within(each.imported, "harness.cli"):
        return "the command line is the top"
    if package == other == "harness":
        return _between_rooms(each)
    return _too_heavy(each, package) if other in HEAVY else ""


def _too_heavy(each: Import, package: str) -> str:
    if package != "engines":
        return f"only engines may know {each.imported.split('.')[0]}"
    if each.at_load and not any(_within(each.importer, place) for place in MAY_LOAD_HEAVY):
        return f"{each.imported.split('.')[0]} is for the engine that needs it"
    return ""


def _between_rooms(each: Import) -> str:
    """A room is a folder of harness, or a file beside the folders; harness itself has nothing."""
    importer, imported = (f"{name}.".split(".")[1] for name in (each.importer, each.imported))
    if importer == imported or not importer or not imported:
        return ""
    floors = {room: floor for floor, rooms in enumerate(ROOMS) for room in rooms}
    for room in (importer, imported):
        if room not in floors:
            return f"harness.{room} is in none of ROOMS"
    if floors[imported] < floors[importer]:
        return ""
    return f"harness.{importer} may not know harness.{imported}"


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _circles(found: Sequence[Import]) -> list[list[str]]:
    """Modules that cannot be read without each other: imports in functions and those for type
    checkers count as any other.
    """
    needs: dict[str, set[str]] = {}
    for each in found:
        if each.imported.split(".")[0] in PACKAGES:
            needs.setdefault(each.importer, set()).add(each.imported)
    done: set[str] = set()
    circles: list[list[str]] = []

    def visit(module: str, path: list[str]) -> None:
        if module in path:
            circles.append([*path[path.index(module) :], module])
        elif module not in done:
            for needed in sorted(needs.get(module, ())):
                visit(needed, [*path, module])
            done.add(module)

    for module in sorted(needs):
        visit(module, [])
    return circles
