"""Messages that are kept while an engine runs, and the parts of what they say."""

from hypothesis import given
from hypothesis import strategies as st

from engines.pickle_fields import NAMES, PICKLE_REST
from harness.trial.message_log import MessageLog
from harness.trial.message_parts import PARTS, message_parts


def test_parts_are_of_the_first_name_that_says_one():
    fields = {
        NAMES: 1,
        PICKLE_REST: 2,
        "requests.sampling_params.stop": 4,
        "requests.prompt_token_ids": 8,
        "sampled_token_ids": 16,
        "requests.lora": 32,
    }
    assert message_parts(fields) == dict(zip(PARTS, (4, 8, 16, 1, 34), strict=True))


@given(messages=st.lists(st.binary(max_size=50), max_size=20))
def test_a_log_gives_back_what_it_was_given(messages):
    log = MessageLog()
    for number, message in enumerate(messages):
        log.append(message)
        assert log.message(number // 2) == messages[number // 2], "reading does not move the end"
    assert log.sizes() == list(map(len, messages))
    assert [log.message(number) for number in range(len(log.sizes()))] == messages
    log.close()
