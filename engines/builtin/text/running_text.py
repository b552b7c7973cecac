"""A request's text while it runs: decoded token by token, cut at a stop string."""

from engines.builtin.text import Detokenizer
from engines.builtin.text.stop_strings import find_stop
from engines.protocol import FinishReason, SamplingParams

Tokens = int | list[int]


class RunningText:
    """``token_ids`` are all tokens of the request, kept here again as vLLM's detokenizer does.

    The token that stops a request has no part in the text unless
    ``include_stop_str_in_output``, as in vLLM.
    """

    __slots__ = ("_detokenizer", "_includes_stop", "_stream", "text", "token_ids")

    num_kept = 0
    """Tokens of the last step up to the one that completed a stop string; 0: none did."""

    def __init__(self, detokenizer: Detokenizer, params: SamplingParams) -> None:
        self._detokenizer = detokenizer
        self._stream = detokenizer.stream()
        self._includes_stop = params.include_stop_str_in_output
        self.token_ids: list[int] = []
        self.text = ""

    def take(self, tokens: Tokens, reason: FinishReason | None) -> str:
        """The text to show for a step's tokens; ``reason`` where the last of them ends it."""
        if reason is not None:
            return self._take_last(tokens, reason)
        step = self._stream.step
        if isinstance(tokens, int):
            self.token_ids.append(tokens)
            text = step(tokens)
        else:
            self.token_ids += tokens
            text = step(tokens[0]) if len(tokens) == 1 else "".join(map(step, tokens))
        self.text += text
        return text

    def _take_last(self, tokens: Tokens, reason: FinishReason) -> str:
        self.token_ids += [tokens] if isinstance(tokens, int) else tokens
        num_shown = len(self.text)
        text = "".join(map(self._stream.step, self._without_stop(tokens, reason)))
        self.text += text
        is_extended = self._end(reason)
        return self.text[num_shown:] if is_extended else text

    def _without_stop(self, tokens: Tokens, reason: FinishReason | None) -> list[int]:
        each = [tokens] if isinstance(tokens, int) else tokens
        return each[:-1] if reason is FinishReason.STOP and not self._includes_stop else each

    def _end(self, reason: FinishReason) -> bool:
        """Make the text whole; whether what was shown is its beginning."""
        if self._stream.exact:
            return True
        shown = self.text
        self.text = self._detokenizer.decode(self._without_stop(self.token_ids, reason))
        return self.text.startswith(shown)


class TextUntilStop(RunningText):
    """With stop strings: looked for as each token's text comes, whatever a step brings.

    As much of the text is withheld as could be the beginning of the longest. ``token_ids`` is
    cut after the token that completed one.
    """

    __slots__ = ("_min_tokens", "_num_shown", "_num_withheld", "_stop", "num_kept")

    def __init__(self, detokenizer: Detokenizer, params: SamplingParams) -> None:
        super().__init__(detokenizer, params)
        self._stop = params.stop
        self._min_tokens = params.min_tokens
        longest = max(map(len, params.stop))
        self._num_withheld = 0 if self._includes_stop else longest - 1
        self._num_shown = 0
        self.num_kept = 0

    def take(self, tokens: Tokens, reason: FinishReason | None) -> str:
        """The text to show; with a stop string in it all that is left, and `num_kept` is set."""
        num_before = len(self.token_ids)
        self.token_ids += [tokens] if isinstance(tokens, int) else tokens
        for nth, token in enumerate(self._without_stop(tokens, reason), 1):
            text = self._stream.step(token)
            self.text += text
            if text and self._stops(num_before + nth, len(text)):
                self.num_kept = nth
                del self.token_ids[num_before + nth :]
                return self._show(len(self.text))
        num_tokens = len(self.token_ids)
        if reason is None:
            return self._show(len(self.text) - self._num_withheld)
        length = len(self.text)
        if not self._end(reason):
            return ""
        if self._stops(num_tokens, len(self.text) - length):
            self.num_kept = num_tokens - num_before
        return self._show(len(self.text))

    def _stops(self, num_tokens: int, num_new: int) -> bool:
        if num_tokens <= self._min_tokens or not num_new:
            return False
        found = find_stop(self.text, num_new, self._stop)
        if found is None:
            return False
        self.text = self.text[: found[1] if self._includes_stop else found[0]]
        return True

    def _show(self, until: int) -> str:
        begin = self._num_shown
        if until <= begin:
            return ""
        self._num_shown = until
        return self.text[begin:until]
