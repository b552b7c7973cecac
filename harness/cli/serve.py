"""``gcbench serve``: the built-in engine as an OpenAI-compatible HTTP server."""

from functools import partial
from typing import Any

import click

from engines.server.settings import API_KEY_VARIABLE
from harness.axes import AXES, Cell
from harness.cli.options import SECONDS_OR_0, Number, axis_options
from harness.cli.sections import SectionCommand
from harness.cli.served_engine import SERVER_DECIDES, served_engine
from harness.cli.session import checked
from harness.files import indented, write_output
from harness.machine.scratch import temporary_files_in_scratch

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


@click.command(cls=SectionCommand, epilog=EXAMPLES)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Where to listen; another than this machine's own needs an API key.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="0 takes one that is free.",
)
@click.option(
    "--api-key",
    envvar=API_KEY_VARIABLE,
    default="",
    metavar="KEY",
    help=f"What clients must send; better set {API_KEY_VARIABLE}, which no other user can read.",
)
@click.option(
    "--served-model-name",
    default="",
    metavar="NAME",
    help="What clients ask for.  [default: the model]",
)
@click.option(
    "--ready-file",
    metavar="FILE",
    help="Written when requests can come: JSON with url, model and processes.",
)
@axis_options(without=SERVER_DECIDES, model=["opt-125m"], detokenizer=["decode_stream"])
@click.option(
    "--tokens-per-step",
    default="1",
    show_default=True,
    metavar="N",
    help="1, or 1..4, geometric:P:MOST, … for ragged steps; see docs/workloads.md.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Decides the tokens of devices without a model.",
)
@click.option(
    "--max-body",
    type=click.IntRange(1, 2**31),
    default=4 << 20,
    show_default=True,
    metavar="BYTES",
    help="A larger request is refused (413).",
)
@click.option(
    "--max-queued",
    type=click.IntRange(0, 2**31),
    default=4096,
    show_default=True,
    metavar="N",
    help="Requests beyond a full batch; more are refused (429).",
)
@click.option(
    "--max-connections",
    type=click.IntRange(1, 2**31),
    default=8192,
    show_default=True,
    metavar="N",
    help="Open at once; more are refused (503). No more than ulimit -Hn leaves room for.",
)
@click.option(
    "--idle-timeout",
    type=Number(0, 10**6),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="A connection is closed that brings no whole request head for so long.",
)
@click.option(
    "--request-timeout",
    type=Number(0, 10**6),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="For a request from its body to its last token.",
)
@click.option(
    "--grace",
    type=SECONDS_OR_0,
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="For running requests, once it is told to stop.",
)
def serve(**flags: Any) -> None:
    """Serve the built-in engine over HTTP as vLLM serves a model, until interrupted.

    The front end and the engine core are processes of their own, each with its collector.
    """
    from engines.server.serve import Hooks, serve_engine
    from engines.server.settings import ServerSettings
    from harness.collector import serving

    ready_file = checked(flags.pop("ready_file"), "--ready-file")
    seed, tokens_per_step = flags.pop("seed"), flags.pop("tokens_per_step")
    name = flags.pop("served_model_name")
    axes: dict[str, Any] = {axis: flags.pop(axis) for axis in AXES if axis not in SERVER_DECIDES}
    cell, config = served_engine(axes, tokens_per_step, seed)
    settings = ServerSettings(model=name or config.model, **flags)
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
        seed=seed,
    )
    try:
        with temporary_files_in_scratch():
            serve_engine(settings, config, Hooks(prepare, serving.totals, ready))
    finally:
        serving.unsettle()


def _described(cell: Cell) -> str:
    words = [cell.device_profile or f"device {cell.device}", f"batch {cell.batch_size:,}"]
    return ", ".join([*words, f"--gc {cell.gc}"])
