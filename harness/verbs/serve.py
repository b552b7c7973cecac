"""The engine that is served: the one that `gcbench run` would build."""

from typing import Annotated, ClassVar

from engines.builtin.model.config import load_model
from engines.protocol import EngineConfig
from engines.server.settings import ServerSettings
from harness.axes import AXES, Cell, Value
from harness.collector.policy import parse_policy
from harness.experiment.grid import cross
from harness.load.served import SERVER_DECIDES
from harness.trial.engine_config import engine_config
from harness.verbs.request import Flag, VerbRequest
from workloads.recipe.acceptance import parse_acceptance
from workloads.recipe.lengths import parse_lengths
from workloads.workload import Workload


class ServeRequest(VerbRequest, frozen=True, kw_only=True):
    """A server of one cell; `ServerSettings` says what its numbers are."""

    defaults: ClassVar[dict[str, list[Value]]] = {
        "model": ["opt-125m"],
        "detokenizer": ["decode_stream"],
    }
    decided: ClassVar[dict[str, list[Value]]] = {
        name: [AXES[name].default] for name in SERVER_DECIDES
    }

    host: Annotated[
        str,
        Flag(
            "Where to listen; another than this machine's own needs an API key.",
            section="Options",
            is_main=True,
            metavar="ADDRESS",
        ),
    ] = "127.0.0.1"
    port: Annotated[
        int, Flag("0 takes one that is free.", section="Options", is_main=True, least=0, most=65535)
    ] = 8000
    served_model_name: Annotated[
        str,
        Flag(
            "What clients ask for.  [default: the model]",
            section="Options",
            is_main=True,
            metavar="NAME",
        ),
    ] = ""
    tokens_per_step: Annotated[
        str,
        Flag(
            "1, or 1..4, geometric:P:MOST, … for ragged steps; see docs/workloads.md.",
            section="Workload",
            is_axis=True,
        ),
    ] = "1"
    seed: Annotated[
        int, Flag("Decides the tokens of devices without a model.", section="Workload", least=0)
    ] = 0
    max_body: Annotated[
        int,
        Flag(
            "A larger request is refused (413).",
            section="Options",
            metavar="BYTES",
            least=1,
            most=2**31,
            is_axis=True,
        ),
    ] = 4 << 20
    max_queued: Annotated[
        int,
        Flag(
            "Requests beyond a full batch; more are refused (429).",
            section="Options",
            least=0,
            most=2**31,
            is_axis=True,
        ),
    ] = 4096
    max_connections: Annotated[
        int,
        Flag(
            "Open at once; more are refused (503). No more than ulimit -Hn leaves room for.",
            section="Options",
            least=1,
            most=2**31,
            is_axis=True,
        ),
    ] = 8192
    idle_timeout: Annotated[
        float,
        Flag(
            "A connection is closed that brings no whole request head for so long.",
            section="Options",
            metavar="SECONDS",
            above=0,
            most=10**6,
            is_axis=True,
        ),
    ] = 30.0
    request_timeout: Annotated[
        float,
        Flag(
            "For a request from its body to its last token.",
            section="Options",
            metavar="SECONDS",
            above=0,
            most=10**6,
            is_axis=True,
        ),
    ] = 600.0
    grace: Annotated[
        float,
        Flag(
            "For running requests, once it is told to stop.",
            section="Options",
            metavar="SECONDS",
            least=0,
            most=10**6,
            is_axis=True,
        ),
    ] = 30.0
    access_log: Annotated[
        str,
        Flag(
            "Gets a line of JSON for each request.  [default: none]",
            section="Options",
            metavar="FILE",
            is_axis=True,
        ),
    ] = ""

    def settings(self, model: str, api_key: str) -> ServerSettings:
        """As the server takes them."""
        names = ServerSettings.__dataclass_fields__.keys() - {"model", "api_key"}
        given = {name: getattr(self, name) for name in names}
        return ServerSettings(model=self.served_model_name or model, api_key=api_key, **given)


def served_engine(request: ServeRequest) -> tuple[Cell, EngineConfig]:
    """What is asked for, as `gcbench run` would build it. Raises ValueError where it cannot be."""
    axes = {name: [request.value(name)] for name in AXES}
    workload = Workload(
        name=str(AXES["workload"].default),
        num_requests=1,
        prompt_lens=parse_lengths("1"),
        output_lens=parse_lengths("1"),
        acceptance=parse_acceptance(request.tokens_per_step),
    )
    if axes["max_model_len"] == [1]:
        raise ValueError(
            "--axis max-model-len=1: a request has a token of its prompt and one of its output"
        )
    if axes["max_model_len"] == [0]:
        (model,) = axes["model"]
        axes["max_model_len"] = [load_model(str(model)).config.max_position_embeddings]
    # As far as the engine can tell: its outputs are made in the front end, another process.
    axes["output_processing"] = ["process"]
    schedule = workload.realise(request.seed)
    (cell,) = cross(axes, {workload.name: schedule}, {workload.name: workload.model}).cells
    if "on_wait" in parse_policy(cell.gc).for_role("frontend"):
        raise ValueError(
            f"--gc {cell.gc}: the front end waits for no device, so nothing would ever be "
            "collected there; use on_wait@engine"
        )
    return cell, engine_config(cell, schedule)
