"""Command lines nobody would think of, drawn from what click knows of the commands.

Every command, every flag, its type and its choices; beside values that are meant, those that are
not: empty, huge, no number, characters of all kinds, and paths to everything but a file.
"""

import os
import shlex
import socket
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from random import Random
from typing import NamedTuple

import click
from attempts import Tried
from commands import run, run_forked, wrong
from corpus import Corpus
from surroundings import Surroundings, damaged, half_written

from harness.cli.main import cli

LIMIT_SECONDS = 180.0
AS_PROCESS = 10
"""Of so many lines one is a process of its own, the others forks."""
_SERVE_SECONDS = 1.0
_SLOW = ("doctor", "serve")
"""Commands that take seconds whatever they are asked, and so are drawn less often."""
MEASURING = ("doctor", "run", "compare", "gate", "load", "nightly", "releases", "advise", "explain")
"""Commands that always run in a fork, where an executor answers at once."""

WORDS = (
    "",
    " ",
    "-",
    "--",
    "---",
    ",",
    ",,",
    ":",
    "::",
    "=",
    "==",
    "0",
    "-1",
    "-0",
    "00",
    "1",
    "2",
    "7",
    "1.5",
    "nan",
    "NaN",
    "-nan",
    "inf",
    "-inf",
    "1e308",
    "1e309",
    "1e-320",
    "99999999999999999999",
    "9" * 400,
    "0x10",
    "1_000",
    "\u0967\u0968",
    "½",
    "true",
    "null",
    "None",
    "ü",
    "日本語",
    "\U0001f4a9",
    "\udcff\udcfe",
    "a\tb",
    "a\nb",
    "\x1b[31mred",
    "\u202egpj.exe",
    "e\u0301",
    "\ufeff",
    "a" * 300,
    "b" * 100_000,
    "a=b",
    "=b",
    "a=",
    "1:2",
    "1:2:3",
    "0:0",
    "2:1",
    "-1:1",
    "1..2",
    "..",
    "0..0",
    "1:nan",
    "{}",
    "[]",
    "[",
    "(",
    "*",
    "?",
    "%s",
    "%",
    "\\",
    "'",
    '"',
    "`id`",
    "$(id)",
    ";",
    "|",
    "&",
    "<",
    "~",
    "@file",
    "--help",
    "--json",
    "-h",
    "HEAD",
    "HEAD~1..HEAD",
    "http://x/",
    "a/../b",
)

MEANT = {
    "gc": (
        "default",
        "freeze",
        "disabled",
        "batch_threshold",
        "on_wait",
        "on_wait:5",
        "threshold:50000/20/20",
        "freeze+threshold:1",
        "as_is",
    ),
    "representation": ("list_of_lists", "flat_arrays", "padded_arrays", "list_of_arrays", "tensor"),
    "delivery": ("per_request", "columnar"),
    "device": ("null", "modelled"),
    "workload": ("burst", "chat", "churn", "multi-turn", "speculative"),
    "worker": ("process", "driver", "in-process"),
    "wire": ("columns", "msgpack-delta", "pickle", "full"),
    "output_processing": ("inline", "overlapped", "thread", "process"),
    "engine": ("builtin", "vllm-hostpath", "vllm"),
    "release": ("0.11.0",),
    "num_requests": ("4", "8"),
    "prompt_lens": ("8", "uniform:4:9"),
    "output_lens": ("4", "uniform:2:5"),
    "arrivals": ("at_once", "poisson:100", "gamma:100:0.5", "closed_loop:2"),
    "tokens_per_step": ("1", "1..4", "geometric:0.5:3"),
    "priorities": ("0:3",),
    "window": ("0:10",),
    "time_scale": ("0.5",),
    "wait": ("1s", "10m", "no"),
    "decide": ("request_throughput", "host_time_per_step"),
    "baseline": ("gc=default", "gc=freeze"),
    "rounds": ("1", "2", "3"),
    "steps": ("1",),
    "repeats": ("1", "2"),
    "budget": ("0",),
    "batch_size": ("4", "8"),
    "heap_objects": ("0", "10"),
    "base": ("HEAD", "HEAD~1"),
    "head": ("HEAD",),
    "versions": ("0.11.0", "0.11.1", "all", "0.11.0..0.12.0"),
    "commits": ("HEAD~1..HEAD", "HEAD^!"),
    "machine": ("box",),
    "bench": ("track",),
    "experiment": ("padding", "wire"),
    "what": ("26369-gen0-each-step",),
    "kind": ("workloads", "workload", "metrics", "wire"),
    "name": ("burst", "chat"),
    "prefill": ("16",),
    "context": ("16",),
    "model": ("opt-tiny", "opt-125m"),
    "commit_url": ("https://example.invalid/commit/",),
    "port": ("0",),
    "dtype": ("float32",),
    "url": ("http://127.0.0.1:9", "127.0.0.1:9/v1", "https://127.0.0.1:9"),
    "wait_for": ("0", "1"),
    "prompt_as": ("ids", "text", "chat"),
    "extra_body": ("{}", '{"top_k": 5}'),
    "config": ("results/nights/asv.conf.json",),
    "trial_timeout": ("10",),
    "host": ("127.0.0.1", "localhost", "::1", "0.0.0.0"),
    "api_key": ("secret",),
    "profiles": ("opt-125m-h200", "deepseek-v3-8xh200"),
    "step_ms": ("5",),
    "num_checks": ("0",),
    "detokenizer": ("none", "byte_table", "decode_stream"),
    "grace": ("0", "1"),
}
"""Values that mean something, by a parameter's name, so that lines come further than click."""

