"""How many tokens answers have: who says so, what contradicts it, and where nobody does."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.openai.outcome import Outcome
from engines.openai.response import CountSource, count_words
from engines.openai.responses import Responses
from engines.protocol import Int32Array
from engines.vocabulary import load_tokenizer
from harness import format as fmt


def with_tokenizer(responses: Responses, tokenizer: str) -> Responses:
    """With the text of answers counted of which nobody says how many tokens they have.

    Raises ValueError where ``tokenizer`` is no ``tokenizer.json``, nor a folder with one.
    """
    try:
        encode = load_tokenizer(tokenizer).encode
    except ValueError as error:
        raise ValueError(str(error).replace("--axis tokenizer=", "--tokenizer ")) from None
    num_tokens, counted_by = responses.num_tokens.copy(), responses.counted_by.copy()
    texts = np.split(responses.text, np.cumsum(responses.num_text)[:-1])
    for request in np.flatnonzero(responses.completed & (num_tokens < 0)).tolist():
        text = texts[request].tobytes().decode(errors="replace")
        num_tokens[request] = len(encode(text, add_special_tokens=False).ids)
        counted_by[request] = CountSource.TOKENIZER
    return responses._replace(num_tokens=num_tokens, counted_by=counted_by)


def count_sources(responses: Responses) -> dict[str, int]:
    """How many completed answers are counted by what."""
    found = np.bincount(responses.counted_by[responses.completed], minlength=len(CountSource))
    return {each.name.lower(): int(found[each]) for each in CountSource if found[each]}


class Seen(NamedTuple):
    """A run's answers beside what was asked of each, int ``[N]``."""

    responses: Responses
    asked: Int32Array


class Conflict(msgspec.Struct, frozen=True):
    """Two words on one number. ``found``: in which of the completed answers; ``sentence``: of an
    answer, behind "N of M answers"; ``figures``: what one of them says.
    """

    found: Callable[[Seen], NDArray[np.bool_]]
    sentence: str
    figures: Callable[[Seen, int], str]


def _ids_differ(seen: Seen) -> NDArray[np.bool_]:
    said = seen.responses
    found: NDArray[np.bool_] = (
        (said.num_ids > 0) & (said.usage_tokens >= 0) & (said.num_ids != said.usage_tokens)
    )
    return found


CONFLICTS = (
    Conflict(
        lambda seen: seen.responses.counted_by == CountSource.UNKNOWN,
        "say nothing of their number of tokens, neither by token ids nor by usage, and an event is "
        "no token: tokens per second and per output token are unknown; --tokenizer FILE counts "
        "their text",
        lambda seen, i: f"{seen.responses.num_deliveries[i]} events",
    ),
    Conflict(
        _ids_differ,
        "brought another number of token ids than usage says; the ids are counted",
        lambda seen, i: f"{seen.responses.num_ids[i]} ids, usage {seen.responses.usage_tokens[i]}",
    ),
    Conflict(
        lambda seen: (seen.responses.usage_tokens == 0) & (seen.responses.num_deliveries > 0),
        "have no token by usage, and brought some; usage is not believed",
        lambda seen, i: f"{seen.responses.num_deliveries[i]} events",
    ),
    Conflict(
        lambda seen: (
            (seen.responses.counted_by == CountSource.USAGE)
            & (seen.responses.num_deliveries > seen.responses.num_tokens)
        ),
        "came in more events than usage says tokens: gaps are between events",
        lambda seen, i: (
            f"{seen.responses.num_deliveries[i]} events, usage {seen.responses.num_tokens[i]}"
        ),
    ),
    Conflict(
        lambda seen: (
            (seen.responses.num_tokens > seen.asked)
            & (seen.responses.counted_by == CountSource.TOKENIZER)
        ),
        "have more tokens by --tokenizer than were asked for: a text that is encoded anew need not "
        "come to the tokens that were sampled",
        lambda seen, i: f"{seen.responses.num_tokens[i]} where {seen.asked[i]} were asked",
    ),
    Conflict(
        lambda seen: (
            (seen.responses.num_tokens > seen.asked)
            & (seen.responses.counted_by != CountSource.TOKENIZER)
        ),
        "have more tokens than were asked for: do not compare this run with one that kept to it",
        lambda seen, i: f"{seen.responses.num_tokens[i]} where {seen.asked[i]} were asked",
    ),
    Conflict(
        lambda seen: seen.responses.outcome == Outcome.CONTEXT_FULL,
        "ended at the end of the server's context, or of what it allows, before the length that "
        "the workload asks for: do not compare this run with one that did all the work; "
        "--prompt-lens and --output-lens ask for less",
        lambda seen, i: f"{count_words(seen.responses.num_tokens[i])} of {seen.asked[i]}",
    ),
)


def num_contradicted(responses: Responses) -> int:
    """Completed answers whose server says two numbers of one thing: ids and usage."""
    unasked = np.zeros(len(responses.outcome), np.int32)
    return int((_ids_differ(Seen(responses, unasked)) & responses.completed).sum())


def count_notes(responses: Responses, asked: Int32Array) -> list[str]:
    """Each conflict that there is, with the figures of the first answer that has it."""
    seen, done = Seen(responses, asked), responses.completed
    notes = []
    for conflict in CONFLICTS:
        found = np.flatnonzero(conflict.found(seen) & done)
        if len(found):
            figures = conflict.figures(seen, int(found[0]))
            notes.append(
                f"{fmt.count(len(found))} of {fmt.count(int(done.sum()))} answers "
                f"{conflict.sentence} (one: {figures})."
            )
    return notes
