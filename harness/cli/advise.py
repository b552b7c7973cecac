"""``gcbench advise``: which settings are best, whether their rules hold, and where they matter."""

from collections.abc import Callable
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from harness.axes import AXES
from harness.cli.advise_best import POLICIES, advise_best
from harness.cli.advise_models import MODELS, advise_models
from harness.cli.advise_predict import advise_predict
from harness.cli.exit_codes import ExitCode
from harness.cli.options import (
    PERCENT_OR_0,
    CommaList,
    Number,
    axis_options,
    option,
    refuse_given,
    run_options,
    wait_quiet_option,
    workload_options,
)
from harness.cli.sections import SectionCommand
from harness.experiment.crossover_run import FIXED
from harness.statistics.paired_ratio import FEWEST_PAIRS

EXAMPLES = """
\b
Examples:
  gcbench advise
      collector settings for the built-in engine on a decode workload
  gcbench advise --engine vllm-hostpath --release 0.33.0 --device null
      the same for vLLM's host path, with no GPU
  gcbench advise --workload churn --representation list_of_lists,flat_arrays
      of two shapes, too, on requests that come and go
  gcbench advise --predict --python 3.11,3.12,3.13 --gc default
      how often each interpreter's collector runs, predicted and observed
  gcbench advise --models
      for which models and batches it matters how sampled tokens are kept
  gcbench advise --models --step-ms 18 --gc default,freeze --image map.png
      whether the collector does, for a model whose step takes 18 ms too
"""


class _Question(NamedTuple):
    """One of three that the command can be asked.

    ``flag``: what asks it; ``own``: the flags that say something in it and not in all of them;
    ``defaults``: of what is not given; ``fixed``: axes that it takes no value for.
    """

    flag: str
    ask: Callable[[dict[str, Any]], ExitCode]
    own: frozenset[str]
    defaults: dict[str, Any]
    fixed: frozenset[str] = frozenset()


_TIMES = frozenset({"rounds", "tolerance", "wait_quiet", "anyway"})
_BEST = _Question(
    "",
    advise_best,
    _TIMES | {"first_rounds"},
    {"gc": POLICIES, "heap_objects": [700_000], "rounds": 7},
)
_PREDICT = _Question(
    "--predict",
    advise_predict,
    frozenset(),
    {
        "workload": ["opt125m-48-300"],
        "device": ["null"],
        "gc": ["default", "threshold:10000/10/10", "freeze"],
    },
)
_MODELS = _Question(
    "--models",
    advise_models,
    _TIMES | {"models", "step_ms", "num_checks", "image_path"},
    {
        "workload": ["churn"],
        "representation": ["list_of_lists", "flat_arrays"],
        "delivery": ["per_request", "columnar"],
        "batch_size": [1, 8, 32, 256, 1024],
        "heap_objects": [0, 700_000],
        "rounds": 5,
    },
    frozenset(FIXED),
)
_NOT_OF_ALL = _BEST.own | _PREDICT.own | _MODELS.own


@click.command(cls=SectionCommand, epilog=EXAMPLES)
@axis_options(**{axis: _BEST.defaults[axis] for axis in ("gc", "heap_objects")})
@workload_options
@option(
    "--predict",
    is_flag=True,
    is_main=True,
    help="Instead, predict how often the collector runs under each policy and hold that against "
    "what it does; counts only. (docs/cadence.md)",
)
@option(
    "--models",
    type=CommaList(),
    is_flag=False,
    flag_value=",".join(MODELS),
    metavar="[LIST]",
    is_main=True,
    help="Instead, say for which of these models, batches and heaps it matters what the host does: "
    f"names or .toml files of modelled devices. [alone: {','.join(MODELS)}] (docs/crossover.md)",
)
@option(
    "--step-ms",
    type=Number(0, 10**6),
    multiple=True,
    metavar="MS",
    is_main=True,
    help="With --models: one more, whose step takes so long; may be repeated.",
)
@option(
    "--check",
    "num_checks",
    type=click.IntRange(0, 100),
    default=2,
    show_default=True,
    help="With --models: predictions to try on a modelled device, at a batch between two others.",
    section="Precision",
)
@option(
    "--rounds",
    type=click.IntRange(FEWEST_PAIRS, 10_000),
    help="Of the measurement that decides. [default: 7; with --models 5, at each point]",
    section="Precision",
    is_main=True,
)
@option(
    "--first-rounds",
    type=click.IntRange(FEWEST_PAIRS, 10_000),
    default=3,
    show_default=True,
    help="Of the one that looks for the best candidate.",
    section="Precision",
)
@option(
    "--tolerance",
    type=PERCENT_OR_0,
    default=2.0,
    show_default=True,
    metavar="PCT",
    help="An interval within it reads `same`; with --models a change of as much matters.",
    section="Precision",
)
@option(
    "--image",
    "image_path",
    metavar="FILE",
    help="With --models: draw the map, .png or .svg.",
    section="Output",
)
@wait_quiet_option
@run_options
@click.pass_context
def advise(ctx: click.Context, /, *, predict: bool, **flags: Any) -> None:
    """Find the best collector settings for a workload, and check them in a second measurement.

    The first cell is the baseline. The best of the others is measured again beside it, with other
    seeds, since the best of several is partly luck. One that never collects is not recommended.

    --predict and --models ask another question each, with defaults of their own for the axes.
    """
    if predict and flags["models"]:
        raise ValueError("--predict and --models ask two questions; ask one at a time")
    question = _PREDICT if predict else _MODELS if flags["models"] else _BEST
    every = {"predict", *flags}
    without = _NOT_OF_ALL - question.own
    instead = f"with {question.flag}; leave one of them out"
    refuse_given(ctx, every - question.fixed, f"takes no value {instead}")
    is_best = question is _BEST
    refuse_given(
        ctx,
        every - without,
        "is of --models; give that, too" if is_best else f"says nothing {instead}",
    )
    defaults: dict[str, Any] = {axis: [each.default] for axis, each in AXES.items()}
    for name, value in (defaults | question.defaults).items():
        if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            flags[name] = value
    for name in without:
        flags.pop(name)
    ctx.exit(question.ask(flags))