SMALL = {
    "num_requests": "4",
    "output_lens": "4",
    "batch_size": "4",
    "rounds": "3",
    "steps": "1",
    "repeats": "1",
    "budget": "0",
    "device": "null",
    "port": "0",
}
"""What a line is made small with, where it says nothing of it: it is to fail by its mistakes."""

COUNTS = (
    "rounds",
    "steps",
    "repeats",
    "budget",
    "num_requests",
    "until_precise",
    "reruns",
    "wait_for",
)
"""Numbers that may ask for more than there is time for."""


class Line(NamedTuple):
    """``words`` behind ``gcbench``; ``may_last``: it can ask for more than there is time for."""

    words: list[str]
    may_last: bool = False


def draw(random: Random, paths: Sequence[str]) -> Line:
    """A command line. ``paths`` are places of all kinds."""
    names, command, context = [], cli, click.Context(cli)
    while isinstance(command, click.Group):
        if random.random() < 0.02:
            return Line([*names, random.choice([*WORDS, *paths])])
        inner = command.list_commands(context)
        names += random.choices(inner, [1 if each in _SLOW else 8 for each in inner])
        command = command.get_command(context, names[-1])
        assert command is not None
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    flags = [each for each in command.params if isinstance(each, click.Option)]
    chosen = random.sample(flags, min(len(flags), random.choice((0, 1, 1, 2, 2, 3, 5, 8))))
    sourness = random.choice((0.0, 0.15, 0.5, 0.9))
    words = [word for flag in chosen for word in _flag(flag, random, paths, sourness)]
    given = {each.name for each in chosen}
    words += [
        word
        for flag in flags
        if flag.name in SMALL and flag.name not in given
        for word in (flag.opts[0], SMALL[flag.name])
    ]
    for argument in arguments:
        many = (
            random.choice((0, 1, 1, 2))
            if argument.nargs == -1
            else int(argument.required or random.random() < 0.5)
        )
        words += [_value(argument, random, paths, sourness) for _ in range(many)]
    words += [
        _output(flag, random)
        for flag in flags
        if flag.name in ("output", "path") and flag.name not in given
    ]
    if random.random() < 0.05:
        words.insert(random.randrange(len(words) + 1), random.choice([*WORDS, *paths]))
    lasting = any(each.name in COUNTS for each in chosen) or names[-1] == "serve"
    lasting |= any(each.name == "http_cost" for each in chosen)
    return Line([*names, *words], lasting)


def _flag(flag: click.Option, random: Random, paths: Sequence[str], sourness: float) -> list[str]:
    name = random.choice([*flag.opts, *flag.secondary_opts])
    if flag.is_flag:
        return [name]
    value = _value(flag, random, paths, sourness)
    return [f"{name}={value}"] if random.random() < 0.2 else [name, value]


