"""`gcbench list workloads NAME` from the outside: what it prints, writes and refuses."""

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.main import main
from harness.render.plots import beside, columns, panel
from harness.report.workload import check_words
from workloads import catalog
from workloads.recipe.arrivals import parse_arrivals
from workloads.summary import Summary, summarise_workload
from workloads.traces.trace import Trace
from workloads.workload import Workload

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture
def gcbench(capsys):
    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(["list", "workloads", *arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


@pytest.mark.parametrize("name", ["multi-turn", "speculative", "burst"])
def test_what_is_shown(gcbench, name):
    status, out, err = gcbench(name)
    assert (status, err) == (0, "")
    text = "\n".join(line.rstrip() for line in out.splitlines()) + "\n"
    assert max(map(len, text.splitlines())) <= 80
    path = GOLDEN / f"workload-{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), f"{path.name} changed; if meant, run with UPDATE_GOLDEN=1"


@pytest.mark.parametrize("name", catalog.workload_names())
def test_every_workload_can_be_shown(gcbench, name):
    status, out, _ = gcbench(name)
    assert status == 0
    assert max(map(len, out.splitlines())) <= 80
    assert name in out
    assert catalog.load_workload(name).realise(0).sha256[:12] in out


def test_flags_stand_in_the_place_of_what_the_workload_says(gcbench):
    flags = [
        "--num-requests",
        "300",
        "--axis",
        "arrivals=constant:50",
        "--axis",
        "tokens-per-step=1..4",
        "--axis",
        "priorities=0:3",
        "--axis",
        "stop=end",
        "--axis",
        "stop=\n",
        "--axis",
        "min-tokens=2",
        "--axis",
        "respect-eos=on",
        "--seed",
        "5",
    ]
    status, out, _ = gcbench("chat", *flags, "--json", "-")
    assert status == 0
    summary = msgspec.json.decode(out, type=Summary)
    assert (summary.name, summary.num_requests, summary.seed) == ("chat (changed)", 300, 5)
    assert (summary.arrivals.asked_gap_cv, summary.arrivals.verdict) == (0, "as asked")
    assert summary.max_tokens_per_step == 4
    workload = summary.workload
    assert (workload.priorities.low, workload.priorities.high) == (0, 3)
    assert (workload.stop, workload.min_tokens, workload.ignore_eos) == (("end", "\n"), 2, False)
    assert summary.hash == workload.realise(5).sha256
    _, out, _ = gcbench("chat", *flags)
    for words in ("as asked", "chat (changed)", "'end', '\\n', end of sequence, after 2 tokens"):
        assert words in out


def test_a_summary_for_programs_goes_to_a_file(gcbench, tmp_path):
    path = tmp_path / "chat.json"
    _, out, _ = gcbench("chat", "--json", str(path))
    assert "self-check" in out
    summary = json.loads(path.read_text())
    assert summary["schema"] == "gcbench.workload/1"
    assert summary["arrivals"]["check"].keys() >= {"gap_cv", "lag1_correlation", "dispersion"}
    assert summary["workload"]["arrivals"] == {"kind": "poisson", "rate": 20.0}


@pytest.mark.parametrize("name", ["chat", "speculative"])
def test_an_image_of_either_kind(gcbench, tmp_path, name):
    for suffix in ("png", "svg"):
        path = tmp_path / f"plots.{suffix}"
        assert gcbench(name, "--image", str(path))[0] == 0
    assert (tmp_path / "plots.png").read_bytes().startswith(b"\x89PNG")
    drawn = (tmp_path / "plots.svg").read_text()
    ElementTree.fromstring(drawn)
    gcbench(name, "--image", str(tmp_path / "again.svg"))
    assert (tmp_path / "again.svg").read_text() == drawn


def test_a_trace_is_shown_and_exported_with_the_flags_of_traces(gcbench, tmp_path):
    path, out_path = tmp_path / "t.csv", tmp_path / "t.jsonl"
    rows = [f"{i / 10:.1f},ChatGPT,{40 + i},{5 + i},0,API log" for i in range(400)]
    path.write_text(
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        + "\n".join([*rows, "41,ChatGPT,1,0,1,API log"])
    )
    flags = [
        str(path),
        "--axis",
        "window=10:20",
        "--axis",
        "time-scale=0.5",
        "--axis",
        "skip-bad-rows=on",
    ]
    status, out, err = gcbench(*flags)
    assert (status, err) == (0, "")
    assert "nothing asked for" in out
    assert "1 of the trace left out" in out
    status, out, _ = gcbench(*flags, "--mooncake", str(out_path))
    assert (status, "200, seed 0" in out) == (0, True)
    back = Workload(name="back", trace=Trace(str(out_path))).realise(0)
    assert back.prompt_lens.tolist() == list(range(140, 340))
    assert back.arrival_seconds[-1] == pytest.approx(199 * 0.05, abs=0.001)


MISTAKES = [
    (["chatt"], ["'chatt'", "chat"]),
    (["absent.jsonl"], ["absent.jsonl", "no such file"]),
    (["chat", "--image", "plot.gif"], ["plot.gif", ".png or .svg"]),
    (["chat", "--image", "/proc/nowhere/plot.svg"], ["/proc/nowhere", "--image"]),
    (["chat", "--seed", "-1"], ["seed -1"]),
    (["chat", "--axis", "stop="], ["stop", "at least one character"]),
    (["chat", "--axis", "min-tokens=-3"], ["min_tokens -3"]),
    (["chat", "--axis", "priorities=3:1"], ["priorities 3 and 1", "in order"]),
    (["chat", "--axis", "priorities=high"], ["'high'", "LOW:HIGH"]),
    (["chat", "--prompt-lens", "zipf:1:-5:9"], ["low -5", "zipf:EXPONENT"]),
    (["chat", "--prompt-lens", "-5"], ["'-5'"]),
    (["chat", "--prompt-lens", "histogram:none.csv"], ["none.csv", "No such file"]),
    (["chat", "--axis", "tokens-per-step=histogram:0.5:0.4"], ["sum to 1", "0.9"]),
    (["chat", "--axis", "arrivals=gamma:20:-1"], ["burstiness -1"]),
    (["chat", "--axis", "window=0:10"], ["window", "no trace"]),
    (["chat", "--mooncake", "chat.json"], ["chat.json", ".jsonl"]),
    (["chat", "--mooncake", "/proc/nowhere/a.jsonl"], ["/proc/nowhere", "--mooncake"]),
]


@pytest.mark.parametrize(("arguments", "words"), MISTAKES)
def test_a_mistake_is_one_sentence_and_status_two(gcbench, arguments, words):
    status, out, err = gcbench(*arguments)
    assert status == 2
    assert "Traceback" not in err
    (line,) = err.splitlines()
    assert line.startswith("gcbench: ")
    for word in words:
        assert word in line
    assert out == "" or "--image" in arguments


def test_a_trace_is_not_put_in_the_place_of_a_pipe(gcbench, tmp_path):
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    status, _, err = gcbench("chat", "--mooncake", str(pipe))
    assert status == 2
    assert err == f"gcbench: --mooncake {pipe}: is no file; name one in a folder\n"
    assert pipe.is_fifo()


def test_a_malformed_line_of_a_trace_is_named(gcbench, tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text('{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0]}\n')
    status, _, err = gcbench(str(path))
    assert status == 2
    (line,) = err.splitlines()
    assert f"{path} line 1: expected 2 hash_ids for 600 tokens, found 1" in line


@given(values=st.lists(st.integers(0, 10**6), min_size=1, max_size=60), height=st.integers(1, 8))
def test_columns_stand_in_order_of_their_values(values, height):
    lines = columns(values, height)
    assert [len(line) for line in lines] == [len(values)] * height
    filled = [sum(" ▁▂▃▄▅▆▇█".index(line[i]) for line in lines) for i in range(len(values))]
    for value, eighths in zip(values, filled, strict=True):
        assert (eighths > 0) == (value > 0)
        if max(values):
            assert eighths - 1 < 8 * height * value / max(values) <= eighths
    assert max(values) == 0 or max(filled) == 8 * height


def test_a_panel_names_its_ends_and_stands_beside_another():
    assert panel("tokens", [0, 2, 4], "4", ("1", "3,000"), height=2) == [
        "tokens",
        " 4 │  █",
        "   │ ██",
        " 0 └───",
        "    1 3,000",
    ]
    assert beside(["a", ""], ["b", "c"], 4) == ["a   b", "    c"]


def test_arrivals_that_are_not_as_asked_are_named_with_what_is_wrong():
    workload = catalog.load_workload("chat")
    schedule = msgspec.structs.replace(workload, arrivals=parse_arrivals("constant:20")).realise(0)
    words = check_words(summarise_workload(workload, schedule, 0).arrivals)
    assert words.startswith("not as asked; gaps' CV ")
    assert "where 1 was asked for" in words


def test_only_an_image_needs_matplotlib(fresh_interpreter):
    script = """
import contextlib, io, json, sys
from harness.cli.main import main
with contextlib.redirect_stdout(io.StringIO()):
    main(["list", "workloads", "chat"])
print(json.dumps("matplotlib" in sys.modules))
"""
    assert fresh_interpreter(script) is False
