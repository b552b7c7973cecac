"""A workload on a terminal: in words, its lengths as a table, lengths and arrivals as plots."""

from typing import Any

import msgspec
from rich.console import Console

from harness import format as fmt
from harness.render.plots import beside, panel
from harness.render.table import PlainTable
from harness.render.terminal import print_pairs, print_table
from workloads.summary import ArrivalSummary, Summary, TokenLengths
from workloads.workload import Workload


def print_workload(summary: Summary, console: Console) -> None:
    """Print what it asks for."""
    print_pairs(workload_pairs(summary), console)
    print_table(_lengths_table(summary), console)
    console.print()
    for line in _plots(summary, console.width):
        console.print(line, markup=False, no_wrap=True, overflow="crop")


def workload_pairs(summary: Summary) -> list[tuple[str, str]]:
    """What holds for the whole schedule, as (label, words)."""
    workload = summary.workload
    lines = [
        ("workload", summary.name),
        ("what for", workload.reason),
        (
            "requests",
            f"{fmt.count(summary.num_requests)}, seed {summary.seed}, hash {summary.hash[:12]}",
        ),
        ("model", workload.model),
        ("prompts", _prompt_words(workload)),
        ("outputs", _asked(workload.output_lens)),
        ("arrivals", _arrival_words(summary)),
        ("self-check", check_words(summary.arrivals)),
        ("tokens per step", _acceptance_words(summary)),
        ("turns", _turn_words(summary)),
        ("shared prefixes", _shared_words(summary)),
        ("priorities", _asked(workload.priorities)),
        ("ends early by", _stop_words(summary)),
        ("outputs kept", {"step": "", "finish": "until the request has finished"}[workload.retain]),
        ("bad rows", f"{summary.bad_rows:,} of the trace left out" if summary.bad_rows else ""),
    ]
    return [(label, words) for label, words in lines if words]


def _lengths_table(summary: Summary) -> PlainTable:
    """Quantiles of the prompts' and the outputs' lengths."""
    rows = [
        (
            name,
            fmt.count(lens.mean),
            *(fmt.count(value) for value in (lens.p50, lens.p90, lens.p99, lens.max, lens.total)),
        )
        for name, lens in (("prompt", summary.prompt_tokens), ("output", summary.output_tokens))
    ]
    return PlainTable("Tokens per request", ("", "mean", "p50", "p90", "p99", "max", "all"), [rows])


def _plots(summary: Summary, width: int) -> list[str]:
    """Lines of at most ``width`` columns: how lengths are spread, and arrivals over time."""
    prompt = _length_panel("prompt", summary.prompt_tokens)
    output = _length_panel("output", summary.output_tokens)
    halves = max(map(len, prompt)) < width // 2 and max(map(len, output)) <= width - width // 2
    lines = beside(prompt, output, width // 2) if halves else [*prompt, "", *output]
    arrivals = summary.arrivals
    if arrivals.last_seconds == 0:
        return lines
    bins = arrivals.bins
    rates = [count * len(bins.counts) / arrivals.last_seconds for count in bins.counts]
    return [
        *lines,
        "",
        *panel(
            "requests per second over time",
            rates,
            fmt.number(max(rates)),
            ("0 s", fmt.seconds(arrivals.last_seconds)),
        ),
    ]


def check_words(arrivals: ArrivalSummary) -> str:
    """Whether arrivals are spread as they were asked to be, and by which figures."""
    check = arrivals.check
    if check.gap_cv is None:
        return ""
    figures = [f"gaps' CV {fmt.number(check.gap_cv)}"]
    if arrivals.asked_gap_cv is not None:
        figures[0] += f" (asked for: {fmt.number(arrivals.asked_gap_cv)})"
    if check.lag1_correlation is not None:
        figures.append(f"lag-1 correlation {check.lag1_correlation:.2f}")
    if check.dispersion is not None:
        figures.append(f"dispersion {fmt.number(check.dispersion)}")
    return "; ".join([arrivals.verdict, *arrivals.deviations, ", ".join(figures)])


def _length_panel(name: str, lens: TokenLengths) -> list[str]:
    bins = lens.bins
    if len(bins.counts) == 1:
        wide = [0] * 8 + bins.counts + [0] * 8
        return panel(f"{name} tokens", wide, fmt.count(max(wide)), ("", f"{lens.max:,} each    "))
    scale = " (log scale)" if bins.is_log else ""
    low, high = int(bins.edges[0]), int(bins.edges[-1]) - 1
    return panel(
        f"{name} tokens{scale}", bins.counts, fmt.count(max(bins.counts)), (f"{low:,}", f"{high:,}")
    )


def _asked(asked: Any) -> str:
    """A part of the recipe in words: "lognormal, median 760, sigma 0.99"."""
    if asked is None:
        return ""
    fields = msgspec.structs.asdict(asked)
    kind = type(asked).__struct_config__.tag
    return ", ".join(
        [
            *([str(kind).replace("_", " ")] if kind else []),
            *(f"{name.replace('_', ' ')} {_value(value)}" for name, value in fields.items()),
        ]
    )


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return f"of {len(value):,}"
    if isinstance(value, msgspec.Struct):
        return f"({_asked(value)})"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _arrival_words(summary: Summary) -> str:
    workload, last = summary.workload, summary.arrivals.last_seconds
    words = _asked(workload.arrivals) or ("at once" if workload.trace is None else "as recorded")
    if last > 0:
        words += f"; the last after {fmt.seconds(last)}"
    return words


def _prompt_words(workload: Workload) -> str:
    words = _asked(workload.prompt_lens)
    if workload.turns is not None:
        words += "; a turn's new tokens, before them the conversation so far"
    if prefix := workload.shared_prefix:
        words += f"; before them one of {prefix.groups:,} prefixes of {prefix.tokens:,}"
    return words.removeprefix("; ")


def _acceptance_words(summary: Summary) -> str:
    if summary.max_tokens_per_step == 1:
        return "1"
    return (
        f"{_asked(summary.workload.acceptance)}: {fmt.number(summary.mean_tokens_per_step)} on "
        f"average, {summary.max_tokens_per_step} at most"
    )


def _turn_words(summary: Summary) -> str:
    if not summary.num_conversations:
        return ""
    mean = summary.num_requests / summary.num_conversations
    return (
        f"{summary.num_conversations:,} conversations, {fmt.number(mean)} turns each on average, "
        f"{summary.most_turns} at most"
    )


def _shared_words(summary: Summary) -> str:
    if not summary.seen_before_share:
        return ""
    share = fmt.percent(summary.seen_before_share)
    return f"{share} of the prompts' tokens begin an earlier prompt too, in blocks of 16"


def _stop_words(summary: Summary) -> str:
    workload = summary.workload
    ends = [
        *(f"token {token}" for token in workload.stop_token_ids),
        *(repr(text) for text in workload.stop),
        *([] if workload.ignore_eos else ["end of sequence"]),
    ]
    if not ends:
        return ""
    least = f", after {workload.min_tokens} tokens" if workload.min_tokens else ""
    return ", ".join(ends) + least
