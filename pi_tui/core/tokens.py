"""How many tokens a message, a context and a usage stand for, and when a context is too full.

Text lengths are UTF-16 code units, the unit of the session format's own numbers. The estimates are
rough, but stable and observable; tokens reported by a provider are preferred wherever they still
describe the present context.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from pi_tui.core.entries import CompactionEntry, ContextEditEntry, Entry
from pi_tui.core.messages import (
    JSON,
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    Content,
    CustomMessage,
    ImageContent,
    Message,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from pi_tui.core.projection import Projected, Projection, fold_system
from pi_tui.core.protocols import TokenEstimator

CHARS_PER_TOKEN = 4
MOST_TOKENS = 2**53 - 1
"""A report above what every JSON reader keeps exact is damage, not a count."""

IMAGE_CHARS = 4800
"""What an image counts as, in characters."""

_MAY_HOLD_FLOATS = frozenset({float, dict, list})

_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u303f\u3040-\u30ff\u3100-\u312f\u3130-\u318f\u31a0-\u31ff\u3200-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
    "\U0001b000-\U0001b16f\U00020000-\U000323af]"
)


_WITH_CONTENT = (UserMessage, CustomMessage, ToolResultMessage)
_SUMMARIES = (BranchSummaryMessage, CompactionSummaryMessage)


def utf16_length(text: str) -> int:
    """The length of a text in UTF-16 code units: a character outside the basic plane counts 2."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def compact_json(value: JSON) -> str:
    """JSON without spaces and with non-ASCII characters as they are; whole floats as integers."""
    try:
        return msgspec.json.encode(_whole_floats(value)).decode()
    except (UnicodeEncodeError, ValueError, TypeError):
        # Half a surrogate pair, or an integer msgspec will not write.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return '"(nested too deeply)"'


def _whole_floats(value: JSON) -> JSON:
    kind = type(value)
    if kind is float:
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    if kind is dict:
        for item in value.values():
            if type(item) in _MAY_HOLD_FLOATS:
                return {key: _whole_floats(item) for key, item in value.items()}
    elif kind is list:
        return [_whole_floats(item) for item in value]
    return value


# ---------------------------------------------------------------- one message


def counted_texts(message: Message) -> tuple[list[str], int]:
    """The texts of a message that cost tokens, and the number of its images.

    Unknown roles are never sent and cost nothing. Whether excluded shell output costs anything is
    for `sent_tokens` to say.
    """
    if isinstance(message, AssistantMessage):
        return _assistant_texts(message), 0
    if isinstance(message, _WITH_CONTENT):
        return _content_texts(message.content)
    if isinstance(message, BashExecutionMessage):
        return [message.command, message.output], 0
    if isinstance(message, _SUMMARIES):
        return [message.summary], 0
    if isinstance(message, SystemMessage):
        texts, images = _content_texts(message.content)
        texts += [text for text in (message.sections or {}).values() if text is not None]
        if message.tools_added is not None:
            texts.append(compact_json(list(message.tools_added)))
        return texts, images
    return [], 0


def _content_texts(content: str | Sequence[Content]) -> tuple[list[str], int]:
    if isinstance(content, str):
        return [content], 0
    texts = []
    images = 0
    for block in content:
        if isinstance(block, TextContent):
            texts.append(block.text)
        elif isinstance(block, ImageContent):
            images += 1
    return texts, images


def _assistant_texts(message: AssistantMessage) -> list[str]:
    texts = []
    for block in message.content:
        if isinstance(block, TextContent):
            texts.append(block.text)
        elif isinstance(block, ThinkingContent):
            texts.append(block.thinking)
        elif isinstance(block, ToolCall):
            texts += [block.name, compact_json(block.arguments)]
    return texts


def sent_tokens(message: Message, estimator: TokenEstimator) -> int:
    """Estimate what a message costs in a context: excluded shell output is never sent, so 0."""
    if isinstance(message, BashExecutionMessage) and message.excluded:
        return 0
    return estimator.message_tokens(message)


