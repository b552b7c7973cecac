"""``gcbench serve``: the built-in engine as an OpenAI-compatible HTTP server."""

from functools import partial
from typing import Any

import click

from engines.server.settings import API_KEY_VARIABLE
from harness.axes import Cell
from harness.cli.flags import asked, option, request_options
from harness.cli.settings import AskedCommand
from harness.cli.tell import checked
from harness.files import indented, write_output
from harness.machine.scratch import temporary_files_in_scratch
from harness.verbs.serve import ServeRequest, served_engine

EXAMPLES = f"""
\b
Examples:
  gcbench serve
      the built-in engine on a modelled H200, at http://127.0.0.1:8000/v1
  gcbench serve --device null --gc freeze --heap-objects 700000
      the host path alone, with a serving process's heap, frozen
  gcbench serve --gc freeze@frontend+threshold:50000/20/20@engine
      a policy for each process
  gcbench serve --port 0 --ready-file ready.json
      any free port, and a file that says when it is ready and where
  {API_KEY_VARIABLE}=secret gcbench serve --host 0.0.0.0
      for other machines
"""


@click.command(cls=AskedCommand, epilog=EXAMPLES)
@request_options(ServeRequest)
@option(
    "--api-key",
    envvar=API_KEY_VARIABLE,
    default="",
    metavar="KEY",
    help=f"What clients must send; better set {API_KEY_VARIABLE}, which no other user can read.",
    is_main=True,
)
@option(
    "--ready-file",
    metavar="FILE",
    help="Written when requests can come: JSON with url and model.",
    is_main=True,
)
@click.pass_context
def serve(ctx: click.Context, /, *, api_key: str, ready_file: str | None, **_: Any) -> None:
    """Serve the built-in engine over HTTP as vLLM serves a model, until interrupted.

    The front end and the engine core are processes of their own, each with its collector.
    """
    from engines.server.serve import Hooks, serve_engine
    from harness.collector import serving

    checked(ready_file, "--ready-file")
    request = asked(ServeRequest, ctx)
    cell, config = served_engine(request)
    settings = request.settings(config.model, api_key)
    settings.check()

    def ready(url: str) -> None:
        if ready_file:
            write_output(
                ready_file, indented({"url": url, "model": settings.model}), "--ready-file FILE"
            )
        print(
            f"Serving {settings.model} at {url}/v1 ({_described(cell)}); Ctrl-C to stop", flush=True
        )

    prepare = partial(
        serving.settle,
        policy_text=cell.gc,
        batch_size=cell.batch_size,
        heap_objects=cell.heap_objects,
        seed=request.seed,
    )
    try:
        with temporary_files_in_scratch():
            serve_engine(settings, config, Hooks(prepare, serving.totals, ready))
    finally:
        serving.unsettle()


def _described(cell: Cell) -> str:
    words = [cell.device_profile or f"device {cell.device}", f"batch {cell.batch_size:,}"]
    return ", ".join([*words, f"--gc {cell.gc}"])
