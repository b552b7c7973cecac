"""Tokens come when they are asked for, in the thread that asks, and once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from engines.vllm.when_asked import WhenAsked, compile_at_once, take_over


def test_nothing_is_fetched_before_somebody_asks():
    fetched = []

    def fetch():
        fetched.append(threading.current_thread())
        return [7]

    future = WhenAsked().submit(fetch)
    assert (future.done(), fetched) == (False, [])
    assert future.result() is future.result()
    assert (future.done(), fetched) == (True, [threading.main_thread()])


def test_what_fetching_raises_is_raised_to_who_asks():
    def fail():
        raise KeyError("lost")

    future = WhenAsked().submit(fail)
    for _ in range(2):
        with pytest.raises(KeyError, match="lost"):
            future.result()


def test_a_thread_that_an_executor_has_is_ended_and_stood_in_for():
    pool = ThreadPoolExecutor(max_workers=1)
    pool.submit(int).result()
    executor = SimpleNamespace(async_output_thread=pool)
    take_over(executor)
    assert isinstance(executor.async_output_thread, WhenAsked)
    with pytest.raises(RuntimeError, match="shutdown"):
        pool.submit(int)
    for without in (SimpleNamespace(), SimpleNamespace(async_output_thread=None)):
        before = vars(without).copy()
        take_over(without)
        assert vars(without) == before


def test_what_a_pool_is_for_is_done_at_once_by_who_asks():
    manager = SimpleNamespace(executor=ThreadPoolExecutor(1), executor_for_fillmask=None)
    compile_at_once(manager)
    future = manager.executor.submit(lambda *got: (threading.current_thread(), *got), 1, 2)
    assert future.done()
    assert future.result() == (threading.main_thread(), 1, 2)
    failed = manager.executor.submit(int, "one")
    with pytest.raises(ValueError, match="one"):
        failed.result()
    manager.executor.shutdown(wait=False, cancel_futures=True)
    assert manager.executor_for_fillmask is None
