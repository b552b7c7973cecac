"""Imports run one way."""

import subprocess
import sys
from pathlib import Path

import pytest
from import_rules import Import, complaints, imports, modules

ROOT = Path(__file__).parents[1]
INSIDE = (
    "harness.axes",
    "harness.collector",
    "harness.running.forking",
    "harness.running.inside",
    "harness.running.stack_dump",
    "harness.trial",
)
CIRCLE = "circle: harness.trial.a -> harness.trial.b -> harness.trial.a"


@pytest.fixture(scope="module")
def of_the_project() -> list[Import]:
    return imports(modules(ROOT))


def test_every_import_of_the_project_runs_the_right_way(of_the_project):
    assert complaints(of_the_project) == []


def test_the_checker_sees_the_project(of_the_project):
    files = modules(ROOT)
    found = {(each.importer, each.imported) for each in of_the_project}
    assert {"workloads.schedule", "engines", "harness.cli.main"} <= files.keys()
    assert ("harness.trial.client", "harness.trial.recorder") in found
    assert ("harness.__main__", "harness.cli.main") in found, "imports in functions count"
    assert ("gcbench.__main__", "harness.__main__") in found, "those by name too"
    assert ("engines.builtin.model", "torch") in found, "those for type checkers too"


def test_a_trial_needs_of_engines_what_those_of_any_commit_have(of_the_project):
    """Its interpreter may have another commit's: a new name here ends `gate` across that commit."""
    found = {
        each.imported
        for each in of_the_project
        if each.imported.startswith("engines")
        and each.importer.startswith(
            ("harness.axes", "harness.collector", "harness.trial", *INSIDE)
        )
        and each.importer != "harness.trial.engine_check"  # of this code's engines alone
    }
    assert found == {
        "engines",
        "engines.deadline",
        "engines.protocol",
        "engines.registry",
        "engines.vocabulary",
    }


def test_a_grid_is_checked_without_torch():
    """The command line would take seconds to refuse a flag."""
    code = (
        "import sys\n"
        "from engines.builtin.engine import Engine\n"
        "from engines.protocol import EngineConfig\n"
        "for device in ('null', 'modelled', 'cpu'):\n"
        "    config = EngineConfig(max_num_seqs=2, max_model_len=64, device=device)\n"
        "    Engine.traits(Engine.complete(config))\n"
        "print('torch' in sys.modules)\n"
    )
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert said.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("path", "line", "complaint"),
    [
        ("workloads/a.py", "import harness.trial.spec", "workloads may not know harness"),
        ("workloads/a.py", "from engines import protocol", "workloads may not know engines"),
        ("engines/a.py", "def f():\n    import workloads.b", "engines may not know workloads"),
        ("engines/a.py", "if TYPE_CHECKING:\n    import harness", "engines may not know harness"),
        ("engines/a.py", "import torch", "torch is for the engine that needs it"),
        ("engines/a.py", "class A:\n    import vllm", "vllm is for the engine that needs it"),
        ("engines/builtin/a.py", "import torch", "torch is for the engine that needs it"),
        ("harness/trial/a.py", "from harness import cli", "trial may not know harness.cli"),
        (
            "harness/trial/a.py",
            "from harness.cli.main import cli",
            "trial may not know harness.cli",
        ),
        ("harness/trial/a.py", "def f():\n    import torch.cuda", "only engines may know torch"),
        ("harness/trial/a.py", "from dashboards import b", "harness may not know dashboards"),
        ("gcbench/a.py", 'f = import_module("harness.b")', "gcbench may not know harness"),
        ("dashboards/a.py", "import torch", "only engines may know torch"),
        ("dashboards/a.py", "import engines.registry", "dashboards may not know engines"),
        ("dashboards/a.py", "import harness.cli.run", "the command line is the top"),
        ("harness/cli/a.py", "import benchmarks.claims.ledger", "benchmarks are tools of the repo"),
        ("harness/trial/a.py", "from . import b", "imports are absolute"),
        ("harness/trial/a.py", "import harness.experiment.c", "trial may not know harness.exper"),
        ("harness/trial/a.py", "import harness.experiment", "trial may not know harness.experim"),
        ("harness/machine/a.py", "import harness.statistics.c", "machine may not know harness.st"),
        ("harness/other/a.py", "import harness.metrics", "harness.other is in none of ROOMS"),
        ("harness/cli/a.py", "import harness.other", "harness.other is in none of ROOMS"),
        ("gcbench/a.py", "import harness.metrics", "gcbench may not know harness"),
        ("harness/trial/a.py", "from harness.trial import b", CIRCLE),
        ("harness/trial/a.py", "def f():\n    from harness.trial import b", CIRCLE),
        ("harness/trial/a.py", "async def f():\n    import harness.trial.b", CIRCLE),
        ("harness/trial/a.py", "if TYPE_CHECKING:\n    from harness.trial import b", CIRCLE),
        ("harness/trial/a.py", "if typing.TYPE_CHECKING:\n    import harness.trial.b", CIRCLE),
    ],
)
def test_an_import_that_runs_the_wrong_way_is_found(tmp_path, path, line, complaint):
    files = {
        "harness/cli/__init__.py": "",
        "harness/trial/b.py": "import harness.trial.a",
        path: line,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    said = complaints(imports(modules(tmp_path)))
    assert len(said) == 1
    assert complaint in said[0]


def test_what_is_allowed_passes(tmp_path):
    for name, text in {
        "workloads/a.py": "import numpy",
        "engines/a.py": "def f():\n    import torch",
        "engines/builtin/device/cuda.py": "import torch",
        "harness/trial/a.py": "import workloads.a, engines.a, gcbench.a, harness.metrics",
        "harness/trial/b.py": "import harness.trial.a\ndef f():\n    import harness.trial.c",
        "harness/trial/c.py": "import harness.trial.a\nREGISTRY = {'b': 'harness.trial.b:B'}",
        "harness/experiment/a.py": "import harness.trial.a, harness.statistics.b",
        "harness/__main__.py": "def main():\n    import harness.cli",
        "harness/cli/__init__.py": "import harness.experiment.a",
        "dashboards/a.py": "import harness.experiment.result",
        "harness/cli/dashboard.py": "def f():\n    import dashboards.a",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert complaints(imports(modules(tmp_path))) == []


def test_reading_results_loads_no_engine():
    script = (
        "import sys, harness.experiment.store, harness.experiment.result, harness.render.terminal\n"
    )
    script += "print(*{'torch', 'engines.builtin.engine'} & sys.modules.keys())"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
