"""The load generator against a server that does what a script says."""

import json
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psutil
import pytest
from processes import HANG_SECONDS, HEARS_CTRL_C, is_alive, until
from runs import load
from scripted_server import ScriptedServer

from harness.cli.main import main
from harness.files import read_rows
from harness.load.log import load_log
from harness.load.result import LoadResult
from harness.report.kinds import read_result
from harness.result.result import RESULT_FILE
from workloads.schedule import Schedule

ROOT = Path(__file__).parents[3]
FAULTS = {
    "none": "completed",
    "crlf": "completed",
    "split": "completed",
    "together": "completed",
    "until_close": "completed",
    "rate_limited": "rate_limited",
    "not_found": "client_error",
    "redirect": "other_status",
    "server_error": "server_error",
    "error_event": "server_error",
    "reset": "reset",
    "closed": "closed_early",
    "no_end": "closed_early",
    "malformed": "malformed",
    "non_utf8": "malformed",
    "not_http": "malformed",
    "nameless_error": "server_error",
    "error_object": "server_error",
    "failed": "server_error",
    "aborted": "cut_off",
    "filtered": "cut_off",
    "no_reason": "closed_early",
    "broken_off": "closed_early",
    "wrong_count": "completed",
    "silent": "timed_out",
    "endless": "timed_out",
}


@pytest.mark.slow
@pytest.mark.landing
def test_every_fault_is_counted_by_its_kind_and_the_rest_goes_on(tmp_path):
    ran = faulty_run(tmp_path, [name for name, kind in FAULTS.items() if kind != "timed_out"])
    assert ran.status == 3  # most have failed
    assert ran.result.messages["rate_limited"] == ["status 429: slow down"]


@pytest.mark.slow
def test_requests_that_never_end_are_broken_off_and_make_room_for_others(tmp_path):
    """By themselves, for no limit is one that a busy machine lets every answer keep to."""
    hanging = [name for name, kind in FAULTS.items() if kind == "timed_out"]
    faulty_run(tmp_path, hanging * 4, request_timeout=1)


def faulty_run(folder: Path, faults: Sequence[str], **changes: Any):
    """Each fault three times, by eight requests at once; every request is counted by its kind."""
    with ScriptedServer(faults=faults) as server:
        ran = load(
            server.url,
            folder,
            num_requests=3 * len(faults),
            output_lens=3,
            max_concurrency=8,
            num_warmups=0,
            client_processes=2,
            **changes,
        )
    assert ran.result.outcomes == Counter([FAULTS[name] for name in faults] * 3)
    assert sum(ran.result.outcomes.values()) == ran.result.num_requests
    return ran


@pytest.mark.parametrize("rate", [0.01, 0.5])
def test_failures_make_a_run_invalid_where_they_are_more_than_may_be(tmp_path, rate):
    with ScriptedServer(faults=["none", "rate_limited"]) as server:
        ran = load(
            server.url, tmp_path, num_requests=10, output_lens=3, num_warmups=0, max_error_rate=rate
        )
    assert ran.result.outcomes == {"completed": 5, "rate_limited": 5}
    # On a busy machine the client's own health may do so, too.
    broken = {each.rule for each in ran.result.broken}
    assert {"completed", "token count", "requests"}.isdisjoint(broken)
    assert ("failed" in broken) == (rate == 0.01)
    assert ran.status == 3 or rate == 0.5


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["no_reason", "broken_off", "nameless_error", "aborted"])
def test_completed_is_the_same_for_outcomes_figures_export_and_rules(tmp_path, fault):
    """Half of the answers are not; what came of them counts nowhere."""
    exported = tmp_path / "vllm.json"
    with ScriptedServer(faults=["none", fault]) as server:
        ran = load(
            server.url, tmp_path, num_requests=8, output_lens=6, num_warmups=0, export_vllm=exported
        )
    result, document = ran.result, json.loads(exported.read_bytes())
    assert (result.num_attempted, result.num_completed) == (8, 4)
    assert result.outcomes["completed"] == document["completed"] == 4
    assert "failed" in {each.rule for each in result.broken}
    assert (ran.status, document["failed"]) == (3, 4)
    assert document["total_output_tokens"] == 24
    assert sorted(map(len, document["itls"])) == [0] * 4 + [5] * 4
    metrics = result.trial.metrics
    assert metrics["output_throughput"] == pytest.approx(6 * metrics["request_throughput"])
    assert result.prompt_tokens == document["total_input_tokens"] == 12
    rows = read_rows(next(ran.folder.glob("rows/*-requests.parquet")))
    assert sum(rows["finish_reason"] >= 0) == 4


