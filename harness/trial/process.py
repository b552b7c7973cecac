"""The inside of a trial: a process of its own, one JSON document in, one out."""

import sys
import time

from engines.protocol import EngineDeadError
from harness.files import StoreError
from harness.running.forking import in_forks
from harness.running.inside import Parent
from harness.running.stack_dump import dump_on_signal
from harness.trial.ready import ReadyEngine, prepare_forks
from harness.trial.run import measure_trial, run_trial
from harness.trial.spec import REFUSED, TrialBatch


def main() -> int:
    """Read `TrialBatch` from standard input, get ready, wait to be told, answer a `TrialResult`.

    Where anything is shared each trial is run in a fork.
    """
    dump_on_signal()
    parent = Parent()

    def say_and_wait(word: bytes) -> None:
        if not parent.hears(word):  # nobody is there any more to whom it could matter
            sys.exit(REFUSED)

    ready: ReadyEngine | None = None
    try:
        asked = parent.asked(TrialBatch)
        index: int | None = 0
        if asked.shared != "nothing":
            ready = prepare_forks(asked)
            index = in_forks(len(asked.trials), asked.at_once, asked.news, parent)
        if index is None:
            if ready:
                ready.engine.shutdown()
            return 0
        trial = asked.trials[index]
        del asked  # a fork has the heap of an interpreter of its own
        if ready:
            result = measure_trial(ready, trial, say_and_wait, time.perf_counter(), is_fork=True)
        else:
            result = run_trial(trial, say_and_wait)
    except EngineDeadError as error:
        print(error, file=sys.stderr)
        return 1
    except (ValueError, StoreError) as error:
        print(error, file=sys.stderr)
        return REFUSED
    parent.answer(result)
    return 0
