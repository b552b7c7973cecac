"""The flags of ``gcbench load``: what to ask, of whom, by how many, and what makes a run valid."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from engines.openai.request_body import PROMPT_FORMS
from harness.axes import AXES
from harness.cli.axis_option import axis_option
from harness.cli.options import SECONDS_OR_0, Number, output_option

Command = TypeVar("Command", bound=Callable[..., Any])


def _add(command: Command, options: list[Callable[[Command], Command]]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def question_options(command: Command) -> Command:
    """Adds what is asked of the server, and how."""
    return _add(
        command,
        [
            click.option(
                "--workload",
                default=AXES["workload"].default,
                show_default=True,
                help="A name, a .toml file or a trace (.csv, .jsonl).",
            ),
            click.option(
                "--request-rate",
                type=Number(0, 10**6),
                metavar="RATE",
                help="Requests per second, as a Poisson process: --arrivals poisson:RATE.",
            ),
            click.option(
                "--burstiness",
                type=Number(0, 10**6),
                metavar="SHAPE",
                help="With --request-rate: gamma:RATE:SHAPE, burstier below 1.",
            ),
            click.option(
                "--max-concurrency",
                type=click.IntRange(1, 10**6),
                metavar="N",
                help="Requests in flight at most.",
            ),
            click.option("--model", default="", help="[default: the first that the server names]"),
            click.option(
                "--prompt-as",
                type=click.Choice(PROMPT_FORMS),
                default="ids",
                show_default=True,
                help="Token ids, a text, or a chat's message.",
            ),
            click.option(
                "--vocab-size",
                type=click.IntRange(1, 10**8),
                default=50257,
                show_default=True,
                metavar="N",
                help="Token ids of prompts are below it.",
            ),
            click.option(
                "--standard-fields",
                is_flag=True,
                help="Leave out what only some servers know: ignore_eos, min_tokens, …",
            ),
            click.option(
                "--extra-body",
                default="{}",
                metavar="JSON",
                help="Fields for every request; null takes one away.",
            ),
            click.option(
                "--api-key",
                envvar="OPENAI_API_KEY",
                show_envvar=True,
                default="",
                help="Stored nowhere.",
            ),
            click.option(
                "--ca-file", default="", metavar="FILE", help="Certificates to trust (PEM)."
            ),
            click.option("--insecure", is_flag=True, help="Trust any certificate."),
        ],
    )


def http_cost_options(command: Command) -> Command:
    """Adds the other question: what HTTP adds to the built-in engine."""
    return _add(
        command,
        [
            click.option(
                "--http-cost",
                is_flag=True,
                help="Instead, serve the built-in engine, replay one schedule in process and over "
                "HTTP, and say what HTTP adds.",
            ),
            axis_option,
            click.option(
                "--rounds",
                type=click.IntRange(1, 1000),
                default=7,
                show_default=True,
                help="With --http-cost: times that each cell is measured both ways.",
            ),
        ],
    )


def client_options(command: Command) -> Command:
    """Adds how the client works, and when its figures are believed."""
    return _add(
        command,
        [
            click.option(
                "--client-processes",
                type=click.IntRange(1, 256),
                default=1,
                show_default=True,
                metavar="N",
                help="Share the schedule among so many.",
            ),
            click.option(
                "--client-gc",
                default="freeze+disabled",
                show_default=True,
                metavar="POLICY",
                help="Collector policy of the client processes.",
            ),
            click.option(
                "--num-warmups",
                type=click.IntRange(0, 1000),
                default=1,
                show_default=True,
                metavar="N",
                help="Requests of 8 tokens that each process sends first.",
            ),
            click.option(
                "--request-timeout",
                type=SECONDS_OR_0,
                default=600.0,
                show_default=True,
                metavar="SECONDS",
                help="Give a request up after that; 0: never.",
            ),
            click.option(
                "--wait-for",
                type=SECONDS_OR_0,
                default=0.0,
                metavar="SECONDS",
                help="Wait until the server is well, so long at most.",
            ),
            click.option(
                "--percentile",
                type=Number(0, 99.99),
                default=50.0,
                show_default=True,
                metavar="P",
                help="Invalid with fewer requests than this one needs.",
            ),
            click.option(
                "--max-error-rate",
                type=Number(0, 1, or_equal=True),
                default=0.01,
                show_default=True,
                metavar="SHARE",
                help="Invalid where a larger share of the attempted requests failed.",
            ),
            click.option(
                "--min-duration",
                type=SECONDS_OR_0,
                default=0.0,
                metavar="SECONDS",
                help="Invalid where it was shorter.",
            ),
        ],
    )


def output_options(command: Command) -> Command:
    """Adds where results go."""
    return _add(
        command,
        [
            click.option("--seed", default=0, show_default=True, help="Seed of everything."),
            click.option("--json", "json_path", metavar="FILE|-", help="Write the result there."),
            output_option("Where runs are kept."),
            click.option(
                "--probe",
                "probe_path",
                metavar="FILE",
                type=click.Path(path_type=Path),
                help="The log that gcbench probe --log writes of the server: name the process "
                "whose collector made a stream wait.",
            ),
            click.option(
                "--perfetto",
                "perfetto_path",
                metavar="FILE",
                help="With --probe: requests, slow gaps and collections as a trace for "
                "ui.perfetto.dev.",
            ),
            click.option(
                "--image",
                "image_path",
                metavar="FILE",
                help="With --probe: the worst stall as a picture, .png or .svg.",
            ),
            click.option(
                "--export-vllm",
                metavar="FILE",
                help="The JSON that vllm bench serve --save-result writes.",
            ),
            click.option(
                "--log", "log_path", metavar="FILE", help="Keep every byte and its moment."
            ),
            click.option(
                "--replay",
                "replay_path",
                metavar="FILE",
                type=click.Path(path_type=Path),
                help="Read such a file instead of asking a server.",
            ),
            click.option("--quiet", is_flag=True, help="No progress, no tables."),
        ],
    )
