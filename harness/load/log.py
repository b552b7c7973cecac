"""A run's recording in a file, from which all that is said of it can be computed again."""

import zlib
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.openai.capture import Recording
from engines.openai.outcome import Outcome
from engines.openai.responses import read_responses
from harness.files import StoreError, writing
from harness.load.observed import Observed
from harness.load.server_metrics import Scrape
from harness.load.stops import ClientStops
from harness.load.task import Asked, ClientHealth
from harness.machine.scratch import scratch_folder
from workloads.files.regular_file import open_regular
from workloads.files.whole_file import replacing
from workloads.schedule import Schedule

SCHEMA = "gcbench.load-log/1"
_MOST_BYTES = 8 << 30


_KINDS: dict[str, Any] = {
    "sent_ns": np.int64,
    "written_ns": np.int64,
    "ended_ns": np.int64,
    "ended": np.int8,
    "asked": np.int32,
    "stamp_ns": np.int64,
    "request": np.int32,
    "end": np.int64,
    "data": np.uint8,
    "schedule": np.uint8,
    "header": np.uint8,
}


class _Header(msgspec.Struct, frozen=True, kw_only=True):
    asked: Asked
    workload: str
    seed: int
    start_ns: int
    clients: list[ClientHealth]
    deaths: list[str]
    scrapes: list[Scrape]
    is_interrupted: bool
    stops: list[ClientStops] = []
    boot_id: str = ""
    schema: str = SCHEMA


def save_log(path: Path, observed: Observed, workload: str, seed: int, api_key: str) -> None:
    """Write it, without the key, whole or not at all. Raises StoreError."""
    recording = _without_key(observed.recording, api_key)
    header = _Header(
        asked=observed.asked,
        workload=workload,
        seed=seed,
        start_ns=observed.start_ns,
        clients=observed.clients,
        deaths=observed.deaths,
        scrapes=observed.scrapes,
        is_interrupted=observed.is_interrupted,
        stops=list(observed.stops),
        boot_id=observed.boot_id,
    )
    with scratch_folder() as folder:
        schedule = folder / "schedule.npz"
        observed.schedule.save(schedule)
        arrays = recording._asdict() | {
            "schedule": np.frombuffer(schedule.read_bytes(), np.uint8),
            "header": np.frombuffer(msgspec.json.encode(header), np.uint8),
        }
        with writing(path, "--log FILE"), replacing(path) as made, made.open("wb") as file:
            np.savez(file, **arrays)


def _without_key(recording: Recording, api_key: str) -> Recording:
    """A server may repeat the key in an error; of equal length, so that the ends stay true."""
    key = api_key.encode()
    data = recording.data.tobytes()
    if not key or key not in data:
        return recording
    return recording._replace(data=np.frombuffer(data.replace(key, b"*" * len(key)), np.uint8))


def load_log(path: Path) -> tuple[Observed, str, int]:
    """What was observed, the workload's name and the seed. Raises StoreError."""
    try:
        arrays = _read(path)
        header = msgspec.json.decode(arrays.pop("header").tobytes(), type=_Header)
        with scratch_folder() as folder:
            kept = folder / "schedule.npz"
            kept.write_bytes(arrays.pop("schedule").tobytes())
            schedule = Schedule.load(kept)
        recording = Recording(**arrays)
        _check(recording, schedule)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    except (KeyError, ValueError, EOFError, BadZipFile, zlib.error, msgspec.MsgspecError) as error:
        raise StoreError(
            f"{path} is no log of gcbench load ({error}); `gcbench load URL --log FILE` writes one"
        ) from error
    if header.schema != SCHEMA:
        raise StoreError(f"{path} has schema {header.schema!r}, this gcbench reads {SCHEMA!r}")
    observed = Observed(
        schedule,
        header.asked,
        header.start_ns,
        recording,
        read_responses(recording),
        header.clients,
        header.deaths,
        header.scrapes,
        header.is_interrupted,
        header.stops,
        header.boot_id,
    )
    return observed, header.workload, header.seed


def _read(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays. Raises ValueError where one is not of its kind, or is packed."""
    with open_regular(path, _MOST_BYTES) as file:
        with ZipFile(file) as archive:
            if any(each.compress_type != ZIP_STORED for each in archive.infolist()):
                raise ValueError("it is compressed")  # a few kilobytes could stand for any size
        file.seek(0)
        with np.load(file) as columns:
            arrays = {name: columns[name] for name in _KINDS}
    for name, array in arrays.items():
        if array.ndim != 1 or array.dtype != _KINDS[name]:
            raise ValueError(f"{name} is {array.dtype} of {array.ndim} dimensions")
    return arrays


def _check(recording: Recording, schedule: Schedule) -> None:
    """Raise ValueError where the arrays do not belong together."""
    lengths = {len(column) for column in recording[:5]}
    pieces = {len(column) for column in recording[5:8]}
    if lengths != {schedule.num_requests} or len(pieces) != 1:
        raise ValueError("its columns are not equally long")
    ends = np.concatenate([[0], recording.end])
    if np.diff(ends).min(initial=0) < 0 or ends[-1] != len(recording.data):
        raise ValueError("its pieces are not in their order")
    inside = (recording.request >= 0) & (recording.request < schedule.num_requests)
    if not inside.all():
        raise ValueError("it has pieces of requests that there are not")
    if not np.isin(recording.ended, list(Outcome)).all():
        raise ValueError("a request has ended in no known way")
