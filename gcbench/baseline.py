"""What calls did when somebody last said that it is right: a JSON file beside their tests."""

import json
import platform
from pathlib import Path

from gcbench.budget import BudgetExceeded
from gcbench.call_cost import CallCost

_FILE = "gc_baseline.json"
_COUNTS = ("survivors", "peak", "allocations", "bytecodes")


class Baseline:
    """That of a call of a test in a folder, for this build of Python: others count differently."""

    def __init__(self, folder: Path, test: str) -> None:
        self._path = folder / _FILE
        self._test = test
        self._python = f"{platform.python_implementation()} {platform.python_version()}"

    def store(self, cost: CallCost, again: CallCost) -> None:
        """Take these counts for right; one process at a time may.

        Raises BudgetExceeded where they were others when they were counted ``again``.
        """
        __tracebackhide__ = True
        then = _counts(again)
        if others := [name for name, found in _counts(cost).items() if found != then.get(name)]:
            raise BudgetExceeded(
                f"{cost.name}: {', '.join(others)} differ from one measurement to the next, so no "
                "baseline would hold; make it do the same each time, as by a seed."
            )
        known = self._read()
        known.setdefault(self._python, {})[self._test] = _counts(cost)
        text = json.dumps(known, indent=1, sort_keys=True) + "\n"
        temporary = self._path.with_suffix(".new")
        temporary.write_text(text)
        temporary.replace(self._path)

    def check(self, cost: CallCost) -> None:
        """Raise BudgetExceeded where a count is larger, or was never stored."""
        __tracebackhide__ = True
        stored = self._read().get(self._python, {}).get(self._test)
        update = "run pytest --gc-update"
        if stored is None:
            raise BudgetExceeded(
                f"{cost.name}: no baseline of {self._test} on {self._python} in {self._path}; "
                f"{update} and commit the file."
            )
        more = [
            f"{stored[name]:,} {name} became {count:,}"
            for name, count in _counts(cost).items()
            if count > stored.get(name, count)
        ]
        if more:
            raise BudgetExceeded(
                f"{cost.name}: {', '.join(more)} per call of {cost.num_requests:,}; do less, or "
                f"{update} where that is right."
            )

    def _read(self) -> dict[str, dict[str, dict[str, int]]]:
        try:
            found: dict[str, dict[str, dict[str, int]]] = json.loads(self._path.read_text())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise ValueError(f"{self._path} is not JSON: {error}; restore or remove it") from error
        return found


def _counts(cost: CallCost) -> dict[str, int]:
    named = ((name, getattr(cost, name)) for name in _COUNTS)
    return {name: count for name, count in named if count is not None}