def test_a_run_without_an_answer_measured_nothing(tmp_path):
    with ScriptedServer(faults=["server_error"]) as server:
        ran = load(server.url, tmp_path, num_requests=4, output_lens=3, num_warmups=0)
    assert ran.status == 3
    assert ran.result.broken[0].rule == "completed"


@pytest.mark.slow
def test_what_goes_out_is_the_schedule(tmp_path):
    with ScriptedServer() as server:
        load(
            server.url,
            tmp_path,
            num_requests=20,
            output_lens="uniform:1:5",
            prompt_lens="uniform:1:9",
            client_processes=3,
            num_warmups=0,
            seed=5,
        )
        bodies = server.seen()["bodies"]
    (path,) = (tmp_path / "runs").glob("*/schedule-*.npz")
    schedule = Schedule.load(path)
    asked = sorted(
        (schedule.prompt_token_ids(i).tolist(), int(schedule.output_lens[i])) for i in range(20)
    )
    assert sorted((body["prompt"], body["max_tokens"]) for body in bodies) == asked


def test_a_cap_holds_over_all_processes(tmp_path):
    with ScriptedServer(gaps=[0.002]) as server:
        ran = load(
            server.url,
            tmp_path,
            num_requests=40,
            output_lens=4,
            max_concurrency=5,
            client_processes=2,
            num_warmups=0,
        )
    rows = read_rows(next(ran.folder.glob("rows/*-requests.parquet")))
    ends = [(moment, 1) for moment in rows["sent_ns"]]
    ends += [(moment, -1) for moment in rows["last_ns"]]
    in_flight = np.cumsum([step for _, step in sorted(ends)])
    assert in_flight.max() <= 5
    assert ran.result.trial.metrics["ttft_from_schedule_median"] is None


def test_a_turn_waits_for_the_one_before_it(tmp_path):
    path = tmp_path / "talk.toml"
    path.write_text(
        "num_requests = 24\n"
        'prompt_lens = { kind = "fixed", value = 4 }\n'
        'output_lens = { kind = "fixed", value = 3 }\n'
        'turns = { count = { kind = "uniform", low = 1, high = 4 }, think_seconds = 0.001 }\n'
    )
    with ScriptedServer(gaps=[0.005]) as server:
        ran = load(server.url, tmp_path, workload=path, client_processes=2, num_warmups=0)
    assert ran.result.outcomes == {"completed": 24}
    (path,) = ran.folder.glob("schedule-*.npz")
    previous = Schedule.load(path).previous_turn
    rows = read_rows(next(ran.folder.glob("rows/*-requests.parquet")))
    later = np.flatnonzero(previous >= 0)
    assert len(later)
    assert (rows["sent_ns"][later] >= rows["last_ns"][previous[later]]).all()


def test_a_log_replays_to_the_same_result(tmp_path):
    log = tmp_path / "run.npz"
    with ScriptedServer(gaps=[0.001], faults=["none", "none", "closed", "malformed"]) as server:
        live = load(
            server.url,
            tmp_path,
            num_requests=16,
            output_lens=5,
            client_processes=2,
            log=log,
            request_rate=400,
            num_warmups=1,
        )
    again = tmp_path / "again.json"
    status = main(["load", "--replay", str(log), "--json", str(again), "--quiet"])
    assert status == live.status
    replayed = msgspec.json.decode(again.read_bytes(), type=LoadResult)
    stored = {"name", "command", "machine", "workloads", "experiment"}
    for field in {*LoadResult.__struct_fields__} - stored:
        assert getattr(replayed, field) == getattr(live.result, field), field


def test_a_run_is_stored_as_any_trial(tmp_path):
    with ScriptedServer() as server:
        for _ in range(5):  # a stall of this machine would make one invalid, which has no cell
            ran = load(server.url, tmp_path, num_requests=6, output_lens=3, num_warmups=0)
            if ran.result.is_valid:
                break
    summary = ran.result.experiment
    (cell,) = summary.cells
    assert cell.axes["engine"] == "openai"
    for name, samples in cell.metrics.items():
        assert samples.median == ran.result.trial.metrics[name]
    assert summary.workloads[0].num_requests == 6
    rows = read_rows(next(ran.folder.glob("rows/*-deliveries.parquet")))
    assert len(rows["request"]) == 18
    assert not (ran.folder / "incomplete.txt").exists()


