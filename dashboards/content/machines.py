"""Machines and environments: what the figures were measured on."""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from msgspec.structs import asdict

from dashboards.content.experiments import Experiment
from harness import format as fmt
from harness.files import StoreError
from harness.machine.describe import GIB
from harness.tracking.asv.json_files import read_json
from harness.tracking.asv.result_files import MACHINE_VERSION
from harness.tracking.folders import down_to

_LABELS = {
    "arch": "architecture",
    "cpu": "processor",
    "num_cpu": "cores",
    "os": "system",
    "ram": "memory",
    "cpu_model": "processor",
    "cores_logical": "cores",
    "cores_usable": "cores usable",
    "memory_bytes": "memory",
    "collector": "collector",
    "gc_thresholds": "collector's thresholds",
}


class MachinePage(NamedTuple):
    """``environments``: name, first and last commit's date, how many commits."""

    name: str
    details: list[tuple[str, str]]
    environments: list[tuple[str, str, str, int]]


def machines(root: Path, figures: pd.DataFrame) -> list[MachinePage]:
    """Those of asv's results. What cannot be read is left out: `load` has said so already."""
    described = _described(root)
    found = []
    for name, rows in figures.groupby("machine", observed=True, sort=False):
        environments = [
            (
                str(environment),
                f"{part['date'].min():%Y-%m-%d}",
                f"{part['date'].max():%Y-%m-%d}",
                int(part["commit"].nunique()),
            )
            for environment, part in rows.groupby("environment", observed=True, sort=False)
        ]
        details = pairs(described.get(str(name), {}))
        found.append(MachinePage(str(name), details, environments))
    return found


def of_experiments(experiments: list[Experiment]) -> list[tuple[list[str], list[tuple[str, str]]]]:
    """Machines of experiments, each with the experiments that ran on it.

    Nodes of a cluster that measured one experiment are of one class, and so one machine here.
    """
    found: dict[tuple[tuple[str, str], ...], list[str]] = {}
    nodes: dict[tuple[tuple[str, str], ...], Counter[str]] = {}
    for experiment in experiments:
        if experiment.machine:
            details = tuple(pairs(asdict(experiment.machine)))
            found.setdefault(details, []).append(experiment.name)
            nodes.setdefault(details, Counter()).update(experiment.nodes)
    return [(names, [*details, *_nodes(nodes[details])]) for details, names in found.items()]


def _nodes(blocks: Counter[str]) -> list[tuple[str, str]]:
    words = (
        f"{node} {count} {'block' if count == 1 else 'blocks'}"
        for node, count in sorted(blocks.items())
    )
    return [("nodes", ", ".join(words))] if blocks else []


def pairs(details: dict[str, Any]) -> list[tuple[str, str]]:
    """A machine's record as labels and words; what is empty or not known is left out."""
    lines = []
    for key, value in details.items():
        if key == "machine" or value in (None, "", [], {}):
            continue
        if key in ("memory_bytes", "ram") and (size := _bytes(value)):
            words = f"{fmt.number(size / GIB)} GiB"
        elif isinstance(value, list):
            words = ", ".join(map(str, value))
        elif isinstance(value, bool):
            words = "yes" if value else "no"
        else:
            words = str(value)
        lines.append((_LABELS.get(key, key.replace("_", " ")), words))
    return lines


def _bytes(memory: object) -> int | None:
    """asv's is a text: kB where Linux was asked, bytes where macOS was, or what a user wrote."""
    if isinstance(memory, str):
        size = int(memory) if memory.isdecimal() else 0
        return size if size >= 2**32 else size * 1024
    return int(memory) if isinstance(memory, int | float) else None


def _described(root: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for folder in down_to(root, 2, []):
        path = folder / "machine.json"
        try:
            if path.is_file():
                record = read_json(path, MACHINE_VERSION)
                found[str(record.get("machine", folder.name))] = record
        except (StoreError, OSError):
            continue
    return found
