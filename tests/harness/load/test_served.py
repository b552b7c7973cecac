"""A server for as long as a block lasts: clients without a key are served, and it ends with it."""

import urllib.request

import psutil
import pytest
from processes import is_alive, until

from harness.load.served import served


@pytest.mark.slow
def test_it_serves_clients_without_a_key_and_ends_with_its_block(tmp_path, monkeypatch):
    monkeypatch.setenv("GCBENCH_API_KEY", "the key of a server of the user's own")
    with served(["--device", "null"], tmp_path) as server:
        with urllib.request.urlopen(f"{server.url}/v1/models") as answer:
            assert server.model in answer.read().decode()
        assert all(seconds > 0 for seconds in server.cpu_seconds().values())
        processes = [psutil.Process(each.pid) for each in server.processes.values()]
    until(lambda: not any(map(is_alive, processes)))
