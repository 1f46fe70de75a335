"""What an export shows of a session: branches, and the pieces of each in reading order.

Both formats for people are made from this. Texts pass the masker here and are otherwise as they
stand in the session: foreign. System prompts are left out, because they name directories of this
machine; so are `!!` commands, which their user kept to himself. Both are counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from pi_tui.agent.accounting import UsageTotals, counted
from pi_tui.core.entries import CustomMessageEntry, Entry, MessageEntry
from pi_tui.core.messages import (
    JSON,
    AssistantMessage,
    Content,
    CustomMessage,
    ImageContent,
    ToolResultMessage,
    UserMessage,
)
from pi_tui.core.transcript import (
    Block,
    ShellBlock,
    ToolAnswer,
    ToolBlock,
    answered,
    orphan,
    parts_of,
)
from pi_tui.core.tree import SessionTree
from pi_tui.export.masking import Masker

_BLANKS_PER_CHAR = 20
"""How much longer than what is shown the text may be that is looked at: most of it blanks."""
_MAIN_ARGUMENT_CHARS = 10_000
MAIN_ARGUMENTS = ("path", "command", "pattern", "file_path", "query", "url")


class Piece(Struct, frozen=True):
    """A block of the transcript with what belongs to it. `answer`: it ends this model answer."""

    entry_id: str
    block: Block
    images: tuple[ImageContent, ...] = ()
    answer: AssistantMessage | None = None


class Branch(Struct, frozen=True):
    """A chain of entries. `parent_id` is the entry of another branch it continues."""

    ids: tuple[str, ...]
    parent_id: str | None = None


class Conversation:
    """One session on its way into a file."""

    def __init__(self, tree: SessionTree, masker: Masker) -> None:
        self.tree = tree
        self.masker = masker
        self.commands_left_out = 0
        self.system_prompts_left_out = sum(tree.head(i).role == "system" for i in tree.ids())
        self.path = frozenset(tree.path_ids())

    def branches(self) -> Iterator[Branch]:
        """The current branch, then all others in file order."""
        tree = self.tree
        yield Branch(tuple(tree.path_ids()))
        starts = [
            i for i in tree.ids() if i not in self.path and self._begins_elsewhere(tree.parent(i))
        ]
        waiting = list(reversed(starts))
        while waiting:
            at: str | None = waiting.pop()
            ids: list[str] = []
            while at is not None:
                ids.append(at)
                first, *others = tree.children(at) or (None,)
                waiting.extend(other for other in reversed(others) if other is not None)
                at = first
            yield Branch(tuple(ids), tree.parent(ids[0]))

    def _begins_elsewhere(self, parent: str | None) -> bool:
        return parent is None or parent in self.path

    def pieces(self, branch: Branch) -> list[Piece]:
        """What is shown of a branch; calls carry their results."""
        pieces: list[Piece] = []
        open_calls: dict[str, int] = {}
        for entry_id in branch.ids:
            entry = self.tree.entry(entry_id)
            images = images_of(entry)
            for part in parts_of(entry):
                if isinstance(part, ToolAnswer):
                    self._add_answer(entry_id, part, images, pieces, open_calls)
                    continue
                if isinstance(part, ShellBlock) and part.excluded:
                    self.commands_left_out += 1
                    continue
                if isinstance(part, ToolBlock):
                    open_calls[part.call_id] = len(pieces)
                pieces.append(Piece(entry_id, part, images))
                images = ()
            if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
                pieces[-1] = replace(pieces[-1], answer=entry.message)
        return pieces

    def _add_answer(
        self,
        entry_id: str,
        part: ToolAnswer,
        images: tuple[ImageContent, ...],
        pieces: list[Piece],
        open_calls: dict[str, int],
    ) -> None:
        at = open_calls.pop(part.call_id, None)
        call = pieces[at].block if at is not None else None
        if at is not None and isinstance(call, ToolBlock):
            pieces[at] = replace(pieces[at], block=answered(call, part), images=images)
        else:
            pieces.append(Piece(entry_id, orphan(part), images))

    def text(self, text: str) -> str:
        """A text without keys."""
        return self.masker.mask(text)

    def arguments_text(self, arguments: dict[str, JSON]) -> str:
        """All arguments of a call as readable JSON, without keys.

        They are masked before they are encoded, where no escape hides how a key begins, and once
        more as text, for numbers beside a telling name.
        """
        if not arguments:
            return ""
        masked = self.masker.mask_json(arguments)
        return self.text(json.dumps(masked, ensure_ascii=False, indent=2))

    def main_argument(self, arguments: dict[str, JSON]) -> str:
        """The argument that tells best what a call does, without keys, counted elsewhere."""
        name, value = _main_argument(arguments)
        # A value without its name may not look like a key any more.
        masked = self.masker.mask_json({name: value[:_MAIN_ARGUMENT_CHARS]}, counted=False)
        return next(iter(masked.values()), "") if isinstance(masked, dict) else ""

    def glance(self, text: str, limit_chars: int) -> str:
        """The beginning of a text on one line, without keys, which are counted elsewhere."""
        beginning = text[: limit_chars * _BLANKS_PER_CHAR]
        if len(beginning) < len(text):
            # A key that was cut need not look like one.
            beginning = beginning[: _last_blank(beginning)]
        line = " ".join(self.masker.mask(beginning, counted=False).split())
        whole = len(beginning) == len(text) and len(line) <= limit_chars
        return line if whole else line[: limit_chars - 1] + "…"

    @property
    def title(self) -> str:
        """The name of the session, else its first words."""
        name = self.tree.session_name
        if name:
            return self.glance(name, 200)
        for entry_id in self.tree.ids():
            if self.tree.head(entry_id).role == "user":
                entry = self.tree.entry(entry_id)
                if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
                    return self.glance(_text(entry.message.content), 80) or "Session"
        return "Session"

    def what_is_missing(self) -> list[str]:
        """Sentences about what a reader of the file may miss; complete once all was shown."""
        counts = (
            (self.system_prompts_left_out, "system prompt", "left out"),
            (self.commands_left_out, "!! command", "left out"),
            (self.masker.count, "key", "masked"),
        )
        return [
            f"{number} {thing}{'s were' if number > 1 else ' was'} {fate}."
            for number, thing, fate in counts
            if number
        ]

    def totals(self) -> UsageTotals:
        """Tokens and costs over the whole file."""
        totals = UsageTotals()
        for entry_id in self.tree.ids():
            head = self.tree.head(entry_id)
            if counted(head.type, head.role):
                totals.add(self.tree.entry(entry_id))
        return totals


def _text(content: str | Iterable[Content]) -> str:
    if isinstance(content, str):
        return content
    return " ".join(text for block in content if (text := getattr(block, "text", "")))


def images_of(entry: Entry) -> tuple[ImageContent, ...]:
    """The images an entry carries."""
    content: str | Iterable[Content] = ()
    if isinstance(entry, MessageEntry):
        if isinstance(entry.message, UserMessage | ToolResultMessage | CustomMessage):
            content = entry.message.content
    elif isinstance(entry, CustomMessageEntry):
        content = entry.content
    if isinstance(content, str):
        return ()
    return tuple(block for block in content if isinstance(block, ImageContent))


def _main_argument(arguments: dict[str, JSON]) -> tuple[str, str]:
    for name in MAIN_ARGUMENTS:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return name, value
    strings = ((name, value) for name, value in arguments.items() if isinstance(value, str))
    return next(strings, ("", ""))


def _last_blank(text: str) -> int:
    """Where the last word of a text begins; its end when there is no other word."""
    words = text.rstrip().rsplit(None, 1)
    return len(text) - len(words[1]) if len(words) > 1 and not text[-1].isspace() else len(text)


def diff_text(details: JSON) -> str:
    """The diff a tool recorded; "" when there is none."""
    diff = details.get("diff") if isinstance(details, dict) else None
    return diff if isinstance(diff, str) else ""


def cost_text(dollars: float) -> str:
    return f"${dollars:.4f}" if dollars < 1 else f"${dollars:,.2f}"


def answer_line(message: AssistantMessage) -> str:
    """Model, tokens and cost of an answer, on one line."""
    parts = [f"{message.provider}/{message.model}".strip("/")]
    usage = message.usage
    if usage is not None:
        parts.append(f"{usage.sum_tokens - (usage.output or 0):,} tokens in")
        parts.append(f"{usage.output or 0:,} out")
        if usage.cost.total:
            parts.append(cost_text(usage.cost.total))
    return " · ".join(part for part in parts if part)