def _value(
    parameter: click.Parameter, random: Random, paths: Sequence[str], sourness: float
) -> str:
    if random.random() < sourness:
        return random.choice(paths if random.random() < 0.4 else WORDS)
    if isinstance(parameter.type, click.Choice):
        return str(random.choice(list(parameter.type.choices)))
    if meant := MEANT.get(parameter.name or ""):
        several = random.randint(1, 2) if "LIST" in str(parameter.type.name) else 1
        return ",".join(random.choices(meant, k=several))
    if isinstance(parameter.type, click.Path) or "FILE" in (parameter.metavar or ""):
        return random.choice(paths)
    return random.choice(("0", "1", "3"))


def _output(flag: click.Option, random: Random) -> str:
    return f"{flag.opts[0]}={random.choice(('runs', 'out.toml', 'out.jsonl'))}"


def places(corpus: Corpus) -> list[str]:
    """Paths of every kind: files, and what is there in the place of one."""
    odd = corpus.checkout / "odd"
    odd.mkdir()
    os.mkfifo(odd / "fifo.json")
    os.mkfifo(odd / "fifo.toml")
    (odd / "folder.json").mkdir()
    (odd / "empty.toml").touch()
    (odd / "binary.csv").write_bytes(bytes(range(256)) * 16)
    (odd / "unreadable.json").write_text("{}")
    (odd / "unreadable.json").chmod(0)
    (odd / "dangling.json").symlink_to("nowhere")
    (odd / "loop.toml").symlink_to("loop.toml")
    (odd / "µ\n\x1b[31m \udcff.json").write_text("{}")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(odd / "socket"))
    if (
        os.geteuid() == 0
    ):  # devices of its own: a program that replaces one would take the machine's
        for name, minor in (("null", 3), ("zero.jsonl", 5), ("full", 7)):
            os.mknod(odd / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
    elsewhere = (
        "/proc/self/mem",
        "/proc/nowhere/x.json",
        ".",
        "new.json",
        "new.png",
        "new.svg",
        "new.toml",
        "new.jsonl",
        "new.md",
        "new",
        "nowhere/x.json",
        "d" * 300 + ".toml",
        "x/" * 2500,
    )
    return [*sorted(map(str, odd.iterdir())), *elsewhere, *map(str, corpus.paths)]


@contextmanager
def _read(fifo: Path) -> Iterator[None]:
    """Be there to read it, so that who writes to it need not wait for anybody."""
    reader = os.open(fifo, os.O_RDWR)
    try:
        yield
    finally:
        os.close(reader)


def _special(corpus: Corpus) -> set[str]:
    """What is neither file, folder nor link, and must stay what it is."""
    return {
        path.name
        for path in (corpus.checkout / "odd").iterdir()
        if stat.S_IFMT(path.lstat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
    }


class Bench:
    """Everything imported that a fork would import, so that it does so once."""

    def __init__(self, corpus: Corpus, _: Surroundings) -> None:
        self.corpus = corpus
        group = click.Context(cli)
        for name in cli.list_commands(group):
            cli.get_command(group, name)
        for name in ("dashboards.site", "harness.tracking.history", "matplotlib.figure"):
            import_module(name)


def attempt(random: Random, place: Surroundings, bench: Bench) -> Tried:
    """One line, run."""
    own = bench.corpus.copy_to(place.folder / "checkout")
    line = draw(random, places(own))
    special = _special(own)
    words = line.words
    is_real = random.randrange(AS_PROCESS) == 0 and words[0] not in MEASURING
    limit = _SERVE_SECONDS if "serve" in words[:2] else LIMIT_SECONDS
    with _read(own.checkout / "odd" / "fifo.json"), _read(own.checkout / "odd" / "fifo.toml"):
        ended = (run if is_real else run_forked)(words, place, limit, cwd=own.checkout)
    found = wrong(ended, words)
    if ended.is_late and not line.may_last:
        found.append(f"it took more than {limit:g} s")
    if gone := special - _special(own):
        found.append(f"no longer what it was: {sorted(gone)}")
    found += damaged(own.checkout / "runs") + half_written(place.folder) + place.left()
    command = words[0] if words[0] in cli.list_commands(click.Context(cli)) else "no command"
    kinds = (command, f"status {ended.status}")
    return Tried(kinds, shlex.join(["gcbench", *words]), found)
