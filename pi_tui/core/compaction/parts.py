"""How a conversation is divided so that every summary request fits the window.

Sizes are tokens, estimated high: a request that is refused as too long costs more than one part
more. Every block of a message is bounded by `serialize`; here whole messages are grouped, oldest
first, and a single message that still exceeds a part is cut to its head and tail.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from pi_tui.core.compaction.serialize import (
    REQUEST_TAIL_CHARS,
    Bound,
    message_parts,
    shorten,
)
from pi_tui.core.messages import Message
from pi_tui.core.models import Model
from pi_tui.core.tokens import CharsEstimator

HIGH = 4 / 3
"""Three characters a token instead of four: code and numbers tokenise worse than prose."""

PROMPT_TOKENS = 1_500
"""Room for the instructions and the summariser's system text."""

SMALLEST_PART_TOKENS = 1_000

_CHARS = CharsEstimator(cjk=True)
_SEPARATOR = "\n\n"


class SummaryRoom(Struct, frozen=True):
    """What one summary request of a model can hold, in tokens.

    `input_tokens` is for the conversation, the earlier summary and the user's focus together.
    """

    input_tokens: int
    output_tokens: int

    @property
    def too_small(self) -> bool:
        """True when no sensible part fits."""
        return self.input_tokens < 2 * SMALLEST_PART_TOKENS


def summary_room(model: Model) -> SummaryRoom:
    """The room of a model: a quarter of the window at most is kept for the answer."""
    output = max(256, min(model.max_tokens, model.context_window // 4))
    return SummaryRoom(model.context_window - output - PROMPT_TOKENS, output)


def high_tokens(text: str) -> int:
    """Tokens of a text, estimated high."""
    return int(_CHARS.text_tokens(text) * HIGH) + 1


def bounded_text(text: str, max_tokens: int) -> str:
    """The text, cut to its head and tail when it has more tokens."""
    tokens = high_tokens(text)
    if tokens <= max_tokens:
        return text
    chars = int(len(text) * max_tokens / tokens)
    return shorten(text, Bound(chars * 3 // 4, chars // 5))


def conversation_parts(messages: Iterable[Message], max_tokens: int) -> list[str]:
    """Serialise messages into texts of at most `max_tokens` each, oldest first."""
    parts: list[str] = []
    open_texts: list[str] = []
    open_tokens = 0
    for message in messages:
        text = _SEPARATOR.join(message_parts(message, tail_chars=REQUEST_TAIL_CHARS, bounded=True))
        if not text:
            continue
        text = bounded_text(text, max_tokens)
        tokens = high_tokens(text)
        if open_texts and open_tokens + tokens > max_tokens:
            parts.append(_SEPARATOR.join(open_texts))
            open_texts, open_tokens = [], 0
        open_texts.append(text)
        open_tokens += tokens
    if open_texts:
        parts.append(_SEPARATOR.join(open_texts))
    return parts


def halves(text: str) -> tuple[str, str] | None:
    """Split a part near its middle, between two messages where possible; None when too small."""
    if high_tokens(text) < 2 * SMALLEST_PART_TOKENS:
        return None
    middle = len(text) // 2
    at = text.find(_SEPARATOR + "[", middle)
    if at < 0:
        at = text.rfind(_SEPARATOR + "[", 0, middle)
    if at <= 0:
        at = middle
    return text[:at].rstrip(), text[at:].lstrip()
