"""In the place of a forward pass and a sampler: scripted tokens, in the shape of the release."""

import inspect
from collections.abc import Callable
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from engines.builtin.device import DeviceBatch
from engines.builtin.device.null import NullDevice
from engines.prepared.features import fitting_tokens
from engines.protocol import EngineConfig
from engines.sglang.dialect import NUMBER_DIGITS, features_asked

_RID = attrgetter("rid")
_NUMBER = itemgetter(slice(NUMBER_DIGITS))


class ScriptedRunner:
    """Stands for ``ModelRunner.forward`` and ``.sample``.

    Tokens are a function of (seed, request, position): ``begin`` is told whose the rows are, whose
    names have a request's number in their bits of `NUMBER`. A step runs the same bytecodes here,
    whatever its batch.
    """

    def __init__(self, config: EngineConfig) -> None:
        import torch

        self._tensor: Callable[[Any], Any] = torch.from_numpy
        self._device = NullDevice(config)
        self._prompt_len: dict[str, int] = {}
        self._prompt_len_of = self._prompt_len.__getitem__
        self._rows = self._prompt_lens = np.empty(0, np.int64)
        self._forwarded: Any = None
        has_grammar = features_asked(config).has_grammar
        self._fitting: Any = fitting_tokens(config.tokenizer) if has_grammar else None

    def take_over(self, model_runner: Any) -> None:
        """Have a release's runner answer with ours."""
        self._forwarded = _forwarded(model_runner)
        self._fill_mask = model_runner._preprocess_logits
        model_runner.forward = self.forward
        model_runner.sample = self.sample if self._fitting is None else self.sample_fitting

    def admit(self, rid: str, prompt_len: int) -> None:
        """A request whose first token follows so many of its prompt."""
        self._prompt_len[rid] = prompt_len

    def begin(self, batch: Any) -> None:
        """The requests of the step that comes, in the order of its rows."""
        rids = list(map(_RID, batch.reqs or ()))
        self._rows = np.fromiter(map(int, map(_NUMBER, rids)), np.int64, len(rids))
        lens = map(self._prompt_len_of, rids)
        self._prompt_lens = np.fromiter(lens, np.int64, len(rids))

    def forget(self, rid: str) -> None:
        """A request that has ended."""
        self._prompt_len.pop(rid, None)

    def forward(self, *_: Any, **__: Any) -> Any:
        """No logits, as the release's forward pass would hand them over."""
        return self._forwarded

    def sample(self, _: Any, batch: Any, *__: Any, **___: Any) -> Any:
        """A step's tokens, int64 ``[num_rows]``; in a chunk of a prompt they are nobody's."""
        context = batch.seq_lens.numpy()
        position = np.maximum(context - self._prompt_lens, 0)
        rows = self._rows
        scheduled = DeviceBatch(rows, position, np.ones(len(rows), np.int32), context, None, None)
        return self._tensor(self._device.launch(scheduled).tokens[:, 0].astype(np.int64))

    def sample_fitting(self, logits: Any, batch: Any, *_: Any, **__: Any) -> Any:
        """The same where requests have a grammar: its mask is filled, and each token is a text."""
        self._fill_mask(logits, batch.sampling_info)
        return self._tensor(self._fitting[self.sample(logits, batch).numpy()].astype(np.int64))


def _forwarded(model_runner: Any) -> Any:
    """What the release's ``ModelRunner.forward`` returns: one of three shapes."""
    from sglang.srt.layers.logits_processor import LogitsProcessorOutput
    from sglang.srt.model_executor import model_runner as module

    logits = LogitsProcessorOutput(next_token_logits=None)
    if hasattr(module, "ModelRunnerOutput"):
        return module.ModelRunnerOutput(logits_output=logits, can_run_graph=False)
    said = str(inspect.signature(model_runner.forward).return_annotation)
    return (logits, False) if "Tuple" in said or "tuple" in said else logits
