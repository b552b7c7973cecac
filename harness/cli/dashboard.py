"""``gcbench dashboard``: one static site of all that was measured."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from harness.cli.say import say

EXAMPLES = """
\b
Examples:
  gcbench dashboard --output site
      all results below ./results; then open site/index.html
  gcbench dashboard asv.conf.json --output site --repo ~/src/vllm
      the results of any project that asv measures, with its commits' messages
  gcbench dashboard
      make it somewhere temporary and look at it in a browser on this machine
"""


@click.command(epilog=EXAMPLES)
@click.argument("results", type=click.Path(path_type=Path), default=Path("results"))
@click.option(
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Make the site in this folder, whole or not at all; an older dashboard there is replaced.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8100,
    show_default=True,
    help="Without --output: where to listen, on this machine only; 0 takes one that is free.",
)
@click.option(
    "--repo",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The repository with the commits' messages.  [default: the one that holds RESULTS]",
)
@click.option(
    "--commit-url",
    metavar="URL",
    default="",
    help="What comes before a commit's hash in its address.  [default: the repository's origin, "
    "where that is on GitHub, GitLab or Codeberg]",
)
@click.option(
    "--triage",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="What is known of changes (docs/history.md).  [default: triage.toml beside the results' "
    "asv.conf.json, where there is one]",
)
@click.option(
    "--timelines",
    type=click.IntRange(min=0),
    default=60,
    show_default=True,
    help="How many trials get a timeline, the newest experiments first.",
)
def dashboard(results: Path, output: Path | None, port: int, **asked: Any) -> None:
    """Make one static site of RESULTS; it needs no network and no server.

    RESULTS is what `gcbench report` reads: an asv results folder, an asv.conf.json, or a folder
    with these or raw trials below; results in a folder `published` there are shown too. Without
    --output the site is made in a temporary folder and served until interrupted.
    """
    if output is None:
        _serve(results, port, asked)
        return
    pages, sentence = _build(results, output, asked)
    print(sentence)
    print(f"{pages:,} pages: open {output / 'index.html'}")


def _serve(results: Path, port: int, asked: Mapping[str, Any]) -> None:
    from dashboards.server import listening, serve_until_interrupted
    from harness.machine.scratch import scratch_folder

    # First the port: no one should wait for a site that then cannot be looked at.
    with listening(port) as server, scratch_folder() as scratch:
        site = scratch / "site"
        _, sentence = _build(results, site, asked)
        print(sentence)
        print(f"http://127.0.0.1:{server.server_address[1]}/ until you press Ctrl-C", flush=True)
        serve_until_interrupted(server, site)


def _build(results: Path, output: Path, asked: Mapping[str, Any]) -> tuple[int, str]:
    """The number of pages, and what the results come to."""
    from dashboards.content.commits import checked_address
    from dashboards.site import build_site
    from harness.tracking.triage import load_triage

    commit_url, triage = asked["commit_url"], asked["triage"]
    if commit_url:
        commit_url = checked_address(commit_url)
    built = build_site(
        results,
        output,
        repository=asked["repo"],
        commit_url=commit_url,
        triage=load_triage(triage) if triage else None,
        most_timelines=asked["timelines"],
    )
    for problem in built.problems:
        say(problem)
    return built.pages, built.sentence
