"""gcbench from Python: the same verbs, the same results."""

import subprocess
import sys

import pytest

import gcbench
from harness.report.kinds import describe_result, read_result
from harness.result.result import RESULT_FILE
from harness.verbs import api

SMALL = {
    "device": "null",
    "representation": "list_of_lists",
    "delivery": "per_request",
    "gc": ["default", "freeze"],
    "heap_objects": 0,
    "num_requests": 8,
    "batch_size": 8,
    "output_lens": 4,
    "rounds": 3,
    "counting": False,
}


def test_each_verb_is_found_in_the_package_that_is_imported():
    assert list(gcbench.VERBS) == sorted(api.__all__)
    assert all(getattr(gcbench, name) is getattr(api, name) for name in gcbench.VERBS)
    with pytest.raises(AttributeError, match="has no attribute 'comparison'"):
        gcbench.comparison  # noqa: B018


def test_importing_it_loads_nothing_of_ours():
    loaded = "import sys, gcbench; print(sorted(n for n in sys.modules if n.startswith('gcbench')))"
    ran = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['gcbench', 'gcbench.verbs']"


@pytest.mark.slow
def test_a_comparison_is_kept_and_shown_as_the_command_lines(tmp_path):
    result = gcbench.compare(**SMALL, output=tmp_path)
    (comparison,) = result.comparisons
    assert comparison.candidate == "freeze"
    assert read_result(tmp_path / result.name / RESULT_FILE) == result
    assert describe_result(result).pictures[0].draw(".svg").startswith(b"<?xml")
    assert "--device null" in result.command
