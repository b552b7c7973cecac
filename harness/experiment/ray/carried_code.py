"""Our code for nodes that have another, or none: sent as bytes, kept there by its hash."""

import io
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from gcbench.code_root import code_root

_PARTS = ("engines", "gcbench", "harness", "workloads")


class Code(NamedTuple):
    """All that runs in trials and beside them; ``name``: SHA-256 of ``content``, a zip file."""

    name: str
    content: bytes


def packed_code() -> Code:
    """This code, the same bytes whenever and from wherever it is packed."""
    root, held = code_root(), io.BytesIO()
    with ZipFile(held, "w") as archive:
        for path in sorted(each for part in _PARTS for each in (root / part).rglob("*")):
            below = path.relative_to(root)
            if path.is_file() and "__pycache__" not in below.parts:
                # Without its date: the bytes are known by their hash.
                archive.writestr(ZipInfo(below.as_posix()), path.read_bytes(), ZIP_DEFLATED)
    return Code(sha256(held.getvalue()).hexdigest(), held.getvalue())


def unpack_there() -> Callable[[str, bytes], str]:
    """Unpacks on a node, once; what to set PYTHONPATH to. It is sent whole: see `run_there`."""

    def unpack(name: str, content: bytes) -> str:
        import io
        import os
        import zipfile
        from contextlib import suppress
        from pathlib import Path
        from tempfile import TemporaryDirectory

        usual = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        cache = Path(os.environ.get("GCBENCH_CACHE") or Path(usual) / "gcbench")
        kept = cache / "code" / name[:16]
        kept.parent.mkdir(parents=True, exist_ok=True)
        if not kept.exists():
            with TemporaryDirectory(dir=kept.parent) as made, suppress(OSError):
                zipfile.ZipFile(io.BytesIO(content)).extractall(Path(made) / "code")
                (Path(made) / "code").rename(kept)  # another has been quicker, or it is there now
        inherited = os.environ.get("PYTHONPATH", "")
        return os.pathsep.join(filter(None, (str(kept), inherited)))

    return unpack
