"""Pictures of stored files, each of which says of what files it was made."""

import hashlib
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from benchmarks.claims.ledger import ROOT
from benchmarks.claims.stored import PUBLISHED
from benchmarks.figures.entries import Drawing
from benchmarks.figures.pythons_image import pythons_image
from harness.experiment.store import load_experiment
from harness.files import write_whole
from harness.report.kinds import describe_result, read_result
from harness.report.releases_image import releases_image

IMAGES = ROOT / "docs" / "images"
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_KEYWORD = b"gcbench.made_of"


def is_current(drawing: Drawing) -> bool:
    """Whether the picture is there, and was made of the files as they are."""
    path = IMAGES / drawing.file
    return path.exists() and made_of(path.read_bytes()) == fingerprint(drawing)


def draw(drawing: Drawing) -> None:
    """Write the picture anew. Raises StoreError."""
    paths = [PUBLISHED / name for name in drawing.results]
    match drawing.drawn_by:
        case "report":
            image = describe_result(read_result(paths[0])).pictures[0].draw(".png")
        case "releases":
            image = releases_image(load_experiment(paths[0]), ".png")
        case "pythons":
            image = pythons_image([load_experiment(path) for path in paths])
    write_whole(IMAGES / drawing.file, stamped(image, fingerprint(drawing)))


def fingerprint(drawing: Drawing) -> str:
    """Of the files and of what draws them: a SHA-256 in hexadecimal digits."""
    digest = hashlib.sha256(drawing.drawn_by.encode())
    for name in drawing.results:
        digest.update(hashlib.sha256((PUBLISHED / name).read_bytes()).digest())
    return digest.hexdigest()


def stamped(image: bytes, text: str) -> bytes:
    """A PNG file with a text that nobody sees, behind its header."""
    chunks = list(_chunks(image))
    data = _KEYWORD + b"\0" + text.encode()
    crc = zlib.crc32(b"tEXt" + data)
    chunks.insert(1, struct.pack(">I4s", len(data), b"tEXt") + data + struct.pack(">I", crc))
    return _SIGNATURE + b"".join(chunks)


def made_of(image: bytes) -> str:
    """The text of a stamped PNG file, "" where it has none."""
    start = b"tEXt" + _KEYWORD + b"\0"
    found = (chunk[4:-4] for chunk in _chunks(image))
    return next((each[len(start) :].decode() for each in found if each.startswith(start)), "")


def _chunks(image: bytes) -> Iterator[bytes]:
    """Each whole: length, type, data, checksum."""
    at = len(_SIGNATURE)
    while at < len(image):
        (length,) = struct.unpack_from(">I", image, at)
        yield image[at : at + 12 + length]
        at += 12 + length


def pictures() -> set[str]:
    """The names of all that docs show."""
    return {path.name for path in Path(IMAGES).glob("*.png")}
