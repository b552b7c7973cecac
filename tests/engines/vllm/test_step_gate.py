"""The gate between an engine core and the reader of its outputs."""

from threading import Thread

import pytest

from engines.vllm.gate import Gate


@pytest.fixture
def gates(tmp_path):
    reader = Gate(str(tmp_path / "gate"), create=True)
    worker = Gate(str(tmp_path / "gate"))
    yield reader, worker
    worker.close()


def test_a_step_may_end_for_each_time_that_it_was_opened(gates):
    reader, worker = gates
    for _ in range(3):
        reader.open_once()
    assert not reader.is_waited_at()
    for _ in range(3):
        worker.wait()
    assert not reader.is_waited_at()
    waiting = Thread(target=worker.wait)
    waiting.start()
    while not reader.is_waited_at():
        pass
    reader.open_once()
    waiting.join()
    assert not reader.is_waited_at()
    reader.close()


def test_it_stands_open_once_the_reader_has_gone(gates):
    reader, worker = gates
    reader.close()
    worker.wait()
