"""``gcbench list``: what there is to choose from, and what a workload asks for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import click

from engines.nearest import nearest
from harness.axes import Value
from harness.cli.choices import CHOICES, choices
from harness.cli.flags import asked, option, refuse_given, request_options
from harness.cli.settings import AskedCommand
from harness.cli.tell import Telling, telling, telling_options
from harness.files import write_json, write_output, writing
from harness.render.image_file import image_suffix
from harness.render.lists import list_table
from harness.render.terminal import make_console
from harness.report.workload import print_workload
from harness.report.workload_image import workload_image
from harness.verbs.request import NO_AXES, WorkloadRequest
from harness.verbs.workloads import workloads_of
from workloads.summary import summarise_workload
from workloads.traces.mooncake import write_mooncake

EXAMPLES = """
\b
Examples:
  gcbench list
  gcbench list representations
      one kind, or one of it: gcbench list representations flat_arrays
  gcbench list workloads chat
      lengths and arrivals of a workload of the catalogue
  gcbench list workloads trace.jsonl --axis window=600:300 --image trace.svg
      five minutes of a Mooncake trace, as a picture too
  gcbench list workloads chat --axis arrivals=gamma:20:0.5 --seed 3 --json -
      with other arrivals and another seed, for programs
  gcbench list workloads multi-turn --mooncake multi-turn.jsonl
      conversations as a trace, what their prompts share in its hash_ids

Kinds: {}.
"""


class ListRequest(WorkloadRequest, frozen=True, kw_only=True):
    """Of the workload that is named."""

    decided: ClassVar[Mapping[str, list[Value]]] = NO_AXES


class _Kind(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on
    """A kind, or one of it: "wire" is as good as "wires"."""

    name = "KIND"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        for each in (value, f"{value}s", f"{value[:-1]}ies"):
            if each in CHOICES:
                return each
        near = ", ".join(nearest(value, CHOICES))
        raise click.BadParameter(f"no kind {value!r}; did you mean {near}?", ctx, param)


@click.command(name="list", cls=AskedCommand, epilog=EXAMPLES.format(", ".join(CHOICES)))
@click.argument("kind", type=_Kind(), required=False, metavar="[KIND]")
@click.argument("name", required=False, metavar="[NAME|FILE]")
@request_options(ListRequest)
@telling_options("json", "image")
@option(
    "--mooncake",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a workload's requests as a Mooncake trace (.jsonl).",
    section="Output",
    is_main=True,
)
@click.pass_context
def list_(
    ctx: click.Context, /, kind: str | None, name: str | None, mooncake: Path | None, **_: Any
) -> None:
    """List what each axis can be: all of it, one kind, or one of a kind.

    One of the workloads is shown in full; the options are of that. It can be a FILE: a workload
    (.toml) or a trace (.csv, .jsonl).
    """
    if kind == "workloads" and name:
        _show(name, asked(ListRequest, ctx), telling(ctx), mooncake)
        return
    refuse_given(
        ctx, {"kind", "name"}, "is of a workload; name one, as in gcbench list workloads chat"
    )
    list_table(choices(kind, name), make_console())


def _show(name: str, request: WorkloadRequest, how: Telling, mooncake: Path | None) -> None:
    """Realise a workload, show what it asks for, and write what was asked for of it."""
    if mooncake and mooncake.suffix.lower() != ".jsonl":
        raise ValueError(
            f"--mooncake {mooncake}: the name must end in .jsonl, to be read as a trace"
        )
    if mooncake and mooncake.exists() and not mooncake.is_file():
        raise ValueError(f"--mooncake {mooncake}: is no file; name one in a folder")
    (workload,) = workloads_of([name], request)
    schedule = workload.realise(request.seed)
    summary = summarise_workload(workload, schedule, request.seed)
    if how.image:
        image = workload_image(summary, image_suffix(Path(how.image)))
        write_output(how.image, image, "--image FILE")
    if mooncake:
        with writing(mooncake, "--mooncake FILE"):
            write_mooncake(schedule, mooncake)
    if how.json:
        write_json(how.json, summary)
    if how.shows_report:
        print_workload(summary, make_console())
