"""Mode ``wire``: each message between the engine's scheduler and its workers."""

from collections import defaultdict
from collections.abc import Sequence

from engines.protocol import Int64Array, StepEngine
from harness.trial.edit_distance import edit_distances
from harness.trial.message_log import MessageLog
from harness.trial.message_parts import PARTS, message_parts
from harness.trial.messages import Messages
from harness.trial.watch import Watching


class MessageWatch(Watching):
    """Keeps each message of the window, and looks at them when it is over.

    Raises ValueError for an engine that shows none.
    """

    def __init__(self, engine: StepEngine) -> None:
        engine.show_messages(None)  # refused now, if it is
        self.step = engine.step
        self.messages: Sequence[Messages] = ()
        self._engine = engine
        self._logs: defaultdict[str, MessageLog] = defaultdict(MessageLog)

    def window_opens(self) -> None:
        """Keep them from here on."""
        self._engine.show_messages(lambda direction, each: self._logs[direction].append(each))

    def steps_end(self) -> None:
        """Keep no more."""
        self._engine.show_messages(None)

    def results(self, num_rows: Int64Array) -> dict[str, float | None]:
        """Bytes a step, of the median step by part too, and edit distances; of both directions."""
        values: dict[str, float | None] = {}
        found = []
        for direction, log in self._logs.items():
            messages, its = _looked_at(direction, log, self._engine)
            found.append(messages)
            values |= {f"{direction}_{name}": value for name, value in its.items()}
            log.close()
        self.messages = found
        return values


def _looked_at(
    direction: str, log: MessageLog, engine: StepEngine
) -> tuple[Messages, dict[str, float | None]]:
    sizes = log.sizes()
    middle = median_step(sizes)
    fields = engine.message_fields(direction, log.message(middle))
    parts = message_parts(fields)
    distances = edit_distances(sizes, log.message)
    others = distances.others
    values: dict[str, float | None] = {
        "bytes_per_step": sizes[middle],
        "bytes_first": sizes[0],
        "bytes_last": sizes[-1],
        **{f"bytes_{part}": parts[part] for part in PARTS},
        "edit_distance": sorted(others)[(len(others) - 1) // 2] if others else None,
        "edit_distance_first": distances.first,
    }
    messages = Messages(
        direction=direction,
        count=len(sizes),
        fields=dict(sorted(fields.items(), key=lambda each: -each[1])),
        num_compared=len(others) + (distances.first is not None),
        every=distances.every,
        num_too_long=distances.num_too_long,
    )
    return messages, values


def median_step(sizes: Sequence[int]) -> int:
    """The step whose message is of median size, the smaller of two, and the first of such."""
    return sizes.index(sorted(sizes)[(len(sizes) - 1) // 2])
