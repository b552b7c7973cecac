"""SGLang's own scheduler, held against the built-in engine on the same schedule."""

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from vllm_trials import cell, outputs, run, schedule, trial

from engines.protocol import FinishReason
from engines.registry import ENGINES
from engines.sglang.releases import SGLANG
from harness.axes import Cell
from harness.trial.spec import TrialResult

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pinned_sglang")]

STEPS = 40
EVEN = schedule([STEPS] * 16, [20] * 16)
EXACT = ("bytecodes_per_request_step", "num_steps")


def sglang_cell(**axes: Any) -> Cell:
    return cell("sglang-hostpath", **{"representation": "", "gc": "as_is"} | axes)


CELLS: list[dict[str, Any]] = [
    {"prefix_caching": "on"},
    {"output_processing": "overlapped", "prefix_caching": "on"},
    {"max_num_batched_tokens": 64},
    {"output_processing": "overlapped", "num_gpu_blocks_override": 400},
    {"setup": "served"},
]


def test_tokens_lengths_and_reasons_are_the_built_in_engines(tmp_path):
    plain = schedule([1 + i * 7 % 20 for i in range(40)], [20 + i * 37 % 100 for i in range(40)])
    tokens = outputs(plain)
    stops = tuple(sorted({tokens[i][0][len(tokens[i][0]) // 2] for i in (3, 5, 8, 13, 21)}))
    ragged = replace(plain, stop_token_ids=stops)
    assert {reason for _, reason in outputs(ragged)} == {FinishReason.STOP, FinishReason.LENGTH}

    asked = [cell("builtin"), *(sglang_cell(**axes) for axes in CELLS)]
    builtin, *results = run([trial(ragged, tmp_path, each) for each in asked])
    for axes, result in zip(CELLS, results, strict=True):
        for name in ("tokens_sha256", "finish_sha256", "lengths_sha256"):
            assert getattr(result, name) == getattr(builtin, name), (name, axes)
        state = result.engine_state
        is_served = axes == {"setup": "served"}  # by SGLang's own defaults
        inline = "overlapped" if is_served else "inline"
        assert state["output_processing"] == axes.get("output_processing", inline)
        caches = is_served or axes.get("prefix_caching") == "on"
        assert state["enable_prefix_caching"] == caches
        if "num_gpu_blocks_override" in axes:
            assert state["num_kv_tokens"] == 400


ABORTS = """
import json, sys
import numpy as np
from engines.protocol import EngineConfig, SamplingParams
from engines.registry import ENGINES
engine_class = ENGINES.load("sglang-hostpath")
config = EngineConfig(max_num_seqs=4, max_model_len=60, device="", device_profile="",
                      representation="", **json.loads(sys.argv[1]))
engine = engine_class(engine_class.complete(config))
engine.add_request(10, np.arange(1, 21, dtype=np.int32), SamplingParams(20))
while engine.has_unfinished_requests():
    engine.step()
ended = []
engine.add_request(10, np.arange(1, 21, dtype=np.int32), SamplingParams(20))
for index in range(6):
    engine.add_request(index, np.arange(index + 1, index + 21, dtype=np.int32), SamplingParams(20))
steps = 0
while engine.has_unfinished_requests():
    for each in engine.step().delivered:
        assert not {1, 5} & {*each.request_index.tolist()} or steps < 5
        ended += each.finished.tolist()
    steps += 1
    if steps == 5:  # one that runs and one that waits
        engine.abort_request(1)
        engine.abort_request(5)
        engine.abort_request(1)
tokens = [len(engine.output_token_ids(index)) for index in (0, 2, 3, 4, 10)]
print(json.dumps([sorted(ended), tokens]))
"""


@pytest.mark.parametrize("release", ["0.4.6", SGLANG.PINNED])
@pytest.mark.parametrize("way", [{}, {"output_processing": "overlapped"}, {"setup": "served"}])
def test_nothing_is_heard_of_an_aborted_request_or_of_one_twice(release, way):
    found = in_the_engines_process(ABORTS, release, json.dumps(way))
    assert found == [[0, 2, 3, 4, 10], [20] * 5]


def in_the_engines_process(code: str, release: str, *arguments: str) -> Any:
    SGLANG.prepare_release(release, print)
    python, environment = ENGINES.load("sglang-hostpath").launch("", release)
    done = subprocess.run(
        [python, "-P", "-c", code, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, pinned_sglang: str) -> TrialResult:
    """A trial of its own that counts bytecodes."""
    (result,) = run([trial(EVEN, tmp_path_factory.mktemp("plain"), even_cell(), "opcodes")])
    return result


def even_cell(**axes: Any) -> Cell:
    return sglang_cell(**{"batch_size": 16} | axes)


def exact(result: TrialResult) -> list[float]:
    return [result.metrics[name] for name in EXACT]


def test_counts_repeat_to_the_digit_and_overlapped_does_more_per_step(tmp_path, plain):
    asked = [even_cell(), even_cell(output_processing="overlapped")]
    again, overlapped = run([trial(EVEN, tmp_path, each, "opcodes") for each in asked])
    assert exact(again) == exact(plain)
    assert overlapped.metrics["num_steps"] == STEPS + 1, "the first brings nothing"
    assert exact(overlapped)[0] > 1.02 * exact(plain)[0]
    assert overlapped.tokens_sha256 == plain.tokens_sha256


def test_a_list_planted_per_request_and_step_is_counted(tmp_path, plain):
    line = "        send_token_offset = req.send_token_offset\n"
    module = "managers/scheduler_components/output_streamer.py"
    asked = even_cell(release=planted(tmp_path, module, line, f"{line}        planted = [req]\n"))
    (result,) = run([trial(EVEN, tmp_path, asked, "opcodes")])
    # Load, list, store: three bytecodes for each request and step.
    assert exact(result)[0] == pytest.approx(exact(plain)[0] + 3, abs=1e-9)


def planted(folder: Path, module: str, found: str, instead: str) -> str:
    """A tree in which one place of a module under ``srt`` reads otherwise."""
    package = folder / "python" / "sglang"
    shutil.copytree(SGLANG.layer(SGLANG.PINNED) / "sglang", package)
    path = package / "srt" / module
    text = path.read_text()
    assert text.count(found) == 1
    path.write_text(text.replace(found, instead))
    return str(folder)


def test_the_thread_of_an_old_release_is_counted_where_it_is_done(tmp_path):
    SGLANG.prepare_release("0.4.6", print)
    asked = [
        even_cell(release="0.4.6", output_processing=each) for each in ("inline", "overlapped")
    ]
    inline, overlapped, again = run(
        [trial(EVEN, tmp_path, each, "opcodes") for each in (*asked, asked[1])]
    )
    assert overlapped.engine_state["forward_thread"] == "counted"
    assert inline.engine_state["forward_thread"] == "none"
    assert overlapped.tokens_sha256 == inline.tokens_sha256
    assert exact(again) == exact(overlapped)


def test_the_detokenizer_gives_each_requests_text_and_its_work_is_counted(tmp_path, plain):
    asked = [even_cell(detokenizer="batch_decode")] * 2
    first, again = run([trial(EVEN, tmp_path, each, "opcodes") for each in asked])
    assert exact(first) == exact(again)
    assert exact(first)[0] > 1.3 * exact(plain)[0]
    assert first.tokens_sha256 == plain.tokens_sha256
    assert first.engine_state["detokenizer_manager"].endswith(".DetokenizerManager")


def test_a_loop_planted_in_the_detokenizer_is_counted_with_it_alone(tmp_path, plain):
    line = "            rid = recv_obj.rids[i]\n            if rid not in"
    module, instead = "managers/detokenizer_manager.py", f"            planted = [i]\n{line}"
    tree = {"release": planted(tmp_path, module, line, instead)}
    asked = [
        even_cell(**tree),
        *(even_cell(detokenizer="batch_decode", **each) for each in ({}, tree)),
    ]
    without, behind, longer = run([trial(EVEN, tmp_path, each, "opcodes") for each in asked])
    assert exact(without) == exact(plain)
    # Load, list, store: three bytecodes for each request and step.
    assert exact(longer)[0] == pytest.approx(exact(behind)[0] + 3, abs=1e-9)


@pytest.mark.parametrize("way", [{}, {"output_processing": "overlapped"}, {"setup": "served"}])
def test_a_request_that_asks_for_more_is_longer_by_that_and_repeats_to_the_digit(tmp_path, way):
    line = "    def accept_token(self, token: int):\n"
    module, instead = "constrained/xgrammar_backend.py", f"{line}        planted = [self]\n"
    tree = planted(tmp_path, module, line, instead)
    asked = [
        even_cell(**{"detokenizer": "batch_decode"} | way),
        *(even_cell(features=each, **way) for each in ("stop", "grammar", "grammar")),
        even_cell(features="grammar", release=tree, **way),
    ]
    plain, stop, grammar, again, longer = run(
        [trial(EVEN, tmp_path, each, "opcodes") for each in asked]
    )
    assert stop.tokens_sha256 == plain.tokens_sha256
    assert exact(stop)[0] > exact(plain)[0]
    assert grammar.engine_state["grammar_backend"].endswith(".XGrammarGrammarBackend")
    assert exact(grammar)[0] > exact(plain)[0]
    assert exact(again) == exact(grammar)
    # Load, list, store: three bytecodes for each request and step.
    assert exact(longer)[0] == pytest.approx(exact(grammar)[0] + 3, abs=1e-9)


@pytest.mark.parametrize("release", ["0.4.6", "0.5.5", "0.5.12"])
def test_other_releases_have_features_too(tmp_path, release):
    SGLANG.prepare_release(release, print)
    asked = [
        even_cell(release=release, detokenizer="batch_decode"),
        *[even_cell(release=release, features="stop+grammar")] * 2,
    ]
    plain, asking, again = run([trial(EVEN, tmp_path, each, "opcodes") for each in asked])
    assert exact(asking)[0] > 1.1 * exact(plain)[0]
    assert exact(again) == exact(asking)


def test_a_grammar_that_would_wait_for_a_thread_is_refused(tmp_path):
    SGLANG.prepare_release("0.5.1", print)
    asked = even_cell(release="0.5.1", features="grammar", output_processing="overlapped")
    with pytest.raises(AssertionError, match="use --output-processing inline"):
        run([trial(EVEN, tmp_path, asked, "opcodes")])


def test_served_does_more_than_the_detokenizer_alone_and_repeats_to_the_digit(tmp_path):
    shipped = {"output_processing": "overlapped", "prefix_caching": "on"}
    line = "            # Build meta_info and return value\n"
    module, instead = "managers/tokenizer_manager.py", f"            planted = [i]\n{line}"
    asked = [
        even_cell(detokenizer="batch_decode", **shipped),
        *[even_cell(setup="served")] * 2,
        even_cell(setup="served", release=planted(tmp_path, module, line, instead)),
    ]
    behind, served, again, longer = run([trial(EVEN, tmp_path, each, "opcodes") for each in asked])
    assert exact(served) == exact(again)
    assert exact(served)[0] > 1.3 * exact(behind)[0]
    # Load, list, store: three bytecodes for each request and step.
    assert exact(longer)[0] == pytest.approx(exact(served)[0] + 3, abs=1e-9)
    assert "TokenizerManager" in served.engine_state["served_by"]


def test_stages_are_told_apart_and_repeat_to_the_digit(tmp_path):
    asked = [even_cell(setup="served", release=each) for each in ("0.4.6", "", "")]
    old, new, again = run([trial(EVEN, tmp_path, each, "stage_bytecodes") for each in asked])
    assert new.stages == again.stages
    for each in (old, new):
        assert each.stages is not None
        costs = each.stages.per_row()
        assert {stage for _, stage in costs} == {
            *("add", "schedule", "prepare", "device", "update_from_output", "step"),
            *("detokenize", "process_outputs", "deliver", "sse", "transport", "event loop"),
        }
        assert min(costs.values()) > 0


RETRACTED = """
import json, sys
import numpy as np
from engines.protocol import EngineConfig, SamplingParams
from engines.registry import ENGINES
engine_class = ENGINES.load("sglang-hostpath")
config = EngineConfig(max_num_seqs=16, max_model_len=220, device="", device_profile="",
                      representation="", num_gpu_blocks_override=int(sys.argv[1]))
engine = engine_class(engine_class.complete(config))
from sglang.srt.managers.schedule_batch import ScheduleBatch
retracted, own = [], ScheduleBatch.retract_decode

def retract_decode(*args, **kwargs):
    found = own(*args, **kwargs)
    retracted.extend(found[0])
    return found

ScheduleBatch.retract_decode = retract_decode
params = SamplingParams(200, stop_token_ids=(50_000,))  # else all that may come is set aside
for index in range(24):
    engine.add_request(index, np.arange(index + 1, index + 21, dtype=np.int32), params)
while engine.has_unfinished_requests():
    engine.step()
tokens = [engine.output_token_ids(index).tolist() for index in range(24)]
print(json.dumps([len(retracted), tokens]))
"""


def test_a_request_that_is_retracted_gets_the_tokens_that_it_would_have_got():
    none, expected = in_the_engines_process(RETRACTED, SGLANG.PINNED, "0")
    some, tokens = in_the_engines_process(RETRACTED, SGLANG.PINNED, "1500")
    assert none == 0 < some
    assert tokens == expected
    assert {*map(len, tokens)} == {200}


TURNS = """
import json
import numpy as np
from engines.protocol import EngineConfig, SamplingParams
from engines.registry import ENGINES
engine_class = ENGINES.load("sglang-hostpath")
config = EngineConfig(max_num_seqs=16, max_model_len=88, max_num_batched_tokens=130, device="",
                      device_profile="", representation="", output_processing="overlapped")
engine = engine_class(engine_class.complete(config))
for index in range(16):
    prompt = np.arange(index + 1, index + 49, dtype=np.int32)
    engine.add_request(index, prompt, SamplingParams(40))
rows = []
while engine.has_unfinished_requests():
    rows.append(sum(len(each.request_index) for each in engine.step().delivered))
print(json.dumps(rows))
"""


@pytest.mark.parametrize(("release", "turns", "batch"), [("0.5.22", 87, 15), ("0.5.23", 46, 16)])
def test_where_prompts_come_in_chunks_0_5_22_has_one_wait_until_others_end(release, turns, batch):
    rows = in_the_engines_process(TURNS, release)
    assert (len(rows), max(rows)) == (turns, batch)
    assert sum(rows) == 16 * 40


REFUSED = """
import json
import numpy as np
from engines.protocol import EngineConfig, SamplingParams
from engines.registry import ENGINES
engine_class = ENGINES.load("sglang-hostpath")
config = EngineConfig(max_num_seqs=3, max_model_len=60, device="", device_profile="",
                      representation="", setup="served")
engine = engine_class(engine_class.complete(config))
try:
    engine.add_request(1, np.arange(1, 80, dtype=np.int32), SamplingParams(20))
except ValueError as error:
    said = str(error)
engine.add_request(2, np.arange(1, 20, dtype=np.int32), SamplingParams(20))
while engine.has_unfinished_requests():
    engine.step()
print(json.dumps([said, len(engine.output_token_ids(2))]))
"""


def test_what_the_server_refuses_is_an_error_in_a_sentence_and_the_next_is_served():
    said, num_tokens = in_the_engines_process(REFUSED, SGLANG.PINNED)
    assert "SGLang refuses a request: " in said
    assert "longer than the model's context length" in said
    assert "\n" not in said
    assert num_tokens == 20


TEXTS = """
import json, sys
import numpy as np
from tokenizers import Tokenizer
from engines.protocol import EngineConfig, SamplingParams
from engines.registry import ENGINES
from engines.vocabulary import SHIPPED_TOKENIZER
tokenizer = Tokenizer.from_file(str(SHIPPED_TOKENIZER))
engine_class = ENGINES.load("sglang-hostpath")
config = EngineConfig(max_num_seqs=3, max_model_len=60, device="", device_profile="",
                      representation="", **json.loads(sys.argv[1]))
engine = engine_class(engine_class.complete(config))
prompt = np.array(tokenizer.encode("The host path of an engine, in words").ids, np.int32)
for _ in range(2):
    for index in range(5):
        engine.add_request(index, prompt, SamplingParams(20))
    while engine.has_unfinished_requests():
        engine.step()
    said = [engine.output_text(index) for index in range(5)]
    tokens = [engine.output_token_ids(index).tolist() for index in range(5)]
left = [engine.output_text(index) for index in range(5)]
decoded = [tokenizer.decode(each, skip_special_tokens=True) for each in tokens]
print(json.dumps([said, decoded, left]))
"""


@pytest.mark.parametrize("release", ["0.4.6", "0.5.3", SGLANG.PINNED])
@pytest.mark.parametrize("way", [{"detokenizer": "batch_decode"}, {"setup": "served"}])
def test_a_text_is_that_of_the_tokens_and_forgotten_with_them(release, way):
    said, decoded, left = in_the_engines_process(TEXTS, release, json.dumps(way))
    assert said == decoded
    assert len(set(said)) == 5
    assert left == [""] * 5
