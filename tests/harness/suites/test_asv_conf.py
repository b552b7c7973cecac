"""asv.conf.json: keys that asv reads, and an environment that has what a trial imports."""

import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from harness.suites.version import needed

asv_config = pytest.importorskip("asv.config")

ROOT = Path(__file__).parents[3]
LEFT_TO_OTHERS = {
    "scipy",  # verdicts between cells; asv asks for none
    "rapidfuzz",  # edit distances of messages; no suite looks at them
    "pynvml",  # names of GPUs, where it happens to be installed
    "safetensors",  # weights of real models: suites run on null and modelled devices
    "triton",  # the same models' kernels, on a GPU
}


@pytest.fixture
def config() -> Any:
    return asv_config.Config.load(str(ROOT / "asv.conf.json"))


def test_asv_knows_every_key(config: Any) -> None:
    """asv lets any other pass without a word."""
    assert vars(config).keys() == vars(asv_config.Config()).keys()


def test_its_folders_are_there_or_ignored(config: Any) -> None:
    assert (ROOT / config.benchmark_dir / "__init__.py").exists()
    ignored = (ROOT / ".gitignore").read_text().split()
    assert ".asv/" in ignored
    assert {config.env_dir.split("/")[0], config.html_dir.split("/")[0]} == {".asv"}
    assert not any(config.results_dir.startswith(folder.rstrip("/")) for folder in ignored)


def test_a_commit_brings_no_dependency(config: Any) -> None:
    """Else pip would resolve torch anew for every commit."""
    (install,) = config.install_command
    assert {"--no-deps", "--no-build-isolation", "{build_dir}"} <= set(install.split())
    assert config.build_command == []


def test_pins_are_the_makefiles_and_within_the_projects_ranges(config: Any) -> None:
    pins = config.matrix["req"]
    (makefile,) = re.findall(r"^TORCH +\?= torch==(\S+)$", (ROOT / "Makefile").read_text(), re.M)
    assert pins["torch"] == [makefile]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    allowed = {
        canonicalize_name(requirement.name): requirement.specifier
        for requirement in map(Requirement, [*extras["bench"], *extras["torch"]])
    }
    for name, versions in pins.items():
        assert len(versions) == 1, "two versions are two environments"
        assert allowed[name].contains(versions[0])


PACKAGES = {"zmq": "pyzmq"}
"""By what is imported, where the name is another."""


@pytest.mark.slow
def test_the_environment_has_what_suites_and_trials_import(config: Any) -> None:
    suites = [
        "harness.suites.collections",
        "harness.suites.output_processing",
        "harness.suites.serving",
        "harness.trial.process",
    ]
    builtin = [ast.parse(path.read_text()) for path in (ROOT / "engines/builtin").rglob("*.py")]
    imported = {
        name for source in [*needed(ROOT, suites).values(), *builtin] for name in _imported(source)
    }
    others = imported - sys.stdlib_module_names - {"gcbench", "harness", "workloads", "engines"}
    named = {PACKAGES.get(name, name) for name in others - LEFT_TO_OTHERS}
    assert named == config.matrix["req"].keys()


def _imported(source: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(source):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names