def test_the_key_is_stored_nowhere(tmp_path, monkeypatch):
    key = "sk-very-secret"
    monkeypatch.setattr(sys, "argv", ["gcbench", "load", "--api-key", key])
    log = tmp_path / "run.npz"
    with ScriptedServer(faults=["none", "echoes_key"]) as server:
        ran = load(
            server.url,
            tmp_path,
            num_requests=4,
            output_lens=3,
            num_warmups=0,
            api_key=key,
            log=log,
            export_vllm=tmp_path / "vllm.json",
        )
        assert set(server.seen()["keys"]) == {key, ""}
    assert ran.result.outcomes == {"completed": 2, "client_error": 2}
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or key.encode() not in path.read_bytes(), path
    assert key.encode() not in load_log(log)[0].recording.data.tobytes()


def test_the_export_has_what_vllm_writes(tmp_path):
    path = tmp_path / "vllm.json"
    with ScriptedServer(gaps=[0.02], faults=["none", "none", "reset"]) as server:
        ran = load(
            server.url, tmp_path, num_requests=9, output_lens=4, num_warmups=0, export_vllm=path
        )
    document, metrics = json.loads(path.read_bytes()), ran.result.trial.metrics
    assert (document["completed"], document["failed"], document["num_prompts"]) == (6, 3, 9)
    assert document["total_output_tokens"] == 24
    for ours, theirs in {
        "ttft_mean": "mean_ttft_ms",
        "ttft_median": "median_ttft_ms",
        "tpot_mean": "mean_tpot_ms",
        "itl_median": "median_itl_ms",
        "e2el_median": "median_e2el_ms",
    }.items():
        assert document[theirs] == pytest.approx(1e3 * metrics[ours])
    assert document["request_throughput"] == pytest.approx(metrics["request_throughput"])
    assert [len(each) for each in document["itls"]].count(3) == 6
    assert document["errors"].count("reset") == 3


def test_the_servers_metrics_are_kept(tmp_path):
    said = '# TYPE gcbench:gc_collections counter\ngcbench:gc_collections_total{process="x"} {n}\n'
    with ScriptedServer(metrics=said) as server:
        ran = load(server.url, tmp_path, num_requests=5, output_lens=2, num_warmups=0)
    assert len(ran.result.scrapes) >= 2
    assert ran.result.server_collections == {'gcbench:gc_collections_total{process="x"}': 5.0}


@pytest.mark.slow
def test_a_server_that_is_late_is_waited_for(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    assert main(["load", url, "--output", str(tmp_path / "nowhere")]) == 3
    assert main(["load", url, "--wait-for", "0.1", "--output", str(tmp_path / "nowhere")]) == 3
    assert not (tmp_path / "nowhere").exists()
    with ScriptedServer(port=port, delay=0.5):
        ran = load(url, tmp_path, num_requests=2, output_lens=2, wait_for=HANG_SECONDS)
    assert ran.result.outcomes == {"completed": 2}


def started(program: "subprocess.Popen[str]", count: int) -> list[psutil.Process]:
    parent = psutil.Process(program.pid)
    while len(found := parent.children(recursive=True)) < count:
        assert is_alive(parent)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_an_interrupted_run_leaves_what_it_has_and_no_process(tmp_path, number):
    with ScriptedServer(gaps=[0.01], faults=["none", "endless"]) as server:
        program = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "harness",
                "load",
                server.url,
                "--num-requests",
                "8",
                "--output-lens",
                "3",
                "--client-processes",
                "2",
                "--num-warmups",
                "0",
                "--output",
                str(tmp_path / "runs"),
                "--json",
                str(tmp_path / "result.json"),
            ],
            stderr=subprocess.PIPE,
            cwd=ROOT,
            text=True,
            **HEARS_CTRL_C,
        )
        clients = started(program, 2)
        server.wait_for_requests(8)
        program.send_signal(number)
        assert program.stderr is not None
        said = program.stderr.read()
        program.wait()
        program.stderr.close()
    until(lambda: not any(map(is_alive, clients)))
    if number == signal.SIGKILL:
        return
    assert (program.returncode, said.strip().splitlines()[-1]) == (130, "interrupted")
    result = msgspec.json.decode((tmp_path / "result.json").read_bytes(), type=LoadResult)
    assert not result.is_complete
    assert sum(result.outcomes.values()) == 8
    assert result.outcomes["interrupted"] >= 4
    (folder,) = (tmp_path / "runs").iterdir()
    assert (folder / "incomplete.txt").exists()
    assert not read_result(folder / RESULT_FILE).is_complete


