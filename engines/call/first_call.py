"""How long a function takes, found in a process of its own: it may print, exit or never return."""

import inspect
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from engines.call.launch import launch_call
from engines.call.target import function_of, module_of

MOST_SECONDS = 1.0
"""Of a call: hundreds are made."""
_LOOK_SECONDS = 0.05
_TIMEOUT_SECONDS = 60.0


def call_seconds(target: str, python: str = "", release: str = "") -> float:
    """Seconds that a call takes by itself, roughly.

    Raises ValueError, in one sentence, where it cannot be called again and again.
    """
    module_of(target)
    program, environment = launch_call(python, release)
    try:
        done = subprocess.run(
            [program, "-P", "-m", "engines.call.first_call", target],
            check=False,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"{target}: has not returned within {_TIMEOUT_SECONDS:g} s; give it less to do"
        ) from None
    try:
        found = json.loads(done.stdout)
    except ValueError:
        how = f"with status {done.returncode}" if done.returncode >= 0 else "by a signal"
        raise ValueError(f"{target}: ended its process {how}; name one that returns") from None
    if "refused" in found:
        raise ValueError(found["refused"])
    seconds: float = found["seconds"]
    if seconds > MOST_SECONDS:
        raise ValueError(
            f"{target}: a call takes {seconds:.1f} s, and many are needed; give it less to do, at "
            f"most {MOST_SECONDS:g} s"
        )
    return seconds


def main(target: str) -> None:
    """Answer in JSON on standard output, which the function itself does not get."""
    answer = os.fdopen(os.dup(1), "w")
    with tempfile.TemporaryFile() as printed:
        os.dup2(printed.fileno(), 1)
        try:
            call = function_of(target)
            sys.stdout.flush()
            imported = os.fstat(1).st_size
            found: dict[str, object] = {"seconds": _seconds(target, call)}
            sys.stdout.flush()
            if os.fstat(1).st_size > imported:
                raise ValueError(f"{target}: prints, which would be timed; take that out of it")
        except ValueError as error:
            found = {"refused": str(error)}
    with answer:
        json.dump(found, answer)


def _seconds(target: str, call: Callable[[], object]) -> float:
    """As `timeit` finds it: so many calls that they take a while, after a first one."""
    number, took = 1, _timed(target, call, 1)
    while took < _LOOK_SECONDS:
        number *= 2
        took = _timed(target, call, number)
    return took / number


def _timed(target: str, call: Callable[[], object], number: int) -> float:
    began, result = time.perf_counter(), None
    try:
        for _ in range(number):
            result = call()
    except SystemExit as error:
        raise ValueError(f"{target}: exits ({error.code}); name one that returns") from None
    except BaseException as error:
        why = f"{type(error).__name__}: {error}"
        raise ValueError(f"{target}: raises {why}; it must return when it is called") from error
    took = time.perf_counter() - began
    if inspect.isawaitable(result):
        raise ValueError(f"{target}: only makes a coroutine; name a function that runs it")
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise ValueError(f"{target}: only makes a generator; name a function that exhausts it")
    return took


if __name__ == "__main__":
    main(sys.argv[1])
