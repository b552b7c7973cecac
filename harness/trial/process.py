"""The inside of a trial: a process of its own, one JSON document in, one out."""

import os
import sys
import time
from collections.abc import Callable

import msgspec

from engines.protocol import EngineDeadError
from harness.files import StoreError
from harness.trial.forks import in_forks, in_talking_forks
from harness.trial.ready import ReadyEngine, build_shared, get_ready, preload
from harness.trial.run import measure_trial, run_trial
from harness.trial.spec import READY, REFUSED, TrialBatch
from harness.trial.stack_dump import dump_on_signal


def _is_heard_by_nobody(word: bytes) -> None:
    """What a fork says: its interpreter has said that all are prepared."""


def main() -> int:
    """Read `TrialBatch` from standard input, get ready, wait to be told, answer a `TrialResult`.

    Where anything is shared each trial is run in a fork. A `ForkNews`, a line of JSON, says when
    one has begun and when it has ended.
    """
    dump_on_signal()
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not end up in the JSON

    def say_and_wait(word: bytes) -> None:
        answer.write(word)
        answer.flush()
        if not sys.stdin.buffer.readline():  # nobody is there any more to whom it could matter
            sys.exit(REFUSED)

    ready: ReadyEngine | None = None
    say: Callable[[bytes], None] = say_and_wait
    try:
        asked = msgspec.json.decode(sys.stdin.buffer.readline(), type=TrialBatch)
        index: int | None = 0
        if asked.channels:
            build_shared(asked)
            index = in_talking_forks(asked.channels, answer)
        elif asked.shared != "nothing":
            if asked.shared == "engine":
                ready = get_ready(asked.trials[0])
            else:
                preload(asked)
            say_and_wait(READY)
            index, say = in_forks(len(asked.trials), asked.at_once, answer), _is_heard_by_nobody
        if index is None:
            if ready:
                ready.engine.shutdown()
            return 0
        trial = asked.trials[index]
        del asked  # a fork has the heap of an interpreter of its own
        if ready:
            result = measure_trial(ready, trial, say, time.perf_counter(), is_fork=True)
        else:
            result = run_trial(trial, say)
    except EngineDeadError as error:
        print(error, file=sys.stderr)
        return 1
    except (ValueError, StoreError) as error:
        print(error, file=sys.stderr)
        return REFUSED
    with answer:
        answer.write(msgspec.json.encode(result))
    return 0
