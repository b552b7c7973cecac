"""What runs on a node of a cluster: who it is, and one block, trial by trial.

All that comes and goes is JSON or bytes: a node's Ray imports none of our packages by itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import NamedTuple

import msgspec

from engines.registry import ENGINES
from gcbench.code_root import code_root
from harness.experiment.executor import Block
from harness.experiment.local_executor import LocalExecutor
from harness.experiment.same_origin import machine_differences
from harness.machine.describe import Machine, describe
from harness.machine.interpreter import this_interpreter
from harness.machine.scratch import scratch_folder
from harness.running.lease import Lease
from harness.trial.origin import dependencies
from harness.trial.spec import TrialFailure, TrialResult

_CODE = ("engines", "harness", "workloads")
_SOURCES = (".json", ".py", ".toml")


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What must be equal on all nodes. ``code``: SHA-256 over the sources that run there."""

    code: str
    interpreter: str
    packages: dict[str, str]
    machine: Machine

    def differences(self, other: "Identity") -> list[str]:
        """In what another's code, interpreter and packages differ, in words; not the machine."""
        pairs = [("code", self.code[:10], other.code[:10])]
        pairs.append(("interpreter", self.interpreter, other.interpreter))
        for name in sorted({*self.packages, *other.packages}):
            ours, theirs = (each.packages.get(name, "none") for each in (self, other))
            pairs.append((name, ours, theirs))
        return [f"{name} ({theirs}, here {ours})" for name, ours, theirs in pairs if ours != theirs]

    def is_like(self, machine: Machine) -> bool:
        """Whether it is of the class of a machine."""
        return not list(machine_differences(machine, self.machine))


class AskedBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A block and how to run it; ``lease_seconds``: how long to wait for the node, 0 for ever."""

    block: Block
    timeout_seconds: float
    anyway: bool = False
    lease_seconds: float = 0.0


class Heard(NamedTuple):
    """What a node says of a trial. ``nth`` is `BEGUN`: it has the node; ``outcome`` are notes."""

    nth: int
    repeated: int
    is_result: bool
    outcome: bytes
    rows: bytes


BEGUN = -1


def identify() -> bytes:
    """This node's `Identity`, as JSON."""
    return msgspec.json.encode(identity())


def identity() -> Identity:
    """Of this machine and interpreter."""
    return Identity(
        code=_code_sha256(),
        interpreter=str(this_interpreter()).partition(", collector ")[0],
        packages=dependencies("engines"),
        machine=describe(),
    )


def run_asked(asked: bytes, schedules: Mapping[str, bytes]) -> Iterator[Heard]:
    """Run the block of an `AskedBlock`; ``schedules``: files by the hash of what is in them.

    The releases that it is of are made first where they are not there yet. A block that is timed
    has the node for itself, among all of gcbench that runs there.
    """
    wanted = msgspec.json.decode(asked, type=AskedBlock)
    notes = _made(wanted.block)
    executor = LocalExecutor(wanted.timeout_seconds)
    lease = Lease(wanted.anyway, wanted.lease_seconds or inf)
    with scratch_folder() as folder, ExitStack() as stack:
        for name, content in schedules.items():
            (folder / f"{name}.npz").write_bytes(content)
        block = _in(folder, wanted.block)
        if any(trial.mode == "timing" for trial in block.trials):
            stack.enter_context(lease.hold(lambda owner: None))
        yield Heard(BEGUN, 0, False, msgspec.json.encode(notes + lease.notes), b"")
        for _, nth, outcome, repeated in executor.run_blocks([block]):
            rows = Path(block.trials[nth].rows_path)
            there = bool(block.trials[nth].rows_path) and rows.exists()
            yield Heard(
                nth,
                repeated,
                isinstance(outcome, TrialResult),
                msgspec.json.encode(outcome),
                rows.read_bytes() if there else b"",
            )
            if there:
                rows.unlink()


def _made(block: Block) -> list[str]:
    """Make what its releases need; a sentence for each of which that fails, as its trials will."""
    notes = []
    for engine, release in sorted({(turn.cell.engine, turn.cell.release) for turn in block.turns}):
        try:
            if release:
                ENGINES.load(engine).prepare(release)
        except ValueError as error:
            notes.append(f"{release} cannot be made on a node: {error}.")
    return notes


def outcome_of(heard: Heard) -> TrialResult | TrialFailure:
    """What a node has said of a trial."""
    if heard.is_result:
        return msgspec.json.decode(heard.outcome, type=TrialResult)
    return msgspec.json.decode(heard.outcome, type=TrialFailure)


def _in(folder: Path, block: Block) -> Block:
    """The block with files of this node's."""
    trials = [
        msgspec.structs.replace(
            trial,
            schedule_path=str(folder / f"{trial.schedule_sha256}.npz"),
            rows_path=str(folder / f"rows-{index}.npz") if trial.rows_path else "",
        )
        for index, trial in enumerate(block.trials)
    ]
    return msgspec.structs.replace(block, trials=trials)


def _code_sha256(parts: Sequence[str] = _CODE) -> str:
    total = sha256()
    for path in sorted(each for part in parts for each in (code_root() / part).rglob("*")):
        if path.suffix in _SOURCES and path.is_file():
            content = path.read_bytes()
            name = path.relative_to(code_root()).as_posix()
            total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()
