"""How many modules the command line and a trial load: an import too many shows here first.

A trial's modules are part of the heap that is measured, and ``--help`` must not wait for pandas.
"""

import sys
from collections import Counter
from collections.abc import Iterable

import msgspec
import pytest
from small import schedule, trial

HELP = {"click": 13, "gcbench": 3, "harness": 7}
TRIAL = {"engines": 57, "gcbench": 7, "harness": 66, "numpy": 13, "psutil": 6, "workloads": 12}
"""Modules by package on CPython 3.11; 3.12 and 3.13 differ by a few of the standard library."""

HELP_SCRIPT = """
import sys
from gcbench.__main__ import main
sys.argv = ["gcbench", "--help"]
sys.stdout = open("/dev/null", "w")
main()
loaded = list(sys.modules)
import json
print(json.dumps(loaded), file=sys.__stdout__)
"""

TRIAL_SCRIPT = """
import json, os, sys
import msgspec, numpy
before = set(sys.modules)
from harness.trial.run import run_trial
from harness.trial.spec import Trial

def ready(_):
    print(json.dumps(sorted(set(sys.modules) - before)), flush=True)
    os._exit(0)

run_trial(msgspec.json.decode(sys.argv[1], type=Trial), ready)
"""

COMMANDS_SCRIPT = """
import json, sys
import click
from harness.cli.main import cli

context = click.Context(cli)
for name in cli.list_commands(context):
    if name != "nightly":
        command = cli.get_command(context, name)
        command.get_help(click.Context(command, context, name))
print(json.dumps(list(sys.modules)))
"""


def complaint(loaded: Iterable[str], budget: int, known: dict[str, int]) -> str:
    """What is new, where more modules than ``budget`` are loaded; else ""."""
    names = list(loaded)
    if len(names) <= budget:
        return ""
    now = Counter(name.split(".")[0] for name in names)
    others = {name for name in now if name not in sys.stdlib_module_names or name in known}
    new = [
        f"{name} {known.get(name, 0)} -> {now[name]}"
        for name in sorted(others)
        if now[name] > known.get(name, 0)
    ]
    return (
        f"{len(names)} modules are loaded, the budget is {budget}; new by package: "
        f"{', '.join(new) or 'the standard library only'}; import them in the function that needs "
        "them, or raise the budget"
    )


def test_help_loads_click_and_little_else(fresh_interpreter):
    budget = 135 if sys.version_info < (3, 14) else 145  # its own for annotations and archives
    assert complaint(fresh_interpreter(HELP_SCRIPT), budget, HELP) == ""


def test_no_command_loads_what_takes_long_before_it_knows_what_it_is_asked(fresh_interpreter):
    loaded = {name.split(".")[0] for name in fresh_interpreter(COMMANDS_SCRIPT)}
    assert "numpy" in loaded, "commands were loaded"
    assert not loaded & {"matplotlib", "pandas", "pyarrow", "ray", "scipy", "torch"}


def test_a_trial_loads_little_and_no_torch(fresh_interpreter, tmp_path):
    """Up to READY on the null device, without the modules of NumPy and msgspec."""
    asked = msgspec.json.encode(trial(schedule([4, 4]), tmp_path)).decode()
    loaded = fresh_interpreter(TRIAL_SCRIPT, asked)
    assert "torch" not in loaded
    assert complaint(loaded, 254, TRIAL) == ""


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        (["rich", "rich.text"], "new by package: rich 0 -> 2;"),
        (["harness.a", "os"], "new by package: harness 1 -> 2;"),
        (["json", "csv"], "new by package: the standard library only;"),
    ],
)
def test_a_module_over_the_budget_is_named(extra, says):
    assert complaint(["harness"], 1, {"harness": 1}) == ""
    assert says in complaint(["harness", *extra], 2, {"harness": 1})
