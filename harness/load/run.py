"""A run under load, from a schedule and a server to what was observed."""

from collections.abc import Callable
from pathlib import Path

from harness.load.fleet import Fleet, fleet
from harness.load.observed import Observed, merge
from harness.load.progress import Snapshot
from harness.load.server_metrics import Scraper
from harness.load.task import Asked, targets_of
from harness.machine.boot import boot_id
from workloads.schedule import Schedule


def check(schedule: Schedule, asked: Asked) -> None:
    """Raise ValueError where so many client processes cannot share the schedule."""
    most = min(schedule.num_requests, schedule.max_concurrency or schedule.num_requests)
    if not 1 <= asked.client_processes <= most:
        raise ValueError(
            f"--client-processes {asked.client_processes}: must be between 1 and {most:,}, the "
            "requests that can be in flight"
        )


def observe(
    schedule: Schedule,
    asked: Asked,
    folder: Path,
    *,
    api_key: str = "",
    keep_pieces: bool = False,
    watch_loop: bool = False,
    look: Callable[[Snapshot], object] = id,
) -> Observed:
    """Send the schedule to the servers and bring home what came back.

    ``folder`` is the run's own. After a KeyboardInterrupt it is what had come until then. Raises
    EngineDeadError where a client process cannot begin.
    """
    scraper = Scraper(targets_of(asked), api_key)
    with fleet(schedule, asked, folder) as clients:
        clients.launch(api_key, keep_pieces=keep_pieces, watch_loop=watch_loop)
        clients.wait_until_ready()
        scraper.ask()
        start_ns = clients.go()
        is_interrupted = _wait(clients, scraper, look)
        home = clients.bring_home()
    recording, responses = merge(schedule, home.parts)
    return Observed(
        schedule,
        asked,
        start_ns,
        recording,
        responses,
        home.clients,
        home.deaths,
        scraper.scrapes(start_ns),
        is_interrupted,
        home.stops,
        boot_id(),
    )


def _wait(clients: Fleet, scraper: Scraper, look: Callable[[Snapshot], object]) -> bool:
    """Until they have ended; whether they were interrupted."""

    def looked(snapshot: Snapshot) -> None:
        scraper.ask_each_second()
        look(snapshot)

    try:
        clients.wait(looked)
        scraper.ask()
    except KeyboardInterrupt:
        clients.stop()
        return True
    return False
