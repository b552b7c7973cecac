"""Help in sections: the options that matter first, and all of them on ``--help-all``."""

from typing import Any

import click

SECTIONS = (
    "Options",
    "What to compare",
    "Workload",
    "Server",
    "Client",
    "Engine",
    "vLLM",
    "Real devices",
    "Precision",
    "Many machines",
    "Output",
)
"""In the order in which help shows them."""

_ALL = "--help-all"
SHOWS_ALL = "gcbench.help_all"
"""In a context's ``meta``: its help shows all options."""


class SectionOption(click.Option):
    """An option with its section of the help; ``is_main``: shown without ``--help-all``."""

    def __init__(
        self, *args: Any, section: str = SECTIONS[0], is_main: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.section, self.is_main = section, is_main


class SectionCommand(click.Command):
    """A command with so many options that its help shows the main ones, in sections."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(
            SectionOption(
                [_ALL],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                is_main=True,
                section="Output",
                callback=_show_all,
                help="Show all options, section by section.",
            )
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options section by section."""
        rows: dict[str, list[tuple[str, str]]] = {section: [] for section in SECTIONS}
        for param in self.get_params(ctx):
            if not isinstance(param, click.Option) or not self._is_shown(param, ctx):
                continue
            is_help = "--help" in param.opts
            section = getattr(param, "section", SECTIONS[-1 if is_help else 0])
            if row := param.get_help_record(ctx):
                rows[section].append(row)
        for section, records in rows.items():
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)

    def _is_shown(self, param: click.Parameter, ctx: click.Context) -> bool:
        return getattr(param, "is_main", True) or bool(ctx.meta.get(SHOWS_ALL))


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    if not ctx.help_option_names:  # a command line that somebody else's file holds
        raise click.NoSuchOption(_ALL, ctx=ctx)
    ctx.meta[SHOWS_ALL] = True
    click.echo(ctx.get_help(), color=ctx.color)
    ctx.exit()
