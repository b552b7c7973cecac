"""A package index on this machine, with made-up packages and the faults of real ones."""

import base64
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

MODULES = ("v1/engine/llm_engine", "engine/arg_utils", "v1/worker/worker_base")


def vllm_files(**more: str) -> dict[str, str]:
    """What stands for vLLM: the modules of its host path, empty, and ``more`` by name."""
    files = {f"vllm/{name}.py": "" for name in ("__init__", *MODULES)}
    packages = ("v1", "v1/engine", "v1/worker", "engine")
    return files | {f"vllm/{name}/__init__.py": "" for name in packages} | more


def sdist(version: str, files: Mapping[str, str]) -> bytes:
    files = {"PKG-INFO": f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n", **files}
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"vllm-{version}/{name}")
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return written.getvalue()


def wheel(
    name: str, version: str, files: Mapping[str, str], requires: tuple[str, ...] = ()
) -> bytes:
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {each}\n" for each in requires)
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},sha256={_digest(text)},{len(text)}\n" for path, text in files.items())
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
    return written.getvalue()


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


class LocalIndex:
    """Serves ``simple/`` under ``root``. ``cut`` names a file that is sent by half."""

    def __init__(self, root: Path, url: str) -> None:
        self.root = root
        self.url = url
        self.cut = ""
        self.requests: list[str] = []

    def add(self, name: str, content: bytes, *, sha256: str | None = None) -> Path:
        """Put a file there; ``sha256`` instead of its own, or "" for none."""
        project = name.partition("-")[0].replace("_", "-")
        folder = self.root / "simple" / project
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        digest = hashlib.sha256(content).hexdigest() if sha256 is None else sha256
        link = f"{name}#sha256={digest}" if digest else name
        with (folder / "index.html").open("a") as page:
            page.write(f'<a href="{link}">{name}</a>\n')
        return folder / name


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, *arguments: Any, index: LocalIndex, **more: Any) -> None:
        self.index = index
        super().__init__(*arguments, directory=str(index.root), **more)

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        self.index.requests.append(name)
        if not name or name != self.index.cut:
            super().do_GET()
            return
        content = Path(self.translate_path(self.path)).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2])
        self.close_connection = True

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@contextmanager
def serve(root: Path) -> Iterator[LocalIndex]:
    (root / "simple").mkdir(parents=True)
    index = LocalIndex(root, "")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, index=index)) as server:
        index.url = f"http://127.0.0.1:{server.server_port}/simple"
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield index
        finally:
            server.shutdown()
            thread.join()