@pytest.mark.slow
def test_a_client_process_that_is_killed_takes_its_requests_alone(tmp_path):
    with ScriptedServer(faults=["held"]) as server:
        program = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "harness",
                "load",
                server.url,
                "--num-requests",
                "10",
                "--output-lens",
                "20",
                "--client-processes",
                "2",
                "--num-warmups",
                "0",
                "--output",
                str(tmp_path / "runs"),
                "--json",
                str(tmp_path / "result.json"),
                "--quiet",
            ],
            cwd=ROOT,
        )
        clients = started(program, 2)
        server.wait_for_requests(10)
        clients[0].kill()
        server.let_go()
        assert program.wait() == 3
    result = msgspec.json.decode((tmp_path / "result.json").read_bytes(), type=LoadResult)
    assert result.outcomes == {"completed": 5, "client_died": 5}
    assert "client processes" in [each.rule for each in result.broken]
    assert "killed by SIGKILL" in result.trial.invalid


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["http://HOST:PORT", "--replay"]),
        (["http://h", "--replay", "x"], ["not both"]),
        (["ftp://h"], ["'ftp'", "http://HOST:PORT"]),
        (["http://user:pw@h"], ["must not hold a key"]),
        (["http://h", "--client-processes", "9", "--num-requests", "4"], ["--client-processes 9"]),
        (["http://h", "--request-rate", "5", "--axis", "arrivals=at_once"], ["--request-rate"]),
        (["http://h", "--burstiness", "5"], ["--burstiness"]),
        (["http://h", "--extra-body", "[]"], ["--extra-body"]),
        (["http://h", "--client-gc", "frezee"], ["'frezee'", "freeze"]),
        (["http://h", "--api-key", "a b"], ["API key"]),
        (["https://h", "--ca-file", "nowhere.pem"], ["--ca-file nowhere.pem"]),
        (["--replay", "nowhere.npz"], ["nowhere.npz"]),
        (["http://h", "--log", "-"], ["--log -"]),
        (["http://h", "--workload", "chatt"], ["'chatt'", "chat"]),
    ],
)
def test_a_mistake_is_one_sentence_and_status_two(arguments, words, capsys):
    assert main(["load", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    for word in words:
        assert word in line


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04junk", b"not a log"])
def test_a_file_that_is_no_log_is_named(tmp_path, content, capsys):
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    assert main(["load", "--replay", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(path) in line


def test_a_damaged_log_is_named_and_never_an_internal_error(tmp_path, capsys):
    log = tmp_path / "run.npz"
    with ScriptedServer() as server:
        load(server.url, tmp_path, num_requests=3, output_lens=2, num_warmups=0, log=log)
    with np.load(log) as columns:
        arrays = {name: columns[name] for name in columns.files}
    damages = {
        "ended": np.full(3, 99, np.int8),
        "request": arrays["request"] + np.int32(5),
        "end": arrays["end"][::-1],
        "sent_ns": arrays["sent_ns"].astype(np.float64),
        "stamp_ns": arrays["stamp_ns"][1:],
        "header": arrays["header"][:-3],
        "schedule": arrays["schedule"][:-3],
        "asked": arrays["asked"][:, None],
    }
    for name, damage in damages.items():
        np.savez(tmp_path / "damaged.npz", **(arrays | {name: damage}))
        assert main(["load", "--replay", str(tmp_path / "damaged.npz")]) == 2, name
    np.savez_compressed(tmp_path / "damaged.npz", **arrays)
    assert main(["load", "--replay", str(tmp_path / "damaged.npz")]) == 2
    for line in capsys.readouterr().err.splitlines():
        assert "damaged.npz is no log of gcbench load" in line


def test_client_processes_find_our_packages_by_themselves(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    with ScriptedServer() as server:
        ran = load(server.url, tmp_path, num_requests=2, output_lens=2)
    assert ran.result.outcomes == {"completed": 2}
