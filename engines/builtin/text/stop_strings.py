"""Where a text meets one of its stop strings, and which strings can be told apart from others."""

from typing import AnyStr

from engines.builtin.text import REPLACEMENT
from engines.protocol import SamplingParams


def find_stop(text: AnyStr, num_new: int, stop: tuple[AnyStr, ...]) -> tuple[int, int] | None:
    """Begin and end of the stop string that ends first within the last ``num_new`` of ``text``.

    Of those that end together the first of ``stop``, as in vLLM. For strings or UTF-8 alike: no
    character's bytes occur within another's.
    """
    found: tuple[int, int] | None = None
    for each in stop:
        begin = text.find(each, max(0, len(text) - num_new - len(each) + 1))
        if begin >= 0 and (found is None or begin + len(each) < found[1]):
            found = begin, begin + len(each)
    return found


def check_stop(request_index: int, params: SamplingParams, has_text: bool) -> None:
    """Raise ValueError where a request's stop strings could never be found."""
    if not params.stop:
        return
    if not has_text:
        raise ValueError(
            f"request {request_index}: stop strings are looked for in its text, and there is none "
            "with --axis detokenizer=none; choose decode_stream or byte_table"
        )
    if "" in params.stop:
        raise ValueError(f"request {request_index}: a stop string of length 0; leave it out")
    if any(REPLACEMENT in each for each in params.stop):
        raise ValueError(
            f"request {request_index}: a stop string with U+FFFD, which stands for bytes that are "
            "no text; leave it out"
        )
