"""A request's stream: what is put before the last was taken becomes one output."""

import asyncio

from engines.builtin.delivery.collector import RequestOutputCollector
from engines.builtin.delivery.outputs import DetailedOutput, RequestOutput
from engines.protocol import FinishReason


def output(tokens, text="", reason=None, logprobs=None) -> RequestOutput:
    completion = DetailedOutput(0, tokens, reason, text, logprobs)
    return RequestOutput(3, [1, 2], [completion], reason is not None)


def test_outputs_that_lie_there_are_joined_and_the_steps_own_lists_left_alone():
    stream = RequestOutputCollector()
    first, second, sampled = output(5, "a"), output([6, 7], "bc"), [8]
    stream.put(first)
    stream.put(second)
    stream.put(output(sampled, "", FinishReason.STOP))
    joined = stream.get_nowait()
    assert joined == output([5, 6, 7, 8], "abc", FinishReason.STOP)
    assert second.outputs[0].token_ids == [6, 7]
    assert sampled == [8]
    assert stream.get_nowait() is None


def test_log_probabilities_are_joined_where_there_are_any():
    stream = RequestOutputCollector()
    stream.put(output(5, logprobs=[{5: "a"}]))
    stream.put(output(6, logprobs=[{6: "b"}]))
    assert stream.get_nowait().outputs[0].logprobs == [{5: "a"}, {6: "b"}]


def test_who_waits_is_woken_once_for_what_has_come():
    async def read() -> list[RequestOutput]:
        stream = RequestOutputCollector()
        waiting = asyncio.ensure_future(stream.get())
        await asyncio.sleep(0)
        assert not waiting.done()
        stream.put(output(1))
        stream.put(output(2))
        first = await waiting
        again = asyncio.ensure_future(stream.get())
        await asyncio.sleep(0)
        assert not again.done(), "the event must be reset with what was taken"
        stream.put(output(3))
        return [first, await again]

    taken = asyncio.run(read())
    assert [each.outputs[0].token_ids for each in taken] == [[1, 2], 3]
