"""A call is held to what it did before, count by count."""

import json

import pytest

pytest_plugins = ["pytester"]

HELD = """
import json
def test_step(gc_baseline):
    gc_baseline(lambda: [[] for _ in range({objects})])
"""


@pytest.fixture
def run(pytester):
    def run(objects, *flags):
        pytester.makepyfile(test_held=HELD.format(objects=objects))
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *flags)

    return run


def test_more_fails_and_less_or_equal_passes(run, pytester):
    first = run(20)
    first.assert_outcomes(failed=1)
    first.stdout.fnmatch_lines(["*no baseline of test_held.py::test_step on CPython*--gc-update*"])
    run(20, "--gc-update").assert_outcomes(passed=1)
    run(20).assert_outcomes(passed=1)
    run(19).assert_outcomes(passed=1)
    worse = run(21)
    worse.assert_outcomes(failed=1)
    worse.stdout.fnmatch_lines(["*21 survivors became 22*bytecodes became*--gc-update*"])
    ((_, stored),) = json.loads((pytester.path / "gc_baseline.json").read_text()).items()
    assert stored["test_held.py::test_step"]["survivors"] == 21


def test_a_file_that_is_no_json_is_named(run, pytester):
    (pytester.path / "gc_baseline.json").write_text("{")
    run(20).stdout.fnmatch_lines(["*gc_baseline.json is not JSON*"])


def test_a_second_call_in_a_test_has_a_baseline_of_its_own(pytester):
    def run(small, *flags):
        pytester.makepyfile(
            test_twice=f"""
def test_both(gc_baseline):
    gc_baseline(lambda: [[] for _ in range({small})])
    gc_baseline(lambda: [[] for _ in range(100)])
"""
        )
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *flags)

    run(5, "--gc-update").assert_outcomes(passed=1)
    run(5).assert_outcomes(passed=1)
    run(95).assert_outcomes(failed=1)


def test_counts_that_do_not_repeat_are_not_stored(pytester):
    pytester.makepyfile(
        test_held="""
from itertools import count
numbers = count()
def test_step(gc_baseline):
    gc_baseline(lambda: [[] for _ in range(20 + next(numbers))])
"""
    )
    found = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--gc-update")
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(["*survivors*differ from one measurement to the next*"])
    assert not (pytester.path / "gc_baseline.json").exists()
