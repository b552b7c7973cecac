"""The suites under the real asv, on a small grid: the commit's engines, this checkout's harness."""

import ast
import shutil
from pathlib import Path
from typing import Any

import pytest
from asv_runs import Project

from harness.experiment.store import RunStore
from harness.trial.spec import TrialResult

asv_results = pytest.importorskip("asv.results")

ROOT = Path(__file__).parents[3]

LISTS = '("list_of_lists/per_request",)'
SMALLER = {
    "grid.py": {"HANDOFFS": LISTS},
    "collections.py": {"_POLICIES": '("default",)', "_ACROSS_HANDOFFS": LISTS},
    # On null: there is no wait that a busy machine can spoil.
    "output_processing.py": {
        "_DEVICE": '"null"',
        "_MODES": '("inline", "process")',
        "_METRICS": '("seconds_per_request", "output_processing_per_step")',
        "_ROUNDS": "2",
    },
    # Four rounds have the steps of a p99.
    "serving.py": {"_DEVICES": '("null",)', "_HANDOFFS": LISTS, "_ROUNDS": "4"},
}

FEWER = {
    "workloads/catalog/opt125m-48-200.toml": [("num_requests = 1024", "num_requests = 512")],
    "harness/suites/grid.py": [("num_requests=2048", "num_requests=1024"), (":1024", ":512")],
}
"""Half of the requests, in as many steps."""

MORE_LISTS = ("        return sampled\n", "        return [list(row) for row in sampled]\n")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Today's suites on a grid of one hand-off; base, head and one that crashes lie beside it."""
    project = Project(tmp_path_factory.mktemp("asv") / "today")
    for package in ("gcbench", "workloads", "engines", "harness"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, project.folder / package, ignore=ignored)
    shutil.copy(ROOT / "asv.conf.json", project.folder)
    add_tree(project, "base")
    # The commits' own harness and workloads must not be what measures them.
    replace(project.folder / "harness" / "__init__.py", '"""', 'raise RuntimeError("mine")\n"""')
    replace(project.folder / "workloads" / "__init__.py", '"""', 'raise RuntimeError("mine")\n"""')
    lists = project.folder / "engines" / "builtin" / "representations" / "list_of_lists.py"
    replace(lists, *MORE_LISTS)
    add_tree(project, "head")
    engine = project.folder / "engines" / "builtin" / "engine.py"
    replace(engine, "import time\n", "import time\nfrom engines.protocol import Gone\n")
    add_tree(project, "crashes")
    project.git("checkout", "base", "--", ".")
    for name, changes in SMALLER.items():
        for variable, value in changes.items():
            assign(project.folder / "harness" / "suites" / name, variable, value)
    for name, texts in FEWER.items():
        for old, new in texts:
            replace(project.folder / name, old, new)
    project.commit()
    project.asv("machine", "--yes", "--machine", "here")
    return project


def add_tree(project: Project, name: str) -> None:
    """Commit what there is, and lay that commit out beside the project."""
    project.commit()
    project.git("tag", name)
    project.git("worktree", "add", "--detach", str(project.folder.parent / name))


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, f"{path.name} has changed; {old!r} is not in it"
    path.write_text(text.replace(old, new, 1))


def assign(path: Path, variable: str, value: str) -> None:
    """Give a module's variable another value in its source."""
    source = path.read_text()
    (assignment,) = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == variable
    ]
    segment = ast.get_source_segment(source, assignment)
    assert segment
    path.write_text(source.replace(segment, f"{variable} = {value}"))


def measure(project: Project, name: str, *arguments: str, status: int = 0) -> str:
    """As asv runs where that commit is installed: its tree is where the interpreter finds it."""
    where = project.folder.parent
    return project.measure(
        name,
        "--machine",
        "here",
        *arguments,
        status=status,
        ASV_PYTHONPATH=str(where / name),
        GCBENCH_RUNS=str(where / f"runs-{name}"),
    )


def trials(project: Project, name: str) -> list[Any]:
    root = project.folder.parent / f"runs-{name}"
    stores = [RunStore(root, folder.name) for folder in sorted(root.iterdir())]
    suites = {"decode", "churn", "wire"}
    assert {store.name.split("-asv-")[1] for store in stores} == (
        suites | {"output-processing", "serving"} if name == "base" else suites
    )
    return [outcome for store in stores for outcome in store.load_trials().values()]


def value(project: Project, name: str, benchmark: str) -> Any:
    """asv's own reading of its file."""
    commit = project.git("rev-parse", name)
    (path,) = (project.folder / "results" / "asv" / "here").glob(f"{commit[:8]}-*.json")
    stored = asv_results.Results.load(str(path))
    parameters = stored.get_result_params(benchmark)
    (first, *_), (stats, *_) = (
        stored.get_result_value(benchmark, parameters),
        stored.get_result_stats(benchmark, parameters),
    )
    return first, stats


@pytest.mark.slow
def test_asv_measures_a_commits_engines_by_this_checkouts_harness(project: Project) -> None:
    for name, which in (("base", []), ("head", ["--bench", "^collections"])):
        said = measure(project, name, *which)
        assert "failed" not in said
        assert "n/a" not in said
        outcomes = trials(project, name)
        assert outcomes
        for outcome in outcomes:
            assert isinstance(outcome, TrialResult), outcome
            assert Path(outcome.code_root) == project.folder.parent / name

    for counted in (
        "collections.track_gc_collections_gen0",
        "collections.track_tracked_peak_per_step",
    ):
        before, after = (value(project, name, counted) for name in ("base", "head"))
        assert after[0] > before[0] * 1.1
        assert before[1] is None, "an exact figure has no interval"
    same, still = (
        value(project, name, "collections.track_handoff_bytes") for name in ("base", "head")
    )
    assert same == still
    _, stats = value(project, "base", "serving.track_seconds_per_request")
    assert stats["repeat"] == 4
    p99, stats = value(project, "base", "serving.track_itl_p99")
    assert p99 > 0
    assert stats is None, "four rounds are one p99"

    compared = project.asv("compare", "base", "head").splitlines()
    marks = [row.split("|")[1].strip() for row in compared if "gen0" in row]
    assert marks == ["+", "+"]
    assert not [row for row in compared if row.startswith("| x")], "one harness, one version"
    assert "seconds_per_request" in project.asv("show", "base", "--machine", "here")
    project.asv("publish")
    assert (project.folder / ".asv" / "html" / "index.json").exists()


@pytest.mark.slow
def test_engines_that_do_not_fit_are_one_sentence(project: Project) -> None:
    said = measure(project, "crashes", "--bench", "collections", status=2)
    assert "no cell could be measured: " in said
    assert "cannot import name 'Gone'" in said
    assert "Traceback" not in said
