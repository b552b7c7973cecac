"""gate-accepts.toml, which lies in the top folder of the repository whose commits are compared.

[[accepts]]                               # see `harness.tracking.gate.waivers`
metric = "bytecodes_per_request_step"     # or "outputs": other tokens than BASE's
most = "+3 %"                             # of BASE's; none for outputs
reason = "stop strings are looked for"
cell = "flat_arrays · columnar"           # every cell where it is left out

[budget]                                  # see `harness.tracking.gate.budget`
since = "v0.3.0"
most = {bytecodes_per_request_step = "+3 %"}
"""

from pathlib import Path

import msgspec

from harness.machine.git import Git
from harness.tracking.gate.trees import plain_text
from workloads.files.regular_file import read_regular
from workloads.files.toml_file import MOST_TOML_BYTES, parsed_toml

ACCEPTS_FILE = "gate-accepts.toml"


class AcceptsEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a change may cost."""

    metric: str
    reason: str
    most: str = ""
    cell: str = ""


class BudgetEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may be added since a release, a bit at a time."""

    since: str
    most: dict[str, str]


class AcceptsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that it may say."""

    accepts: list[AcceptsEntry] = []
    budget: BudgetEntry | None = None


def read_accepts(git: Git, head: str, *, is_work_tree: bool) -> AcceptsFile:
    """A commit's, or the work tree's. Raises ValueError for one that cannot be read."""
    try:
        text = _in_work_tree(git.root) if is_work_tree else _committed(git, head)
        return msgspec.convert(parsed_toml(text), AcceptsFile)
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or plain_text(" ".join(str(error).split()))
        raise ValueError(
            f"{ACCEPTS_FILE} cannot be read: {why}; docs/gate.md shows what it may say"
        ) from None


def _in_work_tree(root: Path) -> str:
    path = root / ACCEPTS_FILE
    return read_regular(path, MOST_TOML_BYTES).decode() if path.exists() else ""


def _committed(git: Git, commit: str) -> str:
    """The file as a commit has it; "" where it has none."""
    if not git("ls-tree", "-z", commit, "--", ACCEPTS_FILE):
        return ""
    name = f"{commit}:{ACCEPTS_FILE}"
    if int(git("cat-file", "-s", name)) > MOST_TOML_BYTES:
        raise ValueError(f"it is larger than {MOST_TOML_BYTES:,} bytes, the most that is read")
    return git("cat-file", "blob", name)
