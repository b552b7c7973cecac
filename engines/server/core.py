"""The engine core: a process that owns the engine and steps it as long as there is work."""

import os
import pickle
import sys
import traceback
from contextlib import suppress

from engines.builtin.engine import Engine
from engines.protocol import EngineConfig, EngineDeadError
from engines.server import messages
from engines.server.in_front_end import InFrontEnd
from engines.server.mailbox import Mailbox


class EngineCore:
    """Takes requests between two steps; a request is known to it until it says `Gone`.

    Raises ValueError where the configuration cannot be run.
    """

    def __init__(self, config: EngineConfig, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self._engine = Engine(config, lambda _: InFrontEnd(mailbox))
        self._known: set[int] = set()
        self._is_stopped = False

    def run(self) -> None:
        """Until told to stop."""
        engine = self._engine
        try:
            while not self._is_stopped:
                is_busy = engine.has_unfinished_requests()
                for message in self._mailbox.others(wait=not is_busy):
                    self._serve(message)
                if engine.has_unfinished_requests():
                    self._step()
        finally:
            engine.shutdown()

    def _serve(self, message: messages.Message) -> None:
        if isinstance(message, messages.Add):
            self._add(message)
        elif isinstance(message, messages.Abort):
            # Of one that has ended meanwhile the front end knows already, or soon will.
            if message.request_index in self._known:
                self._engine.abort_request(message.request_index)
                self._forget([message.request_index])
        elif isinstance(message, messages.RemoteCall):
            self._call(message.data)
        elif isinstance(message, messages.Stop):
            self._is_stopped = True

    def _add(self, request: messages.Add) -> None:
        index = request.request_index
        try:
            self._engine.add_request(
                index, request.prompt_token_ids, request.params, request.priority
            )
        except ValueError as error:
            self._mailbox.send(messages.NotAdded(index, str(error)))
        else:
            self._known.add(index)

    def _call(self, data: bytes) -> None:
        function, args = pickle.loads(data)
        try:
            answer = function(self._engine, *args)
        except ValueError as error:
            self._mailbox.send(messages.Refused(str(error)))
        else:
            self._mailbox.send(messages.CallAnswer(pickle.dumps(answer)))

    def _step(self) -> None:
        ended: list[int] = []
        for delivered in self._engine.step().delivered:
            ended += delivered.finished.tolist()
        if ended:
            for index in ended:
                self._engine.output_token_ids(index)
            self._forget(ended)

    def _forget(self, indices: list[int]) -> None:
        self._known.difference_update(indices)
        self._mailbox.send(messages.Gone(indices))


def main(folder: str, parent: int) -> None:
    """Serve until told to stop, or until the process that started this one is gone."""
    if os.getppid() != parent:  # it ended before it could tie this process to itself
        return
    mailbox = Mailbox(folder)
    try:
        setup = mailbox.first()
        assert isinstance(setup, messages.RemoteCall)
        core = EngineCore(pickle.loads(setup.data), mailbox)
        mailbox.send(messages.Ready())
        core.run()
    except ValueError as error:
        mailbox.send(messages.Refused(str(error)))
    except EngineDeadError as error:
        mailbox.send(messages.Failed(str(error)))
    except BaseException:
        mailbox.send(messages.Failed(traceback.format_exc().strip().splitlines()[-1]))
    mailbox.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
    with suppress(OSError):
        sys.stdout.flush()
    os._exit(0)
