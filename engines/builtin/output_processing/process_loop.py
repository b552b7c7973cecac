"""Output processing in a process of its own: the far end."""

import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable

import zmq

from engines.builtin.delivery.choice import load_delivery
from engines.builtin.delivery.outputs import Output
from engines.builtin.output_processing import messages
from engines.builtin.output_processing.late import LateProcessor
from engines.protocol import EngineConfig


class OutputLoop:
    """Serves steps and calls in their order.

    With ``retain_outputs`` it keeps each request's outputs until the request ends, as a client
    that joins them would.
    """

    role = "output"

    def __init__(self, config: EngineConfig) -> None:
        self.while_device_busy: Callable[[], object] | None = None
        self.config = config
        delivery = load_delivery(config)
        self._decode_tokens = messages.decoder(delivery.tokens_type).decode
        self._processor = LateProcessor(delivery.stages(config))
        self._kept: dict[int, list[Output]] = {}

    def serve(self, message: object) -> messages.Message | None:
        """What is answered to a message, if anything."""
        if isinstance(message, messages.StepMessage):
            return self._step(message)
        if isinstance(message, messages.Begin):
            self._processor.add(message.request())
        elif isinstance(message, messages.Remove):
            self._processor.remove(message.slot)
        elif isinstance(message, messages.RemoteCall):
            function, args = pickle.loads(message.data)
            return messages.CallAnswer(pickle.dumps(function(self, *args)))
        return None

    def _step(self, message: messages.StepMessage) -> messages.Done:
        step = message.step(self._decode_tokens(message.tokens))
        processed = self._processor.process(step)
        if self.config.retain_outputs:
            for output in processed.outputs:
                self._kept.setdefault(output.request_index, []).append(output)
            for index in step.request_index[processed.finished].tolist():
                self._kept.pop(index, None)
        return messages.Done.of(processed)


def main(folder: str, parent: int) -> None:
    """Serve until killed, or until the process that started this one is gone."""
    if os.getppid() != parent:  # it ended before it could tie this process to itself
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    context = zmq.Context()
    steps, outputs = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    for socket, name in ((steps, "steps"), (outputs, "outputs")):
        socket.set_hwm(0)
        socket.connect(f"ipc://{folder}/{name}")

    def send(message: messages.Message) -> None:
        outputs.send(messages.encode(message))

    try:
        setup = messages.to_process(steps.recv())
        assert isinstance(setup, messages.RemoteCall)
        loop = None
        while True:
            try:
                if loop is None:
                    loop = OutputLoop(pickle.loads(setup.data))
                    send(messages.CallAnswer(pickle.dumps(None)))
                elif (answer := loop.serve(messages.to_process(steps.recv()))) is not None:
                    send(answer)
            except ValueError as error:
                send(messages.Refused(str(error)))
                if loop is None:
                    break
    except Exception:
        send(messages.Failed(traceback.format_exc().strip().splitlines()[-1]))
    context.destroy(linger=1000)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
    sys.stdout.flush()
    os._exit(0)
