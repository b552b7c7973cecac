"""A package that a bare installation lacks is named, and how it is brought in."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from harness.missing_package import BENCH, missing_package

ROOT = Path(__file__).parents[2]


def test_the_packages_are_those_of_the_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = project["optional-dependencies"]["bench"]
    imported = {"prometheus-client": "prometheus_client", "pyzmq": "zmq", "tomli-w": "tomli_w"}
    names = {re.split("[<>=]", each)[0] for each in extra}
    assert {imported.get(name, name) for name in names} == BENCH


@pytest.mark.parametrize(
    ("name", "who", "extra"),
    [
        ("rich", "measuring", "bench"),
        ("perfetto", "--perfetto", "bench"),
        ("opentelemetry.sdk", "--otlp", "otlp"),
        ("torch", "a device with a model, or the shape tensor,", "torch"),
    ],
)
def test_a_package_that_is_missing_is_named(name, who, extra):
    sentence = missing_package(ModuleNotFoundError(f"No module named {name!r}", name=name))
    assert sentence == (
        f"{sys.executable} has no {name}, which {who} needs; run {sys.executable} -m pip "
        f"install 'gcbench[{extra}]'"
    )


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'torch._C'", name="torch._C"),
        ModuleNotFoundError("No module named 'harness.gone'", name="harness.gone"),
        ImportError("cannot import name 'Console' from 'rich'", name="rich"),
        ValueError("rich"),
    ],
)
def test_a_package_that_is_broken_is_another_matter(error):
    assert missing_package(error) == ""
