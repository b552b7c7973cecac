"""SGLang's scheduler in this process, turned step by step."""

import shutil
from collections.abc import Callable
from itertools import compress, repeat
from operator import is_not, itemgetter, not_
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

    Between the two all is the release's own, but for `ScriptedRunner` and `forward_thread`; with a
    detokenizer outputs cross to it and from it too.
    """

    def __init__(self, config: EngineConfig) -> None:
        super().__init__(config)
        import_host_path()
        from engines.sglang import dialect
        from engines.sglang.detokenizer import DetokenizerHere, Texts
        from engines.sglang.forward_thread import keep_from_starting, stand_in
        from engines.sglang.tokens import ScriptedRunner

        self._dialect = dialect
        self.vocab_size = dialect.VOCAB_SIZE  # type: ignore[misc]
        self._folder = Path(private_folder("sglang"))
        try:
            dialect.write_model(self._folder, config)
            tokenizer = None
            if config.detokenizer != "none":
                tokenizer = self._folder / "tokenizer"
                make_tokenizer_folder(tokenizer, config.tokenizer)
            keep_from_starting()
            args = dialect.server_args(config, self._folder, tokenizer)
            ports = dialect.publish(args)
            self.detokenizer = None if tokenizer is None else DetokenizerHere(args, ports)
            self.scheduler = dialect.scheduler(args, ports)
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
        self._unfinished: set[int] = set()
        # By the time that has passed it looks after sessions and writes its counters.
        self._pass_on = script_clock("sglang", "time", "monotonic", "perf_counter")
        self._texts = Texts()
        self._turns = dialect.turns(self.scheduler, self._take, self._giver)

    def _take(self) -> list[Any]:
        received, self._received = self._received, []
        return received

    def _giver(self, send: Callable[[Any], object]) -> Callable[[Any], object]:
        if self.detokenizer is None:
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
        self._texts.pop(request)  # of an earlier run, whose texts nobody took
        eos = self.config.eos_token_id
        self._received.append(self._dialect.request(request, prompt_token_ids, params, eos))
        self._runner.admit(request, len(prompt_token_ids))
        self._unfinished.add(request)

    def abort_request(self, request: int) -> None:
        """Have SGLang told that nobody wants it any more."""
        self._received.append(self._dialect.abort(request))
        self._unfinished.discard(request)

    def step(self) -> NewTokens | None:
        """A turn of the event loop; in an overlapped one outputs are those of the turn before."""
        self._pass_on()
        next(self._turns)
        if self.detokenizer is not None:
            whole = self.detokenizer.sends_whole_texts
            add = self._texts.replace if whole else self._texts.add
            for answer in self.detokenizer.answer(len(self._sent)):
                add(answer)
        made = [each for each in map(_new_tokens, self._sent) if each is not None]
        self._sent.clear()
        for each in made:
            for request in each.finished:
                self._runner.forget(request)
            if not self._unfinished.issuperset(each.requests):
                self._drop_ended(each)
            self._unfinished.difference_update(each.finished)
        return made[0] if len(made) == 1 else _together(made)

    def _drop_ended(self, made: NewTokens) -> None:
        """Take out requests of which SGLang speaks once more, as its tokenizer manager does."""
        kept = [request in self._unfinished for request in made.requests]
        if self.detokenizer is not None:
            for request in compress(made.requests, map(not_, kept)):
                self._texts.pop(request)
        kept_ends = [request in self._unfinished for request in made.finished]
        for rows, are_kept in (
            (made.requests, kept),
            (made.tokens, kept),
            (made.finished, kept_ends),
            (made.finish_reasons, kept_ends),
        ):
            rows[:] = compress(rows, are_kept)  # type: ignore[index]

    def take_text(self, request: int) -> str:
        """A finished request's text, once."""
        return self._texts.pop(request)

    def has_unfinished_requests(self) -> bool:
        """Whether a request waits for a token."""
        return bool(self._unfinished)

    def shutdown(self) -> None:
        """Remove the model's folder; SGLang's sockets and groups end with the process."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _new_tokens(output: Any) -> NewTokens | None:
    """What one message to the detokenizer brings, without a bytecode per row.

    A row has one new token, its last: 0.4.6 sends all of a request's tokens with each. For a
    detokenizer there may be some of the prompt before it.
    """
    reasons = getattr(output, "finished_reasons", None)
    tokens = getattr(output, "output_ids", None) or getattr(output, "decode_ids", None)
    if not reasons or not tokens:
        return None
    requests = list(map(int, output.rids))
    ended = list(map(is_not, reasons, repeat(None)))
    return NewTokens(
        requests,
        list(map(_LAST, tokens)),
        list(compress(requests, ended)),
        [_REASONS[each["type"]] for each in compress(reasons, ended)],
    )


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
