import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from workloads import catalog
from workloads.recipe.arrivals import ClosedLoop
from workloads.recipe.lengths import Fixed
from workloads.traces import TraceError

GOLDEN = {
    "burst": "7731ac2e339634051de35357852595f23a8ff9fcee8cb5c35186c60c3f4291db",
    "calls": "43b050a5751383ce75bf3f074c70cb0bbbb0d1b9bc17536141ab46fcb41ca6c2",
    "chat": "9a88a557d34ae4742b73b4898d2cc14f1984b72603eab84c1c44378ef6f10c16",
    "churn": "6010f3370a9d43b151ea10e4aa87ac0a81edd467a3f8009130925134e0e67419",
    "code": "a8524c202d2d94aceb9b3911341208eea472187630495534e087fcd33c96496d",
    "llama3-8b-48-500": "23e8d84515fe2ff5b7b18f1d38290058c9a36579e30cf0373b3db74f91c798e6",
    "multi-turn": "fa41ed30fc60eee60521ebd01aac107480f32a404825a7c3b995e7804f0038b9",
    "opt125m-48-200": "21afd4a8bcf21ac1a6fa983ec5016d686e4ede72df9c210213baed86261aeb66",
    "opt125m-48-2000": "f4c8eb7e7ed4361d394054abf06ed57d0ec5a74234bd7d0bbfaa70929f896ef9",
    "opt125m-48-300": "c682466b1402eb45f88e0e03579e5b3b81aaa06f9456fda286d0b72ad3c55c9a",
    "opt125m-48-500": "23e8d84515fe2ff5b7b18f1d38290058c9a36579e30cf0373b3db74f91c798e6",
    "shared-prefix": "9b47ebb87f95edfcef707a77ddf885ee52ed63cc8281d1c34847bbd9e4fc6880",
    "speculative": "9a2c3f889a062c5e89f03640bb9397e3493b10e43eace366bc723844d0fb952a",
}
"""Seed 0. Where one changes, results before and after are of different work: say so when you
change it. The two of prompt 48 and output 500 differ in their model, which is not hashed."""

CONV_TRACE = Path(__file__).parents[3] / "shared/data/AzureLLMInferenceTrace_conv.csv"


def test_the_catalogue_is_what_the_golden_hashes_name():
    assert catalog.workload_names() == sorted(GOLDEN)


@pytest.mark.parametrize("name", GOLDEN)
def test_every_entry_realises_to_its_golden_hash(name):
    workload = catalog.load_workload(name)
    assert workload.name == name
    assert len(workload.reason) > 40
    assert workload.reason.count(". ") == 0
    assert workload.realise(0).sha256 == GOLDEN[name]


@pytest.mark.parametrize("name", [name for name in GOLDEN if "48" in name])
def test_the_settings_of_the_pull_request_are_in_their_names(name):
    model, prompt, output = name.rsplit("-", 2)
    workload = catalog.load_workload(name)
    made = workload.realise(3)
    assert workload.model.replace("-", "").startswith(model.split("-")[0].replace("-", ""))
    assert set(made.prompt_lens.tolist()) == {int(prompt)}
    assert set(made.output_lens.tolist()) == {int(output)}
    assert made.num_requests == 1024
    assert not made.arrival_seconds.any()


def test_churn_turns_a_full_batch_over():
    made = catalog.load_workload("churn").realise(0)
    assert made.num_requests == 4 * made.max_concurrency == 4096
    assert made.retain == "finish"
    assert len(np.unique(made.output_lens)) > 400


@pytest.mark.skipif(not CONV_TRACE.exists(), reason="the Azure conversation trace is not here")
def test_chat_is_fitted_to_the_trace_it_names():
    recorded, chat = (
        catalog.load_workload(str(CONV_TRACE)).realise(0),
        catalog.load_workload("chat"),
    )
    for lens, fitted in (
        (recorded.prompt_lens, chat.prompt_lens),
        (recorded.output_lens, chat.output_lens),
    ):
        logs = np.log(lens)
        assert fitted.median == pytest.approx(np.exp(logs.mean()), rel=0.01)
        assert fitted.sigma == pytest.approx(logs.std(), rel=0.01)
        assert (fitted.low, fitted.high) == (lens.min(), lens.max())


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match=r"opt125m-48-500.*`gcbench list workloads`"):
        catalog.load_workload("opt125-48-500")
    with pytest.raises(ValueError, match="no workload 'xyzzy'; `gcbench list workloads`"):
        catalog.load_workload("xyzzy")


def test_a_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        "num_requests = 3\n"
        'prompt_lens = { kind = "fixed", value = 4 }\n'
        'output_lens = { kind = "uniform", low = 1, high = 9 }\n'
        '[arrivals]\nkind = "closed_loop"\nconcurrency = 2\n'
    )
    workload = catalog.load_workload(str(path))
    assert (workload.name, workload.prompt_lens) == ("mine", Fixed(4))
    assert workload.arrivals == ClosedLoop(2)
    assert workload.realise(0).num_requests == 3


def write_trace(path):
    path.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
    )


