"""Runs in which the client really was the bottleneck: each is invalid, and says why."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack

import msgspec
import psutil
import pytest
from scripted_server import ScriptedServer

from engines import tied_process
from harness.load.result import LoadResult

BUSY = "while True: pass"


def run(url, folder, *flags, meanwhile):
    path = folder / "result.json"
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "harness",
            "load",
            url,
            *flags,
            "--json",
            str(path),
            "--quiet",
            "--output",
            str(folder / "runs"),
        ]
    ) as program:
        meanwhile(psutil.Process(program.pid))
        status = program.wait()
    result = msgspec.json.decode(path.read_bytes(), type=LoadResult)
    assert status == (0 if result.is_valid else 3)
    return result


# Who gets the core that busy programs want is the scheduler's to say, and what else runs there.
@pytest.mark.flaky(reruns=2)
@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen")
def test_a_client_that_shares_its_core_with_busy_programs_is_invalid(tmp_path):
    core = max(os.sched_getaffinity(0))

    def crowd(program):
        """Once it sends: a fair scheduler gives a client that wants less than its share no wait."""
        server.wait_for_requests(20)
        for _ in range(2):
            process = tied_process.start_tied([sys.executable, "-c", BUSY])
            busy.callback(process.wait)
            busy.callback(process.kill)
            psutil.Process(process.pid).cpu_affinity([core])
        for client in program.children():
            client.nice(10)
            client.cpu_affinity([core])

    with ScriptedServer() as server, ExitStack() as busy:
        result = run(
            server.url,
            tmp_path,
            "--num-requests",
            "400",
            "--request-rate",
            "200",
            "--output-lens",
            "50",
            meanwhile=crowd,
        )
    assert {each.rule for each in result.broken} & {"core", "send lag", "loop lag", "arrivals"}


@pytest.mark.slow
def test_one_slow_process_of_four_is_named(tmp_path):
    def stop_one(program):
        while len(clients := program.children()) < 4:
            assert program.is_running()
        server.wait_for_requests(50)
        clients[2].suspend()
        server.wait_for_requests(len(server.seen()["bodies"]) + 150)
        clients[2].send_signal(signal.SIGCONT)

    with ScriptedServer(gaps=[0.001]) as server:
        result = run(
            server.url,
            tmp_path,
            "--num-requests",
            "800",
            "--request-rate",
            "200",
            "--output-lens",
            "5",
            "--client-processes",
            "4",
            meanwhile=stop_one,
        )
    lag = next(each.sentence for each in result.broken if each.rule == "loop lag")
    assert lag.startswith("client process 2 stamped late")
    assert sum(result.outcomes.values()) == 800