class CharsEstimator:
    """Estimates by characters: four to a token, rounded up once per message.

    With `cjk`, each Chinese, Japanese or Korean character counts as a token of its own, because a
    quarter is far too low for those scripts.
    """

    def __init__(self, *, cjk: bool = False) -> None:
        self._chars = _chars_with_cjk if cjk else utf16_length

    def message_tokens(self, message: Message) -> int:
        """Estimate one message."""
        texts, images = counted_texts(message)
        chars = images * IMAGE_CHARS + sum(map(self._chars, texts))
        return -(-chars // CHARS_PER_TOKEN)

    def text_tokens(self, text: str) -> int:
        """Estimate a text that stands alone."""
        return -(-self._chars(text) // CHARS_PER_TOKEN)


def _chars_with_cjk(text: str) -> int:
    """A length in which each character of those scripts counts as a whole token."""
    length = utf16_length(text)
    if text.isascii():
        return length
    wide = _CJK.findall(text)
    return length + sum(CHARS_PER_TOKEN - (2 if char > "\uffff" else 1) for char in wide)


# ---------------------------------------------------------------- a context


class ContextEstimate(Struct, frozen=True):
    """Tokens of a context: what a provider reported plus estimates of what came later.

    `usage_entry_id` is the entry whose report was trusted; None means all of it is estimated.
    """

    tokens: int
    usage_tokens: int
    trailing_tokens: int
    usage_entry_id: str | None


def usage_total(usage: Usage) -> int:
    """All tokens of a usage: the reported total, else the sum of its parts."""
    return usage.total_tokens or usage.sum_tokens


def valid_usage_tokens(message: Message) -> int | None:
    """The tokens an answer reported; None when the report cannot be relied on."""
    if not isinstance(message, AssistantMessage) or message.usage is None:
        return None
    if message.stop_reason in ("error", "aborted"):
        return None
    usage = message.usage
    parts = (usage.input, usage.output, usage.cache_read, usage.cache_write)
    if not usage.total_tokens and None in parts:
        return None
    total = usage_total(usage)
    return total if 0 < total <= MOST_TOKENS else None


def estimate_context(
    path: Sequence[Entry], projection: Projection, estimator: TokenEstimator
) -> ContextEstimate:
    """Estimate the tokens of a path's context.

    A report older than the newest compaction or context edit of the path describes another
    context and is not used.
    """
    messages = projection.messages
    for i in reversed(range(len(messages))):
        reported = valid_usage_tokens(messages[i].message)
        if reported is None:
            continue
        if not _is_current(path, messages[i].entry_id):
            break
        trailing = sum(sent_tokens(p.message, estimator) for p in messages[i + 1 :])
        return ContextEstimate(reported + trailing, reported, trailing, messages[i].entry_id)
    tokens = estimate_messages(messages, estimator)
    return ContextEstimate(tokens, 0, tokens, None)


def estimate_messages(messages: Sequence[Projected], estimator: TokenEstimator) -> int:
    """Estimate projected messages, the system messages as the one prompt they make."""
    tokens = 0
    system: list[SystemMessage] = []
    for projected in messages:
        if isinstance(projected.message, SystemMessage):
            system.append(projected.message)
        else:
            tokens += sent_tokens(projected.message, estimator)
    folded = fold_system(system)
    return tokens + (estimator.message_tokens(folded) if folded is not None else 0)


def _is_current(path: Sequence[Entry], entry_id: str) -> bool:
    for entry in reversed(path):
        if entry.id == entry_id:
            return True
        if isinstance(entry, CompactionEntry | ContextEditEntry):
            return False
    return False


def should_compact(
    context_tokens: int, context_window: int, *, reserve_tokens: int, enabled: bool = True
) -> bool:
    """Whether a context has grown into the reserve of the window."""
    return enabled and context_tokens > context_window - reserve_tokens
