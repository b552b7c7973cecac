"""Sixteen commits on a release of vLLM, most of which cost something: is the gate right on each?

    cd tests/harness/tracking
    python planted_vllm.py make FOLDER            the repository alone
    python planted_vllm.py gate --output DIR      each commit through gcbench gate --exact-only

The release must be prepared (``gcbench releases vllm 0.33.0 --prepare``). Each commit stands on the
release itself, so BASE is counted once; with ``--cold`` it is counted anew each time. The last line
of output of ``gate`` is one JSON document.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[3]
RELEASE = "0.33.0"
CORE = "vllm/v1/engine/core.py"
OUTPUTS = "vllm/v1/engine/output_processor.py"
SCHEDULER = "vllm/v1/core/sched/scheduler.py"
BLOCKS = "vllm/v1/core/kv_cache_manager.py"
POOL = "vllm/v1/core/block_pool.py"
DETOKENIZER = "vllm/v1/engine/detokenizer.py"
ASYNC_LLM = "vllm/v1/engine/async_llm.py"
SERVING = "vllm/entrypoints/openai/completion/serving.py"
ASYNC_SCHEDULER = "vllm/v1/core/sched/async_scheduler.py"

_STEP = "        self.current_step += 1\n"
_OUTPUT = "            new_token_ids = engine_core_output.new_token_ids\n"
_ADD = "        existing = self.requests.get(request.request_id)\n"
_DEFINES_FREE = "    def _free_request(\n"
_FREE = (
    "        assert request.is_finished()\n\n        if self.aux_output_connector is not None:\n"
)
_CREATE = "        return KVCacheBlocks(blocks) if any(blocks) else self.empty_kv_cache_blocks\n"
_COLLECT = """\
        if self.current_step % 200 == 0:
            gc.collect()
"""
_LOOP = """\
            place = 0
            for _ in new_token_ids:
                place ^= 1
"""
_NOTE = '            req_state.note = {"tokens": new_token_ids, "tags": []}\n'
_LENGTHS = (
    "        lengths = [len(each) for each in (request.request_id,) * 32]\n        del lengths\n"
)
_SCHEDULED = "            scheduled_running_reqs.append(request)\n"
_ONCE = "            assert request not in scheduled_running_reqs\n"
_COPIES = """\
        self.as_scheduled = copy.deepcopy((self.scheduler_config, self.cache_config))