def test_a_trace_is_found_beside_the_file_that_names_it(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    write_trace(tmp_path / "t.csv")
    (tmp_path / "mine.toml").write_text('[trace]\npath = "t.csv"\ntime_scale = 2.0\n')
    monkeypatch.chdir(tmp_path / "elsewhere")
    made = catalog.load_workload("../mine.toml").realise(0)
    assert made.arrival_seconds.tolist() == [0, pytest.approx(2 * 4.314579)]


def test_a_jsonl_is_a_mooncake_trace(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text('{"timestamp": 5, "input_length": 9, "output_length": 2, "hash_ids": [0]}\n')
    workload = catalog.load_workload(str(path))
    assert (workload.name, workload.model) == ("mine", "llama-3-8b")
    assert workload.realise(0).prompt_lens.tolist() == [9]
    (tmp_path / "mine.toml").write_text('[trace]\npath = "mine.jsonl"\n')
    again = catalog.load_workload(str(tmp_path / "mine.toml")).realise(0)
    assert again.sha256 == workload.realise(0).sha256


def test_a_csv_is_an_azure_trace(tmp_path):
    write_trace(tmp_path / "mine.csv")
    workload = catalog.load_workload(str(tmp_path / "mine.csv"))
    assert (workload.name, workload.model) == ("mine", "llama-3-8b")
    assert workload.realise(0).output_lens.tolist() == [44, 109]
    with pytest.raises(TraceError, match="no such file"):
        catalog.load_workload("absent.csv").realise(0)


NEEDED = (
    "num_requests = 3\n"
    'prompt_lens = { kind = "fixed", value = 4 }\n'
    'output_lens = { kind = "fixed", value = 4 }\n'
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("num_requests = = 3", "not TOML: Invalid value .at line 1"),
        (NEEDED + "reqests = 3", "Object contains unknown field `reqests`"),
        (NEEDED + 'retain = "never"', "retain: Invalid enum value 'never'"),
        (NEEDED + 'model = "gpt"', "model: Invalid enum value"),
        (NEEDED + 'arrivals = { kind = "burst" }', "arrivals.kind: Invalid value 'burst'"),
        (NEEDED + 'arrivals = { kind = "poisson", rate = -1 }', "arrivals: rate -1 must be"),
        (NEEDED + 'arrivals = { kind = "poisson", rat = 1 }', "arrivals: .*unknown field `rat`"),
        (NEEDED + 'acceptance = { kind = "fixed", value = "a" }', "acceptance.value: Expected"),
        ("num_requests = 3", "prompt_lens and output_lens must be given"),
        ("[trace]\npath = 3", "trace.path: Expected `str`"),
        (NEEDED + "stop = ['']", "stop must be strings of at least one character"),
        (NEEDED + "stop = 'end'", "stop: Expected `array`"),
        (NEEDED + "turns = { count = 0 }", "turns: a length of 0"),
        (NEEDED + "turns = { count = 2, think = 3 }", "turns: .*unknown field `think`"),
        (NEEDED + "shared_prefix = { groups = 0, tokens = 3 }", "shared_prefix: groups 0"),
        (NEEDED + "priorities = { low = 3, high = 1 }", "priorities: priorities 3 and 1"),
        (NEEDED + 'acceptance = { kind = "histogram", weights = [0.5] }', "acceptance: the shares"),
        (
            NEEDED.replace(
                '{ kind = "fixed", value = 4 }', '{ kind = "histogram", bins = [[1, 4, 0.9]] }'
            ),
            "prompt_lens: the shares must sum to 1, these sum to 0.9",
        ),
        (
            NEEDED.replace(
                '{ kind = "fixed", value = 4 }', '{ kind = "empirical", values = [3, -3] }'
            ),
            "prompt_lens: a length of -3",
        ),
    ],
)
def test_an_error_in_a_file_names_the_file_and_the_place(tmp_path, text, why):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"mine\.toml: {why}") as refused:
        catalog.load_workload(str(path))
    assert "\n" not in str(refused.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ValueError, match=r"absent\.toml: .*No such file"):
        catalog.load_workload(str(tmp_path / "absent.toml"))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"binary\.toml: the file is not text"):
        catalog.load_workload(str(tmp_path / "binary.toml"))


def test_the_file_in_the_docs_can_be_used(tmp_path):
    docs = (Path(__file__).parents[2] / "docs/workloads.md").read_text()
    (text,) = re.findall(r"```toml\n(# steady\.toml.*?)```", docs, re.DOTALL)
    (tmp_path / "steady.toml").write_text(text)
    workload = catalog.load_workload(str(tmp_path / "steady.toml"))
    made = workload.realise(0)
    assert made.num_requests == 2000
    given = set(tomllib.loads(text))
    assert given == set(workload.__struct_fields__) - {"name", "trace"}, "each key is shown"


def test_the_docs_have_a_row_for_each_workload():
    docs = (Path(__file__).parents[2] / "docs/workloads.md").read_text()
    assert (
        sorted(re.findall(r"^\| `([a-z0-9-]+)` \| [0-9,]+ \|", docs, re.M))
        == catalog.workload_names()
    )
