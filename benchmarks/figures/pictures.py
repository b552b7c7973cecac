"""Pictures of stored files, each of which says of what files it was made."""

import hashlib
import io

from benchmarks.claims.document import read_document
from benchmarks.claims.ledger import ROOT
from benchmarks.claims.stored import PUBLISHED
from benchmarks.figures.entries import Drawing
from benchmarks.figures.families_image import families_image
from benchmarks.figures.pythons_image import pythons_image
from benchmarks.figures.step_parts_image import step_parts_image
from harness.experiment.store import load_experiment
from harness.files import write_whole
from harness.report.kinds import describe_result, read_result
from harness.report.releases_image import releases_image

IMAGES = ROOT / "docs" / "images"
_KEYWORD = "gcbench.made_of"


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
            image = pythons_image(load_experiment(paths[0]))
        case "families":
            image = families_image([load_experiment(path) for path in paths])
        case "step_parts":
            image = step_parts_image(read_document(paths[0]))
    write_whole(IMAGES / drawing.file, stamped(image, fingerprint(drawing)))


def fingerprint(drawing: Drawing) -> str:
    """Of the files and of what draws them: a SHA-256 in hexadecimal digits."""
    digest = hashlib.sha256(drawing.drawn_by.encode())
    for name in drawing.results:
        digest.update(hashlib.sha256((PUBLISHED / name).read_bytes()).digest())
    return digest.hexdigest()


def stamped(image: bytes, text: str) -> bytes:
    """A PNG file with a text that nobody sees, its pixels and resolution as they were."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    file, unseen = io.BytesIO(), PngInfo()
    unseen.add_text(_KEYWORD, text)
    with Image.open(io.BytesIO(image)) as picture:
        picture.save(file, "png", pnginfo=unseen, dpi=picture.info.get("dpi"))
    return file.getvalue()


def made_of(image: bytes) -> str:
    """The text of a stamped PNG file, "" where it has none."""
    from PIL import Image

    with Image.open(io.BytesIO(image)) as picture:
        return str(picture.info.get(_KEYWORD, ""))


def pictures() -> set[str]:
    """The names of all that docs show."""
    return {path.name for path in IMAGES.glob("*.png")}
