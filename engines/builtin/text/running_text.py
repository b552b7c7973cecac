"""A request's text while it runs: decoded token by token, cut at a stop string."""

from engines.builtin.text import Detokenizer
from engines.builtin.text.stop_strings import find_stop
from engines.protocol import FinishReason, SamplingParams

TextTokens = int | list[int]


class RunningText:
    """Keeps a token only until its text is final, all of them where that cannot be said.

    The token that stops a request has no part in the text unless
    ``include_stop_str_in_output``, as in vLLM.
    """

    __slots__ = (
        "_detokenizer",
        "_includes_stop",
        "_is_final",
        "_num_final",
        "_num_ids",
        "_stream",
        "_token_ids",
        "text",
    )

    num_kept = 0
    """Tokens of the last step up to the one that completed a stop string; 0: none did."""
    num_tokens: int | None = None
    """Tokens up to that one; None: all that were taken."""

    def __init__(self, detokenizer: Detokenizer, params: SamplingParams) -> None:
        self._detokenizer = detokenizer
        self._is_final = detokenizer.is_final
        self._num_ids = detokenizer.num_ids
        self._stream = detokenizer.stream()
        self._includes_stop = params.include_stop_str_in_output
        self._token_ids: list[int] = []
        self._num_final = 0  # characters before the text of these tokens
        self.text = ""

    def take(self, tokens: TextTokens, reason: FinishReason | None) -> str:
        """The text to show for a step's tokens; ``reason`` where the last of them ends it."""
        if reason is not None:
            return self._take_last(tokens, reason)
        if isinstance(tokens, int):
            return self._next(tokens)
        return self._next(tokens[0]) if len(tokens) == 1 else "".join(map(self._next, tokens))

    def _next(self, token_id: int) -> str:
        text = self._stream.step(token_id)
        if text and self._is_final:
            if self._token_ids:
                self._token_ids = []
        elif token_id < self._num_ids:
            if not self._token_ids:
                self._num_final = len(self.text)
            self._token_ids.append(token_id)
        self.text += text
        return text

    def _take_last(self, tokens: TextTokens, reason: FinishReason) -> str:
        num_shown = len(self.text)
        text = "".join(map(self._next, self._without_stop(tokens, reason)))
        return self.text[num_shown:] if self._end() else text

    def _without_stop(self, tokens: TextTokens, reason: FinishReason | None) -> list[int]:
        each = [tokens] if isinstance(tokens, int) else tokens
        return each[:-1] if reason is FinishReason.STOP and not self._includes_stop else each

    def _end(self) -> bool:
        """Make the text whole; whether what was shown is its beginning."""
        if self._stream.exact:
            return True
        shown = self.text
        self.text = shown[: self._num_final] + self._detokenizer.decode(self._token_ids)
        return self.text.startswith(shown)


class TextUntilStop(RunningText):
    """With stop strings: looked for as each token's text comes, whatever a step brings.

    As much of the text is withheld as could be the beginning of the longest.
    """

    __slots__ = ("_min_tokens", "_num_shown", "_num_withheld", "_stop", "num_kept", "num_tokens")

    def __init__(self, detokenizer: Detokenizer, params: SamplingParams) -> None:
        super().__init__(detokenizer, params)
        self._stop = params.stop
        self._min_tokens = params.min_tokens
        longest = max(map(len, params.stop))
        self._num_withheld = 0 if self._includes_stop else longest - 1
        self._num_shown = 0
        self.num_kept = 0
        self.num_tokens: int = 0

    def take(self, tokens: TextTokens, reason: FinishReason | None) -> str:
        """The text to show; with a stop string in it all that is left, and `num_kept` is set."""
        num_before = self.num_tokens
        for nth, token in enumerate(self._without_stop(tokens, reason), 1):
            text = self._next(token)
            if text and self._stops(num_before + nth, len(text)):
                self.num_kept = nth
                self.num_tokens = num_before + nth
                return self._show(len(self.text))
        self.num_tokens += 1 if isinstance(tokens, int) else len(tokens)
        if reason is None:
            return self._show(len(self.text) - self._num_withheld)
        length = len(self.text)
        if not self._end():
            return ""
        if self._stops(self.num_tokens, len(self.text) - length):
            self.num_kept = self.num_tokens - num_before
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