"""
_NEW_BLOCKS = "        ret: list[KVCacheBlock] = self.free_block_queue.popleft_n(num_blocks)\n"
_KEPT = "        self.handed_out.extend([[block.block_id] for block in ret])\n"
_POOL_HAS = "        self.num_gpu_blocks = num_gpu_blocks\n"
_TEXT = "        token = self._protected_step(next_token_id)\n"
_SLICE = "                        outputs_slice = engine_core_outputs[start:end]\n"
_OUTPUT_OF = "                        for _ in outputs_slice:\n"
_CHUNK = "                    previous_num_tokens[i] += len(output.token_ids)\n"
_PLACEHOLDERS = "            request.spec_token_ids = self._spec_token_placeholders\n"
_PENDING = "            pending = self._pending_encoder_input_ids.get(req_id)\n"


def _eight_times(indent: int) -> str:
    """Some 40 bytecodes."""
    space = " " * indent
    return f"{space}place = 0\n{space}for _ in range(8):\n{space}    place ^= 1\n"


class Edit(NamedTuple):
    """``after`` takes the place of ``before``, where that stands first in the file."""

    file: str
    before: str
    after: str


class Commit(NamedTuple):
    """``verdict`` and ``says``: what the gate should answer, and what stands in its sentences."""

    subject: str
    verdict: str
    says: str
    edits: list[Edit]


COMMITS = [
    Commit(
        "Keep a dictionary for each request",
        "worse",
        "tracked object",
        [Edit(OUTPUTS, _OUTPUT, _OUTPUT + _NOTE)],
    ),
    Commit(
        "Go through the tokens once more",
        "worse",
        "more bytecodes a step",
        [Edit(OUTPUTS, _OUTPUT, _OUTPUT + _LOOP)],
    ),
    Commit(
        "Measure the name of a request that is added",
        "worse",
        "to add",
        [Edit(SCHEDULER, _ADD, _LENGTHS + _ADD)],
    ),
    Commit(
        "Collect every 200 steps",
        "worse",
        "called by hand",
        [
            Edit(SCHEDULER, "import itertools\n", "import gc\nimport itertools\n"),
            Edit(SCHEDULER, _STEP, _STEP + _COLLECT),
        ],
    ),
    Commit(
        "Let the collector run less often",
        "worse",
        "set_threshold",
        [
            Edit(
                CORE,
                "        self.vllm_config = vllm_config\n",
                "        self.vllm_config = vllm_config\n"
                "        gc.set_threshold(10_000, 50, 50)\n",
            )
        ],
    ),
    Commit(
        "Remember who has been served",
        "worse",
        "behind for good",
        [
            Edit(SCHEDULER, _DEFINES_FREE, "    _served: list = []\n\n" + _DEFINES_FREE),
            Edit(SCHEDULER, _FREE, "        self._served.append([request.request_id])\n" + _FREE),
        ],
    ),
    Commit(
        "Say what a step is", "same", "", [Edit(SCHEDULER, _STEP, "        # One more.\n" + _STEP)]
    ),
    Commit(
        # Four bytecodes, and a search in C that grows with the square of the batch: times have it.
        "Check that no request is scheduled twice",
        "same",
        "too little to act upon",
        [Edit(SCHEDULER, _SCHEDULED, _ONCE + _SCHEDULED)],
    ),
    Commit(
        "Keep each step's configuration",
        "worse",
        "whatever its batch",
        [
            Edit(SCHEDULER, "import itertools\n", "import copy\nimport itertools\n"),
            Edit(SCHEDULER, _STEP, _STEP + _COPIES),
        ],
    ),
    Commit(
        "Remember which blocks were handed out",
        "worse",
        "block",
        [
            Edit(POOL, _POOL_HAS, _POOL_HAS + "        self.handed_out: list = []\n"),
            Edit(POOL, _NEW_BLOCKS, _NEW_BLOCKS + _KEPT),
        ],
    ),
    Commit(
        "Revert #24964: make an empty result for each request",
        "worse",
        "the collector runs",
        [Edit(BLOCKS, _CREATE, "        return KVCacheBlocks(blocks)\n")],
    ),
    # From here on in code that one setup runs and another does not.
    Commit(
        "Look at the text of a token for longer",
        "worse",
        "more bytecodes",
        [Edit(DETOKENIZER, _TEXT, _TEXT + _eight_times(8))],
    ),
    Commit(
        "Look at what AsyncLLM's output handler gets",
        "worse",
        "more bytecodes",
        [Edit(ASYNC_LLM, _SLICE, _SLICE + _OUTPUT_OF + _eight_times(28))],
    ),
    Commit(
        "Count the tokens of a chunk for longer",
        "worse",
        "more bytecodes",
        [Edit(SERVING, _CHUNK, _CHUNK + _eight_times(20))],
    ),
    Commit(
        "Look at the placeholders of async scheduling",
        "worse",
        "more bytecodes",
        [Edit(ASYNC_SCHEDULER, _PLACEHOLDERS, _PLACEHOLDERS + _eight_times(12))],
    ),
    Commit(
        "Look for what model runner V2 waits for",
        "worse",
        "more bytecodes",
        [Edit(SCHEDULER, _PENDING, _PENDING + _eight_times(12))],
    ),
]


def make(folder: Path, release: str = RELEASE) -> None:
    """Make the repository: the release on ``main``, and a branch ``plant-N`` for each commit.

    Raises ValueError where the release does not hold what `COMMITS` expect.
    """
    sys.path.insert(0, str(ROOT))
    from engines.vllm.releases import VLLM

    files = shutil.ignore_patterns("__pycache__")
    shutil.copytree(VLLM.layer(release) / "vllm", folder / "vllm", ignore=files)
    _git(folder, "init", "--quiet", "--initial-branch", "main")
    _commit(folder, f"vLLM {release}", [])
    for number, commit in enumerate(COMMITS):
        _git(folder, "switch", "--quiet", "--create", f"plant-{number}", "main")
        _commit(folder, commit.subject, commit.edits)
    _git(folder, "switch", "--quiet", "main")


def gate(
    output: Path, only: Collection[int] | None, *, cold: bool, flags: list[str]
) -> list[dict[str, Any]]:
    """Each commit, or those alone, through the gate; what it said and how long it took."""
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        repository = Path(scratch) / "vllm"
        repository.mkdir()
        make(repository)
        for number, commit in enumerate(COMMITS):
            if only and number not in only:
                continue
            answer = output / f"plant-{number}.json"
            began = time.monotonic()
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "harness",
                    "gate",
                    "main",
                    f"plant-{number}",
                    "--repo",
                    str(repository),
                    "--engine",
                    "vllm-hostpath",
                    "--exact-only",
                    "--output",
                    str(output),
                    "--json",
                    str(answer),
                    "--quiet",
                    *["--count-base-anew"] * cold,
                    *flags,
                ],
                cwd=ROOT,
                check=False,
            )
            seconds = time.monotonic() - began
            result = json.loads(answer.read_text())
            said = " ".join(result["conclusions"])
            is_right = result["verdict"] == commit.verdict and commit.says in said
            row = {
                "subject": commit.subject,
                "verdict": result["verdict"],
                "right": is_right,
                "seconds": round(seconds, 1),
                "said": result["conclusions"],
            }
            found.append(row)
            print(
                f"{'right' if is_right else 'WRONG'}  {row['verdict']:10}  {seconds:6.1f} s  "
                f"{commit.subject}\n       {said}",
                flush=True,
            )
    return found


def _commit(folder: Path, subject: str, edits: list[Edit]) -> None:
    for file, before, after in edits:
        path = folder / file
        text = path.read_text()
        if before not in text:
            raise ValueError(f"{file} has no {before.strip()!r} any more")
        path.write_text(text.replace(before, after, 1))
    _git(folder, "add", "--all", "--force")
    _git(folder, "commit", "--quiet", "--message", subject)


def _git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True)


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["make", "gate"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--output", type=Path, default=Path("results/runs"))
    parser.add_argument("--cold", action="store_true", help="count BASE anew each time")
    parser.add_argument("--only", type=int, nargs="*", help="commits by number, from 0")
    asked, flags = parser.parse_known_args()
    if asked.what == "make":
        asked.folder.mkdir(parents=True, exist_ok=True)
        make(asked.folder)
    else:
        asked.output.mkdir(parents=True, exist_ok=True)
        print(json.dumps(gate(asked.output.resolve(), asked.only, cold=asked.cold, flags=flags)))


if __name__ == "__main__":
    main()
