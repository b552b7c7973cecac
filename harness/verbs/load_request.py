"""What a server is to be asked, by how many, and what makes a run valid."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar

from engines.openai.request_body import PROMPT_FORMS
from harness.axes import Value
from harness.experiment.store import RUNS
from harness.verbs.request import NO_AXES, Flag, WorkloadRequest


class LoadRequest(WorkloadRequest, frozen=True, kw_only=True):
    """``urls``: of servers, between which requests take turns; or ``replay``, a file that ``log``
    has kept, is read again.

    ``request_rate``: per second. Times in seconds, 0 for none. ``max_error_rate``: a share.
    """

    decided: ClassVar[Mapping[str, list[Value]]] = {
        name: value for name, value in NO_AXES.items() if name != "workload"
    }

    urls: list[str] = []
    request_rate: Annotated[
        float | None,
        Flag(
            "Requests per second, as a Poisson process: arrivals=poisson:RATE.",
            section="Workload",
            is_main=True,
            metavar="RATE",
            above=0,
            most=10**6,
        ),
    ] = None
    burstiness: Annotated[
        float | None,
        Flag(
            "With --request-rate: gamma:RATE:SHAPE, burstier below 1.",
            section="Workload",
            is_main=True,
            metavar="SHAPE",
            above=0,
            most=10**6,
        ),
    ] = None
    max_concurrency: Annotated[
        int | None,
        Flag("Requests in flight at most.", section="Workload", is_main=True, least=1, most=10**6),
    ] = None
    model: Annotated[
        str,
        Flag(
            "[default: the first that the server names]",
            section="Server",
            is_main=True,
            metavar="NAME",
        ),
    ] = ""
    prompt_as: Annotated[
        str,
        Flag(
            "Token ids, a text, or a chat's message.",
            section="Server",
            is_main=True,
            choices=PROMPT_FORMS,
        ),
    ] = "ids"
    vocab_size: Annotated[
        int, Flag("Token ids of prompts are below it.", section="Server", least=1, most=10**8)
    ] = 50257
    tokenizer: Annotated[
        str,
        Flag(
            "tokenizer.json that counts answers whose server does not.",
            section="Server",
            metavar="FILE",
        ),
    ] = ""
    standard_fields: Annotated[
        bool,
        Flag(
            "Leave out what only some servers know: ignore_eos, min_tokens, …",
            section="Server",
            is_main=True,
        ),
    ] = False
    extra_body: Annotated[
        str,
        Flag(
            'Fields for every request; null takes one away, "$max_tokens" is its length.',
            section="Server",
            metavar="JSON",
        ),
    ] = "{}"
    prompts: Annotated[
        Path | None,
        Flag(
            "Texts or chats of one's own: .jsonl, ShareGPT's .json, .parquet, or a folder.",
            section="Server",
            is_main=True,
            metavar="FILE",
        ),
    ] = None
    real_answers: Annotated[
        bool,
        Flag(
            "Ask later turns of a conversation with what the server answered, not with a stand-in.",
            section="Server",
        ),
    ] = False
    header: Annotated[
        list[str],
        Flag(
            "A header for each request, of which the name alone is stored; may be repeated.",
            section="Server",
            metavar="'NAME: VALUE'",
        ),
    ] = []
    ca_file: Annotated[
        str, Flag("Certificates to trust (PEM).", section="Server", metavar="FILE")
    ] = ""
    insecure: Annotated[bool, Flag("Trust any certificate.", section="Server")] = False
    request_timeout: Annotated[
        float,
        Flag(
            "Give a request up after that; 0: never.",
            section="Server",
            metavar="SECONDS",
            least=0,
            most=10**6,
        ),
    ] = 600.0
    wait_for: Annotated[
        float,
        Flag(
            "Wait until the server is well, so long at most.",
            section="Server",
            is_main=True,
            metavar="SECONDS",
            least=0,
            most=10**6,
        ),
    ] = 0.0
    client_processes: Annotated[
        int, Flag("Share the schedule among so many.", section="Client", least=1, most=256)
    ] = 1
    client_gc: Annotated[
        str, Flag("Collector policy of the client processes.", section="Client", metavar="POLICY")
    ] = "freeze+disabled"
    num_warmups: Annotated[
        int,
        Flag(
            "Requests of 8 tokens that each process sends first, after one that looks at what the "
            "server makes of it; 0: neither.",
            section="Client",
            least=0,
            most=1000,
        ),
    ] = 1
    percentile: Annotated[
        float,
        Flag(
            "Invalid with fewer requests than this one needs.",
            is_main=True,
            metavar="P",
            above=0,
            most=99.99,
        ),
    ] = 50.0
    max_error_rate: Annotated[
        float,
        Flag(
            "Invalid where a larger share of the attempted requests failed.",
            metavar="SHARE",
            least=0,
            most=1,
        ),
    ] = 0.01
    min_duration: Annotated[
        float,
        Flag("Invalid where it was shorter.", metavar="SECONDS", least=0, most=10**6, is_axis=True),
    ] = 0.0
    duration: Annotated[
        float,
        Flag(
            "Send for so long; 0: all requests that there are.",
            section="Workload",
            is_main=True,
            metavar="SECONDS",
            least=0,
            most=10**6,
        ),
    ] = 0.0
    sweep: Annotated[
        str,
        Flag(
            "Instead of one load, many, until it is known where throughput ends: rate or "
            "concurrency, from KIND:START on; 20 s each or --duration.",
            is_main=True,
            metavar="KIND",
        ),
    ] = ""
    goodput: Annotated[
        str,
        Flag(
            "Count requests that keep objectives, in ms: ttft:200,tpot:20,e2el:5000.",
            is_main=True,
            metavar="NAME:MS,...",
        ),
    ] = ""
    wait: Annotated[
        str,
        Flag(
            "For another gcbench that measures here: at most this long, 90s, 10m, 1h; or no.  "
            "[default: until it has ended]",
            metavar="TIME|no",
        ),
    ] = ""
    output: Annotated[Path, Flag("Where runs are kept.", section="Output", metavar="DIR")] = RUNS
    probe: Annotated[
        Path | None,
        Flag(
            "The log that gcbench probe --log writes of the server: name the process whose "
            "collector made a stream wait.",
            section="Output",
            is_main=True,
            metavar="FILE",
        ),
    ] = None
    log: Annotated[
        Path | None, Flag("Keep every byte and its moment.", section="Output", metavar="FILE")
    ] = None
    replay: Annotated[
        Path | None,
        Flag(
            "Read such a file instead of asking a server.",
            section="Output",
            is_main=True,
            metavar="FILE",
        ),
    ] = None
