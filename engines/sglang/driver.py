"""SGLang's scheduler in this process, turned step by step."""

import shutil
from collections.abc import Callable
from itertools import compress, repeat
from operator import is_not, itemgetter
from pathlib import Path
from typing import Any

from engines.adapter import Adapter, NewTokens
from engines.prepared.tokenizer_folder import make_tokenizer_folder
from engines.private_folder import private_folder
from engines.protocol import EngineConfig, FinishReason, Int32Array, SamplingParams
from engines.scripted_clock import script_clock
from engines.sglang.shims import import_host_path

_REASONS = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH, "abort": FinishReason.ABORT}
_LAST = itemgetter(-1)


class Driver(Adapter):
    """Requests go in where SGLang receives them, outputs come where it sends them.

    Between the two all is the release's own, but for `ScriptedRunner` and `forward_thread`. With
    a ``reader`` outputs cross to the detokenizer and come from it too; a ``server`` is one that
    requests go in by as well.
    """

    def __init__(self, config: EngineConfig) -> None:
        super().__init__(config)
        import_host_path()
        from engines.sglang import dialect
        from engines.sglang.forward_thread import keep_from_starting, stand_in
        from engines.sglang.tokens import ScriptedRunner

        self._dialect = dialect
        self._features = dialect.features_asked(config)
        self.vocab_size = dialect.VOCAB_SIZE  # type: ignore[misc]
        self._folder = Path(private_folder("sglang"))
        self.server: Any = None
        try:
            dialect.write_model(self._folder, config)
            tokenizer = None
            if config.detokenizer != "none":
                tokenizer = self._folder / "tokenizer"
                make_tokenizer_folder(tokenizer, config.tokenizer)
            keep_from_starting()
            args = dialect.server_args(config, self._folder, tokenizer)
            ports = dialect.socket_names(args)
            self.reader, self.server = self._around(args, ports)
            dialect.publish(args, "scheduler")
            self.scheduler = dialect.scheduler(args, ports)
            if self._features.has_grammar:
                self._take_grammars()
        except BaseException:
            self.shutdown()
            raise
        self._runner = ScriptedRunner(config)
        self._runner.take_over(dialect.runner_of(self.scheduler))
        stand_in(self.scheduler.tp_worker)
        self._run_batch = self.scheduler.run_batch
        self.scheduler.run_batch = self._run
        self._received: list[Any] = []
        self._sent: list[Any] = []
        self._rids: dict[int, str] = {}
        self._requests: dict[str, int] = {}
        self._request_of: Any = self._requests.get
        # By the time that has passed it looks after sessions and writes its counters.
        self._pass_on = script_clock("sglang", "time", "monotonic", "perf_counter")
        if self.server is None:
            dialect.receive_by(self.scheduler, self._take)
            if self.reader is not None:  # at the tokenizer manager's socket, in its place
                dialect.send_by(self.scheduler, "tokenizer", lambda _: _ignore)
        else:
            dialect.receive_from(self.scheduler, self.server.receiving)
            dialect.send_by(self.scheduler, "tokenizer", self.server.told)
        dialect.send_by(self.scheduler, "detokenizer", self._giver)
        self._retracted: list[int] = []
        dialect.count_retractions(self._retracted.append)
        self._turns = dialect.turns(self.scheduler)

    def _around(self, args: Any, ports: Any) -> tuple[Any, Any]:
        """Reader and server, if there are to be any."""
        from engines.sglang.detokenizer import Reader

        if self.config.setup == "served":
            from engines.sglang.served import ServerHere

            self._dialect.publish(args, "tokenizer")
            server = ServerHere(args, ports)
            return server, server
        if self.config.detokenizer == "none":
            return None, None
        self._dialect.publish(args, "detokenizer")
        return Reader(args, ports), None

    def _take_grammars(self) -> None:
        from engines.sglang.grammar import do_at_once

        if hasattr(self.scheduler.tp_worker, "forward_thread"):
            raise ValueError(
                "--axis features=grammar: up to 0.5.3 an overlapped step waits for another "
                "thread to fill its mask, and here is none; use --output-processing inline"
            )
        do_at_once(self.scheduler)

    def _take(self) -> list[Any]:
        received, self._received = self._received, []
        return received

    def _giver(self, send: Callable[[Any], object]) -> Callable[[Any], object]:
        if self.reader is None:
            return self._sent.append

        def give(output: Any) -> None:
            self._sent.append(output)
            send(output)

        return give

    def _run(self, batch: Any, *args: Any, **kwargs: Any) -> Any:
        self._runner.begin(batch)
        return self._run_batch(batch, *args, **kwargs)

    def add_request(
        self, request: int, prompt_token_ids: Int32Array, params: SamplingParams
    ) -> None:
        """Have it received in the next step."""
        if params.min_tokens or params.stop:
            raise ValueError(
                "sglang-hostpath runs without sampler and tokenizer: leave min_tokens and stop "
                "strings out"
            )
        rid = self._rids[request] = self._dialect.next_rid(request, self._rids.get(request))
        prompt = prompt_token_ids.tolist()
        sampling = self._dialect.sampling(params, self.config, self._features)
        self._runner.admit(rid, len(prompt))
        if self.server is None:
            tokenizer = self.scheduler.tokenizer
            self._received.append(self._dialect.request(rid, prompt, sampling, tokenizer))
        else:
            self.server.add(rid, prompt, sampling)
        self._requests[rid] = request

    def abort_request(self, request: int) -> None:
        """Have SGLang told that nobody wants it any more."""
        rid = self._rids[request]
        if self.server is None:
            self._received.append(self._dialect.abort(rid))
        else:
            self.server.abort(rid)
        if self.reader is not None:
            self.forget_text(request)
        self._requests.pop(rid, None)

    def step(self) -> NewTokens | None:
        """A turn of the event loop; in an overlapped one outputs are those of the turn before."""
        self._pass_on()
        next(self._turns)
        if self.reader is not None:
            for output in self._sent:
                self.reader.see_through(output)
        if self.server is not None:
            self.server.finish()
        made = [each for each in map(self._new_tokens, self._sent) if each is not None]
        self._sent.clear()
        for each in made:
            if None in each.requests:
                _drop_ended(each)
            for request in each.finished:
                rid = self._rids[request]
                self._runner.forget(rid)
                self._requests.pop(rid, None)
                if not self._requests and self.config.num_gpu_blocks_override:
                    # Idle, it forgets that the pool was full; until then it lets in fewer.
                    next(self._turns)
        return made[0] if len(made) == 1 else _together(made)

    def _new_tokens(self, output: Any) -> NewTokens | None:
        """What one message to the detokenizer brings, without a bytecode per row.

        A row has one new token, its last: 0.4.6 sends all of a request's tokens with each. For a
        detokenizer there may be some of the prompt before it.
        """
        reasons = getattr(output, "finished_reasons", None)
        tokens = getattr(output, "output_ids", None) or getattr(output, "decode_ids", None)
        if not reasons or not tokens:
            return None
        try:
            last = list(map(_LAST, tokens))
        except IndexError:  # a request that was aborted once retracted has a row without any
            last = [each[-1] if each else -1 for each in tokens]
        requests = list(map(self._request_of, output.rids))
        ended = list(map(is_not, reasons, repeat(None)))
        return NewTokens(
            requests,
            last,
            list(compress(requests, ended)),
            [_REASONS[each["type"]] for each in compress(reasons, ended)],
        )

    def text(self, request: int) -> str:
        """A finished request's text."""
        return self.reader.text(self._rids[request])  # type: ignore[no-any-return]

    def forget_text(self, request: int) -> None:
        """Keep it no longer: of most requests nobody reads it."""
        self.reader.forget(self._rids[request])

    def has_unfinished_requests(self) -> bool:
        """Whether a request waits for a token."""
        return bool(self._requests)

    def scheduler_stats(self) -> dict[str, int]:
        """How many requests were retracted, which is SGLang's word for preempted."""
        return {"num_preemptions": sum(self._retracted)}

    def shutdown(self) -> None:
        """Remove the model's folder; SGLang's sockets and groups end with the process."""
        if self.server is not None:
            self.server.shutdown()
        shutil.rmtree(self._folder, ignore_errors=True)


def _ignore(*_: Any) -> None:
    """What a request is told that ended before it ran: who aborted it knows."""


def _drop_ended(made: NewTokens) -> None:
    """Take out rows of requests that have ended, of which SGLang speaks once more."""
    kept = [request is not None for request in made.requests]
    kept_ends = [request is not None for request in made.finished]
    for rows, are_kept in (
        (made.requests, kept),
        (made.tokens, kept),
        (made.finished, kept_ends),
        (made.finish_reasons, kept_ends),
    ):
        rows[:] = compress(rows, are_kept)  # type: ignore[index]


def _together(made: list[NewTokens]) -> NewTokens | None:
    """Those of several messages as one."""
    if not made:
        return None
    return NewTokens(
        [request for each in made for request in each.requests],
        [token for each in made for token in each.tokens],
        [request for each in made for request in each.finished],
        [reason for each in made for reason in each.finish_reasons],
    )
