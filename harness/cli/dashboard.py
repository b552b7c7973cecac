"""``gcbench dashboard``: one static site of all that was measured."""

from pathlib import Path

import click

from harness.cli.say import say

EXAMPLES = """
\b
Examples:
  gcbench dashboard build --output site
      all results below ./results; then open site/index.html
  gcbench dashboard build asv.conf.json --output site --repo ~/src/vllm
      the results of any project that asv measures, with its commits' messages
  gcbench dashboard serve
      make it somewhere temporary and look at it in a browser on this machine
"""

_RESULTS = click.argument("results", type=click.Path(path_type=Path), default=Path("results"))
_REPOSITORY = click.option(
    "--repo",
    "repository",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The repository with the commits' messages.  [default: the one that holds RESULTS]",
)
_COMMIT_URL = click.option(
    "--commit-url",
    metavar="URL",
    default="",
    help="What comes before a commit's hash in its address.  [default: the repository's origin, "
    "where that is on GitHub, GitLab or Codeberg]",
)
_TRIAGE = click.option(
    "--triage",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="What is known of changes (docs/detection.md).  [default: triage.toml beside the results' "
    "asv.conf.json, where there is one]",
)
_TIMELINES = click.option(
    "--timelines",
    "most_timelines",
    type=click.IntRange(min=0),
    default=60,
    show_default=True,
    help="How many trials get a timeline, the newest experiments first.",
)


@click.group(epilog=EXAMPLES)
def dashboard() -> None:
    """Make one static site of what was measured; it needs no network and no server."""


@dashboard.command()
@_RESULTS
@click.option(
    "--output",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The site's folder; an older dashboard there is replaced.",
)
@_REPOSITORY
@_COMMIT_URL
@_TRIAGE
@_TIMELINES
def build(
    results: Path,
    output: Path,
    repository: Path | None,
    commit_url: str,
    triage: Path | None,
    most_timelines: int,
) -> None:
    """Make the site of RESULTS in a folder, whole or not at all.

    RESULTS is what `gcbench history` reads; results in a folder `published` there are shown too.
    """
    pages, sentence = _build(results, output, repository, commit_url, triage, most_timelines)
    print(sentence)
    print(f"{pages:,} pages: open {output / 'index.html'}")


@dashboard.command()
@_RESULTS
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8100,
    show_default=True,
    help="Where to listen, on this machine only; 0 takes one that is free.",
)
@_REPOSITORY
@_COMMIT_URL
@_TRIAGE
@_TIMELINES
def serve(
    results: Path,
    port: int,
    repository: Path | None,
    commit_url: str,
    triage: Path | None,
    most_timelines: int,
) -> None:
    """Make the site of RESULTS in a temporary folder and serve it until interrupted."""
    from dashboards.server import listening, serve_until_interrupted
    from harness.machine.scratch import scratch_folder

    # First the port: no one should wait for a site that then cannot be looked at.
    with listening(port) as server, scratch_folder() as scratch:
        site = scratch / "site"
        _, sentence = _build(results, site, repository, commit_url, triage, most_timelines)
        print(sentence)
        print(f"http://127.0.0.1:{server.server_address[1]}/ until you press Ctrl-C", flush=True)
        serve_until_interrupted(server, site)


def _build(
    results: Path,
    output: Path,
    repository: Path | None,
    commit_url: str,
    triage: Path | None,
    most_timelines: int,
) -> tuple[int, str]:
    from dashboards.content.commits import checked_address
    from dashboards.site import build_site
    from harness.tracking.triage import load_triage

    if commit_url:
        commit_url = checked_address(commit_url)
    built = build_site(
        results,
        output,
        repository=repository,
        commit_url=commit_url,
        triage=load_triage(triage) if triage else None,
        most_timelines=most_timelines,
    )
    for problem in built.problems:
        say(problem)
    return built.pages, built.sentence
