"""What workers with ranks behind a wire have in common: to start them and to end them, and to say
what crosses.
"""

from collections.abc import Callable

from engines.builtin.transport import TransportPlan
from engines.builtin.worker.ranks import Ranks
from engines.protocol import EngineConfig


class BehindWire:
    """Ranks ``numbers`` are in processes of their own.

    Raises EngineDeadError from any call once a process is gone.
    """

    def __init__(self, config: EngineConfig, numbers: range) -> None:
        self._ranks = Ranks(config, numbers)
        try:
            self._ranks.start()
            self._join(self._ranks.plan)
            self._ranks.meet()
        except BaseException:
            self._ranks.shutdown()
            raise

    def _join(self, plan: TransportPlan) -> None:
        """Become one of the ranks that look for one another, where this process is one."""

    @property
    def wire_bytes(self) -> int:
        """Bytes both ways, headers included."""
        return self._ranks.num_bytes

    def show_messages(self, to: Callable[[str, bytes], object] | None) -> None:
        """What all ranks are sent, which is the same, and what the first of them answers."""
        self._ranks.on_message = to

    def message_fields(self, direction: str, message: bytes) -> dict[str, int]:
        """As the wire says."""
        return self._ranks.message_fields(direction, message)

    def shutdown(self) -> None:
        """End the ranks; safe to call twice."""
        self._ranks.shutdown()
