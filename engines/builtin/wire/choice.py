"""The wire that a configuration asks for, and what it does not go with."""

from engines.builtin.registries import OUTPUT_PROCESSING, TRANSPORTS, WIRES
from engines.builtin.transport import SchedulerEnd, spinning
from engines.builtin.wire import Stateless, Wire
from engines.builtin.wire.names import asked_seconds, parse_wire
from engines.protocol import EngineConfig


def load_wire(config: EngineConfig) -> type[Wire]:
    """The format."""
    found: type[Wire] = WIRES.load(parse_wire(config.wire).format)
    return found


def load_transport(config: EngineConfig) -> type[SchedulerEnd]:
    """The way, the scheduler's end of it."""
    found: type[SchedulerEnd] = TRANSPORTS.load(parse_wire(config.wire).transport)
    return found


def wire_contradiction(config: EngineConfig) -> str:
    """Why the wire does not go with the rest, in one sentence, or ""."""
    transport = load_transport(config)
    if asked_seconds(config) and not transport.spins:
        return (
            f"--axis wire-spin={config.wire_spin} and --wire {config.wire}: there the kernel wakes "
            "who waits, and nothing spins; use --wire shared-memory"
        )
    if transport.blocks:
        if OUTPUT_PROCESSING.load(config.output_processing).num_under_way:
            return (
                f"--wire {config.wire} and --output-processing {config.output_processing}: a rank "
                "that waits for a broadcast cannot hand over the step before; use inline"
            )
        if not issubclass(load_wire(config), Stateless):
            return (
                f"--wire {config.wire}: what one rank has lost cannot be sent again by a "
                "broadcast; use a format that sends each step whole"
            )
    return spinning.spinning_contradiction(config)
