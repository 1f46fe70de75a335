"""How a conversation is divided so that every summary request fits the window.

Sizes are tokens, estimated high: a request that is refused as too long costs more than one part
more. Every block of a message is bounded by `serialize`; here whole messages are grouped, oldest
first, and a single message that still exceeds a part is cut to its head and tail.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from pi_tui.core.compaction.files import FileLists, file_lists_text
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

LISTS_SHARE = 5
"""The file lists of a summary take at most this part of the window."""

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


def summary_room(model: Model, max_output_tokens: int | None = None) -> SummaryRoom:
    """The room of a model: a quarter of the window at most is kept for the answer.

    `max_output_tokens`: what the server said to be its limit, where that is lower.
    """
    limit = min(model.max_tokens, max_output_tokens or model.max_tokens)
    output = min(limit, max(256, model.context_window // 4))
    return SummaryRoom(model.context_window - output - PROMPT_TOKENS, output)


def fitting_keep_tokens(
    keep_recent_tokens: int, reserve_tokens: int, window_tokens: int, fixed_tokens: int
) -> int:
    """How much a compaction keeps when nobody named an amount.

    That is the setting, unless keeping so much beside the system prompt and the tools
    (`fixed_tokens`) could never bring the context under the trigger, as in small windows.
    """
    room = window_tokens - reserve_tokens - fixed_tokens
    if keep_recent_tokens < room:
        return keep_recent_tokens
    reachable = room // 2 if room > 0 else (window_tokens - fixed_tokens) // 4
    return min(keep_recent_tokens, max(0, reachable))


def high_tokens(text: str) -> int:
    """Tokens of a text, estimated high."""
    return int(_CHARS.text_tokens(text) * HIGH) + 1


def bounded_text(text: str, max_tokens: int) -> str:
    """The text, cut to its head and tail when it has more tokens."""
    shortened = text
    chars = float(len(text))
    while (tokens := high_tokens(shortened)) > max_tokens:
        # Scripts differ in tokens a character, so the first guess may still be too long.
        chars = chars * max_tokens / tokens * 0.95
        if chars < 100:
            return ""
        shortened = shorten(text, Bound(int(chars * 3 / 4), int(chars / 5)))
    return shortened


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


def fitting_lists_text(lists: FileLists, max_tokens: int) -> str:
    """The block of file lists for a summary, within a number of tokens.

    Ordinary lists are complete. Where thousands of files do not fit, what was only read gives way
    first; the lists in the details of the entry stay complete.
    """
    text = file_lists_text(lists)
    if high_tokens(text) <= max_tokens:
        return text
    modified = _fitting_paths(lists.modified_files, max_tokens)
    left = max_tokens - sum(map(high_tokens, modified))
    return file_lists_text(FileLists(_fitting_paths(lists.read_files, left), modified))


def _fitting_paths(paths: tuple[str, ...], max_tokens: int) -> tuple[str, ...]:
    """As many paths as fit, with a line that counts the others."""
    kept: list[str] = []
    left = max_tokens - 30
    for path in paths:
        left -= high_tokens(path) + 1
        if left < 0:
            break
        kept.append(path)
    more = len(paths) - len(kept)
    return (*kept, f"({more} more, named in the session file)") if more else tuple(kept)
