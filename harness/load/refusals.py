"""Why servers refuse requests, by what they say, and the flag that helps."""

import re

from engines.openai.outcome import Outcome
from engines.openai.response import Response

_FLAGS = (
    (r"vocab|token.?ids? .*(out of|invalid)", "--vocab-size N keeps token ids of prompts below N"),
    (
        r"context.?(length|window|size)|max_model_len|prompt (is )?too long",
        "--prompt-lens and --output-lens ask for less",
    ),
    (
        r"max_completion_tokens",
        """--extra-body '{"max_tokens": null, "max_completion_tokens": N}' asks in its words""",
    ),
    (r"stream_options|include_usage", """--extra-body '{"stream_options": null}' leaves it out"""),
    (r"temperature", """--extra-body '{"temperature": null}' leaves it out"""),
    (
        r"ignore_eos|return_token_ids|min_tokens|stop_token_ids|priority|extra (fields?|inputs?)|"
        r"(unknown|unrecognized|unexpected|additional) (field|argument|parameter|key|propert)|"
        r"not permitted",
        "--standard-fields leaves out what only some servers know",
    ),
    (r"messages.*(required|missing)|(required|missing).*messages", "--prompt-as chat sends them"),
    (r"prompt.*(string|str\b|text|type)|valid string", "--prompt-as text sends words, not ids"),
    (r"api.?key|status 40[13]|unauthori[sz]ed|authenticat", "--api-key KEY gives one"),
    (r"model.*(not (be )?found|not exist|unknown|unsupported)", "--model NAME names another"),
    (r"status 429|rate.?limit|too many requests", "--max-concurrency N asks for less at a time"),
    (r"status 40[45]", "--prompt-as chat asks at /v1/chat/completions, other forms do not"),
)
"""A pattern of what a server says, and what to do; the first that fits."""

_STATUS_OF_THE_QUESTION = re.compile(r"""["']?(code|status)["']?\s*:\s*["']?4(?!08|29)\d\d""")


def flag_for(message: str) -> str:
    """The flag that helps, and how, or ""."""
    for pattern, flag in _FLAGS:
        if re.search(pattern, message, re.IGNORECASE | re.DOTALL):
            return flag
    return ""


def is_final(response: Response) -> bool:
    """Whether the question itself is refused, so that no second attempt would change it."""
    if response.outcome is Outcome.CLIENT_ERROR:
        return not response.message.startswith("status 408")
    in_stream = response.outcome is Outcome.SERVER_ERROR
    return in_stream and bool(_STATUS_OF_THE_QUESTION.search(response.message))
